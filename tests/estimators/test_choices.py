"""How large the ratio of one step can be: declared, or known from both policies; and what contradicts it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tests.estimators.test_tethered import DECLARED, EPISODES, GUESS, NEW, OLD, golden
from tests.laws.laws import logs
from tightrope import GaussianPolicy
from tightrope.base.errors import BoundError, DataError
from tightrope.base.problem import Problem
from tightrope.estimators import TDR
from tightrope.estimators.choices import choices


def bare(**more):
    """The golden episodes with nothing but logged probabilities; their largest step ratio is 2, at the first step."""
    return Problem(logs([replace(e, states=None, actions=None) for e in EPISODES], **{**DECLARED, **more}))


def test_a_declared_ceiling_serves_where_no_policy_is_known():
    assert choices(replace(bare(), max_step_ratio=2.0), exact=True).reach.tolist() == [[2.0]] * 3
    assert tightrope.lower_bound(bare().dataset, estimator="tdr", method="betting", max_step_ratio=2.0).value >= 0


def test_a_ceiling_that_the_logs_exceed_is_refused():
    with pytest.raises(BoundError, match=r"episode 0, step 0 has an importance ratio of 2, above 1\.5"):
        TDR("none").sequential_values(replace(bare(), max_step_ratio=1.5))
    with pytest.raises(BoundError, match=r"episode 0, step 0"):  # known policies do not make it right
        TDR().sequential_values(replace(golden(), max_step_ratio=1.5))


@pytest.mark.parametrize("given", [0.9, np.inf, np.nan, "2"])
def test_a_ceiling_must_be_a_finite_number_of_at_least_one(given):
    with pytest.raises(DataError, match="max_step_ratio must be a finite number of at least 1"):
        tightrope.estimate(bare().dataset, estimator="tdr", max_step_ratio=given)


def test_without_any_ceiling_nothing_is_exact():
    with pytest.raises(BoundError, match=r"how large the importance ratio of one step can be.*max_step_ratio"):
        TDR("none").sequential_values(bare())
    with pytest.raises(BoundError, match=r"how large the importance ratio of one step can be"):
        TDR().sequential_values(Problem(logs(EPISODES, **DECLARED), NEW))
    assert np.isfinite(TDR("none")(bare()).estimate)  # the largest one seen serves an approximate bound


@pytest.mark.parametrize("factor", [1.01, 0.99])
def test_logged_probabilities_that_contradict_the_behavior_policy_are_refused(factor):
    """Too low or too high: in either case nobody knows the ratios of other actions."""
    changed = [EPISODES[0], replace(EPISODES[1], behavior=[0.75 * factor])]
    with pytest.raises(BoundError, match=r"episode 1, step 0 has an importance ratio of 0\.6.* by its logged prob"):
        TDR(GUESS).sequential_values(Problem(logs(changed, behavior=OLD, **DECLARED), NEW))


@pytest.mark.parametrize("dimensions", [1, 2])
def test_the_ceiling_of_normal_policies_is_the_largest_ratio_there_is(dimensions):
    """Against a fine grid around where it is largest, and everywhere else below."""
    rng, k = np.random.default_rng(dimensions), dimensions
    wide = np.array([[0.9]]) if k == 1 else np.array([[0.9, 0.2], [0.2, 0.5]])
    narrow = 0.5 * wide
    old = GaussianPolicy(lambda s, t: s @ np.full((1, k), 0.3), wide)
    new = GaussianPolicy(lambda s, t: s @ np.full((1, k), -0.2) + 0.4, narrow)
    states = rng.normal(size=(4, 1))
    actions = old.act(states, np.zeros(4, dtype=int), rng.uniform(0.2, 0.8, (4, k)))
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(5), rewards=np.zeros(4), terminated=np.ones(4, bool), horizon=1, states=states,
        actions=actions, behavior=old, behavior_log_probs=old.log_prob(states, actions, np.zeros(4, dtype=int)),
        reward_range=(-1.0, 1.0),
    )  # fmt: skip
    reach = choices(Problem(data, new), exact=True).reach[:, 0]
    axis = np.linspace(-8, 8, 3201 if k == 1 else 401)
    grid = np.stack([part.ravel() for part in np.meshgrid(*[axis] * k)], axis=1)
    for state, most in zip(states, reach, strict=True):
        here, times = np.repeat(state[None], len(grid), axis=0), np.zeros(len(grid), dtype=int)
        ratios = np.exp(new.log_prob(here, grid, times) - old.log_prob(here, grid, times))
        assert ratios.max() <= most * (1 + 1e-12)
        assert ratios.max() == pytest.approx(most, rel=1e-4 if k == 1 else 1e-2)


def test_a_normal_candidate_that_is_no_narrower_has_no_ceiling():
    old, new = (GaussianPolicy(lambda s, t: s, variance) for variance in (1.0, 1.1))
    states = np.zeros((3, 1))
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(4), rewards=np.zeros(3), terminated=np.ones(3, bool), horizon=1, states=states,
        actions=np.ones((3, 1)), behavior=old, behavior_log_probs=np.full(3, -1.4), reward_range=(-1.0, 1.0),
    )  # fmt: skip
    with pytest.raises(BoundError, match="how large the importance ratio"):
        TDR().sequential_values(Problem(data, new))
