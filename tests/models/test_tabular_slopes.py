"""Derivatives of the tabular model's value under every one of its settings, against central differences."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.models import TabularModel

STEP = 1e-5
REWARDS = small("bonus").mdp.rewards[..., 0] + 0.3  # known, and not what was logged

SETTINGS = {
    "counts": {},
    "known rewards": {"rewards": REWARDS},
    "smoothed": {"smoothing": 2.0},
    "known rewards, smoothed": {"rewards": REWARDS, "smoothing": 0.5},
    "worst": {"unseen": "worst"},
    "terminate": {"unseen": "terminate"},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_slopes_are_derivatives(name):
    problem = small("bonus")
    data = problem.logs(12, rng=np.random.default_rng(3))
    made = TabularModel(**SETTINGS[name]).prepare(Problem(data, problem.candidate), anchor="low")
    weights = np.random.default_rng(0).uniform(0.5, 2.0, size=12)
    found = made.influences(weights[None])[0]
    assert np.abs(found).max() > 1e-3
    for i in range(12):
        up, down = weights.copy(), weights.copy()
        up[i] += STEP
        down[i] -= STEP
        expected = np.diff(made.values(np.stack([down, up])))[0] / (2 * STEP)
        assert found[i] == pytest.approx(expected, rel=1e-4, abs=1e-7)
    assert weights @ found == pytest.approx(0.0, abs=1e-9) or "smoothed" in name  # pseudo-visits do not grow along


@pytest.mark.parametrize("sure", [False, True])
@pytest.mark.parametrize("name", SETTINGS)
def test_values_of_steps_and_what_moves_them(name, sure):
    """Those of each row alone, to the bit; and the derivative of any sum of them, by central differences.

    A candidate that is sure of its actions never takes some that were logged: their q̂ counts all the same.
    """
    problem, rng = small("bonus"), np.random.default_rng(1)
    data, table = problem.logs(12, rng=np.random.default_rng(3)), problem.candidate.table
    policy = TabularPolicy(np.eye(table.shape[-1])[table.argmax(axis=-1)]) if sure else problem.candidate
    made = TabularModel(**SETTINGS[name]).prepare(Problem(data, policy), anchor="low")
    weights = rng.uniform(0.5, 2.0, size=(11, 12))
    both = made.step_values(weights)
    for row, *values in zip(weights, *both, strict=True):
        for got, expected in zip(values, made.control_variates(row), strict=True):
            np.testing.assert_array_equal(got, expected)
    slopes = rng.normal(size=(2, 11, data.n_steps))
    moved = made.pull_back(weights, *slopes)

    def total(rows, place):
        return sum(
            (values * slope[place]).sum(axis=1) for values, slope in zip(made.step_values(rows), slopes, strict=True)
        )

    for place, row in enumerate(weights):
        up, down = total(row + STEP * np.eye(12), place), total(row - STEP * np.eye(12), place)
        np.testing.assert_allclose(moved[place], (up - down) / (2 * STEP), rtol=1e-4, atol=1e-6)
    alone = made.pull_back(weights[3:4], *(slope[3:4] for slope in slopes))
    np.testing.assert_array_equal(moved[3:4], alone)
