"""The second of three steps: which of the computed bounds to believe, why, and what follows for the threshold."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tightrope.base.records import About, Bound, Summary, Verdict
from tightrope.evaluation.advice import advise, exact_of, reasons
from tightrope.evaluation.case import Answer, Case
from tightrope.evaluation.compute import Computed
from tightrope.evaluation.recommend import Question
from tightrope.evaluation.sentences import Use, for_sides
from tightrope.evaluation.summary import summarize
from tightrope.evaluation.verdict import verdict


@dataclass(frozen=True)
class Judgement:
    """What to make of the bounds; those that a fixed rule made itself stand after the others."""

    summary: Summary
    bounds: tuple[Bound, ...]
    gains: tuple[Bound, ...]
    advice: str
    reasons: tuple[str, ...]
    believe: tuple[int, ...]  # which of the bounds
    believe_gains: tuple[int, ...]  # which of the gains
    exact: tuple[Bound, ...]  # the exact bounds beside those that the verdict rests on
    verdict: Verdict


def judge(computed: Computed, question: Question | None, *, threshold: float | None, strict: bool) -> Judgement:
    """The advice on the value, and the verdict: on the gain where gains were asked for, else on the value.

    With a question its rule decides, which was fixed before any reward was looked at; without, the first of the
    bounds asked for that nothing speaks against.
    """
    cases, about = computed.cases, computed.about
    values, gains = ([answer for answer, _ in part] for part in (computed.values, computed.gains))
    bounds, gained = ([answer.bound for answer in part] for part in (values, gains))
    use = _using(question, cases, strict)
    advice = use(values, bounds, "value")
    gain = use(gains, gained, "gain") if about == "gain" else None
    last = gain or advice
    believed = [(gained if gain else bounds)[i] for i in last.believe]
    data = cases[-1].problem.dataset
    summary = summarize(data)
    return Judgement(
        summary=summary,
        bounds=tuple(bounds),
        gains=tuple(gained),
        advice=advice.text,
        reasons=reasons(cases[-1].overlap, cases[-1].first_check, summary, values, cases[-1].behavior),
        believe=advice.believe,
        believe_gains=gain.believe if gain else (),
        exact=last.exact,
        verdict=verdict(believed, last.text, threshold=threshold, about=about, possible=data.value_range),
    )


def _using(
    question: Question | None, cases: Sequence[Case], strict: bool
) -> Callable[[Sequence[Answer], list[Bound], About], Use]:
    """How to find the bounds to use: by the question's rule, or among those that were asked for."""
    if question is not None:
        return lambda answers, bounds, about: question.use(bounds, [case.side for case in cases], about)
    return lambda answers, bounds, about: _believe(answers, cases, strict)


def _believe(answers: Sequence[Answer], cases: Sequence[Case], strict: bool) -> Use:
    """The advice, and which bounds it points to."""
    advice = [advise(answers, case.overlap, case.side, case.problem.dataset, strict=strict) for case in cases]
    text = for_sides([case.side for case in cases], [text for text, _ in advice])
    exact = [exact_of(answers, case.side, case.problem.dataset) for case in cases]
    believe = tuple(index for _, index in advice if index is not None)
    return Use(text, believe, tuple(answers[index].bound for index in exact if index is not None))
