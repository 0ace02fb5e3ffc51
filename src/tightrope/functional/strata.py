"""Resampling within strata: every replicate draws as many clusters from each stratum as the logs hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.base.clusters import Clusters
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import BoundError
from tightrope.functional.resampling import Multinomial, WeightScheme


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

    def start(self, n: int, rows: int) -> IntArray:
        """Nothing to remember: strata are drawn whole."""
        return np.zeros(rows, dtype=np.int64)

    def fill(self, out: Array, left: IntArray, *, seed: int, trajectory: int, replicate: int, n: int) -> None:
        """Draw each stratum that lies in this part, from random numbers of its own."""
        inner, rows, stop = Multinomial(), len(out), trajectory + out.shape[1]
        seeds = np.random.SeedSequence(seed).generate_state(len(self.sizes), np.uint64)
        first = 0
        for size, own in zip(self.sizes, seeds, strict=True):
            low, high = max(first, trajectory), min(first + size, stop)
            if low < high:
                whole = np.empty((rows, size))
                inner.fill(whole, inner.start(size, rows), seed=int(own), trajectory=0, replicate=replicate, n=size)
                out[:, low - trajectory : high - trajectory] = whole[:, low - first : high - first]
            first += size

    def skip(self, left: IntArray, *, seed: int, trajectory: int, replicate: int, n: int) -> None:
        """Nothing to do."""


def within_strata(scheme: WeightScheme, clusters: Clusters | None) -> WeightScheme:
    """The scheme that resamples within strata; as it is where there is one stratum."""
    if clusters is None or len(clusters.strata) == 1:
        return scheme
    if scheme != Multinomial():
        raise BoundError(
            'strata must come with resampling="multinomial", which draws the same number from each of them'
        )
    return Stratified(tuple(int(size) for size in clusters.strata))
