"""The candidate's value less the behaviour policy's, on the same episodes: what "is it better?" asks.

Both are estimated from the same logs and move together; bounded as one difference under the same weights, what they
share cancels (docs/errata.md, item 31). Two separate bounds would be wider, and an error bar drawn around each says
nothing of the difference.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import numpy.typing as npt

from tightrope.base.blas import one_blas_thread
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError
from tightrope.base.folder import Scratch, parts
from tightrope.base.problem import Problem
from tightrope.base.records import About
from tightrope.estimators.base import Anchor, Estimator, IndependentEstimator, SequentialEstimator
from tightrope.estimators.model_based import ModelStatistic
from tightrope.functional.statistic import FittedStatistic, ParallelStatistic, RatioSum, SumStatistic, weight_rows
from tightrope.functional.values import SequentialValues, TrajectoryValues
from tightrope.models import Evaluated, Model


@dataclass(frozen=True)
class Gain(Estimator):
    """An estimator's value less the mean return of the logs, under the same weights."""

    of: Estimator  # of the candidate's value; what it is, its gain is

    @property
    def name(self) -> str:
        """The estimator's."""
        return self.of.name

    @property
    def uses_ratios(self) -> bool:
        """As the estimator does."""
        return self.of.uses_ratios

    @property
    def shares_weights(self) -> bool:
        """As the estimator does."""
        return self.of.shares_weights

    @property
    def trusts_states(self) -> bool:
        """As the estimator does."""
        return self.of.trusts_states

    @property
    def model(self) -> str | Model | None:
        """The estimator's."""
        return self.of.model

    @property
    def fitted_to_all(self) -> bool:
        """As the estimator's model is."""
        return self.of.fitted_to_all

    @property
    def without_model(self) -> str | None:
        """The estimator's."""
        return self.of.without_model

    @property
    def rests_on_model(self) -> bool:
        """As the estimator does."""
        return self.of.rests_on_model

    @property
    def corrects_model(self) -> bool:
        """As the estimator does."""
        return self.of.corrects_model

    @property
    def chooses(self) -> bool:
        """As the estimator does."""
        return self.of.chooses

    def preference(self, dataset: TrajectoryDataset) -> int:
        """The estimator's."""
        return self.of.preference(dataset)

    def anchored(self, anchor: Anchor) -> Self:
        """The same for one side."""
        return replace(self, of=self.of.anchored(anchor))

    def textbook(self, dataset: TrajectoryDataset) -> Self:
        """The estimator's."""
        return replace(self, of=self.of.textbook(dataset))

    def __call__(self, problem: Problem) -> FittedStatistic:
        """The statistic of the difference."""
        value, returns = self.of(problem), problem.dataset.returns
        if isinstance(value, SumStatistic) and isinstance(value.combine, RatioSum):
            return _sums(value, value.combine, returns)
        return GainStatistic(value, returns)


@dataclass(frozen=True)
class IndependentGain(Gain):
    """The gain of a mean of independent values, so that exact bounds apply."""

    of: IndependentEstimator

    def trajectory_values(self, problem: Problem, *, max_ratio: float | None) -> TrajectoryValues:
        """X − return, counted from the lowest that the difference can be (upper bounds: from the highest).

        With V = o + E[X], X ≥ 0 and returns up to h, V − V_b = (o − h) + E[X + (h − return)]; likewise from above.
        """
        sample = self.of.trajectory_values(problem, max_ratio=max_ratio)
        low, high = problem.dataset.value_range or (-np.inf, np.inf)
        end = high if sample.sign > 0 else low
        if not np.isfinite(end):
            raise BoundError("an exact bound on the gain needs both ends of the return to be declared")
        returns = furthest_returns(problem.dataset, end, sample.sign)
        if sample.episodes is not None:
            returns = returns[sample.episodes]
        values = sample.scratch.empty(len(returns))
        for part in parts(len(returns)):
            values[part] = np.maximum(sample.values[part] + sample.sign * (end - returns[part]), 0.0)
        ceiling = None if sample.ceiling is None else sample.ceiling + (high - low)
        return replace(sample, values=values, origin=sample.origin - end, ceiling=ceiling)


@dataclass(frozen=True)
class SequentialGain(IndependentGain):
    """The gain of values that are learned on the way."""

    of: SequentialEstimator

    def sequential_values(self, problem: Problem) -> GainValues:
        """X − return, counted from the lowest that the difference can be."""
        sample = self.of.sequential_values(problem)
        low, high = problem.dataset.value_range or (-np.inf, np.inf)
        end = high if sample.sign > 0 else low
        if not np.isfinite(end):
            raise BoundError("an exact bound on the gain needs both ends of the return to be declared")
        returns = furthest_returns(problem.dataset, end, sample.sign)
        return GainValues(sample, sample.sign * (end - returns), end)


