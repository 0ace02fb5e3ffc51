"""Resampling within strata: every replicate draws as many clusters from each stratum as the logs hold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tightrope.base.clusters import Clusters
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import BoundError
from tightrope.base.folder import Scratch
from tightrope.functional.resampling import BLOCK, Multinomial, WeightScheme, blocks_of


@dataclass(frozen=True, eq=False)
class Stratified:
    """Multinomial counts within each stratum, whose members stand together."""

    sizes: tuple[int, ...]  # of the strata
    integer = True
    second_order = True

    def draws(self, n: int) -> int:
        """As many as there are."""
        return n

    def max_total(self, n: int) -> int:
        """As many as there are."""
        return n

    def scale(self, n: int) -> float:
        """One."""
        return 1.0

    def shares(self, n: int, blocks: range, replicates: range, *, seed: int) -> IntArray:
        """Nothing: strata are drawn whole."""
        return np.zeros((len(replicates), len(blocks)), dtype=np.int64)

    def fill(self, out: Array, shares: IntArray, *, seed: int, block: int, replicate: int) -> None:
        """Draw each stratum that lies in this part, from random numbers of its own."""
        inner, replicates = Multinomial(), range(replicate, replicate + len(out))
        start, stop, first = block * BLOCK, block * BLOCK + out.shape[1], 0
        seeds = np.random.SeedSequence(seed).generate_state(len(self.sizes), np.uint64)
        for size, own in zip(self.sizes, map(int, seeds), strict=True):
            low, high = max(first, start), min(first + size, stop)
            if low < high:
                whole, counts = np.empty((len(out), size)), inner.shares(size, blocks_of(size), replicates, seed=own)
                inner.fill(whole, counts, seed=own, block=0, replicate=replicate)
                out[:, low - start : high - start] = whole[:, low - first : high - first]
            first += size


def within_strata(scheme: WeightScheme, clusters: Clusters | None) -> WeightScheme:
    """The scheme that resamples within strata; as it is where there is one stratum."""
    if clusters is None or len(clusters.strata) == 1:
        return scheme
    if scheme != Multinomial():
        raise BoundError(
            'strata must come with resampling="multinomial", which draws the same number from each of them'
        )
    return Stratified(tuple(int(size) for size in clusters.strata))


def strata_of(scheme: WeightScheme, n: int) -> tuple[int, ...]:
    """How many of the n each stratum holds; without strata all of them."""
    return scheme.sizes if isinstance(scheme, Stratified) else (n,)


def draws_of(scheme: WeightScheme, n: int) -> tuple[int, ...]:
    """How many are drawn from each stratum; without strata from all n together."""
    return scheme.sizes if isinstance(scheme, Stratified) else (scheme.draws(n),)


def levelled(values: Array, sizes: Sequence[int] | IntArray, room: Scratch | None = None) -> Array:
    """Values with the same mean in every stratum: what is right for n draws of one kind then is for draws within them.

    How far each is off its stratum's mean is stretched by √(n_h (n − 1) / (n_h − 1) n), with n_h in its stratum, so
    that s²/n is Σ_h n_h s_h² / n², the variance of a mean whose n_h are fixed. With one stratum: as they are.
    """
    if len(sizes) == 1:
        return values
    result, n, first = (room or Scratch()).empty(len(values)), len(values), np.append(0, np.cumsum(sizes)[:-1])
    means, overall = np.add.reduceat(values, first) / sizes, values.mean()
    for start, size, mean in zip(first.tolist(), sizes, means, strict=True):
        own = slice(start, start + int(size))
        np.subtract(values[own], mean, out=result[own])
        result[own] *= np.sqrt(size * (n - 1) / ((size - 1) * n))
    result += overall
    return result


def levelled_by(clusters: Clusters | None, values: Array) -> Array:
    """The same of one value for each cluster; as they are where there are no strata."""
    return values if clusters is None else levelled(values, clusters.strata, clusters.scratch)
