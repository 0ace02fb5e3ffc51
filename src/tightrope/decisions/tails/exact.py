"""Exact bounds on the distribution of the candidate's return, after Chandak et al. (2021).

At a key point a, the mean of ρ·1{G ≤ a} is P(G ≤ a), and at b that of ρ·1{G ≥ b} is 1 − P(G < b) (both are less where
the candidate does what is never logged, which makes the bounds below wider and no less true). These are means of
independent values ≥ 0, so the exact betting bound holds for each. With m bounds in all, each at δ/m, all of them hold
together with probability 1 − δ; between key points a distribution function rises, so the bounds make a band.

Key points must not be chosen by the outcomes that bound them: they are named beforehand (``levels``), or taken from a
random part of the episodes that is then left out. "Universal off-policy evaluation" (NeurIPS 2021).

Where episodes come in clusters, the value of a cluster is the mean of its episodes' values: of ρ·1{G ≤ a}, of
ρ·1{G ≥ b}, of X below. Clusters are independent, the mean has the same mean and the same floor, and it rises with each
of its parts, which is all that is used of the values of single episodes. No inequality for the whole distribution
function at once (such as Dvoretzky, Kiefer and Wolfowitz's) is needed. The part that is looked at is of whole clusters.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from tightrope.base.dataset import Array, BoolArray
from tightrope.base.errors import BoundError
from tightrope.bounds.exact.betting import MOST_PAST, MOST_STAKE, PSEUDO, Betting, block_edges, orders
from tightrope.bounds.exact.betting_mixture import BettingMixture
from tightrope.decisions.tails.outcomes import Outcomes
from tightrope.functional.values import TrajectoryValues

LOOK = 0.2  # share of the episodes that key points are taken from, where they are not named
LEAST = 10  # episodes
CUTS = (0.5, 0.75, 1.0, 1.5, 2.0, 3.0)  # of the share of a tail: at which quantiles returns may be cut

Points = tuple[tuple[float, float], ...]


@dataclass(frozen=True)
class ExactTails:
    """What holds together: steps of the band, and both ends of each quantile and of the mean of each tail."""

    lower: Points  # (a, p): P(G ≤ a) ≥ p
    upper: Points  # (b, p): P(G < b) ≤ p
    quantiles: tuple[tuple[float, float], ...]
    means: tuple[tuple[float, float], ...]


def exact_tails(
    outcomes: Outcomes,
    *,
    levels: Sequence[float],
    quantiles: Sequence[float],
    shares: Sequence[float],
    points: int,
    delta: float,
    seed: int,
) -> ExactTails:
    """All bounds, each at its part of ``delta``."""
    floors = [float(np.nextafter(level, -np.inf)) for level in levels]  # P(G ≤ this) is P(G < level)
    ceilings = [float(level) for level in levels]
    rest = outcomes
    if points:
        look, rest = _parted(outcomes, seed)
        grid = np.unique(look.quantiles((np.arange(points) + 0.5) / points)).tolist()
        floors, ceilings = [*floors, *grid], [*ceilings, *grid]
    part = delta / (len(floors) + len(ceilings) + 2 * len(quantiles) + 2 * len(shares))
    ways = ((a, rest.returns <= a) for a in floors), ((b, rest.returns >= b) for b in ceilings)
    lower, upper = ([(x, _mean(rest, event, part, seed)) for x, event in way] for way in ways)
    return ExactTails(
        tuple(sorted((a, min(p, 1.0)) for a, p in lower)),
        tuple(sorted((b, max(0.0, 1.0 - p)) for b, p in upper)),
        tuple((quantile_lower(outcomes, p, part), quantile_upper(outcomes, p, part)) for p in quantiles),
        # The mean of a tail is at most the quantile where the tail ends.
        tuple((tail_mean_lower(outcomes, p, part, seed), quantile_upper(outcomes, p, part)) for p in shares),
    )


def _mean(outcomes: Outcomes, event: BoolArray, delta: float, seed: int) -> float:
    """A lower bound on the probability of an event."""
    values = outcomes.weighed(event.astype(np.float64))
    return Betting().lower(TrajectoryValues(values, 0.0, 1.0, None), delta=delta, seed=seed)


def _parted(outcomes: Outcomes, seed: int) -> tuple[Outcomes, Outcomes]:
    """A random part to look at, and the rest."""
    n = len(outcomes)
    if n < LEAST:
        raise BoundError(
            f"an exact band takes its key points from a part of the episodes, which must be at least {LEAST}; the logs "
            f"hold {n if outcomes.clusters is None else f'{n} clusters of them'}. Name levels instead (levels=..., "
            "--level)"
        )
    order = np.random.default_rng([seed, n, 1]).permutation(n)
    first = max(3, round(LOOK * n))
    return outcomes.take(order[:first]), outcomes.take(order[first:])


def quantile_lower(outcomes: Outcomes, p: float, delta: float) -> float:
    """A lower bound on the p-quantile q at level 1 − delta, from all episodes, with every return for a key point.

    Let U(x) be one less the bound of ``BettingMixture`` on the mean of ρ·1{G ≥ x}. Its bets are fixed, so its bound
    rises with every value, and U rises with x. For every x > q therefore U(x) ≥ U(q⁺), made of 1{G > q}, which with
    probability 1 − δ is at least P(G ≤ q) ≥ p: no x > q has U(x) < p, however many are tried. The largest return with
    U < p is the bound, and nothing is paid for the search.
    """
    values = np.unique(outcomes.returns)
    place = bisect_left(values, True, key=lambda x: 1.0 - _fixed(outcomes, outcomes.returns >= x, delta) >= p)
    return float(values[place - 1]) if place else outcomes.low


def quantile_upper(outcomes: Outcomes, p: float, delta: float) -> float:
    """An upper bound on the p-quantile q: the lowest return x whose bound on P(G ≤ x) exceeds p; by the same argument,
    since P(G < q) ≤ p.
    """
    values = np.unique(outcomes.returns)
    place = bisect_left(values, True, key=lambda x: _fixed(outcomes, outcomes.returns <= x, delta) > p)
    return float(values[place]) if place < len(values) else outcomes.high


def _fixed(outcomes: Outcomes, event: BoolArray, delta: float) -> float:
    """A lower bound on the probability of an event, by bets that no value moves."""
    sample = TrajectoryValues(outcomes.weighed(event.astype(np.float64)), 0.0, 1.0, None)
    return BettingMixture().lower(sample, delta=delta, seed=0)


def tail_mean_lower(outcomes: Outcomes, share: float, delta: float, seed: int) -> float:
    """A lower bound on the mean of the lowest ``share`` of returns (CVaR), at level 1 − delta, from all episodes.

    For every cut c, CVaR ≥ c − E[(c − G)⁺] / share, with equality at the quantile. With returns counted from their
    floor l, X = ρ (min(G, c) − l) / share − C with C = (c − l)(1 / share − 1) therefore has a mean of at most CVaR − l,
    and X ≥ −C. The cut may be chosen anew for every block of episodes from those before it: each X still has, given
    the past, a mean of at most CVaR − l, so the wealth of whoever bets on CVaR − l > m has a mean of at most one if
    CVaR − l ≤ m, and reaches 1/δ with probability at most δ. Blocks, orders and bets are those of ``Betting``,
    except that nothing is bet on the first block.
    """
    if not np.isfinite(outcomes.low):
        return -np.inf
    from tightrope.bounds.exact import planning_kernels as kernels

    n = len(outcomes)
    rng = np.random.default_rng([seed, n, 2])
    played = [_play(outcomes.take(order), share, delta) for order in orders(n, rng)]
    values, bets, tethers = (np.stack(parts) for parts in zip(*played, strict=True))
    top = float(values.max())
    if top <= 0:
        return outcomes.low
    stakes = np.full(values.shape, MOST_STAKE)
    mean = kernels.largest_mean(values / top, bets * top, stakes, tethers / top, float(np.log(1 / delta)))
    return float(outcomes.low + mean * top)


def _play(outcomes: Outcomes, share: float, delta: float) -> tuple[Array, Array, Array]:
    """X, the bet and C of every draw, in the order in which they come; nothing is bet on the first block."""
    from tightrope.bounds.exact import planning_kernels as kernels

    n, low = len(outcomes), outcomes.low
    values, bets, tethers = np.zeros(n), np.zeros(n), np.zeros(n)
    target = float(np.log(1 / delta)) / n

    def cut(part: Outcomes, heights: Array) -> tuple[Array, Array]:
        """X under each cut, (cuts, draws), and each C."""
        length = np.maximum(heights - low, 0.0) * (1 / share - 1)
        kept = np.minimum(part.returns, heights[:, None]) - low
        return np.stack([part.weighed(row) for row in np.maximum(kept, 0.0)]) / share - length[:, None], length

    for start, stop in pairwise(block_edges(n)[1:]):
        past = outcomes.take(np.arange(start))
        if past.ratios.sum() <= 0:
            continue
        heights = np.unique(past.quantiles(np.minimum(share * np.array(CUTS), 1.0)))
        table, length = cut(past, heights)
        size = float(np.abs(table).max())
        if size <= 0:
            continue
        seen = table[:, np.linspace(0, start - 1, min(start, MOST_PAST)).astype(np.int64)] / size
        reached, planned = kernels.plans(np.ascontiguousarray(seen), length / size, target, PSEUDO, MOST_STAKE)
        best = int(np.argmax(reached))
        now, _ = cut(outcomes.take(np.arange(start, stop)), heights[best : best + 1])
        values[start:stop], bets[start:stop], tethers[start:stop] = now[0], planned[best] / size, length[best]
    return values, bets, tethers
