"""Laws of every registered bound, driven by the registry, and the mistakes that each law is there for."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import pairwise
from typing import ClassVar

import numpy as np
import pytest

import tightrope
from tightrope.base.errors import BoundError
from tightrope.bounds import CUT, METHODS, PROCESS_METHODS, BootstrapBound, ExactBound, Percentile, Robust
from tightrope.bounds.base import highest, lowest, rank
from tightrope.domains import small
from tightrope.functional.engines import Replicates
from tightrope.functional.values import TrajectoryValues

BOOTSTRAP = {name: method for name, method in METHODS.items() if isinstance(method, BootstrapBound)}
EXACT = {name: method for name, method in METHODS.items() if isinstance(method, ExactBound)}
DELTAS = (0.02, 0.05, 0.2, 0.4)
SIZE = 500


# -- bounds from replicates ----------------------------------------------------------------------------------------


def drawn(seed=0, undefined=0, scale=1.0, shift=0.0):
    """Replicates of a mean of skewed values, and all else that a bound may ask for; some undefined."""
    rng = np.random.default_rng(seed)
    sample = rng.gamma(2.0, 1.5, size=40)
    rows = rng.multinomial(40, np.full(40, 1 / 40), size=SIZE) / 40
    values = rows @ sample
    errors = np.sqrt((rows * (sample - values[:, None]) ** 2).sum(axis=1) / 39)
    values[:undefined] = np.nan
    errors[:undefined] = np.nan
    others = (sample.sum() - sample) / 39
    return Replicates(
        40,
        shift + scale * sample.mean(),
        shift + scale * values,
        leave_one_out=shift + scale * others,
        standard_error=scale * float(sample.std(ddof=1) / np.sqrt(40)),
        standard_errors=scale * errors,
    )


def lower(method, replicates, delta):
    return method.lower(replicates, delta=delta)[0]


COUNTS = (0, 3, 15, 60, SIZE - 1)  # undefined replicates


def with_undefined(method, delta, side):
    return [lower(method, side(drawn(undefined=count)), delta) for count in COUNTS]


SIDES = (lambda one: one, Replicates.reflected)


def law_undefined_is_the_worst(method):
    """A bound is a number or −∞, and −∞ as soon as replicates that could not be computed reach its level."""
    for delta in DELTAS:
        for side in SIDES:
            bounds = with_undefined(method, delta, side)
            assert not np.isnan(bounds).any(), bounds
            for count, bound in zip(COUNTS, bounds, strict=True):
                assert "values" not in method.needs or count < rank(delta, SIZE) or bound == -np.inf, (count, bounds)


def law_undefined_never_helps(method):
    """One more replicate that could not be computed never makes the bound higher."""
    for delta in DELTAS:
        for side in SIDES:
            bounds = with_undefined(method, delta, side)
            assert all(more <= less + 1e-9 for less, more in pairwise(bounds)), bounds


def law_a_lost_trajectory_is_the_worst(method):
    """Where leaving one trajectory out leaves nothing, a bound is still a number or −∞."""
    whole = drawn()
    others = whole.leave_one_out.copy()
    others[3] = np.nan
    for delta in DELTAS:
        bound = lower(method, replace(whole, leave_one_out=others), delta)
        assert not np.isnan(bound)
        if method.needs == {"leave_one_out"}:
            assert bound == -np.inf


def law_units(method):
    """Rewards in other units, counted from elsewhere, give the bound in those units."""
    for delta in DELTAS:
        for scale, shift in ((8.0, 0.0), (1.0, -64.0), (0.25, 16.0)):
            expected = shift + scale * lower(method, drawn(), delta)
            np.testing.assert_allclose(lower(method, drawn(scale=scale, shift=shift), delta), expected, rtol=1e-9)


def law_confidence(method):
    """More confidence is bought with a lower bound, and every bound lies on its side of the middle."""
    for seed in range(5):
        made = drawn(seed)
        lows = [lower(method, made, delta) for delta in DELTAS]
        highs = [-lower(method, made.reflected(), delta) for delta in DELTAS]
        assert all(low < high for low, high in pairwise(lows)), lows
        assert all(low > high for low, high in pairwise(highs)), highs
        assert lows[1] < made.estimate < highs[1]


def law_order(method):
    """Which replicate came first, and which trajectory, does not matter."""
    made, rng = drawn(undefined=4), np.random.default_rng(7)
    order, others = rng.permutation(SIZE), rng.permutation(40)
    shuffled = replace(
        made,
        values=made.values[order],
        standard_errors=made.standard_errors[order],
        leave_one_out=made.leave_one_out[others],
    )
    for delta in DELTAS:
        np.testing.assert_allclose(lower(method, shuffled, delta), lower(method, made, delta), rtol=1e-12)


def law_needs(method):
    """A bound makes do with what it says that it needs."""
    made = drawn()
    given = replace(
        made,
        values=made.values if "values" in method.needs else np.empty(0),
        leave_one_out=made.leave_one_out if "leave_one_out" in method.needs else None,
        standard_error=made.standard_error if "standard_errors" in method.needs else None,
        standard_errors=made.standard_errors if "standard_errors" in method.needs else None,
    )
    try:
        bound = lower(method, given, 0.05)
    except (BoundError, TypeError, AssertionError, ValueError) as error:
        raise AssertionError(f"{method.name} needs more than {set(method.needs)}") from error
    assert bound == lower(method, made, 0.05)


def law_too_few(method):
    """Where δB is below one there is no replicate low enough: that is refused, not guessed."""
    made = drawn()
    few = replace(made, values=made.values[:19], standard_errors=made.standard_errors[:19])
    if "values" not in method.needs:
        return
    try:
        bound = lower(method, few, 0.05)
    except BoundError:
        return
    raise AssertionError(f"19 replicates give {bound} at 0.95")


EXEMPT = {
    ("bca", law_undefined_never_helps): "its bias correction counts undefined replicates as below the estimate, which "
    "moves its level up; from δB of them on it answers −∞"
}
BOOTSTRAP_LAWS = [
    law_undefined_is_the_worst,
    law_undefined_never_helps,
    law_a_lost_trajectory_is_the_worst,
    law_units,
    law_confidence,
    law_order,
    law_needs,
    law_too_few,
]


@pytest.mark.parametrize("law", BOOTSTRAP_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", BOOTSTRAP)
def test_bootstrap_law(name, law):
    if (name, law) in EXEMPT:
        pytest.skip(f"{name}, {law.__name__}: {EXEMPT[name, law]}")
    law(BOOTSTRAP[name])


@pytest.mark.parametrize(("name", "law"), EXEMPT, ids=lambda value: getattr(value, "__name__", value))
def test_exemption_is_needed(name, law):
    with pytest.raises(AssertionError):
        law(BOOTSTRAP[name])


class Mutant(Percentile):
    """Percentile with another way to read off the bound."""

    def read(self, replicates, delta):
        raise NotImplementedError

    def lower(self, replicates, *, delta):
        rank(delta, len(replicates.values))
        return float(self.read(replicates, delta)), []


class NanQuantile(Mutant):
    """NaN comes out where a replicate was undefined."""

    def read(self, replicates, delta):
        return np.quantile(replicates.values, delta)


class Dropped(Mutant):
    """Undefined replicates are left out, as if they had never been drawn."""

    def read(self, replicates, delta):
        return np.nanquantile(replicates.values, delta, method="lower")


class Best(Mutant):
    """Undefined replicates count as the best value."""

    def read(self, replicates, delta):
        return np.sort(replicates.values)[rank(delta, len(replicates.values)) - 1]  # NaN sorts last


class OtherTail(Mutant):
    """The upper quantile."""

    def read(self, replicates, delta):
        return highest(replicates.values, rank(delta, len(replicates.values)))


class AsDrawn(Mutant):
    """Nobody sorted them."""

    def read(self, replicates, delta):
        return np.nan_to_num(replicates.values, nan=-np.inf)[rank(delta, len(replicates.values)) - 1]


class Absolute(Mutant):
    """A margin in the units of one problem."""

    def read(self, replicates, delta):
        return lowest(replicates.values, rank(delta, len(replicates.values))) - 0.1


class NoRank(Percentile):
    """The lowest replicate where none is low enough."""

    def lower(self, replicates, *, delta):
        return lowest(replicates.values, max(1, int(delta * len(replicates.values)))), []


class Greedy(Percentile):
    """Looks at standard errors that it never asked for."""

    def lower(self, replicates, *, delta):
        return super().lower(replicates, delta=delta)[0] + 0.0 * replicates.standard_errors[0], []


class NormalT(BootstrapBound):
    """θ̂ − 2 se from a jackknife that may hold NaN."""

    name: ClassVar[str] = "normal"
    needs: ClassVar[frozenset[str]] = frozenset({"leave_one_out"})

    def lower(self, replicates, *, delta):
        return replicates.estimate - (3.0 - delta) * replicates.leave_one_out.std() * np.sqrt(40), []


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (NanQuantile, law_undefined_is_the_worst),
        (Dropped, law_undefined_is_the_worst),
        (Best, law_undefined_is_the_worst),
        (Dropped, law_undefined_never_helps),
        (NormalT, law_a_lost_trajectory_is_the_worst),
        (Absolute, law_units),
        (OtherTail, law_confidence),
        (AsDrawn, law_order),
        (Greedy, law_needs),
        (NoRank, law_too_few),
    ],
    ids=lambda value: value.__name__,
)
def test_bootstrap_mutant_is_caught(mutant, law):
    law(Percentile())
    with pytest.raises(AssertionError):
        law(mutant())


# -- exact bounds --------------------------------------------------------------------------------------------------


def sample(n, seed=0):
    return TrajectoryValues(np.random.default_rng(seed).beta(2, 5, size=n), 0.0, 1.0, 1.0)


def law_small_samples(method):
    """However few the values, the bound is a number or −∞ that lies below their mean, or it is refused."""
    for n in (1, 2, 3, 4, 5, 8):
        for seed in range(20):
            made = sample(n, seed)
            try:
                bound = method.lower(made, delta=0.05, seed=1)
            except BoundError:
                continue
            assert bound < made.values.mean(), (n, bound)  # and so no NaN


def law_seed(method):
    """Only a bound that says so depends on chance of its own."""
    made = sample(200)
    bounds = {method.lower(made, delta=0.05, seed=seed) for seed in range(8)}
    assert len(bounds) > 1 if method.uses_seed else len(bounds) == 1


def law_exchangeable(method):
    """Independent values have no order; a bound that shuffles them need not give the same, but is no worse off."""
    made = sample(300)
    turned = replace(made, values=made.values[::-1].copy())
    if not method.uses_seed:
        np.testing.assert_allclose(
            method.lower(turned, delta=0.05, seed=1), method.lower(made, delta=0.05, seed=1), rtol=1e-9
        )


EXACT_LAWS = [law_small_samples, law_seed, law_exchangeable]


@pytest.mark.parametrize("law", EXACT_LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", EXACT)
def test_exact_law(name, law):
    law(EXACT[name])


@dataclass(frozen=True)
class Sneaky(CUT):
    """Draws, and does not say so."""

    uses_seed: ClassVar[bool] = False


@dataclass(frozen=True)
class Spread(ExactBound):
    """The sample's own spread for a range: NaN for one value, and nothing at all for equal ones."""

    name: ClassVar[str] = "spread"

    def lower(self, sample, *, delta, seed):
        with np.errstate(all="ignore"):
            spread = np.sqrt(np.square(sample.values - sample.values.mean()).sum() / np.float64(len(sample.values) - 1))
        return float(sample.values.mean() - spread)


