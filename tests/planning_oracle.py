"""Slow and obvious: bets planned on earlier blocks, in plain loops and by bisection. Nothing here imports tightrope."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from math import ceil, exp, inf, log, sqrt

import numpy as np

TETHERS = (0.0, 0.06, 0.125, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
PSEUDO, STAKE, GOAL = 0.05, 0.95, 2.0

Table = Sequence[Sequence[float]]  # X of each episode under each tether
Bet = tuple[float, float, float, float]  # X, λ, the largest stake, C


def orders(n: int, seed: int) -> list[list[int]]:
    """A shuffle of the places in the logs, and three more that exchange the same episodes within groups of four."""
    rng = np.random.default_rng([seed, n])
    first, places = rng.permutation(n).tolist(), rng.permutation(n).tolist()
    made = []
    for turn in ((0, 1, 2, 3), (1, 0, 3, 2), (2, 3, 0, 1), (3, 2, 1, 0)):
        order = list(first)
        for start in range(0, n - 3, 4):
            group = places[start : start + 4]
            for place, other in enumerate(turn):
                order[group[place]] = first[group[other]]
        made.append(order)
    return made


def edges(n: int) -> list[int]:
    """Where blocks begin: three in a hundred episodes, at least two, then 1.3 times as far each time."""
    found = [0, min(n, max(2, int(0.03 * n)))]
    while found[-1] < n:
        found.append(min(n, max(found[-1] + 1, ceil(1.3 * found[-1]))))
    return found


def root(falls: Callable[[float], float], low: float, high: float, steps: int = 50) -> float:
    """Where a function that falls crosses zero, by bisection; the far end, if it does not."""
    if falls(high) >= 0:
        return high
    for _ in range(steps):
        middle = (low + high) / 2
        low, high = (middle, high) if falls(middle) >= 0 else (low, middle)
    return low


def plan(values: Sequence[float], tether: float, target: float) -> tuple[float, float]:
    """The largest m at which the best bet would have grown by ``target`` a value, and that bet."""
    x, w = np.array([*values, -tether]), np.array([*[1.0] * len(values), PSEUDO])
    mean = float((w * x).sum() / w.sum())
    if mean <= -tether:
        return -tether, 0.0

    def best(m: float) -> float:
        off = x - m
        return root(lambda bet: float(w @ (off / (1 + bet * off))), 0.0, STAKE / (m + tether))

    def growth(m: float) -> float:
        return float(w @ np.log(1 + best(m) * (x - m))) / float(w.sum())

    # In logarithms of the distance from the lowest possible value: it can be tiny beside the mean.
    far = root(lambda u: growth(exp(u) - tether) - target, log(mean + tether) - 60, log(mean + tether) - 1e-15)
    m = exp(far) - tether
    return m, best(m)


def alike(table: Table, tethers: Sequence[float]) -> list[list[float]]:
    """Each column scaled from −C to the mean that all of them estimate, by inverse variance; column by column."""
    columns = [[row[k] for row in table] for k in range(len(tethers))]
    means = [sum(column) / len(column) for column in columns]
    spreads = [sum((x - m) ** 2 for x in c) / len(c) + 1e-12 * m * m for c, m in zip(columns, means, strict=True)]
    known = [m for m, s in zip(means, spreads, strict=True) if s == 0]  # what never varied counts alone
    common = (
        sum(known) / len(known)
        if known
        else sum(m / s for m, s in zip(means, spreads, strict=True)) / sum(1 / s for s in spreads)
    )
    made = []
    for column, mean, c in zip(columns, means, tethers, strict=True):
        scale = (common + c) / (mean + c) if mean + c > 0 else 1.0
        made.append([(x + c) * scale - c for x in column])
    return made


def played(n: int, unit: float, table: Table, delta: float) -> list[Bet]:
    """The bets of one order; ``unit`` comes from the first block, ``table`` (n, tethers) is in this order."""
    tethers = [k * unit for k in TETHERS] if unit > 0 else [0.0]
    target, first = log(1 / delta) / n, min(0.5, sqrt(2 * log(1 / delta) / (3 * n)))
    blocks = edges(n)
    bets: list[Bet] = [(table[i][0], inf, first, 0.0) for i in range(blocks[1])]
    for start, stop in pairwise(blocks[1:]):
        plans = [plan(c, t, target) for c, t in zip(alike(table[:start], tethers), tethers, strict=True)]
        most, size = max(m for m, _ in plans), max(abs(m) for m, _ in plans)
        best = next(k for k, (m, _) in enumerate(plans) if m >= most - 1e-9 * size)
        bets += [(table[i][best], plans[best][1], STAKE, tethers[best]) for i in range(start, stop)]
    return bets


def share(bets: Sequence[Bet], m: float, delta: float) -> float:
    """What one order reaches of twice 1/δ against a mean of m."""
    reached = delta / GOAL
    for i, (x, bet, stake, c) in enumerate(bets):
        if reached >= 1 or reached < 1e-300:
            break
        missing = log(1 / reached) / (len(bets) - i)
        planned = log(1 / delta) / len(bets)
        reached *= 1 + min(bet * sqrt(missing / planned), stake / (m + c)) * (x - m)
    return reached


def evidence(games: Sequence[Sequence[Bet]], m: float, delta: float) -> float:
    """The wealth against a mean of m, in multiples of 1/δ: of the first order, of the first two, of all four."""
    shares = [min(1.0, share(bets, m, delta)) for bets in games]
    return GOAL * max(shares[0], sum(shares[:2]) / 2, sum(shares) / 4)


def bound(games: Sequence[Sequence[Bet]], delta: float) -> float:
    """The largest m ≥ 0 whose wealth is enough."""
    top = max(x for bets in games for x, *_ in bets)
    if top <= 0:
        return 0.0
    far = root(lambda u: evidence(games, top * exp(u), delta) - 1, -69.0, 0.0, 200)
    return top * exp(far) if far > -69.0 else 0.0


def planned(values: Sequence[float], delta: float, seed: int) -> float:
    """The bound on the mean of independent values ≥ 0."""
    n, top = len(values), max(values)
    if top <= 0:
        return 0.0
    tables = [[[values[i] / top] for i in order] for order in orders(n, seed)]  # squares of values need not fit
    return top * bound([played(n, 0.0, table, delta) for table in tables], delta)
