"""Slow and obvious: every bound a plain loop over plain lists. Nothing here imports tightrope.

What a computer computes is known up to rounding, and a bound can jump where a count changes. So every number here is a
value with an error, and every bound a span (lowest, highest) that the true result lies in: as a rule as narrow as
rounding, wide only where the question itself hangs on the last digits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import exp, floor, inf, log, sqrt
from statistics import NormalDist

import numpy as np
from scipy import stats

Span = tuple[float, float]

NORMAL = NormalDist()
TIE = 1e-5  # of the replicates' standard deviation: BCa's ties with the estimate
NO_SPREAD = 1e-6  # of the estimate's standard error: a replicate's own that counts as none


@dataclass(frozen=True)
class Number:
    """A value up to an error; ``defined`` is None where rounding decides."""

    value: float
    error: float
    defined: bool | None = True

    @property
    def low(self) -> float:
        """The lowest it can be, undefined counting as −∞."""
        return self.value - self.error if self.defined else -inf

    @property
    def high(self) -> float:
        """The highest it can be, undefined counting as −∞."""
        return self.value + self.error if self.defined is not False else -inf

    def __neg__(self) -> Number:
        return Number(-self.value, self.error, self.defined)


@dataclass(frozen=True)
class Resampled:
    """What the bootstrap bounds look at."""

    estimate: Number
    values: list[Number]  # of each replicate
    errors: list[Number]  # the standard error of each replicate
    error: Number  # of the estimate
    others: list[Number]  # without each trajectory in turn

    def reflected(self) -> Resampled:
        """Of minus the value."""
        return Resampled(-self.estimate, [-v for v in self.values], self.errors, self.error, [-v for v in self.others])


def place(delta: float, size: int) -> int:
    """Algorithm 1's ⌊δB⌋, one-based."""
    return floor(delta * size + 1e-9)


def smallest(values: Sequence[Number], position: int) -> Span:
    """The position-th smallest, undefined ones counting as −∞."""
    return sorted(v.low for v in values)[position - 1], sorted(v.high for v in values)[position - 1]


def largest(values: Sequence[Number], position: int) -> Span:
    """The position-th largest, undefined ones counting as +∞."""
    low, high = smallest([-v for v in values], position)
    return -high, -low


# -- bootstrap bounds: each a lower bound ------------------------------------------------------------------------------


def percentile(seen: Resampled, delta: float) -> Span:
    return smallest(seen.values, place(delta, len(seen.values)))


def basic(seen: Resampled, delta: float) -> Span:
    low, high = largest(seen.values, place(delta, len(seen.values)))
    return 2 * seen.estimate.low - high, 2 * seen.estimate.high - low


def student_t(seen: Resampled, delta: float) -> Span:
    others, n = seen.others, len(seen.others)
    if any(o.defined is False for o in others):
        return -inf, -inf
    mean = sum(o.value for o in others) / n
    spread = sqrt((n - 1) / n * sum((o.value - mean) ** 2 for o in others))
    quantile = float(stats.t.ppf(1 - delta, n - 1))
    value = seen.estimate.value - quantile * spread
    slack = seen.estimate.error + quantile * sqrt(n) * max(o.error for o in others) + 1e-12 * abs(quantile * spread)
    return (-inf if any(o.defined is None for o in others) else value - slack), value + slack


def studentized(seen: Resampled, delta: float) -> Span:
    position, estimate, error = place(delta, len(seen.values)), seen.estimate, seen.error
    spans: list[Span] = []
    if error.low <= 1e-13 * abs(estimate.value):  # no scale to studentize by
        low, high = smallest(seen.values, position)
        spans.append((min(estimate.low, low), min(estimate.high, high)))
    if error.high > 1e-13 * abs(estimate.value):
        pivots = [_pivot(seen, v, se) for v, se in zip(seen.values, seen.errors, strict=True)]
        low = sorted(p[0] for p in pivots)[-position]
        high = sorted(p[1] for p in pivots)[-position]
        spans.append((estimate.low - _times(high, error), estimate.high - _times(low, error, upper=False)))
    return min(s[0] for s in spans), max(s[1] for s in spans)


