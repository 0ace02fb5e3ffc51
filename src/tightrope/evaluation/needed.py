"""How many episodes would settle a question, to judge by the bound at hand: one rule for the verdict and for plans.

The number is one of new episodes, judged alone. At n' of them the estimate's standard error s and the bound's width w
are those of now times √(n/n'). A distance d from the threshold is settled with chance p once d ≥ w' + z_p s', so
n' = n ((w + z_p s) / d)². The distance is itself known only to within s: the range of n' comes from d ± z s at the two
ends of an interval.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from statistics import NormalDist

from tightrope.base.clusters import unit
from tightrope.base.records import Bound
from tightrope.evaluation.sentences import FEWEST

CHANCE = 0.8  # of an answer at the planned number of episodes, if the candidate is as it looks now
LEVEL = 0.8  # of the range of that number
MOST = 1e9  # episodes: beyond this nobody would wait
NORMAL = NormalDist()


@dataclass(frozen=True)
class Needed:
    """A number of new episodes, and the range that it lies in."""

    total: float
    least: float
    most: float  # infinite where the candidate may be at the threshold, or on its other side


@dataclass(frozen=True)
class Prospect:
    """A bound and its threshold, looked at as something that more episodes would narrow."""

    distance: float  # of the estimate from the threshold, towards the answer that the bound would give
    error: float  # of the estimate
    width: float  # from the estimate to the bound
    n: int  # episodes

    def needed(self, chance: float = CHANCE, level: float = LEVEL) -> Needed:
        """The number of episodes that settles it with this chance, if the candidate is as it looks now."""
        reach = NORMAL.inv_cdf((1 + level) / 2) * self.error
        total, least, most = (
            self.total(distance, chance) for distance in (self.distance, self.distance + reach, self.distance - reach)
        )
        return Needed(total, least, most)

    def total(self, distance: float, chance: float) -> float:
        """The number of episodes that settles this distance with this chance."""
        if distance <= 0:
            return math.inf
        return self.n * ((self.width + NORMAL.inv_cdf(chance) * self.error) / distance) ** 2

    def chance(self, n: float, distance: float | None = None) -> float:
        """How likely n episodes settle it, if the distance is this one; by default as it looks now."""
        far = self.distance if distance is None else distance
        return NORMAL.cdf((far * math.sqrt(n / self.n) - self.width) / self.error)

    def chance_at_all(self, n: float) -> float:
        """The same without taking the estimate for the truth: over all distances that it may stand for.

        The distance varies by s² around the estimate at hand, and that of n new episodes by s² self.n/n around it.
        """
        share = self.n / n
        return NORMAL.cdf((self.distance - self.width * math.sqrt(share)) / (self.error * math.sqrt(1.0 + share)))


def prospect(bound: Bound, threshold: float) -> Prospect | None:
    """What a bound promises for more episodes; None where it promises nothing.

    From few episodes, or clusters, the rules widen approximate bounds beyond their level, which more of them end.
    """
    if not bound.standard_error or not math.isfinite(bound.standard_error) or not math.isfinite(bound.value):
        return None
    sign = 1.0 if bound.side == "lower" else -1.0
    width = abs(bound.estimate - bound.value)
    if bound.n_independent < FEWEST and bound.guarantee == "approximate":
        width = min(width, NORMAL.inv_cdf(bound.confidence) * bound.standard_error)
    return Prospect(sign * (bound.estimate - threshold), bound.standard_error, width, bound.n_trajectories)


def between(least: float, most: float, shown: Callable[[float], str]) -> str:
    """The range of a number in words; without an end where the candidate may be at the threshold or beyond."""
    if most >= MOST:
        return f"at least {shown(least)}, and perhaps no number would do"
    return f"{shown(least)} to {shown(most)}"


def part(episodes: float, n: int = 1, clusters: int | None = None) -> str:
    """So many episodes as a number; where n episodes of clusters were logged, that of the clusters that hold them."""
    count = episodes if clusters is None else episodes * clusters / n
    return rounded(count) if count < MOST else "more than a billion"


def many(episodes: float, kind: str, n: int, clusters: int | None) -> str:
    """The same with what is counted: more episodes of the same clusters would not do."""
    words = f"{part(episodes, n, clusters)} {kind} {unit(clusters)}"
    return words if clusters is None else f"{words} ({part(episodes)} episodes)"


def rounded(count: float) -> str:
    """Two digits: more would be a pretence."""
    return f"{float(f'{count:.2g}'):,.0f}"
