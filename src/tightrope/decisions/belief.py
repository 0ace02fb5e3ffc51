"""The one bound that a decision rests on: the recommended one, by a rule that no reward has a say in."""

from __future__ import annotations

from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Side
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.recommend import Question
from tightrope.evaluation.sentences import flaw
from tightrope.evaluation.settings import Settings


def believed(problem: Problem, side: Side, about: About, settings: Settings, *, strict: bool) -> Bound | None:
    """The bound; None where there is none to believe, or none but a model's, which nothing in the logs corrects."""
    question = Question(problem, overlap(problem), None, settings, strict=strict)
    bound = question.recommend(side, about).bound
    return None if bound is None or flaw(bound) is not None or bound.hangs_on_model else bound
