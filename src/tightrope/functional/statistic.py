"""The one idea: an estimator is a functional of episode weights. Read this file first.

Give every logged episode a weight and a statistic returns a value. Weights of one give the point estimate,
multinomial counts the bootstrap, ``1 - I`` the jackknife, Dirichlet rows the Bayesian bootstrap.

Nearly every estimator is more: a smooth function of weighted *sums* over episodes. Then a bootstrap of B
replicates is one matrix product, leaving one out is one subtraction, and sums add up over partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tightrope.base.blas import one_blas_thread
from tightrope.base.checks import numbers
from tightrope.base.dataset import Array
from tightrope.base.errors import TightropeError
from tightrope.base.folder import Scratch
from tightrope.base.threads import passed

COLUMN_BYTES = 2 << 20  # what one chunk of columns may take: small enough for the cache, and to be allocated cheaply
KEPT_BYTES = 16 << 20  # columns up to this size are made once and kept, since several passes go over them


class Statistic(Protocol):
    """A function of episode weights; NaN where the weights leave it undefined (0/0)."""

    @property
    def n_trajectories(self) -> int:
        """How many weights it takes."""
        ...

    def __call__(self, weights: npt.ArrayLike) -> Array:
        """(..., n) weights to (...,) values."""
        ...


@runtime_checkable
class FittedStatistic(Statistic, Protocol):
    """A statistic that the bounds can use whole: it also knows its estimate, its jackknife and its influence values."""

    @property
    def estimate(self) -> float:
        """The point estimate: all weights one."""
        ...

    def influence(self) -> Array:
        """What each episode does to the estimate, to first order: (n,), summing to zero."""
        ...

    def leave_one_out(self) -> Array:
        """The value without each episode in turn, (n,)."""
        ...


@runtime_checkable
class SmoothStatistic(Statistic, Protocol):
    """A statistic that also knows its standard error under given weights, for the studentized bootstrap."""

    def standard_errors(self, weights: Array, draws: Sequence[int]) -> Array | None:
        """Under each row of weights, (rows,), of so many draws from each stratum; None where it cannot say."""
        ...


@runtime_checkable
class ParallelStatistic(Statistic, Protocol):
    """A statistic that says whether several threads may call it at once; others are called by one."""

    @property
    def parallel(self) -> bool:
        """Whether they may."""
        ...


def weight_rows(weights: npt.ArrayLike, n: int) -> Array:
    """Weights as an array (..., n), checked."""
    rows = numbers("weights", weights, TightropeError)
    if rows.shape[-1:] != (n,):
        raise TightropeError(f"weights must have shape (..., {n}), one weight per episode; got shape {rows.shape}")
    if rows.size and not (rows.min() >= 0 and rows.max() < np.inf):  # NaN is neither
        raise TightropeError("weights must be finite numbers ≥ 0")
    return rows


class Combine(Protocol):
    """A smooth function of weighted column sums, homogeneous of degree 0: doubling all weights changes nothing."""

    def __call__(self, sums: Array) -> Array:
        """(..., columns) to (...,); NaN where undefined."""
        ...

    def gradient(self, sums: Array) -> Array:
        """The derivative by each sum, (..., columns) to (..., columns)."""
        ...


@dataclass(frozen=True, eq=False)
class SumStatistic:
    """``combine(weights @ columns)``, with the (n, columns) matrix made chunk by chunk, never all at once."""

    n_trajectories: int  # how many weights it takes
    fields: Mapping[str, slice]  # the columns by name
    make_columns: Callable[[int, int], Array]  # episodes start..stop to (stop - start, columns)
    combine: Combine
    scratch: Scratch = field(default_factory=Scratch)  # room for numbers of each episode

    def __getstate__(self) -> dict[str, Any]:
        """What others need to go on: of what was computed on the way, only the summary, which takes a pass."""
        kept = [one.name for one in fields(self)] + ["summary"]
        return {name: value for name, value in self.__dict__.items() if name in kept}

    @cached_property
    def n_columns(self) -> int:
        """How many columns are summed."""
        return max(int(part.stop) for part in self.fields.values())

    @one_blas_thread
    def __call__(self, weights: npt.ArrayLike) -> Array:
        """(..., n) weights to (...,) values; NaN where the weights leave the statistic undefined."""
        rows = weight_rows(weights, self.n_trajectories)
        sums = np.zeros((*rows.shape[:-1], self.n_columns))
        for start, stop, columns in self.chunks():
            sums += rows[..., start:stop] @ columns
        return self.combine(sums)

    def chunks(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int, Array]]:
        """(start, stop, columns) for consecutive episodes, each within COLUMN_BYTES."""
        for first, last in self.places(start, stop):
            yield first, last, self._columns(first, last)

    def places(self, start: int = 0, stop: int | None = None) -> Iterator[tuple[int, int]]:
        """Where the chunks begin and end."""
        size = max(1, COLUMN_BYTES // (8 * self.n_columns))
        end = self.n_trajectories if stop is None else stop
        for first in range(start, end, size):
            yield first, min(first + size, end)

    def _columns(self, start: int, stop: int) -> Array:
        fits = 8 * self.n_columns * self.n_trajectories <= KEPT_BYTES
        return self._kept[start:stop] if fits else self.make_columns(start, stop)

    @cached_property
    def _kept(self) -> Array:
        """Every column."""
        columns = np.empty((self.n_trajectories, self.n_columns))
        for first, last in self.places():
            columns[first:last] = self.make_columns(first, last)
        return columns

    @cached_property
    def summary(self) -> ColumnSummary:
        """Sums and sizes of all columns, from one pass."""
        sums, low, high = (np.zeros(self.n_columns) for _ in range(3))
        for total, least, most in passed(self._summary, self.places()):
            sums += total
            np.minimum(low, least, out=low)
            np.maximum(high, most, out=high)
        return ColumnSummary(sums, low, high)

    def _summary(self, place: tuple[int, int]) -> tuple[Array, Array, Array]:
        columns = self._columns(*place)
        return columns.sum(axis=0), columns.min(axis=0), columns.max(axis=0)

    @property
    def estimate(self) -> float:
        """The point estimate: all weights one."""
        return float(self.combine(self.summary.sums))

    def influence(self) -> Array:
        """What each episode does to the estimate, to first order: (n,), summing to zero.

        n · ∇combine · x_i; the infinitesimal jackknife's ingredients.
        """
        return self._influence

    @cached_property
    @one_blas_thread
    def _influence(self) -> Array:
        slope = self.combine.gradient(self.summary.sums)
        return self._each(lambda place: self.n_trajectories * (self._columns(*place) @ slope))

    @one_blas_thread
    def leave_one_out(self) -> Array:
        """The value without each episode in turn, (n,): its own sums subtracted, no second fit.

        Where one episode makes up nearly all of a column, subtraction would leave only rounding errors; those few
        are summed afresh.
        """
        total = self.summary.sums
        result = self._each(lambda place: self.combine(total - self._columns(*place)))
        for index in self._dominant():
            weights = np.ones(self.n_trajectories)
            weights[index] = 0.0
            result[index] = self(weights)
        return result

    def _each(self, call: Callable[[tuple[int, int]], Array]) -> Array:
        """One number for each episode, (n,)."""
        result: Array = self.scratch.empty(self.n_trajectories)
        for (start, stop), part in zip(self.places(), passed(call, self.places()), strict=True):
            result[start:stop] = part
        return result

    def _dominant(self) -> set[int]:
        """Episodes that make up nearly all of a column without negative entries (a denominator)."""
        sums, low, high = self.summary.sums, self.summary.low, self.summary.high
        alone = np.flatnonzero((low >= 0) & (sums > 0) & (sums - high < DOMINANT * sums))
        if not len(alone):
            return set()
        return {
            start + int(index)
            for start, _, columns in self.chunks()
            for index in np.flatnonzero((columns[:, alone] == high[alone]).any(axis=1))
        }


DOMINANT = 1e-5  # an episode with all but this share of a column is left out by summing the others


@dataclass(frozen=True)
class ColumnSummary:
    """One pass over the columns: what the point estimate and exact sums need."""

    sums: Array  # (columns,)
    low: Array  # (columns,): the lowest value, 0 included
    high: Array  # (columns,): the highest value, 0 included

    @property
    def largest(self) -> Array:
        """The largest absolute value of each column."""
        return np.maximum(-self.low, self.high)


@dataclass(frozen=True, eq=False)
class RatioSum:
    """constant + Σ_k c_k · N_k / D_k, over columns (D_1..D_K, N_1..N_K): every importance-sampling estimator is one.

    IS and PDIS have K = 1 and D = 1 (the weight total); WIS one ratio; PDWIS one per time step.
    """

    coefficients: Array  # (K,)
    constant: float = 0.0

    @property
    def fields(self) -> dict[str, slice]:
        """Names of the columns."""
        k = len(self.coefficients)
        return {"denominator": slice(0, k), "numerator": slice(k, 2 * k)}

    def __call__(self, sums: Array) -> Array:
        """(..., 2K) to (...,); NaN where a denominator is zero."""
        below, above = self._parts(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            value: Array = self.constant + (above / below) @ self.coefficients
        return np.where(np.isfinite(value), value, np.nan)

    def gradient(self, sums: Array) -> Array:
        """(..., 2K) to (..., 2K)."""
        below, above = self._parts(sums)
        with np.errstate(divide="ignore", invalid="ignore"):
            by_numerator = self.coefficients / below
            by_denominator = -by_numerator * above / below
        return np.concatenate([by_denominator, by_numerator], axis=-1)

    def _parts(self, sums: Array) -> tuple[Array, Array]:
        return sums[..., self.fields["denominator"]], sums[..., self.fields["numerator"]]
