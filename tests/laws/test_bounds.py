"""Every registered bound through the laws of bounds, and each formula against a few lines derived again.

The laws take a method, so that mutants can be run through them too.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import pytest
from scipy import integrate, stats

import tightrope
from tests.laws.laws import SAMPLING as ESTIMATORS
from tests.laws.laws import logs
from tests.oracle import SLOW, Episode, mdps
from tightrope.base.errors import BoundError
from tightrope.base.problem import Problem
from tightrope.bounds import (
    METHODS,
    Anderson,
    Basic,
    BCa,
    Betting,
    BettingMixture,
    EmpiricalBernstein,
    Hoeffding,
    Percentile,
)
from tightrope.bounds.base import is_exact, rank
from tightrope.bounds.exact.cut import CUT
from tightrope.bounds.replicates.student_t import StudentT
from tightrope.bounds.replicates.studentized import Studentized
from tightrope.estimators import IndependentEstimator
from tightrope.functional.engines import Replicates
from tightrope.functional.resampling import draw_weights
from tightrope.functional.values import TrajectoryValues

EXACT = [name for name, method in METHODS.items() if is_exact(method)]
APPROXIMATE = [name for name in METHODS if name not in EXACT]
NEEDS_CEILING = ["hoeffding", "empirical-bernstein"]
INDEPENDENT = [name for name, make in ESTIMATORS.items() if isinstance(make(), IndependentEstimator)]
DELTA = 0.05


def sample(values, *, top=None, origin=0.0, sign=1.0):
    return TrajectoryValues(np.asarray(values, dtype=float), origin, sign, top, "a ceiling")


# -- laws of exact bounds -----------------------------------------------------------------------------------------


def law_approaches_mean(method):
    """The same values seen more often: the bound moves towards the mean, and stays below it."""
    values = np.random.default_rng(0).beta(2, 5, size=50)
    bounds = [method.lower(sample(np.tile(values, k), top=1.0), delta=DELTA, seed=1) for k in (1, 4, 16, 64, 512)]
    assert all(low < high < values.mean() for low, high in pairwise(bounds)), bounds
    assert bounds[-1] > values.mean() - 0.05


def law_below_equal_values(method):
    """All values alike prove little about the mean: the bound stays strictly below them."""
    assert method.lower(sample(np.full(100, 0.5), top=1.0), delta=DELTA, seed=1) < 0.5 - 1e-3


def law_ordered_with_negative_rewards(method):
    """Returns in [-10, 0]: the lower bound stays below the upper one, the mean between."""
    returns = np.random.default_rng(1).uniform(-6.0, -5.0, size=200)
    low = sample(returns + 10.0, origin=-10.0, top=10.0)
    high = sample(-returns, origin=0.0, sign=-1.0, top=10.0)
    lower = low.origin + low.sign * method.lower(low, delta=DELTA, seed=1)
    upper = high.origin + high.sign * method.lower(high, delta=DELTA, seed=1)
    assert lower < returns.mean() < upper


def law_scales(method):
    """Rewards in cents give the bound in cents."""
    values = np.random.default_rng(2).exponential(size=60)
    one, many = (method.lower(sample(c * values, top=c * 9.0), delta=DELTA, seed=1) for c in (1.0, 100.0))
    assert many == pytest.approx(100 * one, rel=1e-7)


def law_confidence(method):
    """More confidence is bought with a lower bound."""
    values = sample(np.random.default_rng(3).beta(2, 5, size=400), top=1.0)
    bounds = [method.lower(values, delta=delta, seed=1) for delta in (0.001, 0.01, 0.05, 0.2, 0.4)]
    assert all(low < high for low, high in pairwise(bounds)), bounds


@pytest.mark.parametrize(
    "law",
    [law_approaches_mean, law_below_equal_values, law_ordered_with_negative_rewards, law_scales, law_confidence],
    ids=lambda law: law.__name__,
)
@pytest.mark.parametrize("name", EXACT)
def test_exact_law(name, law):
    law(METHODS[name])


@pytest.mark.parametrize("name", EXACT)
def test_nothing_but_zeros_proves_nothing(name):
    assert METHODS[name].lower(sample(np.zeros(50), top=1.0), delta=DELTA, seed=1) <= 0.0


@pytest.mark.parametrize("name", EXACT)
def test_ceiling_is_the_declared_one(name):
    """A bound that needs a ceiling refuses without one; the others do not look at it."""
    values = np.random.default_rng(0).random(40)
    if name in NEEDS_CEILING:
        with pytest.raises(BoundError, match=r"not taken from the sample; missing: a ceiling.*max_ratio"):
            METHODS[name].lower(sample(values), delta=DELTA, seed=1)
    else:
        bounds = [METHODS[name].lower(sample(values, top=top), delta=DELTA, seed=1) for top in (None, 1.0, 50.0)]
        assert bounds[0] == bounds[1] == bounds[2]


# -- exact formulas, derived again --------------------------------------------------------------------------------

VALUES = np.random.default_rng(4).gamma(0.7, size=83)


def test_hoeffding_by_hand():
    # n = 8, mean 1/2, b = 2, δ = e^-4: 1/2 - 2 √(4/16) = -1/2
    values = [0.0, 1.0] * 4
    assert Hoeffding().lower(sample(values, top=2.0), delta=np.exp(-4), seed=0) == pytest.approx(-0.5)


def test_empirical_bernstein_by_hand():
    # n = 8 of 0 and 1: s² = 2/7; δ = 2e^-7: 1/2 - √(2·(2/7)·7/8) - 7·3·7/(3·7) = 1/2 - √(1/2) - 7
    values = [0.0, 1.0] * 4
    bound = EmpiricalBernstein().lower(sample(values, top=3.0), delta=2 * np.exp(-7), seed=0)
    assert bound == pytest.approx(0.5 - np.sqrt(0.5) - 7)


def test_anderson_is_the_integral():
    band = np.sqrt(np.log(1 / DELTA) / (2 * len(VALUES)))

    def survival(x):
        return max(0.0, 1.0 - np.mean(x >= VALUES) - band)

    area, _ = integrate.quad(survival, 0, VALUES.max(), points=np.sort(VALUES)[:-1], limit=2000)
    assert Anderson().lower(sample(VALUES), delta=DELTA, seed=0) == pytest.approx(area, rel=1e-6)


def test_anderson_by_hand():
    # δ = e^-2, n = 4: the band is √(2/8) = 1/2. Values 1, 2, 4, 9: ∫ = 1·(1 - ½) + 1·(¾ - ½) + 0 = 3/4
    assert Anderson().lower(sample([9.0, 1.0, 4.0, 2.0]), delta=np.exp(-2), seed=0) == pytest.approx(0.75)


def test_cut_is_empirical_bernstein_on_the_rest():
    """The threshold is found on the first twentieth of a shuffle, by search; the bound uses only the others."""
    values = np.random.default_rng(5).gamma(0.7, size=400)
    shuffled = np.random.default_rng(9).permutation(values)
    look, rest = shuffled[:20], shuffled[20:]
    log = np.log(2 / DELTA)

    def bound(data, c, n):
        cut = np.minimum(data, c)
        return cut.mean() - np.sqrt(2 * cut.var(ddof=1) * log / n) - 7 * c * log / (3 * (n - 1))

    promised = max(bound(look, c, 380) for c in np.linspace(0.01, 1, 3000) * look.max())
    possible = {bound(rest, c, 380): bound(look, c, 380) for c in look.max() * np.geomspace(1e-4, 1.0, 200)}
    value = CUT().lower(sample(values), delta=DELTA, seed=9)
    matched = min(possible, key=lambda b: abs(b - value))
    assert value == pytest.approx(matched, rel=1e-12)
    assert possible[matched] > promised - 0.02  # the threshold it took is about the best there is
    assert CUT().lower(sample(values), delta=DELTA, seed=10) != value


def test_cut_ignores_the_size_of_the_tail():
    """No value above the threshold moves the bound: made a thousand times larger outside the look, it stays put."""
    values = np.random.default_rng(5).gamma(0.7, size=400)
    value = CUT().lower(sample(values), delta=DELTA, seed=9)
    order = np.random.default_rng(9).permutation(400)
    top = order[20:][np.argmax(values[order[20:]])]
    values[top] *= 1000
    assert CUT().lower(sample(values), delta=DELTA, seed=9) == value


def test_cut_needs_four():
    with pytest.raises(BoundError, match="at least 4 episodes; the logs hold 3"):
        CUT().lower(sample([1.0, 2.0, 3.0]), delta=DELTA, seed=0)


def wealth(values, m):
    """The mixture's wealth against a mean of m, by plain products: 24 small bets and 8 large ones, evenly."""
    bets = [*np.geomspace(1e-4, 0.5, 24), *(1 - np.geomspace(0.4, 0.01, 8))]
    return np.mean([np.prod([1 - c + c * x / m for x in values]) for c in bets])


