"""The sentences of advice: each is made from the same data as the decision that it speaks of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from tightrope.base.clusters import unit
from tightrope.base.records import Bound, Overlap, Side
from tightrope.base.rounding import outward
from tightrope.base.warnings import coded

FEWEST = 50  # episodes, or clusters: below, approximations err too often at their own level, and rehearsals do not help
CLOSER = "more logs, or logs of a policy closer to the candidate"
CHECK = "check the behaviour probabilities"
LOGGED = "logs with the probabilities of their actions"
TRY_ACTIONS = "logs of a policy that sometimes acts as the candidate does, with its probabilities"
WRONG_RATIOS = (
    "the importance ratios do not average to 1, so the behaviour probabilities are wrong or the episodes that matter "
    "are missing"
)

Flaw = Literal["ratios", "infinite", "model", "vacuous"]


@dataclass(frozen=True)
class Recommendation:
    """The bound to use on one side, what it was made of, and why an earlier rule was passed over."""

    bound: Bound | None
    parts: tuple[Bound, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Use:
    """Which bounds to use, in words and by their places among all; and what is exact beside them."""

    text: str
    believe: tuple[int, ...]  # at most one a side; none: these logs cannot answer
    exact: tuple[Bound, ...] = ()


def flaw(bound: Bound) -> Flaw | None:
    """Why a bound that could be computed says nothing, if it does: the first of the reasons.

    A bound that rests on a model alone says nothing where something speaks against the model.
    """
    if coded(bound.warnings, "mean-ratio"):
        return "ratios"
    if not np.isfinite(bound.value):
        return "infinite"
    if bound.hangs_on_model and against_model(bound):
        return "model"
    return "vacuous" if coded(bound.warnings, "vacuous") else None


def against_model(bound: Bound) -> str:
    """The codes of what speaks against the model that the bound rests on."""
    return ", ".join(dict.fromkeys(one.code for one in bound.warnings if one.against == "model"))


def for_sides(sides: Sequence[Side], texts: Sequence[str]) -> str:
    """What is to be said on each side, once where it is the same."""
    if len(set(texts)) > 1:
        texts = [f"{side.title()} bound: {text}" for side, text in zip(sides, texts, strict=True)]
    return "\n".join(dict.fromkeys(texts))


def no_answer(recommendation: Recommendation, overlap: Overlap, *, estimated: bool) -> str:
    """Why these logs cannot answer, and what would help."""
    if recommendation.bound is None:
        return f"These logs cannot answer: {_no_bound(recommendation, overlap, estimated=estimated)}."
    bound = recommendation.bound
    reasons = {
        "ratios": (WRONG_RATIOS, LOGGED if estimated else CHECK),
        "infinite": (f"{pair(bound)} is infinite", CLOSER),
        "model": (f"{_lack(overlap)}, and this speaks against the model: {against_model(bound)}", _remedy(overlap)),
        "vacuous": (f"{pair(bound)} does not improve on what is possible anyway", CLOSER),
    }
    why, remedy = reasons[flaw(bound) or "vacuous"]
    return f"These logs cannot answer: {why}. What would help: {remedy}."


def _no_bound(recommendation: Recommendation, overlap: Overlap, *, estimated: bool) -> str:
    if recommendation.why:
        return recommendation.why
    declare = "declare the lowest and highest reward (reward_range)"
    remedy = "log the probabilities of the actions" if estimated else declare
    lack = "whose behaviour policy is estimated" if estimated else "that has no floor to count from"
    off = coded(overlap.warnings, "mean-ratio") and not estimated
    check = f"{CHECK}, since the importance ratios do not average to 1; else " if off else ""
    return (
        f"they carry as much information as {overlap.effective_sample_size[-1]:.1f} {unit(overlap.n_clusters)} of the "
        f"candidate, too little for a bound {lack}. What would help: {check}{remedy}, or log a policy closer to the "
        "candidate"
    )


def _lack(overlap: Overlap) -> str:
    if coded(overlap.warnings, "no-overlap"):
        return "there are no importance ratios"
    return "the logs carry almost no information about the candidate"


def _remedy(overlap: Overlap) -> str:
    return TRY_ACTIONS if coded(overlap.warnings, "no-overlap") else CLOSER


def advice(recommendation: Recommendation, exact: Bound | None) -> str:
    """What to use, in words."""
    bound, parts = recommendation.bound, recommendation.parts
    assert bound is not None
    lines = [f"Use {named(bound)}."]
    if len(parts) > 1:
        each = " and ".join(f"{pair(part)} at {part.confidence:.4g}" for part in parts)
        lines = [f"Use {value(bound)}, the better of {each}, which hold together."]
    elif bound.confidence < parts[0].confidence:
        few = f"with fewer than {FEWEST} {unit(bound.n_clusters)}"
        where = few if bound.n_independent < FEWEST else "without a tabular model"
        lines.append(
            f"It is computed at {parts[0].confidence:.4g}, since {where} approximations err more often than they say."
        )
    if recommendation.why:
        lines.append(f"It is no first choice: {recommendation.why}.")
    if exact is not None and bound.guarantee != "exact":
        lines.append(_beside(exact))
    return " ".join(lines)


def _beside(exact: Bound) -> str:
    """What is exact, beside a bound that is not."""
    if flaw(exact) is None:
        return f"Exact, {any_number(exact)}: {named(exact)}."
    vacuous = flaw(exact) == "vacuous"
    why = "does not improve on what is possible anyway" if vacuous else "says nothing, since the ratios are wrong"
    return f"The exact bound, {pair(exact)}, {why}."


def information(overlap: Overlap, n: int, *, digits: int = 0) -> str:
    """What n logged episodes are worth, or the clusters that they are of."""
    drawn, whole = unit(overlap.n_clusters), f"{n:,} logged episodes"
    if overlap.n_clusters is not None:
        whole = f"{overlap.n_clusters:,} logged clusters ({n:,} episodes)"
    return (
        f"{whole} carry as much information as {overlap.effective_sample_size[-1]:,.{digits}f} {drawn} of the candidate"
    )


def any_number(bound: Bound) -> str:
    """When an exact bound holds."""
    return f"at any number of {unit(bound.n_clusters)}"


def named(bound: Bound) -> str:
    """A bound with its name, value, level and guarantee."""
    return f"{pair(bound)}: {value(bound)}"


def pair(bound: Bound) -> str:
    """What a bound is called."""
    return f"{bound.estimator.upper()} with {bound.method}"


def value(bound: Bound) -> str:
    """What a bound says, with its level and guarantee."""
    level = f"{bound.confidence:.4g}, {bound.guarantee}{bound.behavior_note}"
    return f"{inequality(bound)} ({level})"


def inequality(bound: Bound) -> str:
    """What a bound says."""
    return f"{bound.about} {'≥' if bound.side == 'lower' else '≤'} {outward(bound.value, bound.side):.4g}"
