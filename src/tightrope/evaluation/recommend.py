"""Which bound to use: fixed by what was declared and asked, and by ratios and policies alone, never by the outcomes.

A choice among bounds that looks at the same returns selects those that happen to be wrong: warnings are silent, and
bounds are tight, on just the data sets that miss what matters (docs/tether.md has the numbers). So a rule is chosen
before any reward is looked at. Where a rule combines two bounds, each has its share of the error rate beforehand,
and the better of them is used.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.base.records import About, BehaviorCheck, Bound, Overlap, Side
from tightrope.base.warnings import coded
from tightrope.bounds import method as find_method
from tightrope.bounds.rehearsal.bound import Rehearsed, fewest
from tightrope.estimators import Estimator
from tightrope.estimators import estimator as find_estimator
from tightrope.estimators.gain import gain
from tightrope.evaluation.case import Case
from tightrope.evaluation.settings import Settings
from tightrope.evaluation.work import answers_of
from tightrope.models import Model, has_tabular

DOMINATES = 0.5  # of the width: a range that costs more is worth a word
FEWEST = 50  # episodes below which approximations err too often at their own level, and rehearsals do not help


@dataclass(frozen=True)
class Part:
    """One bound of a rule, with its share of the error rate."""

    estimator: str
    method: str
    share: float = 1.0


@dataclass(frozen=True)
class Rule:
    """Bounds of which the best is used; their shares add up to at most one."""

    parts: tuple[Part, ...]
    why: str = ""  # where it is not the first choice: what is missing


OF_VALUE = ("vacuous", "impossible-estimate")  # warnings about a bound's own number
TETHERED = Part("tdr", "percentile")
TOGETHER = (replace(TETHERED, share=0.8), Part("wdr", "rehearsed", 0.1))
# What a few episodes do not hold, resampling them cannot show; and a floor of the return protects against what is
# missing of the candidate's value, not against what is missing of the behaviour policy's.
OF_FEW: dict[About, Part] = {"value": replace(TETHERED, share=0.6), "gain": replace(TETHERED, share=0.2)}


def rules(problem: Problem, found: Overlap, side: Side, about: About = "value", *, strict: bool) -> list[Rule]:
    """The rules for this question in a fixed order; the first that can be computed is used."""
    data = problem.dataset
    low, high = data.value_range or (-np.inf, np.inf)
    declared = np.isfinite(low if side == "lower" else high)
    if strict:
        exact = [Rule((Part("tdr", "betting"),)), Rule((Part("is", "betting"),)), Rule((Part("pdis", "betting"),))]
        return exact if data.return_range is not None or data.reward_range is None else [exact[0], *exact[:0:-1]]
    model = has_tabular(problem)
    if coded(found.warnings, "no-overlap"):
        return [Rule((Part("mb", "percentile"),), "there are no importance ratios, so it rests on the model alone")]
    few = bool(coded(found.warnings, "low-overlap", "one-episode"))
    if few and (problem.behavior is not None or not declared):  # nothing is left that a bound could rest on
        alone = "the logs carry almost no information about the candidate, so it rests on the model alone"
        return [Rule((Part("mb", "percentile"),), alone)] if model else []
    names = ("wdr", "pdwis") if model else ("pdwis",)
    weak = [Rule((Part(name, method),)) for name in names for method in ("studentized", "percentile")]
    if problem.behavior is not None:
        return [replace(rule, why="the behaviour probabilities are estimated") for rule in weak]
    if not declared:
        end = "lowest" if side == "lower" else "highest"
        return [replace(rule, why=f"the {end} possible reward is not declared (reward_range)") for rule in weak]
    if data.n_trajectories < FEWEST:
        return [Rule((OF_FEW[about],)), *weak]
    tethered = [Rule((TETHERED,))]
    return [Rule(TOGETHER), *tethered, *weak] if model else [*tethered, *weak]


@dataclass(frozen=True)
class Recommendation:
    """The bound to use on one side, what it was made of, and why an earlier rule was passed over."""

    bound: Bound | None
    parts: tuple[Bound, ...] = ()
    why: str = ""


@dataclass(frozen=True)
class Question:
    """What was asked, before any answer."""

    problem: Problem
    found: Overlap
    behavior: BehaviorCheck | None
    settings: Settings
    model: str | Model = "auto"
    strict: bool = False

    def bound(self, side: Side) -> Bound:
        """The recommended bound; refuses with the reason where there is none, and where only a model could answer."""
        _ = self.problem.ratios  # no overlap is an error here, not a reason to trust a model silently
        made = self.recommend(side)
        if made.bound is None:
            raise BoundError(no_answer(made, self.found))
        return made.bound

    def use(self, bounds: list[Bound], sides: Sequence[Side], about: About = "value") -> tuple[str, tuple[int, ...]]:
        """The advice on all sides in words, and where the bounds to use are; those that are new join the others."""
        texts, places = [], []
        for side in sides:
            made = self.answer(side, about)
            exact = made if self.strict else self.recommend(side, about, strict=True)
            if made.bound is None or not self.says(made.bound):
                texts.append(no_answer(made, self.found))
                continue
            texts.append(advice(made, exact.bound, self.found, self.problem.dataset.n_trajectories))
            texts[-1] += self._hint(made, side) if about == "value" else ""
            if made.bound not in bounds:
                bounds.append(made.bound)
            places.append(bounds.index(made.bound))
        if len(set(texts)) > 1:
            texts = [f"{side.title()} bound: {text}" for side, text in zip(sides, texts, strict=True)]
        return "\n".join(dict.fromkeys(texts)), tuple(places)

    def answer(self, side: Side, about: About = "value") -> Recommendation:
        """What the rule recommends; where the weighted logs say nothing, the model's bound, if it may be right.

        Never from few episodes: that their weighted returns say nothing is chance, and the model's bound errs there.
        """
        made = self.recommend(side, about)
        few = self.problem.dataset.n_trajectories < FEWEST
        if self.strict or few or made.bound is None or self.says(made.bound) or not has_tabular(self.problem):
            return made
        try:
            bound = self._part(Part("mb", "percentile"), side, about)
        except TightropeError:
            return made
        off = coded(self.found.warnings, "mean-ratio")
        why = "the importance ratios do not average to 1" if off else "the weighted logs say nothing here"
        why += ", so it rests on the model alone"
        return Recommendation(bound, (bound,), why) if self.says(bound) else made

    def recommend(self, side: Side, about: About = "value", *, strict: bool | None = None) -> Recommendation:
        """The bound of the first rule that can be computed; none where no rule can."""
        reasons = []
        for rule in rules(self.problem, self.found, side, about, strict=self.strict if strict is None else strict):
            try:
                parts = [self._part(part, side, about) for part in rule.parts]
            except TightropeError as error:
                reasons.append(str(error))
                continue
            return Recommendation(_best(parts, self.settings.confidence), tuple(parts), rule.why)
        return Recommendation(None, (), "; ".join(dict.fromkeys(reasons)))

    def _part(self, part: Part, side: Side, about: About) -> Bound:
        estimator: Estimator = find_estimator(part.estimator, model=self.model)
        own = replace(self.settings, confidence=1 - part.share * (1 - self.settings.confidence))
        # At so small a share, more rehearsals than it takes to see one error would buy nothing.
        rehearsed = part.method == Rehearsed.name
        method = Rehearsed(fewest(own.confidence)) if rehearsed else find_method(part.method)
        pair = (gain(estimator) if about == "gain" else estimator, method)
        (result,) = answers_of(Case(self.problem, self.found, side, own, self.behavior), [pair])
        if isinstance(result, TightropeError):
            raise result
        return result.bound

    def _hint(self, made: Recommendation, side: Side) -> str:
        """What a nearer end of the range would give, where the declared one makes up most of the width."""
        data, bound = self.problem.dataset, made.bound
        used = next((i for i, part in enumerate(made.parts) if bound is not None and part.value == bound.value), None)
        if bound is None or data.value_range is None or used is None or made.parts[used].estimator != "tdr":
            return ""
        low, high = data.value_range
        nearer = float(data.returns.min() if side == "lower" else data.returns.max())
        ends = (nearer, high) if side == "lower" else (low, nearer)
        other = replace(self, problem=replace(self.problem, dataset=replace(data, return_range=ends)))
        would = other._part(Part("tdr", made.parts[used].method, self._share(made.parts[used])), side, "value")
        possible = min(max(bound.estimate, low), high)  # counted from a far floor, estimates may lie anywhere
        if abs(would.value - bound.value) < DOMINATES * abs(possible - bound.value):
            return ""
        end, old = ("floor", low) if side == "lower" else ("ceiling", high)
        return (
            f" The declared {end} dominates the width: with {nearer:.4g} instead of {old:.4g} this bound would be "
            f"{would.value:.4g}. If you know a nearer one (not because the logs hold none beyond), declare it: "
            "return_range, --return-range."
        )

    def _share(self, part: Bound) -> float:
        return (1 - part.confidence) / (1 - self.settings.confidence)

    def says(self, bound: Bound) -> bool:
        """Whether the bound says anything: it is finite, within what was declared, and its ratios may be right.

        A bound that rests on a model alone says nothing where something speaks against the model.
        """
        alone = bound.estimator == "mb" and any(one.against == "model" for one in bound.warnings)
        return bool(np.isfinite(bound.value)) and not alone and not coded(bound.warnings, "vacuous", "mean-ratio")


def _best(parts: Sequence[Bound], confidence: float) -> Bound:
    """The tightest part, at the level that all of them keep together."""
    if len(parts) == 1 and parts[0].confidence == confidence:
        return parts[0]
    best = (max if parts[0].side == "lower" else min)(parts, key=lambda bound: bound.value)
    return replace(
        best,
        confidence=confidence,
        estimator="+".join(part.estimator for part in parts),
        method="+".join(part.method for part in parts) if len(parts) > 1 else f"{best.method} at {best.confidence:.4g}",
        warnings=tuple(
            dict.fromkeys(one for part in parts for one in part.warnings if part is best or one.code not in OF_VALUE)
        ),
    )


def no_answer(made: Recommendation, found: Overlap) -> str:
    """Why these logs cannot answer, and what would help."""
    if made.bound is None and made.why:
        return f"These logs cannot answer: {made.why}."
    if made.bound is None:
        few = found.effective_sample_size[-1]
        return (
            f"These logs cannot answer: they carry as much information as {few:.1f} episodes of the candidate, too "
            "little for a bound that has no floor to count from. What would help: declare the lowest and highest "
            "reward (reward_range), or log a policy closer to the candidate."
        )
    if coded(found.warnings, "mean-ratio"):
        why = (
            "the importance ratios do not average to 1, so the behaviour probabilities are wrong or the episodes that "
        )
        return f"These logs cannot answer: {why}matter are missing. What would help: check the behaviour probabilities."
    if coded(found.warnings, "no-overlap"):
        against = ", ".join(dict.fromkeys(one.code for one in made.bound.warnings if one.against == "model"))
        return (
            f"These logs cannot answer: there are no importance ratios, and this speaks against the model: {against}. "
            "What would help: logs of a policy that sometimes acts as the candidate does, with its probabilities."
        )
    return (
        f"These logs cannot answer: {_pair(made.bound)} does not improve on what is possible anyway. What would help: "
        "more logs, or logs of a policy closer to the candidate."
    )


def advice(made: Recommendation, exact: Bound | None, found: Overlap, n: int) -> str:
    """What to use, in words."""
    bound = made.bound
    assert bound is not None
    lines = [f"Use {named(bound)}."]
    if len(made.parts) > 1:
        each = " and ".join(f"{_pair(part)} at {part.confidence:.4g}" for part in made.parts)
        lines = [f"Use {_value(bound)}, the better of {each}, which hold together."]
    elif bound.confidence < made.parts[0].confidence:
        lines.append(
            f"It is computed at {made.parts[0].confidence:.4g}, since with fewer than {FEWEST} episodes approximations "
            "err more often than they say."
        )
    if made.why:
        lines.append(f"It is no first choice: {made.why}.")
    if not coded(found.warnings, "no-overlap"):
        lines.append(
            f"{n:,} logged episodes carry as much information as {found.effective_sample_size[-1]:,.0f} episodes of "
            "the candidate."
        )
    if exact is not None and bound.guarantee != "exact":
        lines.append(f"Exact, at any number of episodes: {named(exact)}.")
    return " ".join(lines)


def named(bound: Bound) -> str:
    """A bound with its name and value."""
    return f"{_pair(bound)}: {_value(bound)}"


def _pair(bound: Bound) -> str:
    return f"{bound.estimator.upper()} with {bound.method}"


def _value(bound: Bound) -> str:
    sign = "≥" if bound.side == "lower" else "≤"
    return f"{bound.about} {sign} {bound.value:.4g} ({bound.confidence:.4g}, {bound.guarantee})"
