"""Replicates by chunked matrix products in NumPy, on all cores: draw weights, build columns, multiply, add.

Memory stays bounded whatever n, the horizon and B are: weights live in cache-sized tiles, columns in chunks, sums in
slabs of replicates. For whole-number weights each column is first rounded to a power-of-two grid so coarse that every
partial sum is exact in float64; then the order of summation cannot matter and one seed gives the same bits whatever
the tiles, threads or BLAS. A replicate that drew none of the episodes that set a column's grid, and is left with
less weight than the grid resolves, counts as undefined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tightrope.base.blas import one_blas_thread
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import BoundError
from tightrope.functional.centered import centered
from tightrope.functional.engines import cuda
from tightrope.functional.engines.replicates import Replicates
from tightrope.functional.engines.threads import Meter, Progress, cores, side_by_side
from tightrope.functional.resampling import BLOCK, WeightScheme, blocks_of
from tightrope.functional.statistic import (
    ParallelStatistic,
    SmoothStatistic,
    Statistic,
    SumStatistic,
    standard_error,
)

Precision = Literal["float64", "float32"]
Engine = Literal["local", "cuda"]

TILE_ROWS = 256  # replicates per tile: 256 x 1024 float64 weights are 2 MB, about a second-level cache
SQUARE_ROWS = 16  # replicates whose effects on all episodes of a tile are made at once, at least
SHARED_BLOCKS = 64  # blocks whose shares are drawn together
SLAB_BYTES = 32 << 20  # what the (replicates, columns) sums of one slab may take
RESOLVED = 1e-6  # a denominator that the grid rounds by more than this share leaves its replicate undefined


@dataclass(frozen=True, eq=False)
class Walk:
    """Everything that decides which weights are drawn, and where progress is reported."""

    scheme: WeightScheme
    n_trajectories: int
    n_resamples: int
    seed: int
    meter: Meter

    def tiles(self, slab: range) -> Iterator[tuple[int, slice, Array]]:
        """Yield (first episode, rows of the slab, weights); the weights are overwritten by the next tile."""
        n = self.n_trajectories
        buffer = np.empty(min(TILE_ROWS, len(slab)) * min(n, BLOCK))
        for block, shares in self._shares(slab):
            start, columns = block * BLOCK, min(BLOCK, n - block * BLOCK)
            for first in range(0, len(slab), TILE_ROWS):
                rows = slice(first, min(first + TILE_ROWS, len(slab)))
                count = rows.stop - rows.start
                weights = buffer[: count * columns].reshape(count, columns)
                self.scheme.fill(weights, shares[rows], seed=self.seed, block=block, replicate=slab.start + first)
                yield start, rows, weights
            self.meter.add(len(slab) * columns)

    def _shares(self, slab: range) -> Iterator[tuple[int, IntArray]]:
        """Each block with its shares, which are drawn for a group of blocks at a time."""
        blocks = blocks_of(self.n_trajectories)
        for first in range(0, len(blocks), SHARED_BLOCKS):
            group = blocks[first : first + SHARED_BLOCKS]
            shares = self.scheme.shares(self.n_trajectories, group, slab, seed=self.seed)
            yield from ((block, shares[:, block - first : block - first + 1]) for block in group)

    def slabs(self, bytes_per_row: int, jobs: int) -> list[range]:
        """Ranges of replicates whose sums fit into SLAB_BYTES together, one at least for each job."""
        share = -(-self.n_resamples // jobs)
        size = -(-min(max(1, SLAB_BYTES // bytes_per_row), share) // TILE_ROWS) * TILE_ROWS
        return [range(first, min(first + size, self.n_resamples)) for first in range(0, self.n_resamples, size)]


@one_blas_thread
def replicate(
    statistics: Sequence[Statistic],
    scheme: WeightScheme,
    *,
    n_resamples: int,
    seed: int,
    precision: Precision = "float64",
    standard_errors: bool | Sequence[bool] = False,
    progress: Progress | None = None,
    n_jobs: int | None = None,
    engine: Engine = "local",
) -> list[Replicates]:
    """Values of several statistics on the same weight rows, drawn once; with standard errors where they are wanted.

    Replicates are shared out among ``n_jobs`` threads, by default one for each core; their number changes no bit. With
    ``engine="cuda"`` a GPU makes the sums, bit for bit the same; what is no sum, and standard errors, stay here.
    """
    wanted = [standard_errors] * len(statistics) if isinstance(standard_errors, bool) else standard_errors
    n, jobs = statistics[0].n_trajectories, n_jobs or cores()
    if n < 2:
        raise BoundError(f"a bootstrap needs at least two episodes; the logs hold {n}")
    requests = list(zip(statistics, wanted, strict=True))
    sums = [_Sums(s, scheme, precision, with_errors) for s, with_errors in requests if isinstance(s, SumStatistic)]
    rows = [_Rows(s, with_errors) for s, with_errors in requests if not isinstance(s, SumStatistic)]
    passes = bool(sums) + any(job.wanted for job in sums) + len(rows)
    walk = Walk(scheme, n, n_resamples, seed, Meter(float(passes) * n * n_resamples, progress))
    width, threads = 8 * max((job.statistic.n_columns for job in sums), default=1), jobs if engine == "local" else 1
    slabs = walk.slabs(width, threads) if sums else []
    for parts in side_by_side(lambda slab: _slab(sums, walk, slab, engine), slabs, threads):
        for job, (values, errors) in zip(sums, parts, strict=True):
            job.values.append(values)
            job.errors += [] if errors is None else [errors]
    _by_rows(rows, walk, jobs)
    finished, others = iter(sums), iter(rows)
    return [
        (next(finished) if isinstance(s, SumStatistic) else next(others)).result(n, scheme.scale(n)) for s in statistics
    ]


def _slab(sums: Sequence[_Sums], walk: Walk, slab: range, engine: Engine) -> list[tuple[Array, Array | None]]:
    """Of each statistic the values of some replicates, and their standard errors where they are wanted."""
    parts = [_Part(job, len(slab)) for job in sums]
    if engine == "cuda":
        single = any(job.dtype == np.float32 for job in sums)
        gpu_totals = cuda.totals(sums, walk.scheme, n=walk.n_trajectories, rows=slab, seed=walk.seed, single=single)
        for part, total in zip(parts, gpu_totals, strict=True):
            part.total[:] = total
        walk.meter.add(len(slab) * walk.n_trajectories)
    for start, rows, weights in walk.tiles(slab) if engine == "local" else ():
        for part in parts:
            part.add(start, weights, part.total[rows])
    values = [job.value(part.total) for job, part in zip(sums, parts, strict=True)]
    chosen = [(part, part.slopes(one)) for part, one in zip(parts, values, strict=True) if part.job.wanted]
    squares = [np.zeros(len(slab)) for _ in chosen]
    for start, rows, weights in walk.tiles(slab) if chosen else ():
        for (part, slope), square in zip(chosen, squares, strict=True):
            part.add_squares(start, weights, slope[rows], square[rows])
    draws = walk.scheme.draws(walk.n_trajectories)
    errors = iter(np.sqrt(square * draws / max(draws - 1, 1)) for square in squares)
    return [(one, next(errors) if job.wanted else None) for job, one in zip(sums, values, strict=True)]


class _Sums:
    """Weighted sums of one statistic's columns, and their results."""

    def __init__(self, statistic: SumStatistic, scheme: WeightScheme, precision: Precision, wanted: bool):
        self.original, self.wanted = statistic, wanted
        self.statistic = centered(statistic) if precision == "float32" else statistic
        self.dtype: Any = np.dtype(precision)
        self.grid: Array | None = None
        if scheme.integer and precision == "float64":
            self.grid = _grid(statistic.summary.largest, scheme.max_total(statistic.n_trajectories))
        self.values: list[Array] = []  # per slab
        self.errors: list[Array] = []

    def value(self, total: Array) -> Array:
        """The statistic of each row of sums; NaN where it is undefined or below what the grid resolves."""
        values = self.statistic.combine(total)
        part = self.statistic.fields.get("denominator")
        if self.grid is not None and part is not None:
            rounding = np.sqrt(self.original.n_trajectories) * self.grid[part] / _GRID
            values[(RESOLVED * total[:, part] < rounding).any(axis=1)] = np.nan
        return values

    def prepared(self, columns: Array) -> Array:
        """The columns on their grid, so that every sum of them is exact."""
        if self.grid is None:
            return columns.astype(self.dtype, copy=False)
        return (columns + self.grid) - self.grid

    def result(self, n: int, scale: float) -> Replicates:
        """What the bounds work from."""
        estimate = self.original.estimate
        values = _spread(estimate, np.concatenate(self.values), scale)
        if not self.errors:
            return Replicates(n, estimate, values)
        error = standard_error(self.original.influence())
        return Replicates(n, estimate, values, None, error, scale * np.concatenate(self.errors))


