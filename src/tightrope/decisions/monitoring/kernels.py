"""The wealth of gamblers against every mean of a grid, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tightrope.base.compiled import compiled

LARGE = 1e100  # products beyond this go into their logarithm; no single factor comes near 1e200
TINY = 1e-300  # rounding alone could make a factor less
LOST = -100.0  # log-wealth: a mean against which this is left counts as never to be refuted


@compiled
def mixture(logs: Any, products: Any, place: Any) -> Any:
    """log of the wealth averaged over gamblers, against the mean at this place of the grid."""
    top, total = -math.inf, 0.0
    for j in range(logs.shape[0]):
        top = max(top, logs[j, place] + math.log(products[j, place]))
    for j in range(logs.shape[0]):
        total += math.exp(logs[j, place] + math.log(products[j, place]) - top)
    return top + math.log(total / logs.shape[0])


@compiled
def flush(logs: Any, products: Any, gambler: Any, low: Any, high: Any) -> None:
    """Put a gambler's products into their logarithms."""
    for place in range(low, high):
        logs[gambler, place] += math.log(products[gambler, place])
        products[gambler, place] = 1.0


@compiled
def advance(
    logs: Any, means: Any, live: Any, values: Any, bets: Any, stakes: Any, tethers: Any, ends: Any, target: Any,
    reached: Any,
) -> None:  # fmt: skip
    """Let gamblers bet on episodes one after the other, and look after each of ``ends`` how many means are refuted.

    ``logs`` (gamblers, means) and ``live`` are carried on: means before live[0] are refuted, those from live[1] on are
    given up. ``values`` (episodes, gamblers) are each gambler's own; he bets min(λ, stake / (m + C)). A factor falls in
    m, so the refuted means come first and those given up last. Giving up a mean takes wealth away: it is safe.
    """
    low, high, start, gamblers = live[0], live[1], 0, logs.shape[0]
    products, lambdas = np.ones(logs.shape), np.empty(logs.shape)
    most, least = np.ones(gamblers), np.ones(gamblers)  # so large and so small a gambler's products may be
    for j in range(gamblers):
        for place in range(low, high):
            lambdas[j, place] = min(bets[j], stakes[j] / (means[place] + tethers[j]))
    for look in range(len(ends)):
        for j in range(gamblers):
            for i in range(start, ends[look]):
                if low >= high:
                    break
                x = values[i, j]
                first, last = lambdas[j, low] * (x - means[low]), lambdas[j, high - 1] * (x - means[high - 1])
                up, down = max(1.0, 1.0 + first), min(1.0, max(1.0 + last, TINY))  # factors fall in m
                if most[j] * up > LARGE or least[j] * down < 1.0 / LARGE:
                    flush(logs, products, j, low, high)
                    most[j], least[j] = 1.0, 1.0
                most[j] *= up
                least[j] *= down
                for place in range(low, high):
                    products[j, place] *= max(1.0 + lambdas[j, place] * (x - means[place]), TINY)
        start = ends[look]
        while low < high and mixture(logs, products, low) >= target:
            low += 1
        while high > low and mixture(logs, products, high - 1) < LOST:
            high -= 1
        reached[look] = low
    for j in range(gamblers):
        flush(logs, products, j, low, high)
    live[0], live[1] = low, high
