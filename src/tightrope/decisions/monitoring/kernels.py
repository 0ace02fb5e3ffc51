"""The wealth of gamblers against every mean of a grid, compiled."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tightrope.base.compiled import compiled

LARGE = 1e200  # a product beyond this goes into its logarithm
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
def advance(
    logs: Any, means: Any, live: Any, values: Any, bets: Any, stakes: Any, tethers: Any, ends: Any, target: Any,
    reached: Any,
) -> None:  # fmt: skip
    """Let gamblers bet on episodes one after the other, and look after each of ``ends`` how many means are refuted.

    ``logs`` (gamblers, means) and ``live`` are carried on: means before live[0] are refuted, those from live[1] on are
    given up. ``values`` (episodes, gamblers) are each gambler's own; he bets min(λ, stake / (m + C)). A factor falls in
    m, so the refuted means come first and those given up last. Giving up a mean takes wealth away: it is safe.
    """
    low, high, start = live[0], live[1], 0
    products = np.ones(logs.shape)
    for look in range(len(ends)):
        for j in range(logs.shape[0]):
            for place in range(low, high):
                m = means[place]
                bet = min(bets[j], stakes[j] / (m + tethers[j]))
                product = products[j, place]
                for i in range(start, ends[look]):
                    product *= max(1.0 + bet * (values[i, j] - m), 1e-300)  # rounding alone could go below
                    if product > LARGE or product < 1.0 / LARGE:
                        logs[j, place] += math.log(product)
                        product = 1.0
                products[j, place] = product
        start = ends[look]
        while low < high and mixture(logs, products, low) >= target:
            low += 1
        while high > low and mixture(logs, products, high - 1) < LOST:
            high -= 1
        reached[look] = low
    for j in range(logs.shape[0]):
        for place in range(low, high):
            logs[j, place] += math.log(products[j, place])
    live[0], live[1] = low, high