class _Part:
    """The sums of one slab, and what one thread needs for itself."""

    def __init__(self, job: _Sums, count: int):
        self.job, width = job, job.statistic.n_columns
        self.total = np.zeros((count, width))
        self.product = np.empty((min(TILE_ROWS, count), width), dtype=job.dtype)
        self.block: tuple[int, list[tuple[int, int, Array]]] = (-1, [])

    def add(self, start: int, weights: Array, total: Array) -> None:
        """Add the weighted sums of one tile to its rows of the total."""
        weights = weights.astype(self.job.dtype, copy=False)
        product = self.product[: len(weights)]
        for first, last, columns in self._columns(start, weights.shape[1]):
            np.matmul(weights[:, first - start : last - start], columns, out=product)
            total += product

    def slopes(self, values: Array) -> Array:
        """The derivative at each row of sums; 0 where the statistic was undefined."""
        slope = self.job.statistic.combine.gradient(self.total)
        slope[np.isnan(values)] = 0.0
        return slope

    def add_squares(self, start: int, weights: Array, slope: Array, square: Array) -> None:
        """Add Σ w_i (slope · x_i)², the infinitesimal jackknife's variance under each row of weights."""
        from tightrope.base.kernels import add_weighted_squares

        size = max(SQUARE_ROWS, slope.shape[1])  # a few at a time stay in the cache; a product needs as many
        for first, last, columns in self._columns(start, weights.shape[1]):
            for row in range(0, len(weights), size):
                rows = slice(row, row + size)
                effect = slope[rows] @ columns.T
                add_weighted_squares(weights[rows, first - start : last - start], effect, square[rows])

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


