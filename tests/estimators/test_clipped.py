"""Limited ratios: on the safe side on both sides, with a ceiling of their own, and PDIS where nothing is limited."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import tightrope
from tests.bounds.test_cut_off import two_episodes
from tests.laws.laws import enumerated, logs, same
from tests.oracle import Episode, mdps, random_episodes
from tightrope import TabularPolicy
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.behaviors import behavior
from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.domains import small
from tightrope.estimators import PDIS, Clipped, Shrunk
from tightrope.estimators.gain import gain

BOTH = pytest.mark.parametrize("cls", [Clipped, Shrunk])
MDPS = pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))
LIMITS = (0.3, 1.0, 1.7, 4.0, 40.0)
RANGE = (-5.0, 6.0)
FAST = ["hoeffding", "empirical-bernstein", "anderson", "cut", "betting-mixture", "betting"]


@BOTH
@MDPS
def test_enumeration_gives_at_most_the_value_and_from_above_at_least(cls, mdp):
    """All possible episodes, weighted by their probabilities: whatever the limit; the larger it is, the nearer."""
    data, probs = enumerated(mdp, reward_range=RANGE)
    truth = mdp.value(mdp.candidate)
    low = [float(cls(largest=c)(Problem(data))(probs)) for c in LIMITS]
    high = [float(cls(largest=c, anchor="high")(Problem(data))(probs)) for c in LIMITS]
    assert all(less < more for less, more in pairwise([*low, truth + 1e-9]))
    assert all(less < more for less, more in pairwise([truth - 1e-9, *reversed(high)]))


@BOTH
@MDPS
@pytest.mark.parametrize("anchor", ["low", "high"])
def test_without_a_limit_it_is_pdis(cls, mdp, anchor):
    data, probs = enumerated(mdp, reward_range=RANGE)
    weights = np.array([np.ones(len(probs)), probs, np.arange(len(probs)) % 3.0])
    same(cls(largest=1e200, anchor=anchor)(Problem(data))(weights), PDIS(anchor)(Problem(data))(weights))


@BOTH
@MDPS
@pytest.mark.parametrize("anchor", ["low", "high"])
def test_the_gain_is_on_the_safe_side_too(cls, mdp, anchor):
    """V − V_b = (o − h) + E[X + (h − return)]: what limits X moves this one way, and returns are not limited."""
    data, probs = enumerated(mdp, reward_range=RANGE)
    truth = mdp.value(mdp.candidate) - mdp.value(mdp.behavior)
    for c in LIMITS:
        sample = gain(cls(largest=c)).anchored(anchor).trajectory_values(Problem(data), max_ratio=None)
        mean = sample.origin + sample.sign * float(probs @ sample.values)
        assert mean <= truth + 1e-9 if anchor == "low" else mean >= truth - 1e-9
        assert sample.values.max() <= sample.ceiling + 1e-9


@BOTH
@pytest.mark.parametrize("anchor", ["low", "high"])
def test_values_are_the_estimate_taken_apart_and_stay_below_their_ceiling(cls, anchor):
    data = logs(random_episodes(30, 6, seed=3), horizon=6, discount=0.9, reward_range=RANGE)
    chosen = cls(largest=2.0, anchor=anchor)
    sample = chosen.trajectory_values(Problem(data), max_ratio=None)
    same(sample.estimate, chosen(Problem(data)).estimate)
    length = sum(0.9**t for t in range(6))
    assert sample.ceiling == pytest.approx(2.0 * 11.0 * length)
    assert sample.origin == pytest.approx((-5.0 if anchor == "low" else 6.0) * length)
    assert (sample.values <= sample.ceiling).all()
    assert (sample.values >= 0).all()
    tighter = chosen.trajectory_values(Problem(data), max_ratio=1.5)
    assert tighter.ceiling == pytest.approx(1.5 * 11.0 * length)


def test_limited_ratios_by_hand():
    assert Clipped().limited(np.log([0.5, 2.0, 8.0]), 2.0) == pytest.approx([0.5, 2.0, 2.0])
    # λ = 4 · 2² = 16: 16 · ½ / (¼ + 16) = 32/65, 16 · 4 / 32 = 2 (the largest), 16 · 8 / 80 = 1.6
    assert Shrunk().limited(np.log([0.5, 4.0, 8.0]), 2.0) == pytest.approx([32 / 65, 2.0, 1.6])


@BOTH
def test_no_ratio_is_too_large_or_too_small(cls):
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        limited = cls().limited(np.array([-np.inf, -800.0, 0.0, 800.0]), 3.0)
    assert np.isfinite(limited).all()
    assert limited[0] == 0.0
    assert (limited <= 3.0 * (1 + 1e-12)).all()
    extreme = logs([Episode([1.0] * 4, [1e-100] * 4, [1.0] * 4, True)] * 3, horizon=4, reward_range=(0, 1))
    assert 0 <= cls()(Problem(extreme)).estimate <= 4 * np.sqrt(3) + 1e-9


@BOTH
@pytest.mark.parametrize("n", [4, 9])
def test_the_limit_is_the_root_of_the_number_of_episodes(cls, n):
    data = logs(random_episodes(n, 6, seed=3), horizon=6, reward_range=RANGE)
    same(cls()(Problem(data)).estimate, cls(largest=np.sqrt(n))(Problem(data)).estimate)
    assert cls().trajectory_values(Problem(data), max_ratio=None).ceiling == pytest.approx(np.sqrt(n) * 11.0 * 6)


@pytest.mark.parametrize(
    ("anchor", "expected"),
    [
        # Ratios 2, 2, 1 (then 1), and 1.5, 3, clipped at 1.6; what was cut off counts nothing.
        ("low", [1.6 * 1 + 0 + 0.25 * 2, 1.5 * 3 + 0.5 * 1.6 * 1]),
        ("high", [1.6 * 3 + 0.5 * 1.6 * 4 + 0.25 * 2 + 0.125 * 4, 1.5 * 1 + 0.5 * 1.6 * 3]),
    ],
)
def test_episodes_that_were_cut_off_by_hand(anchor, expected):
    problem = Problem(two_episodes(reward_range=(0, 4)))
    sample = Clipped(largest=1.6, anchor=anchor).trajectory_values(problem, max_ratio=None)
    np.testing.assert_allclose(sample.values, expected, rtol=1e-12)


# -- what it refuses -----------------------------------------------------------------------------------------------


@BOTH
def test_the_end_to_count_from_must_be_declared(cls):
    bare = logs(random_episodes(8, 6, seed=1), horizon=6)
    for method in ("percentile", "betting"):
        with pytest.raises(BoundError, match=rf"{cls.name} counts from the lowest possible reward.*--reward-range"):
            tightrope.lower_bound(bare, estimator=cls(), method=method)
    half = logs(random_episodes(8, 6, seed=1), horizon=6, reward_range=(-5.0, np.inf))
    assert np.isfinite(tightrope.lower_bound(half, estimator=cls(), method="betting").value)
    with pytest.raises(BoundError, match="highest possible reward"):
        tightrope.upper_bound(half, estimator=cls(), method="betting")
    with pytest.raises(BoundError, match="both ends of the reward_range"):
        tightrope.lower_bound(half, estimator=cls(), method="hoeffding")


@BOTH
def test_the_estimate_that_is_shown_counts_from_nowhere(cls):
    """As in books, the same for both sides, between the two that bounds count; bounds never use it."""
    problem = small("walker")
    data = problem.logs(60, rng=np.random.default_rng(0))
    shown = tightrope.estimate(data, problem.candidate, estimator=cls())
    bare = replace(data, reward_range=None, return_range=None)
    assert tightrope.estimate(bare, problem.candidate, estimator=cls()) == pytest.approx(shown)
    log_ratios, rewards = Problem(data, problem.candidate).ratios.log(0, 60), data.pad(data.rewards, 0, 60)
    by_hand = (cls().limited(log_ratios, np.sqrt(60)) * rewards) @ data.discounts
    assert cls().textbook(data)(Problem(data, problem.candidate)).estimate == pytest.approx(by_hand.mean())
    again = cls().textbook(data).anchored("high")
    assert again == cls(anchor="high")
    exact = cls().textbook(data).trajectory_values(Problem(data, problem.candidate), max_ratio=None)
    counted = cls().trajectory_values(Problem(data, problem.candidate), max_ratio=None)
    np.testing.assert_array_equal(exact.values, counted.values)


@BOTH
def test_an_exact_bound_needs_the_horizon(cls):
    data = replace(logs(random_episodes(8, 6, seed=1), horizon=6, reward_range=RANGE), horizon_declared=False)
    with pytest.raises(BoundError, match=r"missing: horizon \(read\(horizon="):
        tightrope.lower_bound(data, estimator=cls(), method="betting")


@BOTH
def test_an_estimated_behaviour_policy_is_refused(cls):
    clinic = small("clinic")
    data = clinic.logs(30, rng=np.random.default_rng(0))
    with pytest.raises(BoundError, match="needs the true behaviour probabilities"):
        cls()(Problem(data, clinic.candidate, behavior=behavior("auto", data)))


@BOTH
@pytest.mark.parametrize("largest", [0, -1.0, np.nan, np.inf, "many"])
def test_a_limit_is_a_number_above_0(cls, largest):
    with pytest.raises(TightropeError, match="largest must be a number above 0, or None for √n; got"):
        cls(largest=largest)


# -- error rates ---------------------------------------------------------------------------------------------------


def test_every_exact_bound_is_measured():
    assert sorted(FAST) == sorted(name for name, method in METHODS.items() if is_exact(method))


@pytest.mark.parametrize("method", FAST)
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_exact_bounds_err_at_most_as_often_as_they_say(side, method):
    """Value and gain at once: 40 data sets each on a problem that needs clipping, at a nominal 20 %."""
    problem, sign = small("bonus"), 1 if side == "lower" else -1
    wrong = 0
    for seed in range(40):
        question = Problem(problem.logs(15, rng=np.random.default_rng(seed)), problem.candidate)
        for of, truth in (
            (Clipped(), problem.true_value),
            (gain(Clipped()), problem.true_value - problem.behavior_value),
        ):
            sample = of.anchored("low" if side == "lower" else "high").trajectory_values(question, max_ratio=None)
            bound = sample.origin + sample.sign * max(0.0, METHODS[method].lower(sample, delta=0.2, seed=seed))
            wrong += sign * bound > sign * truth + 1e-9
    assert stats.binomtest(wrong, 80, 0.2, alternative="greater").pvalue > 0.001


def test_no_other_bound_needs_so_little():
    """Hoeffding's bound without a declared max_ratio, which IS and PDIS refuse."""
    problem = small("clinic")
    data = problem.logs(400, rng=np.random.default_rng(0))
    with pytest.raises(BoundError, match="max_ratio"):
        tightrope.lower_bound(data, problem.candidate, estimator="pdis", method="hoeffding")
    bound = tightrope.lower_bound(data, problem.candidate, estimator="clipped", method="hoeffding")
    assert bound.guarantee == "exact"
    assert bound.value < problem.true_value


def test_a_policy_that_is_the_logged_one_loses_nothing():
    clinic = small("clinic")
    data = clinic.logs(50, rng=np.random.default_rng(2))
    problem = Problem(data, TabularPolicy(clinic.behavior.table))
    assert Clipped()(problem).estimate == pytest.approx(float(data.returns.mean()))
