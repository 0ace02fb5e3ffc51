"""Ratios, weighted sums and their derivatives under one row of weights, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.base.compiled import compiled


@compiled
def weigh(
    over: Any,
    under: Any,
    offsets: Any,
    weights: Any,
    first: Any,
    values: Any,
    self_normalized: Any,
    logs: Any,
    top: Any,
    below: Any,
    above: Any,
) -> Any:
    """Fill logs (n, K), top, below and above (K,); whether every quotient is defined.

    An episode of weight 0 is passed over: a fit that never saw its actions has nothing to say of them. A fit that
    gives an action of positive weight the probability 0 leaves the row undefined.
    """
    count, weight_total = values.shape[1], weights.sum()
    top[:] = -np.inf if self_normalized else 0.0
    for i in range(len(weights)):
        if weights[i] == 0.0:
            continue
        total, start, length = 0.0, offsets[i], offsets[i + 1] - offsets[i]
        for t in range(first + count):
            if t < length:
                if not np.isfinite(under[start + t]):
                    return False
                total += over[start + t] - under[start + t]
            if t >= first:
                logs[i, t - first] = total
                if self_normalized and total > top[t - first]:
                    top[t - first] = total
    if top.min() == -np.inf:
        return False
    for i in range(len(weights)):
        if weights[i] == 0.0:
            continue
        for k in range(count):
            ratio = weights[i] * np.exp(logs[i, k] - top[k])
            below[k] += ratio
            above[k] += ratio * values[i, k]
    if not self_normalized:
        below[:] = weight_total
    return True


@compiled
def slopes(
    offsets: Any,
    weights: Any,
    first: Any,
    values: Any,
    self_normalized: Any,
    coefficients: Any,
    logs: Any,
    top: Any,
    below: Any,
    above: Any,
    direct: Any,
    gradient: Any,
) -> None:
    """What each episode adds with its ratios held fixed (n,), and ∂value/∂log b of every step (N,).

    A step's probability divides the ratios of its own and all later times.
    """
    count = values.shape[1]
    for i in range(len(weights)):
        if weights[i] == 0.0:
            continue
        start, length, total = offsets[i], offsets[i + 1] - offsets[i], 0.0
        for t in range(first + count - 1, -1, -1):
            if t >= first:
                k = t - first
                center = above[k] / below[k] if self_normalized else 0.0
                total += coefficients[k] * np.exp(logs[i, k] - top[k]) * (values[i, k] - center) / below[k]
            if t < length:
                gradient[start + t] = -weights[i] * total
        direct[i] = total