@pytest.mark.parametrize(
    "values", [VALUES, [0.0, 0.0, 5.0], np.full(30, 2.0), [3.0]], ids=["gamma", "one", "flat", "n1"]
)
def test_a_mixture_of_bets_stops_where_wealth_does(values):
    bound = BettingMixture().lower(sample(values), delta=DELTA, seed=0)
    assert 0 < bound < np.mean(values)
    assert wealth(values, bound) >= (1 / DELTA) * (1 - 1e-9)
    assert wealth(values, bound * (1 + 1e-6)) < 1 / DELTA


def test_a_mixture_of_bets_is_a_supermartingale_in_the_sample():
    """Against the true mean the expected wealth is one, whatever the distribution: enumerate a two-point one."""
    p, high, n = 0.3, 4.0, 6
    total = sum(stats.binom.pmf(k, n, p) * wealth([high] * k + [0.0] * (n - k), p * high) for k in range(n + 1))
    assert total == pytest.approx(1.0)


# -- approximate formulas, derived again ---------------------------------------------------------------------------


def replicates(values, estimate, **more):
    return Replicates(10, estimate, np.asarray(values, dtype=float), **more)


@pytest.mark.parametrize(
    ("delta", "size", "place"), [(0.05, 2000, 100), (0.05, 20, 1), (1 - 0.9, 30, 3), (1 - 0.9, 10, 1), (0.05, 1999, 99)]
)
def test_percentile_index(delta, size, place):
    """The ⌊δB⌋-th smallest, one-based; (1 - 0.9)·30 falls just short of 3 in floats and still counts as 3."""
    values = np.random.default_rng(0).permutation(size) + 1.0  # the k-th smallest is k
    assert rank(delta, size) == place
    assert Percentile().lower(replicates(values, 0.0), delta=delta)[0] == place
    assert Basic().lower(replicates(values, 7.0), delta=delta)[0] == 14.0 - (size + 1 - place)


