"""Importance sampling: IS and PDIS, means of one independent value per episode.

With a declared range the values are shifted before they are multiplied by the ratio and the mean is shifted back
(the paper's normalisation to [0, 1]; the scale cancels, only the shift acts). With returns counted from their floor,
ratios that are mostly near zero pull the estimate down, the safe side for a lower bound; an upper bound counts from
the ceiling instead.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import BoundError
from tightrope.base.problem import Problem
from tightrope.base.ratios import Ratios
from tightrope.estimators.base import Anchor, IndependentEstimator
from tightrope.estimators.model_based import ModelStatistic
from tightrope.estimators.weighing import Weighing
from tightrope.functional.statistic import SumStatistic
from tightrope.functional.values import TrajectoryValues

LARGEST_LOG = 300.0  # beyond this the square of a ratio times a return may not fit a float64


@dataclass(frozen=True)
class _Mean(IndependentEstimator):
    """shift + mean of ρ-weighted shifted returns; the two estimators differ in what is weighted by which ratio."""

    unit: ClassVar[str]  # whose range must be declared

    anchor: Anchor = "low"  # the end of the range to count from; bounds choose it themselves
    normalize: bool | None = None  # whether to count from there; None: when the range is declared

    def anchored(self, anchor: Anchor) -> Self:
        """Count from the floor ("low") or from the ceiling ("high")."""
        return replace(self, anchor=anchor)

    def textbook(self, dataset: TrajectoryDataset) -> Self:
        """Rewards and returns as they are, counted from nowhere."""
        return replace(self, anchor="low", normalize=False)

    def range(self, dataset: TrajectoryDataset) -> tuple[float, float] | None:
        """The declared range of one episode's contribution before weighting."""
        raise NotImplementedError

    def weighing(self, dataset: TrajectoryDataset, shift: float) -> Weighing:
        """Ratios times rewards or returns, counted from ``shift``."""
        raise NotImplementedError

    def _end(self, dataset: TrajectoryDataset) -> float | None:
        """The end of the range to count from, where it is declared."""
        declared = self.range(dataset)
        if declared is None:
            return None
        end = declared[0] if self.anchor == "low" else declared[1]
        return end if np.isfinite(end) else None

    def _shift(self, dataset: TrajectoryDataset) -> float:
        end = self._end(dataset)
        if self.normalize is False or (end is None and self.normalize is None):
            return 0.0
        if end is None:
            raise BoundError(f"{self.name} with normalize=True needs a declared {self.unit}; pass it to read()")
        return end

    def _total(self, dataset: TrajectoryDataset) -> float:
        """What a shift of one per episode or step adds to the value."""
        return 1.0

    def __call__(self, problem: Problem) -> SumStatistic | ModelStatistic:
        """The statistic of the candidate's value."""
        check_ratio_size(self.name, problem.ratios)
        return self.weighing(problem.dataset, self._shift(problem.dataset)).statistic(problem)

    def trajectory_values(self, problem: Problem, *, max_ratio: float | None) -> TrajectoryValues:
        """Independent values ≥ 0 for the exact bounds; refuses where nothing was declared to count from."""
        ratios, data = problem.ratios, problem.dataset
        check_ratio_size(self.name, ratios)
        end = self._end(data)
        if end is None or not (data.horizon_declared or self._needs_no_horizon(data)):
            missing = self.unit if end is None else "horizon"
            bound, side = ("lower", "lowest") if self.anchor == "low" else ("upper", "highest")
            raise BoundError(
                f"an exact {bound} bound with {self.name} counts from the {side} possible value, which must be "
                f"declared, not taken from the sample; missing: {missing} (read({missing.split()[0]}=...), "
                f"--{_option(missing)})"
            )
        sign = 1.0 if self.anchor == "low" else -1.0
        weighing = as_seen(data, self.weighing(data, end))
        values = values_of(data, ratios, weighing, sign)
        ceiling, missing = self._ceiling(ratios, max_ratio)
        return TrajectoryValues(values, end * self._total(data), sign, ceiling, missing, scratch=data.scratch)

    def _ceiling(self, ratios: Ratios, max_ratio: float | None) -> tuple[float | None, str]:
        if max_ratio is None:
            return None, "max_ratio, which no cumulative importance ratio can exceed"
        declared = self.range(ratios.dataset)
        assert declared is not None
        low, high = declared
        if not np.isfinite(high - low):
            return None, f"both ends of the {self.unit}"
        return max_ratio * (high - low) * self._total(ratios.dataset), ""

    def _needs_no_horizon(self, dataset: TrajectoryDataset) -> bool:
        return False


