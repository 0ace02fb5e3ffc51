"""Weighted sums of columns over a range of episodes: draw weights, build columns, multiply, add.

For whole-number weights each column is first rounded to a power-of-two grid so coarse that every partial sum is exact
in float64; then one seed gives the same bits whatever the tiles, threads, machines or BLAS.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Literal

import numpy as np

from tightrope.base.blas import one_blas_thread
from tightrope.base.cluster import Sums
from tightrope.base.dataset import Array, IntArray
from tightrope.functional.centered import centered
from tightrope.functional.engines.base import GROUP, tree_sum
from tightrope.functional.engines.threads import Meter
from tightrope.functional.resampling import BLOCK, WeightScheme, blocks_of
from tightrope.functional.statistic import SumStatistic

Precision = Literal["float64", "float32"]

TILE_ROWS = 256  # replicates per tile: 256 x 1024 float64 weights are 2 MB, about a second-level cache
SQUARE_ROWS = 16  # replicates whose effects on all episodes of a tile are made at once, at least
SLAB_BYTES = 32 << 20  # what the (replicates, columns) sums of one slab may take
_GRID = 1.5 * 2.0**52


@dataclass(frozen=True, eq=False)
class Walk:
    """Everything that decides which weights are drawn, and where progress is reported."""

    scheme: WeightScheme
    n_trajectories: int
    seed: int
    meter: Meter

    @property
    def blocks(self) -> range:
        """All blocks of episodes."""
        return blocks_of(self.n_trajectories)

    def tiles(self, slab: range, blocks: range) -> Iterator[tuple[int, slice, Array]]:
        """Yield (first episode, rows of the slab, weights); the weights are overwritten by the next tile."""
        n = self.n_trajectories
        buffer = np.empty(min(TILE_ROWS, len(slab)) * min(n, BLOCK))
        for block, shares in self._shares(slab, blocks):
            start, columns = block * BLOCK, min(BLOCK, n - block * BLOCK)
            for first in range(0, len(slab), TILE_ROWS):
                rows = slice(first, min(first + TILE_ROWS, len(slab)))
                count = rows.stop - rows.start
                weights = buffer[: count * columns].reshape(count, columns)
                self.scheme.fill(weights, shares[rows], seed=self.seed, block=block, replicate=slab.start + first)
                yield start, rows, weights
            self.meter.add(len(slab) * columns)

    def _shares(self, slab: range, blocks: range) -> Iterator[tuple[int, IntArray]]:
        """Each block with its shares, which are drawn for a group of blocks at a time."""
        for group in groups(blocks):
            shares = self.scheme.shares(self.n_trajectories, group, slab, seed=self.seed)
            yield from ((block, shares[:, place : place + 1]) for place, block in enumerate(group))


def groups(blocks: range) -> list[range]:
    """The blocks in groups, from a multiple of their size on."""
    return [blocks[first : first + GROUP] for first in range(0, len(blocks), GROUP)]


@dataclass(frozen=True, eq=False)
class Job:
    """The columns of one statistic, and how they are prepared."""

    statistic: SumStatistic
    dtype: Any
    grid: Array | None  # what rounds each column; None: as they are

    @classmethod
    def of(cls, statistic: SumStatistic, scheme: WeightScheme, precision: Precision) -> Job:
        """Columns on a grid for exact sums, or centred for single precision."""
        if precision == "float32":
            return cls(centered(statistic), np.dtype(precision), None)
        whole = scheme.max_total(statistic.n_trajectories) if scheme.integer else 0
        return cls(statistic, np.dtype(precision), _grid(statistic.summary.largest, whole) if scheme.integer else None)

    def prepared(self, columns: Array) -> Array:
        """The columns on their grid, so that every sum of them is exact."""
        if self.grid is None:
            return columns.astype(self.dtype, copy=False)
        return (columns + self.grid) - self.grid

    @property
    def rounding(self) -> Array | None:
        """How far a sum over all episodes may be off because of the grid, by column."""
        return None if self.grid is None else np.sqrt(self.statistic.n_trajectories) * self.grid / _GRID


def _grid(largest: Array, max_total: int) -> Array:
    """Adding and subtracting this rounds each column so that weights of up to ``max_total`` sum it without error.

    With u the grid's unit and |x| ≤ largest, every partial sum is a multiple of u below 2^53 u. Twice the largest must
    fit even where a row is a single draw: only then are both signs rounded alike.
    """
    bound = np.maximum(largest * max(max_total, 2), np.finfo(np.float64).tiny)
    unit = np.exp2(np.ceil(np.log2(bound)) - 52)
    result: Array = _GRID * unit
    return result


@dataclass(frozen=True, eq=False)
class _Sum:
    """Something to be summed over ranges of blocks, for every job, under some replicates."""

    jobs: Sequence[Job]
    walk: Walk
    slab: range

    @one_blas_thread
    def __call__(self, blocks: range) -> Sums:
        """The sums over these blocks of episodes."""
        parts = [_Part(job, len(self.slab)) for job in self.jobs]
        return tree_sum(self._group(parts, group) for group in groups(blocks))

    def _group(self, parts: Sequence[_Part], blocks: range) -> Sums:
        """The sums over one group of blocks, a leaf of the tree."""
        raise NotImplementedError


@dataclass(frozen=True, eq=False)
class Totals(_Sum):
    """Weighted sums of every job's columns, (replicates, columns) each."""

    def _group(self, parts: Sequence[_Part], blocks: range) -> Sums:
        totals = [np.zeros((len(self.slab), job.statistic.n_columns)) for job in self.jobs]
        for start, rows, weights in self.walk.tiles(self.slab, blocks):
            for part, total in zip(parts, totals, strict=True):
                part.add(start, weights, total[rows])
        return totals


