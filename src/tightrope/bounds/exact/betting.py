"""The one-sided betting bound with bets planned on earlier episodes."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array, IntArray
from tightrope.base.folder import Scratch, parts
from tightrope.bounds.base import ExactBound
from tightrope.functional.values import SequentialValues

TETHERS: Array = np.array([0.0, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0])  # of the unit that values tell
ORDERS, MANY = 4, 2000  # random orders; half of them above that many episodes
FIRST, GROWTH = 0.03, 1.3  # the first block's share of the episodes, and how blocks end after it
MOST_PAST = 2000  # values that a bet is planned on
PSEUDO = 0.05  # the weight of a value that no bet has met yet: the lowest possible
MOST_STAKE = 0.95  # of what a bet could lose
EQUALLY_GOOD = 1e-9  # of the largest planned bound: plans this close


@dataclass(frozen=True)
class Betting(ExactBound):
    """The largest m against which Π_i (1 + λ_i (X_i − m)) reaches 1/δ in one order, or on average over two or four.

    Each product is the wealth W of a gambler who bets λ_i that X_i ≥ −C_i exceeds m, with λ_i and the tether C_i chosen
    from earlier episodes alone. λ_i never exceeds 0.95/(m + C_i), so no factor is below zero. If E[X_i given earlier
    episodes] ≤ m the wealth has a mean of at most one, and reaches 1/δ with probability at most δ, at every n (Markov).

    Episodes come in four orders, in blocks that grow. The tether and the bet of a block are those that would have
    served best on the values of earlier blocks (Waudby-Smith and Ramdas 2024, "Estimating means of bounded random
    variables by betting"); the bet is then raised or lowered by what is still missing and how many episodes are left
    (Voráček and Orabona 2025, "STaR-Bets: Sequential Target-Recalculating Bets for Tighter Confidence Intervals").

    The first order counts, or the first two together, or all four. Exchanging episodes turns one order into another.
    Where episodes are drawn alike their law stays as it is, so W₁ has the mean (W₁ + W₂)/2 given all that exchanging
    two leaves alone, and that has the mean of all four in the same way: a martingale, whose largest value reaches 1/δ
    with probability at most δ (Doob), at any one seed. Where episodes are independent and each has a mean of at most m,
    but not one law (the logging policy changed), the same holds over the draw of the seed. After Ramdas and Manole
    (2023), "Randomized and exchangeable improvements of Markov's, Chebyshev's and Chernoff's inequalities".

    The wealth falls in m. With p the share of the goal that is reached, a step leads from p to p + g(p)·(X − m), at
    most 1, where g(p) = p·min(c √log(1/p), s/(m + C)) is concave. Where X < m, that rises in p since g' ≤ s/(m + C) and
    m − X ≤ m + C. Where X > m, it rises until its top, which is no less than 1: g' < 0 needs log(1/p) < 1/2, and there
    p + g/|g'| ≥ 1. And for any p it falls in m, as s(X − m)/(m + C) = s((X + C)/(m + C) − 1) does. So what is ahead
    stays ahead.
    """

    name: ClassVar[str] = "betting"
    sequential: ClassVar[bool] = True
    uses_seed: ClassVar[bool] = True
    preference: ClassVar[int] = 1

    def lower(self, sample: SequentialValues, *, delta: float, seed: int) -> float:
        """The lower bound on the mean."""
        values, bets, stakes, tethers = games(sample, delta, seed)
        top = float(values.max())
        if top <= 0:
            return 0.0
        from tightrope.bounds.exact import planning_kernels as kernels

        with np.errstate(over="ignore"):
            rescale(values, bets, tethers, top)
            mean = kernels.largest_mean(values, bets, stakes, tethers, float(np.log(1 / delta)))
        return float(mean * top)

    def log_evidence(self, sample: SequentialValues, mean: float, *, delta: float, seed: int) -> float:
        """The logarithm of the wealth against E[X] ≤ mean > 0, of the very game whose bound is ``lower``'s.

        If E[X] ≤ mean it reaches log(1/a) with probability at most a, for every a: −log of a p-value. ``delta`` is what
        the bets are planned for.
        """
        from tightrope.bounds.exact import planning_kernels as kernels

        values, bets, stakes, tethers = games(sample, delta, seed)
        scale = max(float(np.abs(values).max()), mean)
        if scale <= 0:
            return 0.0
        with np.errstate(over="ignore"):
            rescale(values, bets, tethers, scale)
            wealth = kernels.evidence(values, bets, stakes, tethers, mean / scale, float(np.log(1 / delta)))
            return float(np.log(wealth / delta)) if wealth > 0 else -np.inf


def rescale(values: Array, bets: Array, tethers: Array, scale: float) -> None:
    """Change the unit of a game, where it lies."""
    values /= scale
    bets *= scale
    tethers /= scale


def games(sample: SequentialValues, delta: float, seed: int) -> tuple[Array, Array, Array, Array]:
    """X, the planned λ, the largest stake and C of every episode in each order, (orders, n) each."""
    n, room = len(sample.values), sample.scratch
    shuffles = orders(n, np.random.default_rng([seed, n]), room)
    values, bets, stakes, tethers = room.empty((4, len(shuffles), n))
    for row, order in enumerate(shuffles):
        _play(sample, order, delta, (values[row], bets[row], stakes[row], tethers[row]))
    return values, bets, stakes, tethers


def orders(n: int, rng: np.random.Generator, room: Scratch | None = None) -> list[IntArray]:
    """Four random orders, or two of many episodes, that turn into one another when the same episodes are exchanged.

    The places of the first order are put into groups of four at random. Within each group a b c d the second order has
    b a d c, the third c d a b, the last d c b a: what turns the first into another one turns all of them into one
    another. Places must say nothing of what episodes earn (``DrawnValues``): if they went by rank, a fixed seed would
    tell in which order small and large values come, and what is known beforehand is no game.
    """
    room = room or Scratch()
    first, places = room.permutation(n, rng), room.permutation(n, rng)
    groups = places[: n - n % 4].reshape(-1, 4)
    shuffles = [first]
    for turn in range(1, ORDERS if n <= MANY else ORDERS // 2):
        order = room.empty(n, np.int64)
        order[:] = first
        for part in parts(len(groups)):
            order[groups[part]] = first[groups[part][:, np.arange(4) ^ turn]]
        shuffles.append(order)
    return shuffles


def block_edges(n: int) -> list[int]:
    """Where blocks of n episodes begin and end: 0, three in a hundred, then 1.3 times as far each time."""
    edges = [0, min(n, max(2, int(FIRST * n)))]
    while edges[-1] < n:
        edges.append(min(n, max(edges[-1] + 1, int(np.ceil(edges[-1] * GROWTH)))))
    return edges


def _play(sample: SequentialValues, order: IntArray, delta: float, game: tuple[Array, Array, Array, Array]) -> None:
    """Fill in X, λ, the largest stake and C of every episode in this order."""
    n, edges = len(order), block_edges(len(order))
    unit = sample.unit(order[: edges[1]])
    tethers = TETHERS * unit if unit > 0 else np.zeros(1)
    table = sample.along(order, edges, tethers)
    target = float(np.log(1 / delta)) / n
    chosen, bet, stake = 0, np.inf, min(0.5, float(np.sqrt(2 * np.log(1 / delta) / (3 * n))))  # nothing to plan on yet
    for start, stop in pairwise(edges):
        if start:
            past = table[:start] if start <= MOST_PAST else table[np.linspace(0, start - 1, MOST_PAST).astype(np.int64)]
            (chosen, bet), stake = plan_of(past, tethers, target), MOST_STAKE
        for whole, part in zip(game, (table[start:stop, chosen], bet, stake, tethers[chosen]), strict=True):
            whole[start:stop] = part


def plan_of(past: Array, tethers: Array, target: float) -> tuple[int, float]:
    """Which tether and which bet would have served best on past values (past, tethers), growing by target a value."""
    from tightrope.bounds.exact import planning_kernels as kernels

    size = np.ldexp(1.0, int(np.frexp(np.abs(past).max())[1]) - 1)  # squares of values need not fit a float64
    alike = _alike(past / size, tethers / size)
    reached, planned = kernels.plans(alike, tethers / size, target, PSEUDO, MOST_STAKE)
    best = int(np.argmax(reached >= reached.max() - EQUALLY_GOOD * np.abs(reached).max()))
    with np.errstate(over="ignore"):
        return best, float(planned[best] / size)


def _alike(table: Array, tethers: Array) -> Array:
    """The values scaled from −C to one common mean: all columns estimate the same one, some of them poorly."""
    if len(tethers) == 1:
        return np.ascontiguousarray(table.T)
    means = table.mean(axis=0)
    spread = table.var(axis=0) + 1e-12 * np.square(means)
    trust = spread.min() / np.where(spread > 0, spread, 1.0) if spread.min() > 0 else (spread == 0).astype(np.float64)
    common = (means * trust).sum() / trust.sum()
    above = means + tethers
    scale = np.where(above > 0, (common + tethers) / np.where(above > 0, above, 1.0), 1.0)
    return np.ascontiguousarray(((table + tethers) * scale - tethers).T)
