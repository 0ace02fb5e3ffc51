"""Several claims at once: bounds that hold together, and what can be rejected together.

Resamples are shared, so candidates move together in them as they do in the logs, and what holds together is read off
the replicates themselves. Nothing here knows what is bounded.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array, BoolArray
from tightrope.base.errors import BoundError

ROUNDING = 1e-12  # of a logarithm: evidence that is just enough is enough


def band(replicates: Array, delta: float) -> Array:
    """Lower bounds of all columns that hold together at level 1 − delta: (B, k) replicates to (k,).

    The percentile bound of one column is its ⌊δB⌋-th smallest replicate. Here every column gives up the same number l
    of its smallest ones, and l is the largest with at most ⌊δB⌋ replicates among those given up by any column: a
    max-T bound whose scale is the rank, so that no column's skewness or spread has a say in another's share of the
    error. Undefined replicates count as the lowest. With one column it is the percentile bound itself. As the
    bootstrap's own, the level is approached as the logs grow.
    """
    result: Array = np.sort(_lowest_first(replicates), axis=0)[_given_up(replicates, delta) - 1]
    return result


def surely_above(replicates: Array, delta: float) -> BoolArray:
    """Which columns exceed 0, in steps down: (B, k) to (k,).

    Columns whose bound in the band exceeds 0 are settled; the band of the others alone is higher, and so on. A column
    that does not exceed 0 is settled wrongly only if the band of all such columns errs, since the columns left always
    include them and a smaller band is no lower (Romano and Wolf 2005).
    """
    values = _lowest_first(replicates)
    settled: BoolArray = np.zeros(values.shape[1], dtype=bool)
    while not settled.all():
        left = np.flatnonzero(~settled)
        above = band(values[:, left], delta) > 0
        if not above.any():
            break
        settled[left[above]] = True
    return settled


def surely_refuted(log_evidence: Array, delta: float) -> BoolArray:
    """Which of k hypotheses may be rejected together at level delta, by minus the logarithms of their p-values, (k,).

    The strongest needs log(k/δ), the next log((k − 1)/δ), and so on until one falls short (Holm 1979): whatever each at
    δ/k rejects, and more, however they depend on each other.
    """
    order = np.argsort(-log_evidence, kind="stable")
    needed = np.log(np.arange(len(order), 0, -1) / delta)
    enough = log_evidence[order] >= needed * (1 - ROUNDING)
    rejected: BoolArray = np.zeros(len(order), dtype=bool)
    rejected[order[: len(order) if enough.all() else int(np.argmin(enough))]] = True
    return rejected


def _lowest_first(replicates: Array) -> Array:
    return np.where(np.isnan(replicates), -np.inf, replicates)


def _given_up(replicates: Array, delta: float) -> int:
    """How many of its smallest replicates every column gives up."""
    values = _lowest_first(replicates)
    size, columns = values.shape
    allowed = int(np.floor(delta * size + 1e-9))
    first = np.full(size, size)  # of each replicate: its lowest rank in any column
    for column in values.T:
        order = np.argsort(column, kind="stable")
        first[order] = np.minimum(first[order], np.arange(1, size + 1))
    taken = np.cumsum(np.bincount(first, minlength=size + 1)[1:])  # replicates given up with l = 1, 2, …
    most = int(np.searchsorted(taken, allowed, side="right"))
    if most < 1:
        raise BoundError(
            f"n_resamples is {size:,}, too few for {columns:,} bounds that hold together with confidence "
            f"{1 - delta:.6g}; {int(np.ceil(columns / delta)):,} are enough"
        )
    return most
