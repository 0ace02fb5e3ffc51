"""Several claims at once: bounds that hold together, and what can be rejected together.

Resamples are shared, so candidates move together in them as they do in the logs, and what holds together is read off
the replicates themselves. Nothing here knows what is bounded.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array, BoolArray
from tightrope.base.errors import BoundError


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


def closed(log_evidence: Array) -> Array:
    """Logarithms of e-values adjusted for their number, (k,): those of at least log(1/δ) may be rejected together.

    The mean of e-values is one, however they depend on each other. A hypothesis is rejected if the mean over every set
    that holds it reaches 1/δ (closed testing); the worst sets are itself and the smallest others. Holm's procedure on
    the p-values 1/e rejects no more than this. Vovk and Wang (2021), "E-values: calibration, combination and
    applications".
    """
    order = np.argsort(log_evidence, kind="stable")
    rising = log_evidence[order]
    sums = np.logaddexp.accumulate(rising)  # of the smallest 1, 2, …
    adjusted = np.empty_like(rising)
    for place, own in enumerate(rising):
        others = np.append(-np.inf, sums[:place])  # of the smallest 0, 1, …, all below itself
        adjusted[place] = (np.logaddexp(own, others) - np.log1p(np.arange(place + 1))).min()
    result = np.empty_like(rising)
    result[order] = adjusted
    return result


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
