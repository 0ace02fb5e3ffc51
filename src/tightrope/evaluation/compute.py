"""The first of three steps: every bound that was asked for, on one set of weights. Nothing is judged here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Side
from tightrope.bounds.base import ProcessBound
from tightrope.estimators import Estimator
from tightrope.estimators.gain import gain
from tightrope.evaluation.behavior_check import check_behavior
from tightrope.evaluation.case import Answer, Case, Pair, Point
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.settings import Settings
from tightrope.evaluation.work import answers_of

AnsweredCase = tuple[Answer, Case]  # an answer and the case that it answers


@dataclass(frozen=True, eq=False)
class Computed:
    """All answers to a question, side by side."""

    cases: tuple[Case, ...]  # one for each side
    values: tuple[AnsweredCase, ...]  # on the candidate's value
    gains: tuple[AnsweredCase, ...]  # on its gain over the behaviour policy
    skipped: dict[tuple[str, str], TightropeError]  # (estimator, method): why there is no bound
    about: About  # what was asked for

    @property
    def bounds(self) -> tuple[Bound, ...]:
        """The bounds on the value."""
        return tuple(answer.bound for answer, _ in self.values)


def cases_of(problem: Problem, sides: Sequence[Side], settings: Settings) -> tuple[Case, ...]:
    """The question on each side; what is known of the logs is found once for all of them."""
    measured, behavior = overlap(problem), check_behavior(problem)
    points: dict[Estimator, Point] = {}
    return tuple(Case(problem, measured, side, settings, behavior, points=points) for side in sides)


def compute(cases: Sequence[Case], pairs: Sequence[Pair], *, about: About) -> Computed:
    """Bounds of every pair on every side, and on the gain where that is asked for; refused where there is none."""
    paired = [(gain(one), method) for one, method in pairs if not isinstance(method, ProcessBound)]
    also = paired if about == "gain" else []
    values: list[AnsweredCase] = []
    gained: list[AnsweredCase] = []
    skipped: dict[tuple[str, str], TightropeError] = {}
    for case in cases:
        results = answers_of(case, [*pairs, *also])
        gained += [(result, case) for result in results[len(pairs) :] if isinstance(result, Answer)]
        for (estimator, method), result in zip(pairs, results, strict=False):
            if isinstance(result, Answer):
                values.append((result, case))
            else:
                skipped[estimator.name, method.name] = result
    if not values:
        raise _no_bound(skipped)
    return Computed(tuple(cases), tuple(values), tuple(gained), skipped, about)


def _no_bound(skipped: dict[tuple[str, str], TightropeError]) -> TightropeError:
    """Why there is no bound at all: the one reason itself, or each reason once with the pairs it concerns."""
    pairs: dict[str, list[str]] = {}
    for (estimator, method), why in skipped.items():
        pairs.setdefault(str(why), []).append(f"{estimator.upper()} with {method}")
    if len(pairs) == 1:
        return next(iter(skipped.values()))
    return BoundError("; ".join(f"{', '.join(names)}: {why}" for why, names in pairs.items()))
