"""What an estimator is: settings, what others must know of it, and a call that turns a question into a statistic."""

from __future__ import annotations

from typing import Literal, Protocol, Self, runtime_checkable

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.functional.statistic import FittedStatistic
from tightrope.functional.values import SequentialValues, TrajectoryValues
from tightrope.models import Model

Anchor = Literal["low", "high"]
LAST = 100  # the place of an estimator whose error rates nobody has measured


@runtime_checkable
class Estimator(Protocol):
    """A frozen dataclass of settings; calling it gives a statistic.

    Derive from this class: ``name`` and the call are yours, the rest is as below unless you say otherwise.
    """

    @property
    def name(self) -> str:
        """The short name used in tables and on the command line."""
        ...

    def __call__(self, problem: Problem) -> FittedStatistic:
        """The statistic of the candidate's value on these logs."""
        ...

    def anchored(self, anchor: Anchor) -> Self:
        """The same estimator for a lower ("low") or an upper ("high") bound, where the side makes a difference."""
        return self

    def textbook(self, dataset: TrajectoryDataset) -> Self:
        """The same estimator as books have it, one for both sides: its value is what is shown as the estimate."""
        return self.anchored("low")

    # -- what checks, advice and verdict ask -------------------------------------------------------------------

    @property
    def uses_ratios(self) -> bool:
        """Whether importance ratios enter it, and with them whatever is wrong with the behaviour policy."""
        return True

    @property
    def shares_weights(self) -> bool:
        """Whether it weighs episodes as WIS and its kin do: what skews one of these skews all, seen or not."""
        return False

    @property
    def trusts_states(self) -> bool:
        """Whether it forgets what came before a state, so that it is wrong where the logged state hides something."""
        return False

    @property
    def model(self) -> str | Model | None:
        """The model that it rests on or corrects."""
        return None

    @property
    def fitted_to_all(self) -> bool:
        """Whether its model is fitted to the very episodes that it corrects."""
        return False

    @property
    def without_model(self) -> str | None:
        """The name of the estimator that it would be without its model, to compare the two."""
        return None

    @property
    def rests_on_model(self) -> bool:
        """Whether it is as wrong as its model is: nothing in the logs corrects it."""
        return self.model is not None and not self.uses_ratios

    @property
    def corrects_model(self) -> bool:
        """Whether ratios correct its model."""
        return self.model is not None and self.uses_ratios

    @property
    def chooses(self) -> bool:
        """Whether it chooses among others by the same logs, so that what it chose was not fixed beforehand."""
        return False

    def preference(self, dataset: TrajectoryDataset) -> int:
        """Its place in the fixed order in which advice goes through estimators, the lowest first."""
        return LAST


@runtime_checkable
class IndependentEstimator(Estimator, Protocol):
    """An estimator that is a mean of independent per-episode values, so that exact bounds apply."""

    def trajectory_values(self, problem: Problem, *, max_ratio: float | None) -> TrajectoryValues:
        """The values, shifted to be ≥ 0 by the declared range, with their ceiling where ``max_ratio`` gives one."""
        ...


@runtime_checkable
class SequentialEstimator(IndependentEstimator, Protocol):
    """An independent estimator whose values can be told by earlier episodes, for bounds that learn on the way."""

    def sequential_values(self, problem: Problem) -> SequentialValues:
        """The values, each fixed once earlier episodes are."""
        ...