@dataclass(frozen=True, eq=False)
class Squares(_Sum):
    """Σ w_i (slope · x_i)² of every job in every stratum and, of several, Σ w_i (slope · x_i).

    (1 or 2, strata, replicates) each.
    """

    slopes: Sequence[Array]  # (replicates, columns) each
    strata: Sequence[int]  # their sizes; members stand together

    def _group(self, parts: Sequence[_Part], blocks: range) -> Sums:
        several, edges = len(self.strata) > 1, np.append(0, np.cumsum(self.strata))
        squares = [np.zeros((1 + several, len(self.strata), len(self.slab))) for _ in self.jobs]
        for start, rows, weights in self.walk.tiles(self.slab, blocks):
            for part, slope, square in zip(parts, self.slopes, squares, strict=True):
                part.add_squares(start, weights, slope[rows], square[:, :, rows], edges)
        return squares


class _Part:
    """What one thread needs for itself to sum one job."""

    def __init__(self, job: Job, count: int):
        self.job = job
        self.product = np.empty((min(TILE_ROWS, count), job.statistic.n_columns), dtype=job.dtype)
        self.block: tuple[int, list[tuple[int, int, Array]]] = (-1, [])

    def add(self, start: int, weights: Array, total: Array) -> None:
        """Add the weighted sums of one tile to its rows of the total."""
        weights = weights.astype(self.job.dtype, copy=False)
        product = self.product[: len(weights)]
        for first, last, columns in self._columns(start, weights.shape[1]):
            np.matmul(weights[:, first - start : last - start], columns, out=product)
            total += product

    def add_squares(self, start: int, weights: Array, slope: Array, square: Array, edges: IntArray) -> None:
        """Add Σ w_i (slope · x_i)², the infinitesimal jackknife's variance under each row, and perhaps the plain sums.

        Strata begin and end at the edges.
        """
        from tightrope.base.kernels import add_weighted_squares

        size = max(SQUARE_ROWS, slope.shape[1])  # a few at a time stay in the cache; a product needs as many
        for first, last, columns in self._columns(start, weights.shape[1]):
            strata = [(h, a, b) for h, (a, b) in enumerate(pairwise(np.clip(edges, first, last) - first)) if a < b]
            for row in range(0, len(weights), size):
                rows = slice(row, row + size)
                effect, drawn = slope[rows] @ columns.T, weights[rows, first - start : last - start]
                for place, low, high in strata:
                    own, there = effect[:, low:high], drawn[:, low:high]
                    add_weighted_squares(there, own, square[0, place, rows])
                    if len(square) > 1:
                        square[1, place, rows] += (there * np.where(there > 0, own, 0.0)).sum(axis=1)

    def _columns(self, start: int, width: int) -> Iterator[tuple[int, int, Array]]:
        """The columns of a block, kept while the tiles of this block go by unless they are too wide for that."""
        if self.block[0] == start:
            return iter(self.block[1])
        statistic = self.job.statistic
        chunks = ((a, b, self.job.prepared(c)) for a, b, c in statistic.chunks(start, start + width))
        if 8 * statistic.n_columns * width > SLAB_BYTES:
            return chunks
        self.block = (start, list(chunks))
        return iter(self.block[1])
