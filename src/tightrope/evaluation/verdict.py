"""The answer in words: yes, no, cannot tell, or that these logs cannot answer. It claims no more than its bounds do.

"Yes" (above the threshold) needs a believed lower bound above it, "no" (not above) a believed upper bound below it,
each at the level of one side. Whatever the value is, the threshold itself included, only one of the two can be wrong,
so the answer as a whole keeps the level of the believed bounds. That advice chose them is no part of the level: how
often its choice errs is measured (docs/coverage.md), not proven.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from tightrope.base.clusters import counted, growth, unit
from tightrope.base.records import About, Bound, Verdict
from tightrope.base.rounding import outward
from tightrope.evaluation.needed import CHANCE, MOST, between, many, part, prospect
from tightrope.evaluation.sentences import any_number

WAYS = "More logs, or logs of a policy closer to the candidate, would narrow the bounds."
SUBJECTS: dict[About, str] = {
    "value": "the candidate's value",
    "gain": "the candidate's gain over the behaviour policy",
}


def verdict(
    believed: Sequence[Bound],
    advice: str,
    *,
    threshold: float | None,
    about: About = "value",
    possible: tuple[float, float] | None = None,
) -> Verdict:
    """The verdict of the believed bounds, at most one a side, against the threshold if there is one.

    ``possible`` is the declared range of the return.
    """
    if not believed:
        return Verdict("broken", "These logs cannot answer", advice, threshold, about)
    answer = _answer(believed, threshold, about)
    if answer.kind != "cannot tell":
        return replace(answer, change=_doubts(believed, possible))
    assert threshold is not None
    return replace(answer, change=more_logs(believed, threshold))


def _answer(believed: Sequence[Bound], threshold: float | None, about: About) -> Verdict:
    lower = next((bound for bound in believed if bound.side == "lower"), None)
    upper = next((bound for bound in believed if bound.side == "upper"), None)
    if threshold is None:
        return Verdict("bound", _between(lower, upper, about), _promises(believed), None, about)
    yes = lower is not None and lower.value > threshold
    no = upper is not None and upper.value < threshold
    if yes and no:
        text = f"The two believed bounds contradict each other: {_between(lower, upper, about)}. {_promises(believed)}"
        return Verdict("cannot tell", _open(threshold, about), text, threshold, about)
    for answer, bound in (("yes", lower if yes else None), ("no", upper if no else None)):
        if bound is not None:
            side = "above" if answer == "yes" else "below"
            is_so = "above" if answer == "yes" else "not above"  # at the threshold itself "no" is right
            headline = (
                f"{answer.title()}, at {_level(bound)}{_if([bound])}: {SUBJECTS[about]} is {is_so} {threshold:.5g}"
            )
            return Verdict(
                "yes" if yes else "no",
                f"{headline} ({bound.guarantee})",
                f"The {bound.side} bound, {number(bound)}, lies {side} {threshold:.5g} at {_level(bound)} "
                f"confidence, one-sided. {_promises([bound])}",
                threshold,
                about,
            )
    return Verdict("cannot tell", _open(threshold, about), _why_open(lower, upper, about), threshold, about)


def _open(threshold: float, about: About) -> str:
    return f"Cannot tell whether {SUBJECTS[about]} is above {threshold:.5g}"


def _why_open(lower: Bound | None, upper: Bound | None, about: About) -> str:
    believed = [bound for bound in (lower, upper) if bound is not None]
    if len(believed) == 2:
        return f"The threshold lies between the bounds: {_between(lower, upper, about)}. {_promises(believed)}"
    (only,) = believed
    other = "upper" if only.side == "lower" else "lower"
    return (
        f"The {only.side} bound, {number(only)}, does not settle it and there is no {other} bound to believe. "
        f"{_promises(believed)}"
    )


def _doubts(believed: Sequence[Bound], possible: tuple[float, float] | None) -> str:
    """What the bounds take for granted: if it is not so, the answer may be another."""
    doubts, clusters = [], believed[0].n_clusters
    if any(not bound.rests_on_model and bound.behavior is None for bound in believed):
        doubts.append("the logged probabilities are wrong")
    if any(bound.behavior is not None for bound in believed):
        doubts.append("the estimate of the behaviour policy has the wrong form")
    if any(bound.hangs_on_model for bound in believed):
        doubts.append("the model is wrong")
    if any(bound.rests_on_model and bound.guarantee == "exact" for bound in believed):
        doubts.append("what happens next depends on more than the logged state and action")
    if possible is not None:
        doubts.append(f"a return can lie {_beyond(*possible)}")
    if any(bound.guarantee == "approximate" for bound in believed):
        whose = "" if clusters is None else f" of {clusters:,} clusters"
        doubts.append(
            f"something matters that happened in none of these {believed[0].n_trajectories:,} episodes{whose}"
        )
    if clusters is not None:
        doubts += ["clusters depend on each other", "actions decide how many episodes a cluster has"]
    doubts.append(f"future {unit(clusters)} come from another process")
    return f"The answer may be another if {', if '.join(doubts[:-1])}, or if {doubts[-1]}."


def _beyond(low: float, high: float) -> str:
    if math.isfinite(low) and math.isfinite(high):
        return f"outside the declared {low + 0.0:.4g} to {high:.4g}"  # + 0: there is no -0 for people
    return f"below the declared {low:.4g}" if math.isfinite(low) else f"above the declared {high:.4g}"


def more_logs(believed: Sequence[Bound], threshold: float, *, ways: str = WAYS) -> str:
    """How many new episodes, or clusters, would settle it, to judge by these, with the range the estimate leaves."""
    above = believed[0].estimate > threshold
    bound = next((one for one in believed if one.side == ("lower" if above else "upper")), None)
    view = None if bound is None else prospect(bound, threshold)
    if view is None:
        return ways
    assert bound is not None
    need, drawn = view.needed(), (view.n, bound.n_clusters)
    if need.total >= MOST:
        return ways
    ends = between(need.least, need.most, lambda episodes: part(episodes, *drawn))
    return (
        f"About {many(need.total, 'new', *drawn)} like these, judged alone ({ends}), would settle it with a "
        f"{'yes' if above else 'no'} at a chance of {CHANCE:.0%}, if the candidate is as it looks now. {ways}"
    )


def _between(lower: Bound | None, upper: Bound | None, about: About) -> str:
    """The bounds as one phrase, with level and side."""
    if lower is not None and upper is not None:
        sure = f"each side with {_level(lower)} confidence{_if([lower, upper])}"
        return f"{number(lower)} ≤ {about} ≤ {number(upper)}, {sure}"
    only = lower or upper
    assert only is not None
    side = "at least" if only.side == "lower" else "at most"
    subject = SUBJECTS[about].replace("the", "The", 1)
    return f"{subject} is {side} {number(only)}, with {_level(only)} confidence{_if([only])} ({only.guarantee})"


def _promises(bounds: Sequence[Bound]) -> str:
    """What the bounds promise, and what they rest on."""
    sentences = [
        _promise([bound for bound in bounds if bound.guarantee == kind])
        for kind in ("exact", "approximate")
        if any(bound.guarantee == kind for bound in bounds)
    ]
    model = [bound.side for bound in bounds if bound.hangs_on_model]
    if model:
        sentences.append(
            f"The {' and the '.join(model)} bound {'rests' if len(model) == 1 else 'rest'} on a model alone."
        )
    estimated = {bound.behavior for bound in bounds if bound.behavior is not None}
    if estimated:
        sentences.append(f"The behaviour policy was estimated from the same logs ({', '.join(sorted(estimated))}).")
    return " ".join(sentences)


def _if(bounds: Sequence[Bound]) -> str:
    """What a headline must not keep to itself."""
    return ", if the model is right" if any(bound.hangs_on_model for bound in bounds) else ""


def _promise(bounds: Sequence[Bound]) -> str:
    """What bounds of one kind promise."""
    error = f"{1 - bounds[0].confidence:.4g}"
    who = f"The {bounds[0].side} bound is" if len(bounds) == 1 else "Both bounds are"
    if bounds[0].guarantee == "exact":
        return f"{who} exact: the error rate is at most {error} {any_number(bounds[0])}, if what was declared is true."
    doubts = [
        *(["the model's form is right"] if any(bound.hangs_on_model for bound in bounds) else []),
        *(["the estimate of the behaviour policy has the right form"] if any(b.behavior for b in bounds) else []),
    ]
    only = f" if {' and '.join(doubts)}" if doubts else ""
    clusters = bounds[0].n_clusters
    return (
        f"{who} approximate: the error rate tends to {error} as {growth(clusters)}{only}, with no promise at "
        f"{counted(bounds[0].n_trajectories, clusters)}."
    )


def number(bound: Bound) -> str:
    """A bound that is not said to be better than it is."""
    return f"{outward(bound.value, bound.side, 5):.5g}"


def _level(bound: Bound) -> str:
    return f"{100 * bound.confidence:.6g}%"
