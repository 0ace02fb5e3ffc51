"""What a bound that calls itself exact must not do: leave what was declared, or take something uncertain as known."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tightrope
from tests.laws.laws import logs
from tests.oracle import Episode, random_episodes
from tightrope.base.warnings import coded
from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.bounds.robust import robust_bound, start_radius
from tightrope.domains import small
from tightrope.estimators import IS, PDIS
from tightrope.estimators.gain import gain, possible_range

EXACT = [name for name, method in METHODS.items() if is_exact(method)]


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize("estimator", ["is", "pdis"])
def test_no_exact_bound_leaves_the_declared_range(estimator, method):
    """Rewards of −5 to 6 over six steps could return −30 to 36, but −10 to 12 was declared: no bound lies beyond it.

    On eight episodes most of them would, since PDIS counts from the rewards' range.
    """
    episodes = random_episodes(8, 6, seed=1)
    data = logs(episodes, horizon=6, reward_range=(-5.0, 6.0), return_range=(-10.0, 12.0))
    options = {"estimator": estimator, "method": method, "max_ratio": 1e4}
    lower, upper = (call(data, **options) for call in (tightrope.lower_bound, tightrope.upper_bound))
    assert -10.0 <= lower.value < upper.value <= 12.0
    told = [any(one.code == "vacuous" for one in bound.warnings) for bound in (lower, upper)]
    assert told == [lower.value == -10.0, upper.value == 12.0]


# -- the robust bound: what is not known is not taken as known -----------------------------------------------------


def one_step(starts, rewards, **more):
    """Episodes of one step and one action, then the end."""
    return tightrope.TrajectoryDataset(
        offsets=np.arange(len(starts) + 1),
        rewards=rewards,
        terminated=np.ones(len(starts), dtype=bool),
        horizon=1,
        states=starts,
        actions=np.zeros(len(starts), dtype=int),
        **more,
    )


def uncertain_starts(rng):
    """A fair coin decides where to start; one state pays 1, the other 0, which is known."""
    starts = rng.integers(2, size=40)
    return one_step(starts, starts.astype(float)), {"rewards": np.array([[0.0], [1.0]])}, 0.5


def uncertain_moves(rng):
    """Half of the episodes end after the first step; each step pays 1, which is known."""
    going_on = rng.random(40) < 0.5
    lengths = 1 + going_on
    data = tightrope.TrajectoryDataset(
        offsets=np.append(0, np.cumsum(lengths)),
        rewards=np.ones(lengths.sum()),
        terminated=~going_on,
        horizon=2,
        states=np.zeros(lengths.sum(), dtype=int),
        actions=np.zeros(lengths.sum(), dtype=int),
    )
    return data, {"rewards": np.array([[1.0]])}, 1.5


def uncertain_rewards(rng):
    """One state that pays 0 or 1."""
    return one_step(np.zeros(40, dtype=int), rng.integers(2, size=40).astype(float), reward_range=(0.0, 1.0)), {}, 0.5


@pytest.mark.parametrize("side", ["lower", "upper"])
@pytest.mark.parametrize("process", [uncertain_starts, uncertain_moves, uncertain_rewards])
def test_the_robust_bound_allows_for_each_part_by_itself(process, side):
    """Where one part alone is uncertain the counts err half the time, and the bound at most as often as it says."""
    sign, wrong, naive = 1 if side == "lower" else -1, 0, 0
    for seed in range(200):
        data, known, truth = process(np.random.default_rng(seed))
        n_states = int(data.states.max()) + 1
        bound = robust_bound(data, np.ones((data.horizon, n_states, 1)), side=side, **known)
        assert bound.guarantee == "exact"
        wrong += sign * bound.value > sign * truth + 1e-12
        naive += sign * bound.estimate > sign * truth + 1e-12
    assert stats.binomtest(wrong, 200, 0.05, alternative="greater").pvalue > 0.001
    assert naive > 50


def test_uncertain_starts_by_hand():
    """60 of 100 starts in the state that pays 1: the bound moves by half the radius, at a third of δ."""
    starts = (np.arange(100) < 60).astype(int)
    data, known = one_step(starts, starts.astype(float)), np.array([[0.0], [1.0]])
    radius = start_radius(100, 2, 0.05 / 3)
    lower, upper = (robust_bound(data, np.ones((1, 2, 1)), rewards=known, side=side) for side in ("lower", "upper"))
    assert lower.value == pytest.approx(0.6 - radius / 2)
    assert upper.value == pytest.approx(0.6 + radius / 2)
    assert lower.estimate == upper.estimate == pytest.approx(0.6)


# -- gains ----------------------------------------------------------------------------------------------------------


def test_what_is_possible_for_a_gain():
    """Between the worst candidate beside the best behaviour policy and the reverse."""
    data = logs(random_episodes(4, 6, seed=0), horizon=6, reward_range=(-5.0, 6.0), return_range=(-10.0, 12.0))
    for estimator in (IS(), PDIS()):
        assert possible_range(estimator, data) == (-10.0, 12.0)
        assert possible_range(gain(estimator), data) == (-22.0, 22.0)


def test_a_loss_is_a_possible_gain():
    """Rewards of 0 and 1, and a candidate that cures fewer: both bounds on the gain lie below 0, where no value can."""
    problem = small("clinic")
    harmful = tightrope.TabularPolicy(1.0 - problem.candidate.table)
    data = problem.logs(4000, rng=np.random.default_rng(0))
    result = tightrope.evaluate(data, harmful, estimators=["wis"], methods=["percentile"], baseline="behavior")
    truth = problem.mdp.value(harmful) - problem.behavior_value
    lower, upper = result.believed_gains
    assert lower.value < truth < upper.value < 0
    told = [warning for bound in result.believed_gains for warning in bound.warnings]
    assert not coded(told, "vacuous", "impossible-estimate")
    assert result.verdict.kind == "no"


def test_strict_holds_for_gains_too():
    """What is believed of a gain under ``strict`` is exact; where nothing exact can be had there is no answer."""
    problem = small("clinic")
    data = problem.logs(1000, rng=np.random.default_rng(0))

    def ask(methods, strict):
        return tightrope.evaluate(
            data, problem.candidate, estimators=["is"], methods=methods, baseline="behavior", strict=strict
        )

    assert [bound.guarantee for bound in ask(["studentized", "betting"], False).believed_gains] == ["approximate"] * 2
    assert [bound.guarantee for bound in ask(["studentized", "betting"], True).believed_gains] == ["exact"] * 2
    none = ask(["studentized"], True)
    assert none.believed_gains == ()
    assert none.verdict.kind == "broken"


def test_an_estimate_beyond_the_range_is_told():
    """Two episodes of ratio 3 that earned 1 of 1: the unweighted mean is 3, which no candidate can earn."""
    data = logs([Episode([1.0], [0.25], [0.75], True)] * 2, horizon=1, reward_range=(0.0, 1.0))
    bound = tightrope.lower_bound(data, estimator="is", method="betting")
    assert [one.code for one in bound.warnings].count("impossible-estimate") == 1
    assert bound.estimate == tightrope.estimate(data, estimator="is") == 1.0
    assert "IS gives 3, outside the possible 0 to 1" in str(bound)
    within = logs([Episode([1.0], [0.25], [0.25], True)] * 2, horizon=1, reward_range=(0.0, 1.0))
    told = tightrope.lower_bound(within, estimator="is", method="betting").warnings
    assert not coded(told, "impossible-estimate")
