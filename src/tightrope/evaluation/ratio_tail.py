"""How the largest importance ratios are distributed."""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.folder import Scratch, parts
from tightrope.estimators.importance import LARGEST_LOG

TAIL_POINTS = 60


def sorted_logs(final: Array, scratch: Scratch) -> Array:
    """The final log-ratios, rising; sorted where they lie, without another copy."""
    rising: Array = scratch.empty(len(final))
    for part in parts(len(final)):
        rising[part] = final[part]
    rising.sort()
    return rising


def survival(rising: Array) -> tuple[tuple[float, float], ...]:
    """The survival function of the final ratios that fit a float64, at places spread evenly over its logarithm."""
    first, last = np.searchsorted(rising, -np.inf, side="right"), np.searchsorted(rising, LARGEST_LOG)
    ordered = rising[first:last][::-1]
    if not len(ordered):
        return ()
    ranks = np.unique(np.geomspace(1, len(ordered), TAIL_POINTS).round().astype(np.int64))
    ratios, shares = np.exp(ordered[ranks - 1]), ranks / len(rising)
    return tuple((float(ratio), float(share)) for ratio, share in zip(ratios, shares, strict=True))


def pareto_k(rising: Array) -> float | None:
    """The shape of a generalised Pareto distribution fitted to the largest ratios; None when there are under 21.

    Zhang and Stephens (2009) with the weak prior of Vehtari, Simpson, Gelman, Yao, Gabry, "Pareto Smoothed Importance
    Sampling" (2024), on the min(n/5, 3√n) largest.
    """
    n = len(rising)
    size = int(np.ceil(min(0.2 * n, 3 * np.sqrt(n))))
    if size < 5:
        return None
    ordered = np.exp(np.maximum(rising[-size - 1 :] - rising[-1], -600.0))  # below: zero beside the largest
    tail = ordered[1:] - ordered[0]
    tail = tail[tail > 0]
    if len(tail) < 5 or tail[0] == tail[-1]:
        return None
    m, count = 30 + int(np.sqrt(len(tail))), len(tail)
    quartile = tail[int(count / 4 + 0.5) - 1]
    theta = 1 / tail[-1] + (1 - np.sqrt(m / (np.arange(1, m + 1) - 0.5))) / (3 * quartile)
    shape = np.log1p(-theta[:, None] * tail).mean(axis=1)
    with np.errstate(invalid="ignore", divide="ignore"):
        likelihood = count * (np.log(-theta / shape) - shape - 1)
    likelihood = np.where(np.isfinite(likelihood), likelihood, -np.inf)
    weight = np.exp(likelihood - likelihood.max())
    best = float(theta @ weight / weight.sum())
    fitted = float(np.log1p(-best * tail).mean())
    return (count * fitted + 10 * 0.5) / (count + 10)