def _times(pivot: float, error: Number, *, upper: bool = True) -> float:
    """Pivot times standard error, the largest it can be or the smallest."""
    ends = (pivot * max(error.low, 0.0), pivot * error.high) if abs(pivot) < inf else (pivot, pivot)
    return max(ends) if upper else min(ends)


def _pivot(seen: Resampled, value: Number, own: Number) -> Span:
    """(θ* − θ̂)/se*; without spread of its own infinitely far off on its side, and on no side the worst."""
    if value.defined is False:
        return inf, inf
    off, slack = value.value - seen.estimate.value, value.error + seen.estimate.error
    tiny = (NO_SPREAD * max(seen.error.low, 0.0), NO_SPREAD * seen.error.high)
    spans: list[Span] = [(inf, inf)] if value.defined is None else []
    if own.value + own.error > tiny[0]:  # it may have spread
        least, most = max(own.value - own.error, tiny[0], 1e-320), own.value + own.error
        ends = [(off + s) / e for s in (-slack, slack) for e in (least, most)]
        spans.append((min(ends), max(ends)))
    if own.value - own.error <= tiny[1]:  # it may have none
        if off + slack > tiny[0]:
            spans.append((inf, inf))
        if off - slack < -tiny[0]:
            spans.append((-inf, -inf))
        if abs(off) - slack <= tiny[1]:
            spans.append((inf, inf))
    return min(s[0] for s in spans), max(s[1] for s in spans)


def bca(seen: Resampled, delta: float) -> Span:
    values, size = seen.values, len(seen.values)
    position = place(delta, size)
    if sum(v.defined is False for v in values) >= position:
        return -inf, -inf
    uncertain = sum(v.defined is not True for v in values) >= position
    first, last = _positions(seen, delta)
    low, high = smallest(values, first)[0], smallest(values, last)[1]
    return (-inf if uncertain else low), high


def _positions(seen: Resampled, delta: float) -> tuple[int, int]:
    """Which replicates the adjusted level can point to."""
    size, levels = len(seen.values), []
    skews = _accelerations(seen.others)
    if skews is None:
        return 1, size
    for share in _shares(seen):
        bias = NORMAL.inv_cdf(min(max(share, 1 / (size + 1)), size / (size + 1)))
        for skew in skews:
            moved = bias + NORMAL.inv_cdf(delta)
            room = 1 - skew * moved
            if abs(room) < 1e-6:
                return 1, size
            levels.append(NORMAL.cdf(bias + moved / room) if room > 0 else 0.0)
    # A hair's breadth either side of a whole number: which replicate it is hangs on the last digits.
    low, high = floor(min(levels) * size + 1e-9 - 1e-7), floor(max(levels) * size + 1e-9 + 1e-7)
    return max(low, 1), max(high, 1)


def _shares(seen: Resampled) -> Span:
    """The fewest and the most of the replicates below the estimate, ties counting half."""
    size = len(seen.values)
    finite = [v.value - seen.estimate.value for v in seen.values if v.defined is not False]
    tie = TIE * float(np.std(finite)) if finite else 0.0
    fewest = most = 0.0
    for v in seen.values:
        if v.defined is False:
            fewest, most = fewest + 1, most + 1
            continue
        off, slack = v.value - seen.estimate.value, v.error + seen.estimate.error + 1e-6 * tie
        fewest += 1 if off < -tie - slack else 0.5 if off <= tie - slack else 0
        most += 1 if off < -tie + slack or v.defined is None else 0.5 if off <= tie + slack else 0
    return fewest / size, most / size