@dataclass(frozen=True)
class IS(_Mean):
    """Importance sampling: the mean of ρ_{L-1} · return.

    Unbiased; its variance grows exponentially with the horizon. Precup, Sutton, Singh (2000).
    """

    name: ClassVar[str] = "is"
    unit: ClassVar[str] = "reward_range or return_range"

    def range(self, dataset: TrajectoryDataset) -> tuple[float, float] | None:
        """The range of the return."""
        return dataset.value_range

    def weighing(self, dataset: TrajectoryDataset, shift: float) -> Weighing:
        """ρ_{L-1} (return − shift)."""

        def values(start: int, stop: int) -> Array:
            return dataset.returns_of(start, stop)[:, None] - shift

        last = slice(dataset.horizon - 1, dataset.horizon)
        return Weighing(last, np.ones(1), values, self_normalized=False, constant=shift)

    def preference(self, dataset: TrajectoryDataset) -> int:
        """After PDIS, unless the range of the return is declared: from there IS counts, and PDIS cannot."""
        return 5 if dataset.return_range is not None else 7

    def _needs_no_horizon(self, dataset: TrajectoryDataset) -> bool:
        # Where every episode ended by itself, the longest one seen cuts nothing off.
        ended = bool(dataset.terminated.all()) and not dataset.any_cut
        return dataset.return_range is not None and ended


@dataclass(frozen=True)
class PDIS(_Mean):
    """Per-decision importance sampling: the mean of Σ_t γ^t ρ_t r_t. The paper drops the γ^t.

    Unbiased; each reward is weighted only by the actions up to it. Absorbing steps earn 0 before the shift, so after it
    they count like all others: the sum runs over the whole horizon.
    """

    name: ClassVar[str] = "pdis"
    unit: ClassVar[str] = "reward_range"

    def range(self, dataset: TrajectoryDataset) -> tuple[float, float] | None:
        """The range of one step's reward, absorbing steps included."""
        return dataset.step_range

    def weighing(self, dataset: TrajectoryDataset, shift: float) -> Weighing:
        """Σ_t γ^t ρ_t (r_t − shift)."""

        def values(start: int, stop: int) -> Array:
            return dataset.pad(dataset.rewards[dataset.steps(start, stop)], start, stop) - shift

        constant = shift * self._total(dataset)
        whole = slice(0, dataset.horizon)
        return Weighing(whole, dataset.discounts, values, self_normalized=False, constant=constant)

    def preference(self, dataset: TrajectoryDataset) -> int:
        """After the weighted estimators."""
        return 6

    def _total(self, dataset: TrajectoryDataset) -> float:
        return float(dataset.discounts.sum())


def values_of(data: TrajectoryDataset, ratios: Ratios, weighing: Weighing, sign: float) -> Array:
    """What each episode is worth beyond the end that values are counted from, (n,), never below 0 by a rounding."""
    result: Array = data.per_episode(lambda start, stop: np.maximum(sign * weighing.weighted(ratios, start, stop), 0.0))
    return result


def as_seen(data: TrajectoryDataset, weighing: Weighing) -> Weighing:
    """Let what was cut off count as the end of the range that values are counted from: exact bounds stay exact.

    Whatever followed could only have moved the value away from that end, whyever the logger stopped.
    """
    if not data.any_cut:
        return weighing

    def values(start: int, stop: int) -> Array:
        unknown = data.unknown_steps(start, stop)[:, weighing.times]
        return np.where(unknown, 0.0, weighing.values(start, stop))

    return replace(weighing, values=values)


def missing_range(data: TrajectoryDataset, anchor: Anchor) -> str:
    """What must be declared for an exact bound that counts from an end of the return, and is not."""
    end = (data.value_range or (-np.inf, np.inf))[0 if anchor == "low" else 1]
    if not np.isfinite(end):
        return "reward_range or return_range (read(reward_range=...), --reward-range)"
    return "" if data.horizon_declared else "horizon (read(horizon=...), --horizon)"


def _option(name: str) -> str:
    return name.split()[0].replace("_", "-")


def check_ratio_size(name: str, ratios: Ratios) -> None:
    """Refuse ratios too large for a mean."""
    largest = float(ratios.log_max.max())
    if largest > LARGEST_LOG:
        raise BoundError(
            f"an importance ratio reaches exp({largest:.0f}), which no average survives: {name} has no usable value on "
            "these logs; use wis or pdwis, which need only relative ratios"
        )
