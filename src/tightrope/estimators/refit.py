"""DR and WDR with a model per resample: every weight row has control variates of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.problem import Problem
from tightrope.estimators.weighing import Weighing
from tightrope.functional.statistic import Statistic, SumStatistic
from tightrope.models import BatchedModel, PreparedModel


@dataclass(frozen=True, eq=False)
class Refitted:
    """Fit under the weights, build the statistic with those values, evaluate it under the same weights."""

    model: PreparedModel
    with_values: Callable[[tuple[Array, Array]], Statistic]

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.model.n_trajectories

    def values(self, weights: Array) -> Array:
        """The corrected estimate under each row of weights, (rows,)."""
        return np.array(
            [float(self.with_values(self.model.control_variates(row))(row)) if row.any() else np.nan for row in weights]
        )


@dataclass(frozen=True, eq=False)
class RefittedAtOnce:
    """The same for models that correct many rows at once, with logged ratios, which do not change with the weights."""

    model: BatchedModel
    problem: Problem
    weighing: Weighing  # with any values: only its ratios and how it averages are used

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.problem.dataset.n_trajectories

    def values(self, weights: Array) -> Array:
        """The corrected estimate under each row of weights, (rows,)."""
        weighing, combine = self.weighing, self.weighing.combine
        above = self.model.correction_sums(weights, self._factors)[:, : 1 + len(weighing.coefficients)]
        if not weighing.self_normalized:
            above = (above * np.append(1.0, weighing.coefficients)).sum(axis=1, keepdims=True)
        sums = np.concatenate([self._denominators(weights), above], axis=1)
        return np.array([float(combine(row)) for row in sums])  # one by one: the same bits in any batch

    def _denominators(self, weights: Array) -> Array:
        """The weighted sums of ratios, (rows, K), each row by itself."""
        below = np.zeros((len(weights), self._below.n_columns))
        for start, stop, columns in self._below.chunks():
            for row, sums in zip(weights, below, strict=True):
                sums += row[start:stop] @ columns
        return below

    @cached_property
    def _below(self) -> SumStatistic:
        every = self.weighing.statistic(self.problem)
        assert isinstance(every, SumStatistic)
        part = every.fields["denominator"]

        def make_columns(start: int, stop: int) -> Array:
            return every.make_columns(start, stop)[:, part]

        return SumStatistic(every.n_trajectories, {"denominator": part}, make_columns, every.combine)

    @cached_property
    def _factors(self) -> Array:
        """The ratio of every step, (N,), scaled as the denominators are; 0 where it does not count."""
        data, ratios, times = self.problem.dataset, self.problem.ratios, self.weighing.times
        factors = data.scratch.empty(data.n_steps)
        for start, stop in data.chunks():
            scaled = np.zeros((stop - start, data.horizon))
            top = ratios.log_max[times] if self.weighing.self_normalized else 0.0
            scaled[:, times] = np.exp(ratios.log(start, stop)[:, times] - top)
            factors[data.steps(start, stop)] = scaled[np.arange(data.horizon) < data.lengths[start:stop, None]]
        return factors