@dataclass(frozen=True, eq=False)
class GainValues:
    """Sequential values with what each episode's own return leaves to the end of the range added: still ≥ −C."""

    of: SequentialValues
    left: Array  # (n,), all ≥ 0
    end: float

    @property
    def origin(self) -> float:
        """The lowest that the difference can be (upper bounds: the highest)."""
        return self.of.origin - self.end

    @property
    def sign(self) -> float:
        """As the values have it."""
        return self.of.sign

    @property
    def values(self) -> Array:
        """For the estimate and its standard error."""
        return self.of.values + self.left

    @property
    def estimate(self) -> float:
        """The mean, mapped back."""
        return self.origin + self.sign * float(self.values.mean())

    @property
    def scratch(self) -> Scratch:
        """As the values have it."""
        return self.of.scratch

    def unit(self, past: IntArray) -> float:
        """As the values have it."""
        return self.of.unit(past)

    def along(self, order: IntArray, edges: Sequence[int], tethers: Array) -> Array:
        """Both, in this order."""
        return self.of.along(order, edges, tethers) + self.left[order, None]


def furthest_returns(data: TrajectoryDataset, end: float, sign: float) -> Array:
    """The returns of the logs, (n,); where an episode was cut off, the nearest to ``end`` that it can have become."""
    if not data.any_cut:
        return data.returns
    assert data.cut is not None
    low, high = data.step_range or (-np.inf, np.inf)
    step = high if sign > 0 else low
    left = np.append(np.cumsum(data.discounts[::-1])[::-1], 0.0)[data.lengths]  # Σ γ^k over the steps not seen
    reach = data.returns + left * step if np.isfinite(step) else np.full(data.n_trajectories, end)
    nearest = np.minimum(reach, end) if sign > 0 else np.maximum(reach, end)
    return np.where(data.cut, nearest, data.returns)


def gain(estimator: Estimator) -> Gain:
    """The estimator's gain over the behaviour policy."""
    if isinstance(estimator, SequentialEstimator):
        return SequentialGain(estimator)
    return IndependentGain(estimator) if isinstance(estimator, IndependentEstimator) else Gain(estimator)


def subject(estimator: Estimator) -> About:
    """What the estimator estimates."""
    return "gain" if isinstance(estimator, Gain) else "value"


def possible_range(estimator: Estimator, dataset: TrajectoryDataset) -> tuple[float, float]:
    """What was declared possible for that which the estimator estimates."""
    low, high = dataset.value_range or (-np.inf, np.inf)
    return (low - high, high - low) if isinstance(estimator, Gain) else (low, high)


def _sums(value: SumStatistic, combine: RatioSum, returns: Array) -> SumStatistic:
    """The estimator's sums and one ratio more, the mean return, which is subtracted."""
    whole = RatioSum(np.append(combine.coefficients, -1.0), combine.constant)
    k = len(combine.coefficients)

    def make_columns(start: int, stop: int) -> Array:
        columns = value.make_columns(start, stop)
        ones = np.ones((stop - start, 1))
        return np.hstack([columns[:, :k], ones, columns[:, k:], returns[start:stop, None]])

    return replace(value, fields=whole.fields, make_columns=make_columns, combine=whole)


@dataclass(frozen=True, eq=False)
class GainStatistic:
    """The difference for a statistic that is no sum of ratios."""

    value: FittedStatistic
    returns: Array  # (n,)

    @property
    def n_trajectories(self) -> int:
        """How many weights it takes."""
        return len(self.returns)

    @property
    def parallel(self) -> bool:
        """As the value's statistic."""
        return isinstance(self.value, ParallelStatistic) and self.value.parallel

    @one_blas_thread
    def __call__(self, weights: npt.ArrayLike) -> Array:
        """(..., n) weights to (...,) values."""
        rows = weight_rows(weights, self.n_trajectories)
        with np.errstate(invalid="ignore"):  # a row of zeros leaves nothing to average
            result: Array = self.value(rows) - rows @ self.returns / rows.sum(axis=-1)
        return result

    @property
    def estimate(self) -> float:
        """The point estimate: all weights one."""
        return self.value.estimate - float(self.returns.mean())

    def influence(self) -> Array:
        """What each episode does to the difference, to first order."""
        result: Array = self.value.influence() - (self.returns - self.returns.mean())
        return result

    def leave_one_out(self) -> Array:
        """The difference without each episode in turn."""
        others = (self.returns.sum() - self.returns) / (self.n_trajectories - 1)
        result: Array = self.value.leave_one_out() - others
        return result


def fitted_model(statistic: FittedStatistic) -> Evaluated | None:
    """What a statistic fits anew under every row of weights, that of a gain included; None where it sums columns."""
    if isinstance(statistic, GainStatistic):
        return fitted_model(statistic.value)
    return statistic.model if isinstance(statistic, ModelStatistic) else None