@dataclass(frozen=True)
class FirstHalf(ExactBound):
    """Looks at the first half only, and counts all of them."""

    name: ClassVar[str] = "half"

    def lower(self, sample, *, delta, seed):
        return float(sample.values[: len(sample.values) // 2 + 1].mean() - 1.0)


@pytest.mark.parametrize(
    ("mutant", "law"),
    [(Sneaky(), law_seed), (Spread(), law_small_samples), (FirstHalf(), law_exchangeable)],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_exact_mutant_is_caught(mutant, law):
    law(METHODS["anderson"])
    with pytest.raises(AssertionError):
        law(mutant)


# -- bounds over processes -----------------------------------------------------------------------------------------


def law_process(method):
    """Number, order of the sides, price of confidence, and the declared range, as users get them."""
    made, levels = small("clinic"), (0.8, 0.95, 0.99)
    calls = {"lower": tightrope.lower_bound, "upper": tightrope.upper_bound}
    for n, seed in ((5, 0), (30, 1), (2000, 2)):
        logs = made.logs(n, rng=np.random.default_rng(seed))
        low, high = logs.value_range
        bounds = {
            (side, level): call(logs, made.candidate, estimator=method.of, method=method, confidence=level)
            for side, call in calls.items()
            for level in levels
        }
        assert not any(np.isnan(bound.value) for bound in bounds.values())
        assert all(low <= bound.value <= high for bound in bounds.values() if bound.guarantee == "exact")
        for level in levels:
            lower, upper = bounds["lower", level], bounds["upper", level]
            assert lower.value <= lower.estimate
            assert upper.estimate <= upper.value
            assert lower.value <= upper.value
        for sign, side in ((1.0, "lower"), (-1.0, "upper")):
            values = [sign * bounds[side, level].value for level in reversed(levels)]
            assert all(low <= high + 1e-12 for low, high in pairwise(values)), values
        if n == 2000:  # enough that more confidence has a price
            assert bounds["lower", 0.99].value < bounds["lower", 0.8].value
            assert bounds["upper", 0.99].value > bounds["upper", 0.8].value
        assert {bound.confidence for bound in bounds.values()} == set(levels)


@pytest.mark.parametrize("name", PROCESS_METHODS)
def test_process_law(name):
    law_process(PROCESS_METHODS[name])


class Swapped(Robust):
    """The other side."""

    def bound(self, problem, *, confidence, side, seed, about):
        other = "upper" if side == "lower" else "lower"
        return replace(super().bound(problem, confidence=confidence, side=other, seed=seed, about=about), side=side)


class Inverted(Robust):
    """δ where the confidence is meant."""

    def bound(self, problem, *, confidence, side, seed, about):
        made = super().bound(problem, confidence=1 - confidence, side=side, seed=seed, about=about)
        return replace(made, confidence=confidence)


@pytest.mark.parametrize("mutant", [Swapped(), Inverted()], ids=lambda value: type(value).__name__)
def test_process_mutant_is_caught(mutant):
    with pytest.raises(AssertionError):
        law_process(mutant)