@pytest.mark.parametrize("name", [name for name in APPROXIMATE if name != "t"])
def test_too_few_resamples(name):
    few = replicates(
        np.arange(19.0), 9.0, leave_one_out=np.arange(5.0), standard_error=1.0, standard_errors=np.ones(19)
    )
    with pytest.raises(BoundError, match=r"n_resamples is 19, too few for confidence 0.95; at least 20 are needed"):
        METHODS[name].lower(few, delta=DELTA)
    enough = replace(few, values=np.arange(20.0), standard_errors=np.ones(20))
    assert np.isfinite(METHODS[name].lower(enough, delta=DELTA)[0])


def slow_bca(values, estimate, jackknife, delta):
    """Efron's formula as printed, one line at a time."""
    normal = NormalDist()
    size = len(values)
    below = sum(v < estimate for v in values) + 0.5 * sum(v == estimate for v in values)
    z0 = normal.inv_cdf(below / size)
    center = sum(jackknife) / len(jackknife)
    a = sum((center - x) ** 3 for x in jackknife) / (6 * sum((center - x) ** 2 for x in jackknife) ** 1.5)
    z = normal.inv_cdf(delta)
    level = normal.cdf(z0 + (z0 + z) / (1 - a * (z0 + z)))
    return sorted(values)[int(np.floor(level * size + 1e-9)) - 1], level


