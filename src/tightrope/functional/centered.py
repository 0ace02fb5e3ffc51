"""Sums of ratios in float32 without losing digits: the columns centred and scaled."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.errors import TightropeError
from tightrope.functional.statistic import RatioSum, SumStatistic

FLOAT32_RESOLVED = 0.01  # of the average denominator: below it float32 has lost too many digits


@dataclass(frozen=True, eq=False)
class CenteredRatioSum:
    """A RatioSum over columns (1, D/D̄ − 1, (N − θD)/D̄s): small numbers, for float32 without losing digits.

    N/D = θ + s Σw(N − θD)/D̄s / (Σw + Σw(D/D̄ − 1)), with θ and D̄ of the full data and s the size of N − θD: rewards
    come in any unit, and float32 ends at 1e±38.
    """

    coefficients: Array  # (K,)
    constant: float
    ratios: Array  # (K,): θ
    sizes: Array  # (K,): s, powers of two

    @property
    def fields(self) -> dict[str, slice]:
        """Names of the columns."""
        k = len(self.coefficients)
        return {"total": slice(0, 1), "denominator": slice(1, k + 1), "numerator": slice(k + 1, 2 * k + 1)}

    def __call__(self, sums: Array) -> Array:
        """(..., 2K+1) to (...,); NaN where a denominator is zero or too small for float32."""
        total, below, above = (sums[..., part] for part in self.fields.values())
        below = total + below
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(below > FLOAT32_RESOLVED * total, self.ratios + self.sizes * (above / below), np.nan)
        value: Array = self.constant + ratio @ self.coefficients
        return value

    def gradient(self, sums: Array) -> Array:
        """(..., 2K+1) to (..., 2K+1)."""
        total, below, above = (sums[..., part] for part in self.fields.values())
        below = total + below
        with np.errstate(divide="ignore", invalid="ignore"):
            by_numerator = self.coefficients * self.sizes / below
            by_denominator = -by_numerator * above / below
        by_total = by_denominator.sum(axis=-1, keepdims=True)
        return np.concatenate([by_total, by_denominator, by_numerator], axis=-1)


def centered(statistic: SumStatistic) -> SumStatistic:
    """The same statistic over centred columns; only sums of ratios have this form."""
    combine = statistic.combine
    if not isinstance(combine, RatioSum):
        raise TightropeError('precision must be "float64" for this estimator; "float32" is for sums of ratios')
    below, above = combine._parts(statistic.summary.sums)
    average = below / statistic.n_trajectories
    theta = above / below

    def parts(columns: Array) -> tuple[Array, Array]:
        denominator, numerator = combine._parts(columns)
        return denominator / average - 1.0, (numerator - theta * denominator) / average

    largest = np.max([np.abs(parts(columns)[1]).max(axis=0) for _, _, columns in statistic.chunks()], axis=0)
    sizes = np.exp2(np.ceil(np.log2(np.where(largest > 0, largest, 1.0))))

    def make_columns(start: int, stop: int) -> Array:
        denominator, numerator = parts(statistic.make_columns(start, stop))
        return np.hstack([np.ones((stop - start, 1)), denominator, numerator / sizes])

    shifted = CenteredRatioSum(combine.coefficients, combine.constant, theta, sizes)
    return replace(statistic, fields=shifted.fields, make_columns=make_columns, combine=shifted)
