"""The distribution of the candidate's return as a record: an estimate, a band, and what they say about the tail."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Literal

import numpy as np

from tightrope.base.checks import is_number
from tightrope.base.errors import BoundError
from tightrope.base.plain import Record
from tightrope.base.records import Guarantee
from tightrope.base.rounding import outward
from tightrope.base.warnings import Caution
from tightrope.decisions.tails.exact import Points
from tightrope.decisions.tails.outcomes import tail_mean
from tightrope.io.write import write_text
from tightrope.report.curve import band_picture

Kind = Literal["below", "quantile", "cvar"]


@dataclass(frozen=True)
class Tail(Record):
    """One number about the tail, with the bounds that hold for it.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> print(tightrope.distribution(logs, walker.candidate, quantiles=[0.5]).quantile(0.5))
    quantile 0.5: -8.25 (from -9.25 to -7.281)
    """

    kind: Kind  # "below": P(return < at); "quantile": at share ``at``; "cvar": the mean of the lowest share ``at``
    at: float  # the level or the share
    estimate: float  # by self-normalised importance sampling
    lower: float  # the lower bound
    upper: float  # the upper bound
    guarantee: Guarantee = "exact"  # or "approximate"

    def __str__(self) -> str:
        low, high = outward(self.lower, "lower"), outward(self.upper, "upper")
        return f"{self.kind} {self.at:g}: {self.estimate + 0.0:.4g} (from {low + 0.0:g} to {high + 0.0:g})"


@dataclass(frozen=True)
class Distribution(Record):
    """The candidate's distribution of returns: an estimate, a band around it, and what was asked about its tail.

    All bounds of an exact record hold together with the confidence. An approximate band holds as a whole; each thing
    that was named has an interval of its own, which holds alone: an exact one where its tail is thin.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> shape = tightrope.distribution(logs, walker.candidate, strict=True)
    >>> print(shape.quantile(0.5))
    quantile 0.5: -8.25 (from -9.282 to -7.281)
    """

    steps: Points  # (x, p): the estimate of P(return ≤ x)
    lower: Points  # (x, p): P(return ≤ x) is at least p
    upper: Points  # (x, p): P(return < x) is at most p
    tails: tuple[Tail, ...]  # what was named beforehand
    confidence: float  # that the band holds everywhere
    guarantee: Guarantee  # "exact" or "approximate"
    value_range: tuple[float, float]  # the lowest and the highest possible return; infinite where not declared
    n_trajectories: int  # episodes in the logs
    n_resamples: int | None = None  # bootstrap replicates; None: nothing was resampled
    seed: int = 0  # of the random numbers
    n_clusters: int | None = None  # of the episodes; None: every episode is an independent draw
    warnings: tuple[Caution, ...] = ()  # what to keep in mind

    def below(self, level: float) -> Tail:
        """The probability that a return lies below a level."""
        lower = max((p for x, p in self.lower if x < level), default=0.0)
        upper = min((p for x, p in self.upper if x >= level), default=1.0)
        if level <= self.value_range[0]:
            lower = upper = 0.0
        estimate = max((p for x, p in self.steps if x < level), default=0.0)
        return self._narrowed(Tail("below", level, estimate, lower, upper))

    def quantile(self, p: float) -> Tail:
        """The lowest return that a share ``p`` of all returns does not exceed."""
        check_share("p", p)
        lower = max((x for x, most in self.upper if most < p), default=self.value_range[0])
        upper = min((x for x, least in self.lower if least >= p), default=self.value_range[1])
        estimate = next((x for x, height in self.steps if height >= p - 1e-12), self.steps[-1][0])
        return self._narrowed(Tail("quantile", p, estimate, lower, upper))

    def cvar(self, share: float) -> Tail:
        """The mean of the lowest ``share`` of all returns (conditional value at risk, expected shortfall)."""
        check_share("share", share)
        ends = (_tail_of(self.upper, share, self.value_range[0], falls=False), self._highest(share))
        values, heights = (np.array(part) for part in zip(*self.steps, strict=True))
        return self._narrowed(Tail("cvar", share, float(tail_mean(values, heights, share)), *ends))

    @property
    def crosses(self) -> bool:
        """Whether bounds of the two sides contradict each other somewhere."""
        most = [min((p for x, p in self.upper if x > at), default=1.0) for at, _ in self.lower]
        band = any(least > high for (_, least), high in zip(self.lower, most, strict=True))
        return band or any(tail.lower > tail.upper for tail in self.tails)

    def to_svg(self, path: str | Path, *, name: str = "return") -> None:
        """Write a picture of the whole distribution function with its band; ``name`` says what a return is."""
        write_text(Path(path), band_picture(self.steps, self.lower, self.upper, self.value_range, name))

    def _highest(self, share: float) -> float:
        return _tail_of(self.lower, share, self.value_range[1], falls=True)

    def _narrowed(self, tail: Tail) -> Tail:
        """What was named beforehand has bounds of its own: exact ones hold with the band, others in its place."""
        for own in self.tails:
            if (own.kind, own.at) == (tail.kind, tail.at):
                if self.guarantee == "approximate":
                    return own
                tail = replace(own, lower=max(own.lower, tail.lower), upper=min(own.upper, tail.upper))
        return replace(tail, guarantee=self.guarantee)


def check_share(name: str, value: float) -> None:
    """Refuse what is no share of all returns."""
    if not (is_number(value) and 0 < value < 1):
        raise BoundError(f"{name} must be a number between 0 and 1, such as 0.1; got {value!r}")


def _tail_of(points: Points, share: float, end: float, *, falls: bool) -> float:
    """The tail mean of the highest distribution function that the band allows (its lowest return comes first), or of
    the lowest (``falls``), with all that is left at the ``end`` of the range.
    """
    # Below b at most p: the worst case has p just below b. Up to a at least p: the best case has p at a.
    total, reached = 0.0, 0.0
    if falls:
        for x, p in points:
            step = min(p, share) - reached
            if step > 0:
                total, reached = total + step * x, reached + step
        return (total + (share - reached) * end) / share if reached < share else total / share
    tops = list(accumulate((p for _, p in reversed(points)), min))[::-1]  # at most so much below each point
    place = end
    for (x, _), p in zip(points, tops, strict=True):
        step = min(p, share) - reached
        if step > 0:
            total, reached = total + step * place, reached + step
        place = x
    return (total + (share - reached) * place) / share if reached < share else total / share
