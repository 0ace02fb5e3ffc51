"""The second of three steps: which of the computed bounds to believe, why, and what follows for the threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.base.records import Summary, Verdict
from tightrope.evaluation.advice import advise, reasons
from tightrope.evaluation.case import Answer, Case
from tightrope.evaluation.compute import Computed
from tightrope.evaluation.overlap import summarize
from tightrope.evaluation.verdict import verdict


@dataclass(frozen=True)
class Judgement:
    """What to make of the bounds."""

    summary: Summary
    advice: str
    reasons: tuple[str, ...]
    believe: tuple[int, ...]  # which of the values
    believe_gains: tuple[int, ...]  # which of the gains
    verdict: Verdict


def judge(computed: Computed, *, threshold: float | None, strict: bool) -> Judgement:
    """The advice on the value, and the verdict: on the gain where gains were asked for, else on the value."""
    cases = computed.cases
    values, gains = ([answer for answer, _ in told] for told in (computed.values, computed.gains))
    text, believe = _believe(values, cases, strict)
    why, believe_gains = _believe(gains, cases, strict) if computed.about == "gain" else (text, ())
    believed = [gains[i] for i in believe_gains] if computed.about == "gain" else [values[i] for i in believe]
    summary = summarize(cases[-1].problem.dataset)
    return Judgement(
        summary=summary,
        advice=text,
        reasons=reasons(cases[-1].overlap, cases[-1].first_check, summary, values, cases[-1].behavior),
        believe=believe,
        believe_gains=believe_gains,
        verdict=verdict([answer.bound for answer in believed], why, threshold=threshold, about=computed.about),
    )


def _believe(answers: Sequence[Answer], cases: Sequence[Case], strict: bool) -> tuple[str, tuple[int, ...]]:
    """The advice, and which bounds it points to."""
    advice = [advise(answers, case.overlap, case.side, case.problem.dataset, strict=strict) for case in cases]
    texts = list(dict.fromkeys(text for text, _ in advice))
    if len(texts) > 1:
        texts = [f"{case.side.title()} bound: {text}" for case, text in zip(cases, texts, strict=True)]
    return "\n".join(texts), tuple(index for _, index in advice if index is not None)
