"""Bottou's two-part interval: by hand, against enumeration, beside the one-part bound, and how often it errs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy import stats

import tightrope
from tests.bounds.test_cut_off import two_episodes
from tests.laws.laws import enumerated, logs
from tests.oracle import Episode, mdps, random_episodes
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.base.warnings import coded
from tightrope.behaviors import behavior
from tightrope.bounds import Bottou
from tightrope.bounds.exact.bottou import Parts
from tightrope.domains import small
from tightrope.estimators import Clipped

RANGE = (-5.0, 6.0)
FORMS = pytest.mark.parametrize("per_decision", [True, False])


def sides(data, policy=None, confidence=0.95, **settings):
    calls = (tightrope.lower_bound, tightrope.upper_bound)
    return [call(data, policy, estimator="clipped", method=Bottou(**settings), confidence=confidence) for call in calls]


def by_hand():
    """Two steps, discount ½, rewards 1 to 3: ratios 4 then 2 with rewards 3 and 1; ratio ½, reward 2, and its end."""
    first = Episode([3.0, 1.0], [0.25, 0.5], [1.0, 0.25], False)
    second = Episode([2.0], [1.0], [0.5], True)
    return logs([first, second] * 4, horizon=2, discount=0.5, reward_range=(0.0, 3.0))


def test_the_parts_by_hand():
    """Clipped at 3. Y: 3·3 + ½·2·1 = 10 and ½·2 + 0 = 1. W: 3 + ½·2 = 4 and ½ + ½·½ = 0.75. H = 1.5."""
    parts = Bottou(largest=3.0).parts(Problem(by_hand()))
    np.testing.assert_allclose(parts.rewards, [10.0, 1.0] * 4)
    np.testing.assert_allclose(parts.masses, [4.0, 0.75] * 4)
    assert (parts.low, parts.high, parts.total, parts.most) == (0.0, 3.0, 1.5, 3.0)
    # By episode: the last ratio, 2 and ½, times the return, 3.5 and 2.
    parts = Bottou(largest=1.25, per_decision=False).parts(Problem(by_hand()))
    np.testing.assert_allclose(parts.rewards, [1.25 * 3.5, 1.0] * 4)
    np.testing.assert_allclose(parts.masses, [1.25, 0.5] * 4)
    assert (parts.low, parts.high, parts.total) == (0.0, 4.5, 1.0)


def test_both_ends_by_hand():
    """Y of 0 and 1 by turns, eight of them: s² = 2/7. W of 0.4 and 0.8: mean 0.6, s² = 0.04 · 8/7. c = 1, M = 2, m = 1.

    Lower, δ = 2e^−7: 1 + ½ − √(2 · 2/7 · 7/8) − 7·1·7/(3·7) is below the floor of 1, which stands in. Upper, δ = 4e^−7
    and half of it for each: 1 + ½ + √½ + 7/3 + 1·(1 − lower(W)), and lower(W) = 0.6 − √(0.08·8/7·7/8) − 7/3 is below 0.
    """
    parts = Parts(np.array([0.0, 1.0] * 4), np.array([0.4, 0.8] * 4), low=1.0, high=2.0, total=1.0, most=1.0)
    assert parts.inner == pytest.approx((1.5, 1.5 + 0.4))
    assert parts.lower(2 * np.exp(-7)) == 1.0
    assert parts.upper(4 * np.exp(-7)) == pytest.approx(1.5 + np.sqrt(0.5) + 7 / 3 + 1.0)
    # Ten thousand as many, δ = 2e^−7 and 4e^−7: nothing is cut any more.
    many = replace(parts, rewards=np.tile(parts.rewards, 10_000), masses=np.tile(parts.masses, 10_000))
    n = 80_000
    fine = {"y": 0.25 * n / (n - 1), "w": 0.04 * n / (n - 1)}
    off = {name: np.sqrt(2 * s2 * 7 / n) + 7 * 7 / (3 * (n - 1)) for name, s2 in fine.items()}
    assert many.lower(2 * np.exp(-7)) == pytest.approx(1.5 - off["y"], rel=1e-12)
    assert many.upper(4 * np.exp(-7)) == pytest.approx(1.5 + off["y"] + 0.4 + off["w"], rel=1e-12)


@FORMS
@pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))
@pytest.mark.parametrize("largest", [0.3, 1.7, 40.0])
def test_the_inner_interval_holds_the_value(mdp, largest, per_decision):
    """All possible episodes by their probabilities: between the clipped mean and what its missing mass adds."""
    data, probs = enumerated(mdp, reward_range=RANGE)
    parts = Bottou(largest=largest, per_decision=per_decision).parts(Problem(data))
    floor = parts.low * parts.total + probs @ parts.rewards
    ceiling = floor + (parts.high - parts.low) * (parts.total - probs @ parts.masses)
    assert floor <= mdp.value(mdp.candidate) + 1e-9
    assert mdp.value(mdp.candidate) <= ceiling + 1e-9


@pytest.mark.parametrize("largest", [0.8, 2.5])
def test_the_missing_mass_is_what_the_reflection_leaves(largest):
    """Counted from the ceiling the clipped values are (M − m)W − Y, so the upper end is the reflected lower one."""
    problem = Problem(logs(random_episodes(30, 6, seed=3), horizon=6, discount=0.9, reward_range=RANGE))
    parts = Bottou(largest=largest).parts(problem)
    low, high = (
        Clipped(largest=largest, anchor=anchor).trajectory_values(problem, max_ratio=None) for anchor in ("low", "high")
    )
    np.testing.assert_allclose(low.values, parts.rewards, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(high.values, 11.0 * parts.masses - parts.rewards, rtol=1e-9, atol=1e-9)
    assert low.estimate == pytest.approx(parts.inner[0])
    if parts.missing > 0:
        assert high.estimate == pytest.approx(parts.inner[1])


@pytest.mark.parametrize("name", ["walker", "bonus", "decline", "clinic"])
@pytest.mark.parametrize("n", [300, 30_000])
def test_one_mean_is_never_wider_than_two(name, n):
    """``clipped`` with ``empirical-bernstein``: the same lower bound, and an upper one that is at most as high."""
    problem = small(name)
    data = problem.logs(n, rng=np.random.default_rng(1))
    low, high = sides(data, problem.candidate, largest=2.0)
    one = {"estimator": Clipped(largest=2.0), "method": "empirical-bernstein"}
    assert tightrope.lower_bound(data, problem.candidate, **one).value == pytest.approx(low.value)
    assert tightrope.upper_bound(data, problem.candidate, **one).value <= high.value + 1e-9
    assert low.value <= problem.true_value <= high.value


def test_both_parts_are_told():
    problem = small("clinic")
    data = problem.logs(4000, rng=np.random.default_rng(0))
    low, high = sides(data, problem.candidate, largest=1.5)
    parts = Bottou(largest=1.5).parts(Problem(data, problem.candidate))
    for bound, end in zip((low, high), parts.inner, strict=True):
        (told,) = coded(bound.warnings, "clipped-mass")
        assert told.against is None
        assert told.numbers["missing"] == pytest.approx(parts.inner[1] - parts.inner[0])
        assert told.numbers["noise"] == pytest.approx(abs(bound.value - end))
    assert "clipping ratios at 1.5 leaves" in str(low)
    assert "which a lower bound takes for the least possible; sampling noise takes" in str(low)
    assert "which an upper bound takes for the most possible; sampling noise takes" in str(high)
    assert low.guarantee == high.guarantee == "exact"


@pytest.mark.parametrize(
    ("per_decision", "rewards", "masses"),
    [(True, [2 * 1 + 0.25 * 2, 1.5 * 3 + 0.5 * 3 * 1], [2 + 1 + 0.25 + 0.125, 1.5 + 1.5]), (False, [1.5, 0], [1, 0])],
)
def test_what_was_cut_off_adds_to_neither_part(per_decision, rewards, masses):
    parts = Bottou(largest=9.0, per_decision=per_decision).parts(Problem(two_episodes(reward_range=(0, 4))))
    np.testing.assert_allclose(parts.rewards, rewards)
    np.testing.assert_allclose(parts.masses, masses)


# -- what it refuses -----------------------------------------------------------------------------------------------


def test_refusals():
    episodes = random_episodes(8, 6, seed=1)
    with pytest.raises(BoundError, match="both ends of the reward declared"):
        sides(logs(episodes, horizon=6, reward_range=(-5.0, np.inf)))
    declared = logs(episodes, horizon=6, reward_range=RANGE)
    with pytest.raises(BoundError, match=r"horizon, which must be declared.*--horizon"):
        sides(replace(declared, horizon_declared=False))
    with pytest.raises(BoundError, match="not the gain; for the gain use clipped"):
        Bottou().bound(Problem(declared), confidence=0.95, side="lower", seed=0, about="gain")
    with pytest.raises(BoundError, match="left out for being cut off"):
        sides(replace(declared, n_dropped=2))
    with pytest.raises(TightropeError, match="largest must be a number above 0, or None for the cube root of n; got 0"):
        Bottou(largest=0)
    clinic = small("clinic")
    data = clinic.logs(30, rng=np.random.default_rng(0))
    problem = Problem(data, clinic.candidate, behavior=behavior("auto", data))
    with pytest.raises(BoundError, match=r"exact only with the true behaviour probabilities.*bootstrap"):
        Bottou().bound(problem, confidence=0.95, side="lower", seed=0, about="value")


@FORMS
@pytest.mark.parametrize("largest", [None, 2.0])
def test_it_errs_at_most_as_often_as_it_says(largest, per_decision):
    """At a confidence of 0.6, both sides at once, so that errors could show at all: 60 data sets."""
    wrong = 0
    for seed in range(60):
        problem = small(("bonus", "decline", "clinic")[seed % 3])
        data = problem.logs(40, rng=np.random.default_rng(seed))
        low, high = sides(data, problem.candidate, 0.6, largest=largest, per_decision=per_decision)
        wrong += (low.value > problem.true_value + 1e-9) + (high.value < problem.true_value - 1e-9)
    assert stats.binomtest(wrong, 120, 0.4, alternative="greater").pvalue > 0.001
