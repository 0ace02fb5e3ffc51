"""Known rewards, Dirichlet smoothing and the parametric bootstrap of the tabular model."""

import numpy as np
import pytest

import tightrope
from tightrope.base.errors import BoundError, DataError
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import MB
from tightrope.models import TabularModel


def coin(outcomes, n_states=2):
    """One decision in state 0 with one action: stay open in state 1 (0) or end (1); reward 1 where it ended."""
    n = len(outcomes)
    ended = np.array(outcomes, dtype=bool)
    return tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1),
        rewards=ended.astype(float),
        terminated=ended,
        horizon=1,
        states=np.zeros(n, dtype=int),
        actions=np.zeros(n, dtype=int),
        final_states=np.ones(n, dtype=int),
        reward_range=(0, 1),
    )


ONLY = tightrope.TabularPolicy([[1.0], [1.0]])


def value(data, **settings):
    prepared = TabularModel(**settings).prepare(Problem(data, ONLY), anchor="low")
    return float(prepared.values(np.ones((1, data.n_trajectories)))[0])


def test_a_known_reward_replaces_the_mean_of_the_logged_ones():
    data = coin([1, 0, 0, 0])
    assert value(data) == pytest.approx(0.25)
    assert value(data, rewards=[[0.7], [0.0]]) == pytest.approx(0.7)


def test_smoothing_by_hand():
    """Two steps: from 0 to 1 three times of four, else the end; state 1 earns 1 and its own row was never logged.

    Horizon 2, rewards known: r(0) = 0, r(1) = 1. Unsmoothed V = 3/4. With 2 pseudo-visits over the next states
    {0, 1, end}: P(1|0) = (3 + 2/3) / (4 + 2) = 11/18, and P(0|0) adds nothing: r(0) = 0.
    """
    n = 4
    lengths = np.array([1, 1, 1, 1])
    data = tightrope.TrajectoryDataset(
        offsets=np.concatenate([[0], np.cumsum(lengths + np.array([1, 1, 1, 0]))]),
        rewards=np.array([0.0, 1.0, 0.0, 1.0, 0.0, 1.0, 0.0]),
        terminated=np.array([True, True, True, True]),
        horizon=2,
        states=np.array([0, 1, 0, 1, 0, 1, 0]),
        actions=np.zeros(7, dtype=int),
        final_states=np.ones(n, dtype=int),
    )
    known = [[0.0], [1.0]]
    assert value(data, rewards=known) == pytest.approx(3 / 4)
    assert value(data, rewards=known, smoothing=2.0) == pytest.approx(11 / 18)


def test_smoothing_is_exempt_from_duplication_and_says_so_by_failing_it():
    problem = small("bonus")
    data = problem.logs(15, rng=np.random.default_rng(0))
    twice = data.take(np.tile(np.arange(15), 2))
    values = [
        float(
            TabularModel(smoothing=1.0)
            .prepare(Problem(logs, problem.candidate), anchor="low")
            .values(np.ones((1, logs.n_trajectories)))[0]
        )
        for logs in (data, twice)
    ]
    assert abs(values[0] - values[1]) > 1e-4


def test_refusals():
    data = coin([1, 0])
    with pytest.raises(DataError, match=r"smoothing must be a number of pseudo-visits, .*; got -1"):
        TabularModel(smoothing=-1)
    with pytest.raises(DataError, match=r"rewards must be finite numbers of shape \(2, 1\); got shape \(1, 1\)"):
        value(data, rewards=[[0.0]])


def test_parametric_bootstrap_by_its_law():
    """One coin with 30 ends of 100: replicate values are Binomial(100, 0.3)/100."""
    data = coin([1] * 30 + [0] * 70)
    prepared = TabularModel().prepare(Problem(data, ONLY), anchor="low")
    values = prepared.simulated_values(4000, seed=1)
    assert values.mean() == pytest.approx(0.3, abs=4 * np.sqrt(0.21 / 100 / 4000))
    assert values.std() == pytest.approx(np.sqrt(0.21 / 100), rel=0.05)
    assert np.allclose(values * 100, np.round(values * 100))
    np.testing.assert_array_equal(prepared.simulated_values(100, seed=1), values[:100])


def test_parametric_bootstrap_draws_from_the_smoothed_model():
    """From state 0, 30 of 40 visits go to 1 (which earns 1), 10 end; with 30 pseudo-visits over {0, 1, end} the model
    goes to 1 with 40/70. Replicates draw k ~ Binomial(40, 40/70) such visits and are worth (k + 10) / 70.
    """
    lengths = np.array([2] * 30 + [1] * 10)
    first = np.cumsum(lengths) - lengths
    states = np.ones(70, dtype=int)
    states[first] = 0
    data = tightrope.TrajectoryDataset(
        offsets=np.append(0, np.cumsum(lengths)),
        rewards=states.astype(float),
        terminated=np.ones(40, bool),
        horizon=2,
        states=states,
        actions=np.zeros(70, dtype=int),
    )
    prepared = TabularModel(smoothing=30.0).prepare(Problem(data, ONLY), anchor="low")
    counts = prepared.simulated_values(4000, seed=2) * 70 - 10
    np.testing.assert_allclose(counts, np.round(counts), atol=1e-9)
    spread = np.sqrt(40 * (40 / 70) * (30 / 70))
    assert counts.mean() == pytest.approx(40 * 40 / 70, abs=4 * spread / np.sqrt(4000))
    assert counts.std() == pytest.approx(spread, rel=0.05)


def test_parametric_bounds_and_who_has_none():
    problem = small("bonus")
    data = problem.logs(200, rng=np.random.default_rng(1))
    resampled = tightrope.lower_bound(data, problem.candidate, estimator="mb", method="percentile")
    simulated = tightrope.lower_bound(data, problem.candidate, estimator="mb", method="percentile", resampling="model")
    assert simulated.value == pytest.approx(resampled.value, abs=0.5 * resampled.standard_error)
    with pytest.raises(BoundError, match="only mb rests on one"):
        tightrope.lower_bound(data, problem.candidate, estimator="wdr", method="percentile", resampling="model")
    with pytest.raises(BoundError, match="studentized needs a standard error of every replicate"):
        tightrope.lower_bound(data, problem.candidate, estimator="mb", method="studentized", resampling="model")


def test_rewards_settings_make_a_hashable_estimator():
    assert hash(MB(TabularModel(rewards=np.zeros((2, 2))))) == hash(MB(TabularModel(rewards=np.zeros((2, 2)))))
