"""Derivatives of the tabular model's value under every one of its settings, against central differences."""

from __future__ import annotations

import numpy as np
import pytest

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