@pytest.mark.parametrize("shape", [0.5, 3.0])
@pytest.mark.parametrize("side", [1, -1])
def test_bca(shape, side):
    data = side * np.random.default_rng(1).gamma(shape, size=25)
    values = draw_weights(25, 4000, seed=0) @ data / 25
    jackknife = (data.sum() - data) / 24
    expected, level = slow_bca(values.tolist(), data.mean(), jackknife.tolist(), DELTA)
    ready = replicates(values, data.mean(), leave_one_out=jackknife)
    assert BCa().lower(ready, delta=DELTA) == (expected, [])
    assert (level > DELTA) == (side == 1), "skew must move the level: the acceleration's sign is under test"


def test_bca_against_scipy():
    """scipy's BCa interpolates between replicates; on many of them the two agree to the spacing of replicates."""
    data = np.random.default_rng(7).gamma(0.8, size=30)
    theirs = stats.bootstrap((data,), np.mean, confidence_level=0.9, n_resamples=20_000, method="BCa", rng=1)
    values = draw_weights(30, 20_000, seed=0) @ data / 30
    ready = replicates(values, data.mean(), leave_one_out=(data.sum() - data) / 29)
    mine = BCa().lower(ready, delta=DELTA)[0]
    assert mine == pytest.approx(theirs.confidence_interval.low, abs=0.03 * values.std())


def test_bca_edges():
    ones = np.ones(40)
    value, notes = BCa().lower(replicates(ones, 1.0, leave_one_out=np.ones(9)), delta=DELTA)
    assert (value, notes) == (1.0, [])  # no spread at all: 0/0 is no acceleration
    above = replicates(np.arange(1.0, 41.0), 0.0, leave_one_out=np.arange(9.0))
    value, notes = BCa().lower(above, delta=DELTA)
    assert value == 1.0
    assert [note.code for note in notes] == ["bca-clipped", "few-resamples"]
    broken = replicates(np.arange(40.0), 20.0, leave_one_out=np.array([1.0, np.nan]))
    assert BCa().lower(broken, delta=DELTA)[1][0].code == "one-episode"


def test_studentized():
    """A loop over resamples of a mean, each studentized by its own s/√n."""
    data = np.random.default_rng(3).exponential(size=20)
    rows = draw_weights(20, 1000, seed=6).astype(int)
    pivots = []
    for row in rows:
        again = np.repeat(data, row)
        pivots.append((again.mean() - data.mean()) / (again.std(ddof=1) / np.sqrt(20)))
    expected = data.mean() - sorted(pivots)[-50] * data.std(ddof=1) / np.sqrt(20)
    bound = tightrope.lower_bound(
        bandit(data), estimator="is", method="studentized", n_resamples=1000, seed=6, confidence=0.95
    )
    assert bound.value == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("rounding", [0.0, 1e-16])
def test_studentized_without_spread(rounding):
    """All alike up to rounding: the estimate rather than 0/0 (a warning of its own says that nothing was seen)."""
    off = rounding * (np.arange(40) % 3)
    flat = replicates(1 + off, 1.0, standard_error=rounding, standard_errors=off)
    assert Studentized().lower(flat, delta=DELTA)[0] == 1.0


