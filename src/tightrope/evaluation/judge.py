"""The second of three steps: which of the computed bounds to believe, why, and what follows for the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.base.records import Bound, Summary, Verdict
from tightrope.evaluation.advice import advise, reasons
from tightrope.evaluation.case import Answer, Case
from tightrope.evaluation.compute import Computed
from tightrope.evaluation.overlap import summarize
from tightrope.evaluation.recommend import Question
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
    verdict: Verdict


def judge(computed: Computed, question: Question | None, *, threshold: float | None, strict: bool) -> Judgement:
    """The advice on the value, and the verdict: on the gain where gains were asked for, else on the value.

    With a question its rule decides, which was fixed before any reward was looked at; without, the first of the
    bounds asked for that nothing speaks against.
    """
    cases, about = computed.cases, computed.about
    sides = [case.side for case in cases]
    values, gains = ([answer for answer, _ in part] for part in (computed.values, computed.gains))
    bounds, gained = ([answer.bound for answer in part] for part in (values, gains))
    why, believe_gains = "", tuple[int, ...]()
    if question is not None:
        text, believe = question.use(bounds, sides)
        if about == "gain":
            why, believe_gains = question.use(gained, sides, about="gain")
    else:
        text, believe = _believe(values, cases, strict)
        if about == "gain":
            why, believe_gains = _believe(gains, cases, strict)
    believed = [gained[i] for i in believe_gains] if about == "gain" else [bounds[i] for i in believe]
    summary = summarize(cases[-1].problem.dataset)
    return Judgement(
        summary=summary,
        bounds=tuple(bounds),
        gains=tuple(gained),
        advice=text,
        reasons=reasons(cases[-1].overlap, cases[-1].first_check, summary, values, cases[-1].behavior),
        believe=believe,
        believe_gains=believe_gains,
        verdict=verdict(believed, why if about == "gain" else text, threshold=threshold, about=about),
    )


def _believe(answers: Sequence[Answer], cases: Sequence[Case], strict: bool) -> tuple[str, tuple[int, ...]]:
    """The advice, and which bounds it points to."""
    advice = [advise(answers, case.overlap, case.side, case.problem.dataset, strict=strict) for case in cases]
    texts = list(dict.fromkeys(text for text, _ in advice))
    if len(texts) > 1:
        texts = [f"{case.side.title()} bound: {text}" for case, text in zip(cases, texts, strict=True)]
    return "\n".join(texts), tuple(index for _, index in advice if index is not None)
