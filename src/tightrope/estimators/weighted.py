"""Weighted (self-normalised) importance sampling: WIS and PDWIS.

Biased but consistent, with far less variance; only relative ratios matter, so they are scaled by the largest of each
time step and no horizon overflows. The claim that the bias leads from V(π_b) towards V(π_e) does not hold in general.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.estimators.base import Estimator
from tightrope.estimators.model_based import ModelStatistic
from tightrope.estimators.weighing import Weighing
from tightrope.functional.statistic import SumStatistic


@dataclass(frozen=True)
class WIS(Estimator):
    """Weighted importance sampling: Σ ρ_{L-1} return / Σ ρ_{L-1}."""

    name: ClassVar[str] = "wis"
    shares_weights: ClassVar[bool] = True

    def preference(self, dataset: TrajectoryDataset) -> int:
        """After DR."""
        return 4

    def __call__(self, problem: Problem) -> SumStatistic | ModelStatistic:
        """The statistic of the candidate's value."""
        data = problem.dataset

        def values(start: int, stop: int) -> Array:
            return data.returns_of(start, stop)[:, None]

        last = slice(data.horizon - 1, data.horizon)
        return Weighing(last, np.ones(1), values, self_normalized=True).statistic(problem)


@dataclass(frozen=True)
class PDWIS(Estimator):
    """Per-decision weighted importance sampling: Σ_t γ^t Σ_i ρ_t^i r_t^i / Σ_i ρ_t^i.

    No further 1/n: the weights of each step sum to one. Finished episodes keep their ratio in every later denominator.
    """

    name: ClassVar[str] = "pdwis"
    shares_weights: ClassVar[bool] = True

    def preference(self, dataset: TrajectoryDataset) -> int:
        """After WDR."""
        return 2

    def __call__(self, problem: Problem) -> SumStatistic | ModelStatistic:
        """The statistic of the candidate's value."""
        data = problem.dataset
        counts = int(np.count_nonzero(data.discounts))  # γ = 0: only the first step does

        def values(start: int, stop: int) -> Array:
            return data.pad(data.rewards[data.steps(start, stop)], start, stop)[:, :counts]

        return Weighing(slice(0, counts), data.discounts[:counts], values, self_normalized=True).statistic(problem)