@pytest.mark.parametrize("shift", [0.0, 1.0, 0.3, -0.7])
@pytest.mark.parametrize("successes", [2, 3])
def test_studentized_replicates_without_spread_do_not_hang_on_rounding(shift, successes):
    """A replicate that drew no success has no spread: it is infinitely far below, whatever a shift does to its "
    "digits."""
    values = shift + (np.arange(20) < successes)
    low, high = tightrope.interval(bandit(values), estimator="wis", method="studentized", n_resamples=2000)
    plain = tightrope.interval(bandit(values - shift), estimator="wis", method="studentized", n_resamples=2000)
    assert low - shift == pytest.approx(plain.lower.value, abs=1e-6)
    assert high == np.inf  # (1 - k/20)^20 of the replicates, more than 2.5 %, drew none
    assert plain.upper.value == np.inf


@pytest.mark.parametrize("scale", [1.0, 0.1, 0.7, 1e-12])
@pytest.mark.parametrize("precision", ["float64", "float32"])
def test_bca_counts_ties_by_halves_whatever_the_rounding(scale, precision):
    """Ten of twenty succeed: 17.6 % of the replicates equal the estimate, and scale must not move them to one side."""
    values = scale * (np.arange(20) < 10)
    bounds = tightrope.interval(bandit(values), estimator="is", method="bca", confidence=0.9, precision=precision)
    unit = tightrope.interval(bandit(values / scale), estimator="is", method="bca", confidence=0.9)
    assert bounds.lower.value / scale == pytest.approx(unit.lower.value, rel=1e-5)
    assert bounds.upper.value / scale == pytest.approx(unit.upper.value, rel=1e-5)


def test_bca_is_not_lifted_above_undefined_replicates():
    """The paper's resample of nothing but zero weights: more of them than δB leave no lower bound, for BCa as well."""
    some = replicates(
        np.where(np.arange(100) < 12, np.nan, 1.0 + np.arange(100) / 100), 1.5, leave_one_out=np.arange(5.0)
    )
    assert BCa().lower(some, delta=0.1)[0] == -np.inf
    assert np.isfinite(BCa().lower(some, delta=0.2)[0])


def test_student_t_is_one_sided():
    """For a mean: scipy's one-sided interval. The two-sided quantile would be a different number."""
    data = np.random.default_rng(3).normal(2.0, 1.0, size=12)
    theirs = stats.ttest_1samp(data, 0.0, alternative="greater").confidence_interval(0.95).low
    bound = tightrope.lower_bound(bandit(data), estimator="is", method="t", confidence=0.95)
    assert bound.value == pytest.approx(theirs, rel=1e-9)
    both = tightrope.interval(bandit(data), estimator="is", method="t", confidence=0.9)
    low, high = stats.ttest_1samp(data, 0.0).confidence_interval(0.9)
    assert (both.lower.value, both.upper.value) == (pytest.approx(low), pytest.approx(high))


def test_student_t_without_the_only_trajectory():
    alone = replicates([], 1.0, leave_one_out=np.array([1.0, np.nan]))
    value, notes = StudentT().lower(alone, delta=DELTA)
    assert value == -np.inf
    assert notes[0].code == "one-episode"


@pytest.mark.parametrize("name", ["percentile", "basic", "bca", "studentized"])
def test_undefined_counts_as_the_worst(name):
    """More undefined replicates than δB leave nothing to promise on either side."""
    values = np.where(np.arange(100) < 6, np.nan, np.linspace(0, 1, 100))
    ready = replicates(
        values, 0.5, leave_one_out=np.linspace(0.4, 0.6, 9), standard_error=0.1, standard_errors=np.full(100, 0.1)
    )
    assert METHODS[name].lower(ready, delta=DELTA)[0] == -np.inf
    if name != "bca":  # whose bias correction moves the level by the undefined ones, towards the estimate here
        assert METHODS[name].lower(ready.reflected(), delta=DELTA)[0] == -np.inf


# -- through the public calls --------------------------------------------------------------------------------------


def bandit(rewards, ratios=None, **more):
    """One step each; probability 1/4 under the behaviour policy."""
    ratios = np.ones(len(rewards)) if ratios is None else ratios
    return logs([Episode([r], [0.25], [q / 4], True) for r, q in zip(rewards, ratios, strict=True)], horizon=1, **more)


