"""Replicates of statistics: of sums by one matrix product, of others by calling them on whole rows of weights.

Memory stays bounded whatever n, the horizon and B are: weights live in cache-sized tiles, columns in chunks, sums in
slabs of replicates. A replicate that drew none of the episodes that set a column's grid, and is left with less weight
than the grid resolves, counts as undefined.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from tightrope.base.blas import one_blas_thread
from tightrope.base.dataset import Array
from tightrope.base.errors import BoundError
from tightrope.base.folder import Scratch
from tightrope.base.threads import cores
from tightrope.functional.engines import cuda
from tightrope.functional.engines.base import Engine, group_ranges
from tightrope.functional.engines.replicates import Replicates
from tightrope.functional.engines.sums import SLAB_BYTES, TILE_ROWS, Job, Precision, Squares, Totals, Walk
from tightrope.functional.engines.threads import Meter, Progress, Threads
from tightrope.functional.resampling import WeightScheme, blocks_of
from tightrope.functional.standard_errors import drawn_errors, standard_error
from tightrope.functional.statistic import ParallelStatistic, SmoothStatistic, Statistic, SumStatistic
from tightrope.functional.strata import draws_of, levelled, strata_of

EngineName = Literal["local", "cuda"]
EIGHT = 8  # replicates that tabular models fit side by side
RESOLVED = 1e-6  # a denominator that the grid rounds by more than this share leaves its replicate undefined


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
    engine: EngineName | Engine = "local",
    scratch: Scratch | None = None,
) -> list[Replicates]:
    """Values of several statistics on the same weight rows, drawn once; with standard errors where they are wanted.

    They are computed by ``n_jobs`` threads, by default one for each core, or by the engine that is given; with
    ``engine="cuda"`` a GPU makes the sums. What computes them changes no bit. Whole rows of weights lie in the scratch.
    """
    wanted = [standard_errors] * len(statistics) if isinstance(standard_errors, bool) else standard_errors
    n = statistics[0].n_trajectories
    if n < 2:
        raise BoundError(f"a bootstrap needs at least two episodes; the logs hold {n}")
    requests = list(zip(statistics, wanted, strict=True))
    sums = [_Sums(s, scheme, precision, with_errors) for s, with_errors in requests if isinstance(s, SumStatistic)]
    rows = [_Rows(s, with_errors) for s, with_errors in requests if not isinstance(s, SumStatistic)]
    passes = bool(sums) + any(job.wanted for job in sums) + len(rows)
    walk = Walk(scheme, n, seed, Meter(float(passes) * n * n_resamples, progress))
    runner = Threads(n_jobs or cores()) if isinstance(engine, str) else engine
    if sums:
        _by_sums(sums, walk, n_resamples, runner, on_gpu=engine == "cuda")
    _by_rows(rows, walk, n_resamples, runner, scratch or Scratch())
    finished, others = iter(sums), iter(rows)
    return [(next(finished) if isinstance(s, SumStatistic) else next(others)).result(n, scheme) for s in statistics]


class _Sums:
    """One statistic of sums, and its results."""

    def __init__(self, statistic: SumStatistic, scheme: WeightScheme, precision: Precision, wanted: bool):
        self.original, self.wanted = statistic, wanted
        self.job = Job.of(statistic, scheme, precision)
        self.values: list[Array] = []  # per slab
        self.errors: list[Array] = []

    def value(self, total: Array) -> Array:
        """The statistic of each row of sums; NaN where it is undefined or below what the grid resolves."""
        values, rounding = self.job.statistic.combine(total), self.job.rounding
        part = self.job.statistic.fields.get("denominator")
        if rounding is not None and part is not None:
            values[(RESOLVED * total[:, part] < rounding[part]).any(axis=1)] = np.nan
        return values

    def slopes(self, total: Array, values: Array) -> Array:
        """The derivative at each row of sums; 0 where the statistic was undefined."""
        slope = self.job.statistic.combine.gradient(total)
        slope[np.isnan(values)] = 0.0
        return slope

    def result(self, n: int, scheme: WeightScheme) -> Replicates:
        """What the bounds work from."""
        estimate, scale = self.original.estimate, scheme.scale(n)
        values = _spread(estimate, np.concatenate(self.values), scale)
        if not self.errors:
            return Replicates(n, estimate, values)
        error = standard_error(levelled(self.original.influence(), strata_of(scheme, n), self.original.scratch))
        return Replicates(n, estimate, values, None, error, scale * np.concatenate(self.errors))


def _by_sums(sums: Sequence[_Sums], walk: Walk, n_resamples: int, runner: Engine, *, on_gpu: bool) -> None:
    """Share out the episodes where there are many, or else the replicates: each part then makes all columns itself."""
    ranges = group_ranges(len(walk.blocks), 2 * runner.parts)
    by_episodes = on_gpu or not isinstance(runner, Threads) or len(ranges) >= 2 * runner.parts
    size = _slab_size(
        n_resamples, 8 * max(job.job.statistic.n_columns for job in sums), 1 if by_episodes else runner.parts
    )
    slabs = [range(first, min(first + size, n_resamples)) for first in range(0, n_resamples, size)]
    inner = runner if by_episodes else Threads(1)

    def slab(rows: range) -> list[tuple[Array, Array | None]]:
        return _slab(sums, walk, rows, ranges, inner, on_gpu)

    for parts in map(slab, slabs) if by_episodes else runner.map(slab, slabs):
        for job, (values, errors) in zip(sums, parts, strict=True):
            job.values.append(values)
            job.errors += [] if errors is None else [errors]


def _slab_size(n_resamples: int, bytes_per_row: int, parts: int) -> int:
    """Replicates whose sums fit into SLAB_BYTES together, one slab at least for each part."""
    share = -(-n_resamples // parts)
    return -(-min(max(1, SLAB_BYTES // bytes_per_row), share) // TILE_ROWS) * TILE_ROWS


def _slab(
    sums: Sequence[_Sums], walk: Walk, slab: range, ranges: Sequence[range], runner: Engine, on_gpu: bool
) -> list[tuple[Array, Array | None]]:
    """Of each statistic the values of some replicates, and their standard errors where they are wanted."""
    jobs = [one.job for one in sums]
    if on_gpu:
        single = any(job.dtype == np.float32 for job in jobs)
        totals = cuda.totals(jobs, walk.scheme, n=walk.n_trajectories, rows=slab, seed=walk.seed, single=single)
        walk.meter.add(len(slab) * walk.n_trajectories)
    else:
        totals = runner.add(Totals(jobs, walk, slab), ranges)
    values = [one.value(total) for one, total in zip(sums, totals, strict=True)]
    chosen = [(one.job, one.slopes(total, v)) for one, total, v in zip(sums, totals, values, strict=True) if one.wanted]
    if not chosen:
        return [(one, None) for one in values]
    n = walk.n_trajectories
    squares = Squares([job for job, _ in chosen], walk, slab, [slope for _, slope in chosen], strata_of(walk.scheme, n))
    draws = draws_of(walk.scheme, n)
    added = runner.add(squares, ranges)
    errors = iter(drawn_errors(one[0], one[1] if len(one) > 1 else None, draws) for one in added)
    return [(v, next(errors) if one.wanted else None) for one, v in zip(sums, values, strict=True)]


def _by_rows(jobs: Sequence[_Rows], walk: Walk, n_resamples: int, runner: Engine, scratch: Scratch) -> None:
    """For statistics that do not reduce to sums: call them on whole weight rows, all on a tile before the next one."""
    n, scheme = walk.n_trajectories, walk.scheme
    size = max(EIGHT, min(TILE_ROWS, SLAB_BYTES // (8 * n)))
    size -= size % EIGHT
    tiles = [range(first, min(first + size, n_resamples)) for first in range(0, n_resamples, size)]

    def tile(rows: range) -> list[tuple[Array, Array | None]]:
        weights = scratch.empty((len(rows), n))
        shares = scheme.shares(n, blocks_of(n), rows, seed=walk.seed)
        scheme.fill(weights, shares, seed=walk.seed, block=0, replicate=rows.start)
        parts = []
        for job in jobs:
            parts.append(job.part(weights, draws_of(scheme, n)))
            walk.meter.add(len(rows) * n)
        return parts

    # What calls a user's policy or simulator is not ours to share among threads.
    ours = all(isinstance(job.statistic, ParallelStatistic) and job.statistic.parallel for job in jobs)
    for parts in (runner if ours else Threads(1)).map(tile, tiles if jobs else []):
        for job, (values, errors) in zip(jobs, parts, strict=True):
            job.values.append(values)
            job.errors.append(errors)


class _Rows:
    """One statistic's values, row by row, and its standard errors where it offers them."""

    def __init__(self, statistic: Statistic, standard_errors: bool):
        self.statistic, self.wanted = statistic, standard_errors
        self.values: list[Array] = []
        self.errors: list[Array | None] = []

    def part(self, weights: Array, draws: Sequence[int]) -> tuple[Array, Array | None]:
        """Call it on some rows."""
        values = self.statistic(weights)
        return values, _standard_errors(self.statistic, weights, draws) if self.wanted else None

    def result(self, n: int, scheme: WeightScheme) -> Replicates:
        """What the bounds work from."""
        estimate, scale = float(self.statistic(np.ones(n))), scheme.scale(n)
        result = Replicates(n, estimate, _spread(estimate, np.concatenate(self.values), scale))
        errors = [one for one in self.errors if one is not None]
        if not errors or len(errors) < len(self.errors):  # a part that has none leaves the values alone
            return result
        error = _standard_errors(self.statistic, np.ones((1, n)), strata_of(scheme, n))
        assert error is not None
        return replace(result, standard_error=float(error[0]), standard_errors=scale * np.concatenate(errors))


def _standard_errors(statistic: Statistic, weights: Array, draws: Sequence[int]) -> Array | None:
    """The standard error under each row of weights, where the statistic offers one."""
    try:
        return statistic.standard_errors(weights, draws) if isinstance(statistic, SmoothStatistic) else None
    except BoundError:  # the values stand without them
        return None


def _spread(estimate: float, values: Array, scale: float) -> Array:
    """Replicates of fewer draws than episodes spread too far around the estimate; draw them in."""
    return values if scale == 1.0 else estimate + scale * (values - estimate)