def _by_rows(jobs: Sequence[_Rows], walk: Walk, threads: int) -> None:
    """For statistics that do not reduce to sums: call them on whole weight rows, all on a tile before the next one."""
    n, scheme = walk.n_trajectories, walk.scheme
    size = max(1, min(TILE_ROWS, SLAB_BYTES // (8 * n)))
    tiles = [range(first, min(first + size, walk.n_resamples)) for first in range(0, walk.n_resamples, size)]

    def tile(rows: range) -> list[tuple[Array, Array | None]]:
        weights = np.empty((len(rows), n))
        scheme.fill(
            weights, scheme.shares(n, blocks_of(n), rows, seed=walk.seed), seed=walk.seed, block=0, replicate=rows.start
        )
        parts = []
        for job in jobs:
            parts.append(job.part(weights, scheme.draws(n)))
            walk.meter.add(len(rows) * n)
        return parts

    # What calls a user's policy or simulator is not ours to share among threads.
    ours = all(isinstance(job.statistic, ParallelStatistic) and job.statistic.parallel for job in jobs)
    for parts in side_by_side(tile, tiles if jobs else [], threads if ours else 1):
        for job, (values, errors) in zip(jobs, parts, strict=True):
            job.values.append(values)
            job.errors.append(errors)


class _Rows:
    """One statistic's values, row by row, and its standard errors where it offers them."""

    def __init__(self, statistic: Statistic, standard_errors: bool):
        self.statistic, self.wanted = statistic, standard_errors
        self.values: list[Array] = []
        self.errors: list[Array | None] = []

    def part(self, weights: Array, draws: int) -> tuple[Array, Array | None]:
        """Call it on some rows."""
        values = self.statistic(weights)
        return values, _standard_errors(self.statistic, weights, draws) if self.wanted else None

    def result(self, n: int, scale: float) -> Replicates:
        """What the bounds work from."""
        estimate = float(self.statistic(np.ones(n)))
        result = Replicates(n, estimate, _spread(estimate, np.concatenate(self.values), scale))
        errors = [one for one in self.errors if one is not None]
        if not errors or len(errors) < len(self.errors):  # a part that has none leaves the values alone
            return result
        error = _standard_errors(self.statistic, np.ones((1, n)), n)
        assert error is not None
        return replace(result, standard_error=float(error[0]), standard_errors=scale * np.concatenate(errors))


def _standard_errors(statistic: Statistic, weights: Array, draws: int) -> Array | None:
    """The standard error under each row of weights, where the statistic offers one."""
    try:
        return statistic.standard_errors(weights, draws) if isinstance(statistic, SmoothStatistic) else None
    except BoundError:  # the values stand without them
        return None


def _spread(estimate: float, values: Array, scale: float) -> Array:
    """Replicates of fewer draws than episodes spread too far around the estimate; draw them in."""
    return values if scale == 1.0 else estimate + scale * (values - estimate)


_GRID = 1.5 * 2.0**52


def _grid(largest: Array, max_total: int) -> Array:
    """Adding and subtracting this rounds each column so that weights of up to ``max_total`` sum it without error.

    With u the grid's unit and |x| ≤ largest, every partial sum is a multiple of u below 2^53 u. Twice the largest must
    fit even where a row is a single draw: only then are both signs rounded alike.
    """
    bound = np.maximum(largest * max(max_total, 2), np.finfo(np.float64).tiny)
    unit = np.exp2(np.ceil(np.log2(bound)) - 52)
    result: Array = _GRID * unit
    return result
