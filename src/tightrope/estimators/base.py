"""What an estimator is: settings, and a call that turns logs and a candidate's ratios into a statistic."""

from __future__ import annotations

from typing import Literal, Protocol, Self, runtime_checkable

from tightrope.base.problem import Problem
from tightrope.functional.statistic import FittedStatistic
from tightrope.functional.values import SequentialValues, TrajectoryValues

Anchor = Literal["low", "high"]


class Estimator(Protocol):
    """A frozen dataclass of settings; calling it gives a statistic."""

    @property
    def name(self) -> str:
        """The short name used in tables and on the command line."""
        ...

    def __call__(self, problem: Problem) -> FittedStatistic:
        """The statistic of the candidate's value on these logs."""
        ...

    def anchored(self, anchor: Anchor) -> Self:
        """The same estimator for a lower ("low") or an upper ("high") bound, where the side makes a difference."""
        ...


@runtime_checkable
class IndependentEstimator(Estimator, Protocol):
    """An estimator that is a mean of independent per-trajectory values, so that exact bounds apply."""

    def trajectory_values(self, problem: Problem, *, max_ratio: float | None) -> TrajectoryValues:
        """The values, shifted to be ≥ 0 by the declared range, with their ceiling where ``max_ratio`` gives one."""
        ...


@runtime_checkable
class SequentialEstimator(IndependentEstimator, Protocol):
    """An independent estimator whose values can be told by earlier episodes, for bounds that learn on the way."""

    def sequential_values(self, problem: Problem) -> SequentialValues:
        """The values, each fixed once earlier episodes are."""
        ...