def drawn(mdp, n, seed):
    """Episodes as the behaviour policy would log them, drawn from all possible ones."""
    probs, episodes = zip(*mdp.trajectories(), strict=True)
    return [episodes[i] for i in np.random.default_rng(seed).choice(len(episodes), size=n, p=probs)]


RANGE = (-1.0, 3.0)
MDP = mdps()[2]
EPISODES = drawn(MDP, 80, seed=3)
LENGTH = sum(MDP.discount**t for t in range(MDP.horizon))
ORDINARY = logs(EPISODES, horizon=MDP.horizon, discount=MDP.discount, reward_range=RANGE)
MAX_RATIO = 2.0**MDP.horizon  # no step's ratio exceeds 0.8/0.4
OPTIONS = {"n_resamples": 500, "seed": 4, "max_ratio": MAX_RATIO}


def valid(estimator, method):
    return method in APPROXIMATE or estimator in INDEPENDENT


PAIRS = [(estimator, method) for estimator in ESTIMATORS for method in METHODS]


@pytest.mark.parametrize(("estimator", "method"), PAIRS)
def test_every_pair(estimator, method):
    """A valid pair gives ordered finite numbers; an invalid one says why and what to use instead."""
    pair = {"estimator": estimator, "method": method}
    if not valid(estimator, method):
        for call in (tightrope.lower_bound, tightrope.upper_bound, tightrope.interval):
            with pytest.raises(BoundError, match=f"{method} needs one independent value.*Use is, pdis, tdr, or"):
                call(ORDINARY, **pair, **OPTIONS)
        return
    lower, upper = (call(ORDINARY, **pair, **OPTIONS) for call in (tightrope.lower_bound, tightrope.upper_bound))
    assert np.isfinite([lower.value, upper.value]).all()
    for bound, anchor, sign in ((lower, "low", 1), (upper, "high", -1)):  # each lies on its side of what it counts from
        own = tightrope.statistic(
            ORDINARY, estimator=tightrope.estimators.estimator(estimator).anchored(anchor)
        ).estimate
        assert sign * bound.value <= sign * own
    assert lower.guarantee == upper.guarantee == ("exact" if method in EXACT else "approximate")
    # An interval is its two sides at half the error each, so it is wider than either.
    both = tightrope.interval(ORDINARY, **pair, **OPTIONS)
    assert both.lower.value <= lower.value <= upper.value <= both.upper.value
    side = tightrope.lower_bound(ORDINARY, **pair, **OPTIONS, confidence=0.975)
    assert both.lower.value == side.value


@pytest.mark.parametrize(("estimator", "method"), [pair for pair in PAIRS if valid(*pair)])
def test_one_estimate_is_shown(estimator, method):
    """The same for every bound of an estimator and on both sides, whatever they count from."""
    pair = {"estimator": estimator, "method": method}
    bounds = [call(ORDINARY, **pair, **OPTIONS) for call in (tightrope.lower_bound, tightrope.upper_bound)]
    shown = tightrope.estimate(ORDINARY, estimator=estimator)
    assert [bound.estimate for bound in bounds] == [shown, shown]
    assert bounds[0].standard_error == bounds[1].standard_error


@pytest.mark.parametrize(("estimator", "slow"), [("is", SLOW["is"]), ("pdis", SLOW["pdis"])])
def test_the_estimate_shown_is_the_textbook_one(estimator, slow):
    """Counted from nowhere, though a range is declared."""
    weights = [1.0] * len(EPISODES)
    expected = slow(EPISODES, MDP.discount, MDP.horizon, weights)
    assert tightrope.estimate(ORDINARY, estimator=estimator) == pytest.approx(expected, rel=1e-12)


def mirrored(data):
    """The problem of minus the value."""
    low, high = data.reward_range
    return replace(data, rewards=-data.rewards, reward_range=(-high, -low))


