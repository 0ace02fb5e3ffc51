"""Weighted (self-normalised) importance sampling: WIS and PDWIS.

Biased but consistent, with far less variance; only relative ratios matter, so they are scaled by the largest of each
time step and no horizon overflows. The claim that the bias leads from V(π_b) towards V(π_e) does not hold in general.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

import numpy as np

from tightrope.dataset import Array
from tightrope.estimators.base import Anchor
from tightrope.problem import Problem
from tightrope.statistic import RatioSum, SumStatistic


@dataclass(frozen=True)
class WIS:
    """Weighted importance sampling: Σ ρ_{L-1} return / Σ ρ_{L-1}."""

    name: ClassVar[str] = "wis"

    def anchored(self, anchor: Anchor) -> Self:
        """Itself: a shift of all returns shifts the estimate alike."""
        return self

    def __call__(self, problem: Problem) -> SumStatistic:
        """The statistic of the candidate's value."""
        data, ratios = problem.dataset, problem.ratios
        largest = ratios.log_max[-1]

        def make_columns(start: int, stop: int) -> Array:
            ratio = np.exp(ratios.log(start, stop)[:, -1] - largest)
            return np.stack([ratio, ratio * data.returns[start:stop]], axis=1)

        combine = RatioSum(np.ones(1))
        return SumStatistic(data.n_trajectories, combine.fields, make_columns, combine)


@dataclass(frozen=True)
class PDWIS:
    """Per-decision weighted importance sampling: Σ_t γ^t Σ_i ρ_t^i r_t^i / Σ_i ρ_t^i.

    No further 1/n: the weights of each step sum to one. Finished episodes keep their ratio in every later denominator.
    """

    name: ClassVar[str] = "pdwis"

    def anchored(self, anchor: Anchor) -> Self:
        """Itself: a shift of all rewards shifts the estimate alike."""
        return self

    def __call__(self, problem: Problem) -> SumStatistic:
        """The statistic of the candidate's value."""
        data, ratios = problem.dataset, problem.ratios
        counts = int(np.count_nonzero(data.discounts))  # γ = 0: only the first step does

        def make_columns(start: int, stop: int) -> Array:
            columns = np.empty((stop - start, 2 * counts))
            ratio = columns[:, :counts]
            np.subtract(ratios.log(start, stop)[:, :counts], ratios.log_max[:counts], out=ratio)
            np.exp(ratio, out=ratio)
            rewards = data.pad(data.rewards[data.steps(start, stop)], start, stop)
            np.multiply(ratio, rewards[:, :counts], out=columns[:, counts:])
            return columns

        combine = RatioSum(data.discounts[:counts])
        return SumStatistic(data.n_trajectories, combine.fields, make_columns, combine)