def _accelerations(others: Sequence[Number]) -> Span | None:
    """Σ d³ / 6 (Σ d²)^1.5 of the jackknife's deviations, as exactly as they are known; None: not at all."""
    if any(o.defined is not True for o in others):
        return (0.0, 0.0) if any(o.defined is False for o in others) else None
    mean = sum(o.value for o in others) / len(others)
    off = [mean - o.value for o in others]
    most, size = max(abs(d) for d in off), max(abs(o.value) for o in others)
    slack = 2 * max(o.error for o in others)
    if most + slack <= 1e-13 * size:
        return 0.0, 0.0
    if slack > 1e-4 * most:
        return None
    skew = sum((d / most) ** 3 for d in off) / (6 * sum((d / most) ** 2 for d in off) ** 1.5)
    wrong = 10 * len(off) * slack / most
    return skew - wrong, skew + wrong


BOOTSTRAP: dict[str, Callable[[Resampled, float], Span]] = {
    "percentile": percentile,
    "basic": basic,
    "bca": bca,
    "studentized": studentized,
    "t": student_t,
}


# -- exact bounds: lower bounds on the mean of values ≥ 0 --------------------------------------------------------------


def hoeffding(values: Sequence[float], top: float, delta: float) -> float:
    return sum(values) / len(values) - top * sqrt(log(1 / delta) / (2 * len(values)))


def bernstein(values: Sequence[float], top: float, delta: float, n: int) -> float:
    """For n values of which these are a sample."""
    if n < 2 or len(values) < 2:
        return -inf
    mean = sum(values) / len(values)
    variance = sum((v - mean) ** 2 for v in values) / (len(values) - 1)
    return mean - sqrt(2 * variance * log(2 / delta) / n) - 7 * top * log(2 / delta) / (3 * (n - 1))


def anderson(values: Sequence[float], delta: float) -> float:
    """∫ max(0, P̂(X > x) − ε) dx, rectangle by rectangle."""
    n, before, area = len(values), 0.0, 0.0
    band = sqrt(log(1 / delta) / (2 * n))
    for value in sorted(values):
        above = sum(v > before for v in values) / n  # the share beyond any x from `before` up to this value
        area += (value - before) * max(0.0, above - band)
        before = value
    return area


def cut_first(n: int) -> int:
    """How many values choose the threshold."""
    return max(2, round(0.05 * n))


def cut(shuffled: Sequence[float], delta: float) -> Span:
    """The threshold from the first values, the bound from the rest; over all thresholds that rounding could choose."""
    first = cut_first(len(shuffled))
    look, rest = list(shuffled[:first]), list(shuffled[first:])
    grid = [1e-4 ** (1 - k / 199) * max(look) for k in range(200)] if max(look) > 0 else [1.0]
    promised = [bernstein([min(v, c) for v in look], c, delta, len(rest)) for c in grid]
    slack = 1e-11 * max(look)
    chosen = [c for c, p in zip(grid, promised, strict=True) if p >= max(promised) - slack]
    bounds = [max(0.0, bernstein([min(v, c) for v in rest], c, delta, len(rest))) for c in chosen]
    return min(bounds), max(bounds)


BETS = [1e-4 * (0.5 / 1e-4) ** (k / 23) for k in range(24)] + [1 - 0.4 * (0.01 / 0.4) ** (k / 7) for k in range(8)]


def betting_mixture(values: Sequence[float], delta: float) -> float:
    """The largest m at which the mixture of gamblers has made 1/δ of 1; planned bets: planning_oracle.py."""
    mean = sum(values) / len(values)
    if mean <= 0:
        return 0.0

    def wealthy(m: float) -> bool:
        logs = np.log1p(np.outer(BETS, np.asarray(values) / m - 1)).sum(axis=1)
        top = max(logs)
        return top + log(sum(exp(x - top) for x in logs) / len(BETS)) >= log(1 / delta)

    low, high = 0.5, 1.0  # as shares of the mean; at the mean itself nobody has won anything
    while not wealthy(mean * low):
        low, high = low / 4, low
        if low < 1e-12:
            return 0.0
    while high - low > 1e-11 * high:
        middle = (low + high) / 2
        low, high = (middle, high) if wealthy(mean * middle) else (low, middle)
    return low * mean


def enough_for_cut(n: int) -> bool:
    """Whether both parts hold two values."""
    return n - cut_first(n) >= 2
