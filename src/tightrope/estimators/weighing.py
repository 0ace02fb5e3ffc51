"""What every importance-sampling estimator is: per-episode values, weighed by importance ratios, averaged.

    constant + Σ_i w_i b_i / Σ_i w_i + Σ_t c_t Σ_i w_i ρ_t^i x_t^i / D_t,

with D_t = Σ_i w_i ρ_t^i (self-normalised) or Σ_i w_i. With logged ratios this is a sum statistic; with an estimated
behaviour policy the ratios are functions of the weights too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.base.behavior import SmoothBehavior
from tightrope.base.dataset import Array
from tightrope.base.problem import Problem
from tightrope.base.ratios import Ratios
from tightrope.estimators.model_based import ModelStatistic
from tightrope.estimators.reestimate import Reestimated, SmoothReestimated
from tightrope.functional.statistic import RatioSum, SumStatistic


@dataclass(frozen=True, eq=False)
class Weighing:
    """An estimator taken apart: what is weighed, by the ratios of which times, and how it is averaged."""

    times: slice  # the K times whose ratios are used
    coefficients: Array  # (K,): c_t
    values: Callable[[int, int], Array]  # x of episodes start..stop, (stop - start, K)
    self_normalized: bool
    unweighted: Array | None = None  # (n,): b, averaged without ratios
    constant: float = 0.0

    def statistic(self, problem: Problem) -> SumStatistic | ModelStatistic:
        """The estimator as a function of episode weights."""
        ratios, combine = problem.ratios, self.combine  # logs without overlap have no ratios: refused here
        if problem.behavior is not None:
            return self._reestimated(problem)
        make = self._normalized_columns if self.self_normalized else self._mean_columns

        def make_columns(start: int, stop: int) -> Array:
            return make(ratios, start, stop)

        room = problem.dataset.scratch
        return SumStatistic(problem.dataset.n_trajectories, combine.fields, make_columns, combine, room)

    @property
    def combine(self) -> RatioSum:
        """What is done with the sums."""
        if not self.self_normalized:
            return RatioSum(np.ones(1), constant=self.constant)
        plain = [] if self.unweighted is None else [1.0]
        return RatioSum(np.append(plain, self.coefficients), constant=self.constant)

    def weighted(self, ratios: Ratios, start: int, stop: int) -> Array:
        """Σ_t c_t ρ_t x_t of episodes start..stop, (stop - start,)."""
        result: Array = (np.exp(ratios.log(start, stop)[:, self.times]) * self.values(start, stop)) @ self.coefficients
        return result

    def _mean_columns(self, ratios: Ratios, start: int, stop: int) -> Array:
        """1; b + Σ_t c_t ρ_t x_t."""
        columns = np.ones((stop - start, 2))
        columns[:, 1] = self.weighted(ratios, start, stop)
        if self.unweighted is not None:
            columns[:, 1] += self.unweighted[start:stop]
        return columns

    def _normalized_columns(self, ratios: Ratios, start: int, stop: int) -> Array:
        """1 (with b), ρ_t; b, ρ_t x_t; relative to the largest ratio of each time, so that no horizon overflows."""
        plain, count = int(self.unweighted is not None), len(self.coefficients)
        columns = np.empty((stop - start, 2 * (plain + count)))
        if self.unweighted is not None:
            columns[:, 0] = 1.0
            columns[:, count + 1] = self.unweighted[start:stop]
        ratio = columns[:, plain : plain + count]
        np.subtract(ratios.log(start, stop)[:, self.times], ratios.log_max[self.times], out=ratio)
        np.exp(ratio, out=ratio)
        np.multiply(ratio, self.values(start, stop), out=columns[:, 2 * plain + count :])
        return columns

    def _reestimated(self, problem: Problem) -> ModelStatistic:
        n = problem.dataset.n_trajectories
        smooth = isinstance(problem.fits.behavior, SmoothBehavior)
        values = np.concatenate([self.values(start, stop) for start, stop in problem.dataset.chunks()])
        unweighted = np.zeros(n) if self.unweighted is None else self.unweighted
        return ModelStatistic(
            (SmoothReestimated if smooth else Reestimated)(
                problem=problem,
                first=self.times.start,
                coefficients=self.coefficients,
                values_weighed=np.ascontiguousarray(values),
                self_normalized=self.self_normalized,
                unweighted=unweighted,
                constant=self.constant,
            )
        )
