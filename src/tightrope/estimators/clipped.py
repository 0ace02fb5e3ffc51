"""Per-decision importance sampling with limited ratios: CLIPPED and SHRUNK, whose lower bounds stay valid.

Every cumulative ratio ρ is replaced by some ρ' with 0 ≤ ρ' ≤ ρ that no ratio can make large, and rewards are counted
from their declared floor a. Then γ^t ρ'_t (r_t − a) ≤ γ^t ρ_t (r_t − a) in every episode, so the mean is at most
V − a Σ γ^t: what is given up lies on the safe side, and a lower bound on the mean is one on the value, an exact one
too. Upper bounds count from the ceiling. The limit must be fixed before anyone looks at outcomes; by default it is √n.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import ClassVar, Self

import numpy as np

from tightrope.base.checks import is_number
from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.base.ratios import Ratios
from tightrope.estimators.base import Anchor, IndependentEstimator
from tightrope.estimators.importance import PDIS, as_seen, values_of
from tightrope.estimators.model_based import ModelStatistic
from tightrope.estimators.weighing import Weighing
from tightrope.functional.statistic import SumStatistic
from tightrope.functional.values import TrajectoryValues


@dataclass(frozen=True, eq=False)
class LimitedWeighing(Weighing):
    """A weighing whose ratios are limited: log ρ to ρ'."""

    limited: Callable[[Array], Array] = np.exp

    def weighted(self, ratios: Ratios, start: int, stop: int) -> Array:
        """Σ_t c_t ρ'_t x_t of episodes start..stop, (stop - start,)."""
        used = self.limited(ratios.log(start, stop)[:, self.times])
        result: Array = (used * self.values(start, stop)) @ self.coefficients
        return result


@dataclass(frozen=True)
class _Limited(IndependentEstimator):
    """What the two share; they differ in how a ratio is limited."""

    largest: float | None = None  # what a limited ratio can be at most; None: √n
    anchor: Anchor = "low"  # the end of the range to count from; bounds choose it themselves
    normalize: bool = True  # whether to count from there; bounds always do

    def __post_init__(self) -> None:
        if self.largest is not None and not (is_number(self.largest) and self.largest > 0):
            raise TightropeError(f"largest must be a number above 0, or None for √n; got {self.largest!r}")

    def limited(self, logs: Array, largest: float) -> Array:
        """ρ' from log ρ."""
        raise NotImplementedError

    def anchored(self, anchor: Anchor) -> Self:
        """Count from the floor ("low") or from the ceiling ("high")."""
        return replace(self, anchor=anchor, normalize=True)

    def textbook(self, dataset: TrajectoryDataset) -> Self:
        """Rewards as they are, counted from nowhere: on no safe side, but one for both."""
        return replace(self, anchor="low", normalize=False)

    def __call__(self, problem: Problem) -> SumStatistic | ModelStatistic:
        """The statistic of the candidate's value; ``largest`` is fixed by all episodes, whatever their weights."""
        if problem.behavior is not None:
            raise BoundError(
                f"{self.name} needs the true behaviour probabilities, by which its ratios are at most as large as they "
                "should be; with an estimate of them use pdwis or wdr"
            )
        return self._weighing(problem.dataset, counted=self.normalize).statistic(problem)

    def trajectory_values(self, problem: Problem, *, max_ratio: float | None) -> TrajectoryValues:
        """Independent values ≥ 0 whose mean is at most the value's distance from the end that they are counted from.

        Their ceiling is known where both ends of the reward are, whatever the ratios.
        """
        data, sign = problem.dataset, 1.0 if self.anchor == "low" else -1.0
        if not data.horizon_declared:
            raise BoundError(
                f"an exact bound with {self.name} counts every step up to the horizon, which must be declared, not "
                "taken from the sample; missing: horizon (read(horizon=...), --horizon)"
            )
        weighing = as_seen(data, self._weighing(data))
        values = values_of(data, problem.ratios, weighing, sign)
        low, high = data.step_range or (-np.inf, np.inf)
        most = min(self._largest(data), np.inf if max_ratio is None else max_ratio)
        ceiling = most * (high - low) * float(data.discounts.sum()) if np.isfinite(high - low) else None
        missing = "" if ceiling is not None else "both ends of the reward_range"
        return TrajectoryValues(values, weighing.constant, sign, ceiling, missing, scratch=data.scratch)

    def _largest(self, data: TrajectoryDataset) -> float:
        return float(np.sqrt(data.n_trajectories)) if self.largest is None else float(self.largest)

    def _weighing(self, data: TrajectoryDataset, *, counted: bool = True) -> LimitedWeighing:
        """Σ_t γ^t ρ'_t (r_t − a), absorbing steps included; a = 0 where rewards are not counted from an end."""
        low, high = (data.step_range or (-np.inf, np.inf)) if counted else (0.0, 0.0)
        end = low if self.anchor == "low" else high
        if not np.isfinite(end):
            place = "lowest" if self.anchor == "low" else "highest"
            raise BoundError(
                f"{self.name} counts from the {place} possible reward, so that limited ratios err on the safe side; it "
                "must be declared: reward_range (read(reward_range=...), --reward-range). pdis does without"
            )
        plain = PDIS().weighing(data, end)
        return LimitedWeighing(
            plain.times, plain.coefficients, plain.values, self_normalized=False, constant=plain.constant,
            limited=partial(self.limited, largest=self._largest(data)),
        )  # fmt: skip


@dataclass(frozen=True)
class Clipped(_Limited):
    """Per-decision importance sampling with ratios clipped at ``largest``: the mean of Σ_t γ^t min(ρ_t, c)(r_t − a).

    A cautious estimate: never above PDIS from the same floor a, and below the value on average; an upper bound counts
    from the ceiling and is never below. With c = √n (Ionides 2008, "Truncated importance sampling") the variance stays
    finite whatever the ratios, and what is clipped vanishes as n grows. c must not be chosen by looking at the ratios
    or rewards of the same logs: exact bounds would no longer be exact. Needs reward_range.
    """

    name: ClassVar[str] = "clipped"

    def limited(self, logs: Array, largest: float) -> Array:
        """min(ρ, c)."""
        result: Array = np.exp(np.minimum(logs, np.log(largest)))
        return result


@dataclass(frozen=True)
class Shrunk(_Limited):
    """Per-decision importance sampling with shrunk ratios: the mean of Σ_t γ^t λρ_t/(ρ_t² + λ) (r_t − a).

    λ = 4c², so that no shrunk ratio exceeds c = ``largest``. λ/(ρ² + λ) ≤ 1, so all that is said of CLIPPED holds;
    large ratios count less than middling ones. The weights are those of Su, Dimakopoulou, Krishnamurthy and Dudík
    (2020), "Doubly robust off-policy evaluation with shrinkage". λ → ∞ is PDIS. Needs reward_range.
    """

    name: ClassVar[str] = "shrunk"

    def limited(self, logs: Array, largest: float) -> Array:
        """λρ/(ρ² + λ) = c / cosh(log(ρ/2c)): nothing overflows, however large ρ is."""
        apart = np.abs(logs - np.log(2.0 * largest))
        result: Array = 2.0 * largest * np.exp(-apart) / (1.0 + np.exp(-2.0 * apart))
        return result
