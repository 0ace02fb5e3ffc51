"""Laws of the parametric bootstrap: everything that was drawn by chance is drawn anew, by the seed that is given."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.models import TabularModel
from tightrope.models.tabular.blocks import LANES


def prepared(data, policy, **settings):
    return TabularModel(**settings).prepare(Problem(data, policy), anchor="low")


def starting(counts):
    """One step and the end, from as many starts in each state; state k pays k."""
    starts = np.repeat(np.arange(len(counts)), counts)
    return tightrope.TrajectoryDataset(
        offsets=np.arange(len(starts) + 1),
        rewards=starts.astype(float),
        terminated=np.ones(len(starts), dtype=bool),
        horizon=1,
        states=starts,
        actions=np.zeros(len(starts), dtype=int),
    )


def test_starts_are_drawn_anew():
    """30 of 100 episodes start where 1 is paid, and nothing else is left to chance: Binomial(100, 0.3)/100."""
    values = prepared(starting([70, 30]), np.ones((2, 1))).simulated_values(4000, seed=1)
    assert values.mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 100 / 4000))
    assert values.std() == pytest.approx(np.sqrt(0.21 / 100), rel=0.05)
    np.testing.assert_allclose(values * 100, np.round(values * 100), atol=1e-9)


def test_it_spreads_as_resampled_trajectories_do():
    """On many logs of a right model the two bootstraps see the same uncertainty, starts included."""
    problem = small("clinic")
    model = prepared(problem.logs(2000, rng=np.random.default_rng(1)), problem.candidate)
    resampled = model.values(tightrope.draw_weights(2000, 1500, seed=0))
    assert model.simulated_values(1500, seed=0).std() == pytest.approx(resampled.std(), rel=0.1)


def test_replicates_follow_the_seed_and_differ_from_each_other():
    model = prepared(starting([40, 30, 30]), np.ones((3, 1)))
    first, again, other = (model.simulated_values(4 * LANES, seed=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first, again)
    assert (first != other).mean() > 0.5
    blocks = first.reshape(4, LANES)
    assert all((blocks[i] != blocks[j]).any() for i in range(4) for j in range(i))
