"""One side of a question, and what is known of the logs before any bound is computed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from tightrope.base.clusters import Clusters
from tightrope.base.errors import TightropeError, failing
from tightrope.base.problem import Problem
from tightrope.base.records import BehaviorCheck, Bound, ModelCheck, Overlap, Side
from tightrope.bounds import Method
from tightrope.estimators import Anchor, Estimator
from tightrope.estimators.clustered import by_cluster
from tightrope.evaluation.model_check import check_model
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import Replicates
from tightrope.functional.standard_errors import standard_error
from tightrope.functional.statistic import FittedStatistic
from tightrope.functional.strata import levelled_by
from tightrope.models import Model

T = TypeVar("T")
Pair = tuple[Estimator, Method]


@dataclass(frozen=True, eq=False)
class Case:
    """The question on one side. How a model fares is asked once, by the first bound that rests on it."""

    problem: Problem
    overlap: Overlap
    side: Side
    settings: Settings
    behavior: BehaviorCheck | None = None  # where the behaviour policy is estimated
    check_models: bool = True  # studies that only count errors need not ask how models fare
    points: dict[Estimator, Point] = field(default_factory=dict)  # those of both sides are the same
    _checks: dict[str | Model, ModelCheck] = field(default_factory=dict)

    @property
    def anchor(self) -> Anchor:
        """The end of the range that is safe to count from."""
        return "low" if self.side == "lower" else "high"

    @property
    def clusters(self) -> Clusters | None:
        """Whose episodes they are, where that was said."""
        return self.problem.clusters

    def statistic(self, estimator: Estimator) -> FittedStatistic:
        """The estimator for this side, on these logs."""
        return by_cluster(estimator.anchored(self.anchor)(self.problem), self.clusters)

    def point(self, estimator: Estimator, drawn: Drawn | None = None) -> Point:
        """The estimate that is shown: the textbook one, the same on both sides, whatever a bound counts from."""
        if estimator not in self.points:
            book = estimator.textbook(self.problem.dataset)
            known = drawn is not None and book == estimator.anchored(self.anchor)
            alone = drawn.statistic if drawn is not None and known else by_cluster(book(self.problem), self.clusters)
            error = standard_error(levelled_by(self.clusters, alone.influence()))
            self.points[estimator] = Point(alone.estimate, error)
        return self.points[estimator]

    def model_check(self, model: str | Model) -> ModelCheck:
        """How a model fares on the logs."""
        if model not in self._checks:
            effective = self.overlap.effective_sample_size[-1]
            self._checks[model] = check_model(self.problem, model, self.anchor, effective=effective)
        return self._checks[model]

    @property
    def first_check(self) -> ModelCheck | None:
        """The first model that was looked into; None where none was."""
        return next(iter(self._checks.values()), None)


class Point(NamedTuple):
    """An estimate and its standard error."""

    value: float
    error: float


class Drawn(NamedTuple):
    """An estimator on these logs, and what resampling made of it."""

    statistic: FittedStatistic
    replicates: Replicates


class Answer(NamedTuple):
    """A bound and what it came from."""

    estimator: Estimator
    method: Method
    bound: Bound
    drawn: Drawn | None = None  # of the estimator, where some bound needed replicates of it


def attempt(call: Callable[[], T]) -> T | TightropeError:
    """What the call returns, or why it failed: a failure costs one estimator or one bound, and no other."""
    try:
        with failing():
            return call()
    except TightropeError as error:
        return error