@pytest.mark.parametrize(("estimator", "method"), [pair for pair in PAIRS if valid(*pair)])
def test_upper_is_minus_lower_of_minus(estimator, method):
    pair = {"estimator": estimator, "method": method}
    upper = tightrope.upper_bound(ORDINARY, **pair, **OPTIONS)
    lower = tightrope.lower_bound(mirrored(ORDINARY), **pair, **OPTIONS)
    assert upper.value == pytest.approx(-lower.value, rel=1e-9)
    assert upper.estimate == pytest.approx(-lower.estimate, rel=1e-12)


@pytest.mark.parametrize("estimator", INDEPENDENT)
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_exact_values(estimator, side):
    """X ≥ 0 with V = origin ± E[X], counted from the declared end; the ceiling is max_ratio times the whole range."""
    anchor = "low" if side == "lower" else "high"
    end, sign = (RANGE[0], 1.0) if side == "lower" else (RANGE[1], -1.0)
    made = ESTIMATORS[estimator](anchor=anchor).trajectory_values(Problem(ORDINARY), max_ratio=MAX_RATIO)
    assert made.origin == pytest.approx(end * LENGTH)
    assert made.sign == sign
    assert made.ceiling == pytest.approx(MAX_RATIO * 4.0 * LENGTH)
    assert (made.values >= 0).all()
    steps, mean = range(MDP.horizon), 0.0
    for i, episode in enumerate(EPISODES):
        if estimator == "is":
            expected = episode.ratio(MDP.horizon - 1) * (episode.discounted_return(MDP.discount) - end * LENGTH)
        else:
            expected = sum(MDP.discount**t * episode.ratio(t) * (episode.reward(t) - end) for t in steps)
        assert made.values[i] == pytest.approx(sign * expected)
        mean += expected / len(EPISODES)
    assert made.estimate == pytest.approx(end * LENGTH + mean)
    assert made.values.max() <= made.ceiling


@pytest.mark.parametrize("estimator", INDEPENDENT)
@pytest.mark.parametrize("method", EXACT)
def test_exact_refusals(estimator, method):
    pair = {"estimator": estimator, "method": method}
    with pytest.raises(BoundError, match=r"not taken from the sample; missing: reward_range.*--reward-range"):
        tightrope.lower_bound(replace(ORDINARY, reward_range=None), **pair, **OPTIONS)
    with pytest.raises(BoundError, match="missing: horizon"):
        tightrope.lower_bound(replace(ORDINARY, horizon_declared=False), **pair, **OPTIONS)
    with pytest.raises(BoundError, match=r"max_ratio is 1\.01, but the logs hold a cumulative importance ratio of"):
        tightrope.lower_bound(ORDINARY, **pair, **OPTIONS | {"max_ratio": 1.01})
    # Only the floor is known: enough for a lower bound, except where a ceiling is needed; never for an upper one.
    floor = replace(ORDINARY, reward_range=(RANGE[0], None))
    with pytest.raises(BoundError, match="an exact upper bound"):
        tightrope.upper_bound(floor, **pair, **OPTIONS)
    if method in NEEDS_CEILING:
        with pytest.raises(BoundError, match="both ends of the reward_range"):
            tightrope.lower_bound(floor, **pair, **OPTIONS)
        with pytest.raises(BoundError, match="missing: max_ratio"):
            tightrope.lower_bound(ORDINARY, **pair)
    else:
        assert np.isfinite(tightrope.lower_bound(floor, **pair).value)


@pytest.mark.parametrize("method", APPROXIMATE)
@pytest.mark.parametrize("call", [tightrope.lower_bound, tightrope.upper_bound, tightrope.interval])
def test_one_episode(call, method):
    with pytest.raises(BoundError, match="at least two episodes; the logs hold 1"):
        call(bandit([1.0]), method=method)


@pytest.mark.parametrize("confidence", [0.5, 1.0, 0.0, 1.5, float("nan")])
@pytest.mark.parametrize("call", [tightrope.lower_bound, tightrope.upper_bound, tightrope.interval])
def test_confidence_outside(call, confidence):
    with pytest.raises(BoundError, match=r"between 0\.5 and 1"):
        call(ORDINARY, confidence=confidence)


