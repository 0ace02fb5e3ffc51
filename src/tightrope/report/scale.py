"""Places on an axis and short texts for numbers, for figures."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TINY = 1e-290  # a span of which some tenth is no number


def short(value: float, digits: int = 4) -> str:
    """A few significant digits, with a true minus sign."""
    if math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "−∞"
    return f"{value + 0.0:.{digits}g}".replace("-", "−").replace("e+0", "e").replace("e+", "e").replace("e−0", "e−")


def rounded(value: float, error: float, side: str = "", apart: float | None = None) -> str:
    """As many digits as the error has two; a lower bound is rounded down and an upper one up.

    ``apart``: a number on whose side the rounded one stays, whatever digits that takes.
    """
    if not (math.isfinite(value) and 1e-12 * abs(value) < error < math.inf and error > TINY):
        return short(value, 5)
    turned = {"lower": math.floor, "upper": math.ceil}.get(side, round)
    fewest = 1 - math.floor(math.log10(error))
    for places in range(fewest, fewest + 6):
        step = 10.0**-places
        number = turned(round(value / step, 6)) * step
        if apart is None or (number > apart, number < apart) == (value > apart, value < apart):
            break
    if 1e-4 <= max(abs(number), error) < 1e6 and places <= 8:
        return f"{number + 0.0:.{max(places, 0)}f}".replace("-", "−")
    digits = math.floor(math.log10(abs(number))) + places + 1 if number else 1
    return short(number, max(1, min(digits, 15)))


def give_or_take(value: float, error: float) -> str:
    """A number with its standard error; an error of the size of rounding is none."""
    if not 1e-12 * abs(value) < error < math.inf:
        return f"{short(value, 5)} ± {short(0.0 if error < math.inf else error, 2)}"
    return f"{rounded(value, error)} ± {rounded(error, error)}"


def signed_percent(share: float) -> str:
    """A change in whole percent, or two digits where it is small."""
    words = percent(share, max(2, len(f"{abs(100 * share):.0f}")))
    return words if share < 0 else f"+{words}"


def percent(share: float, digits: int = 3) -> str:
    """A share in percent."""
    return "–" if math.isnan(share) else f"{short(100 * share, digits)}%"


@dataclass(frozen=True)
class Scale:
    """A range of numbers on a straight axis, linear or logarithmic."""

    low: float
    high: float
    log: bool = False

    def at(self, value: float) -> float:
        """Where the value lies, 0 to 1; what is beyond lies at the end."""
        low, high, place = (math.log(max(x, 1e-300)) if self.log else x for x in (self.low, self.high, value))
        return min(1.0, max(0.0, (place - low) / (high - low))) if high > low else 0.5

    def holds(self, value: float) -> bool:
        """Whether the value lies on the axis."""
        return self.low <= value <= self.high

    def ticks(self, most: int = 4) -> list[float]:
        """At most so many round numbers on the axis."""
        if self.log:
            first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
            every = max(1, math.ceil((last - first) / (most - 1)))
            return [10.0**power for power in range(first, last + 1, every)] or [self.low]
        span = self.high - self.low
        if not TINY < span < math.inf:
            return [self.low]  # no room for others
        size = 10.0 ** math.floor(math.log10(span / most))
        step = next(size * k for k in (1, 2, 5, 10, 20, 50) if span / (size * k) <= most - 1e-9)
        start = math.ceil(self.low / step - 1e-9)
        return [k * step for k in range(start, math.floor(self.high / step + 1e-9) + 1)]


def tick_words(ticks: Sequence[float]) -> list[str]:
    """The ticks, with as few digits as make them differ."""
    for digits in range(5, 16):
        words = [short(0.0 if abs(tick) < 1e-12 * max(map(abs, ticks)) else tick, digits) for tick in ticks]
        if len(set(words)) == len(words):
            break
    return words


def around(core: Sequence[float], others: Sequence[float]) -> Scale:
    """An axis that shows all of ``core``, and as much of ``others`` as leaves room for it."""
    near, all_ = [x for x in core if math.isfinite(x)], [x for x in (*core, *others) if math.isfinite(x)]
    if not near:
        near = sorted(all_)[len(all_) // 2 :][:1] or [0.0]
    low, high = min(near), max(near)
    reach = 1.2 * (high - low) or 0.1 * abs(low) or 1.0
    kept = [x for x in all_ if low - reach <= x <= high + reach] or near
    low, high = min(kept), max(kept)
    pad = 0.04 * (high - low) or reach
    return Scale(low - pad, high + pad)