def test_resamples_against_confidence():
    with pytest.raises(BoundError, match="at least 100 are needed"):
        tightrope.lower_bound(ORDINARY, method="percentile", confidence=0.99, n_resamples=99)
    assert tightrope.lower_bound(ORDINARY, method="percentile", confidence=0.99, n_resamples=100).n_resamples == 100
    with pytest.raises(BoundError, match="at least 200 are needed"):  # half the error on each side
        tightrope.interval(ORDINARY, method="percentile", confidence=0.99, n_resamples=199)


def test_percentile_is_algorithm_one():
    """Sort the statistic's values on the drawn rows; take the ⌊δB⌋-th."""
    statistic = tightrope.statistic(ORDINARY, estimator="pdwis")
    values = np.sort(statistic(draw_weights(80, 500, seed=4)))
    bound = tightrope.lower_bound(ORDINARY, estimator="pdwis", method="percentile", **OPTIONS)
    assert bound.value == pytest.approx(values[25 - 1], rel=1e-12)
    upper = tightrope.upper_bound(ORDINARY, estimator="pdwis", method="percentile", **OPTIONS)
    assert upper.value == pytest.approx(values[-25], rel=1e-12)


@pytest.mark.parametrize("method", ["percentile", "basic", "bca", "studentized", "t"])
@pytest.mark.parametrize("estimator", ["wis", "pdwis"])
def test_one_trajectory_with_weight(estimator, method):
    """One in fifty has weight: 36 % of the resamples miss it, and no lower bound is left."""
    data = bandit(np.arange(50.0), [3.0 if i == 20 else 0.0 for i in range(50)])
    lower = tightrope.lower_bound(data, estimator=estimator, method=method, n_resamples=400, seed=0)
    upper = tightrope.upper_bound(data, estimator=estimator, method=method, n_resamples=400, seed=0)
    assert (lower.value, lower.estimate, upper.value) == (-np.inf, 20.0, np.inf)
    if method != "t":
        missed = int((draw_weights(50, 400, seed=0)[:, 20] == 0).sum())
        assert lower.n_undefined == missed > 0
        assert {"undefined": missed, "replicates": 400} in [note.numbers for note in lower.warnings]


# -- measured -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def nasty():
    """Many samples of a nasty distribution (0.05 or, rarely, large), its largest value, and its mean."""
    rng = np.random.default_rng(12)
    p, high, n, trials = 0.04, 20.0, 60, 600
    draws = np.where(rng.random((trials, n)) < p, high * rng.beta(2, 1, (trials, n)), 0.05)
    return draws, high, p * high * 2 / 3 + (1 - p) * 0.05


@pytest.mark.parametrize("name", EXACT)
def test_error_rate(name, nasty):
    draws, high, mean = nasty
    bounds = np.array([METHODS[name].lower(sample(row, top=high), delta=0.1, seed=i) for i, row in enumerate(draws)])
    assert stats.binomtest(int((bounds > mean).sum()), len(bounds), 0.1, alternative="greater").pvalue > 0.001


def test_measurement_can_fail(nasty):
    """The sample mean itself, taken for a bound, errs far beyond 10 % on the same data."""
    draws, _, mean = nasty
    means = draws.mean(axis=1)
    assert stats.binomtest(int((means > mean).sum()), len(means), 0.1, alternative="greater").pvalue < 1e-6


@pytest.mark.parametrize("n", [30, 100, 1000])
def test_betting_beats_cut(n):
    rng = np.random.default_rng(3)
    gain = []
    for trial in range(60):
        values = sample(rng.lognormal(-1.0, 1.2, size=n))
        gain.append(
            Betting().lower(values, delta=DELTA, seed=trial) - max(0.0, CUT().lower(values, delta=DELTA, seed=trial))
        )
    assert np.mean(gain) > 5 * np.std(gain) / np.sqrt(len(gain))
