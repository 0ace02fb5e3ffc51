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

from tightrope.base.clusters import n_independent
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.folder import parts
from tightrope.base.problem import Problem
from tightrope.base.records import About, BehaviorCheck, Bound, Overlap, Side
from tightrope.base.warnings import coded
from tightrope.bounds import method as find_method
from tightrope.bounds.rehearsal.bound import Rehearsed, fewest
from tightrope.estimators import Estimator
from tightrope.estimators import estimator as find_estimator
from tightrope.estimators.gain import gain
from tightrope.evaluation.case import Case
from tightrope.evaluation.sentences import FEWEST, Recommendation, Use, advice, flaw, for_sides, information, no_answer
from tightrope.evaluation.settings import Settings
from tightrope.evaluation.work import answers_of
from tightrope.models import Model, has_tabular

DOMINATES = 0.5  # of the width: a range that costs more is worth a word


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


# Independent episodes, or clusters, below which only exact bounds answer: k of them all lie on one side of the truth in
# 2 of 2^k logs, and then every resample does (measured: 27 % of yeses are wrong with two sites, 14 % with three).
FEWEST_RESAMPLED = 10
OF_VALUE = ("vacuous", "impossible-estimate")  # warnings about a bound's own number
TETHERED = Part("tdr", "percentile")
# Nothing takes the skewness out of values that no model explains, and a longer tether lets more of it in: on the
# problems "probabilities only" and "state not logged" the full level errs in 8 % of logs of 1,000 episodes.
WITHOUT_MODEL = replace(TETHERED, share=0.6)
TOGETHER = (replace(TETHERED, share=0.8), Part("wdr", "rehearsed", 0.1))
# What a few episodes do not hold, resampling them cannot show; and a floor of the return protects against what is
# missing of the candidate's value, not against what is missing of the behaviour policy's.
OF_FEW: dict[About, Part] = {"value": replace(TETHERED, share=0.6), "gain": replace(TETHERED, share=0.2)}


def rules(problem: Problem, overlap: Overlap, side: Side, about: About = "value", *, strict: bool) -> list[Rule]:
    """The rules for this question in a fixed order; the first that can be computed is used."""
    data = problem.dataset
    low, high = data.value_range or (-np.inf, np.inf)
    declared = np.isfinite(low if side == "lower" else high)
    tell = _telling(problem, overlap, about) if n_independent(data) >= FEWEST_RESAMPLED and not strict else 0
    if tell < FEWEST_RESAMPLED:
        exact = [Rule((Part("tdr", "betting"),)), Rule((Part("is", "betting"),)), Rule((Part("pdis", "betting"),))]
        return exact if data.return_range is not None or data.reward_range is None else [exact[0], *exact[:0:-1]]
    model = has_tabular(problem)
    if coded(overlap.warnings, "no-overlap"):
        return [Rule((Part("mb", "percentile"),), "there are no importance ratios, so it rests on the model alone")]
    few = bool(coded(overlap.warnings, "low-overlap", "one-episode"))
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
    if tell < FEWEST:
        return [Rule((OF_FEW[about],)), *weak]
    return [Rule(TOGETHER), Rule((TETHERED,)), *weak] if sees_states(problem) else [Rule((WITHOUT_MODEL,)), *weak]


def _telling(problem: Problem, overlap: Overlap, about: About) -> int:
    """Independent episodes, or clusters, that tell something: of a gain, those in which the two policies differ.

    Where they act alike the gain is nothing, and all that is left of it is the noise of a model. Twenty groups with
    five treatments, and a candidate that changes none of the tested: 7 % of yeses were wrong.
    """
    data = problem.dataset
    if about == "value" or problem.behavior is not None or coded(overlap.warnings, "no-overlap"):
        return n_independent(data)
    differ = problem.ratios.differ
    return int(differ.sum()) if data.clusters is None else len(np.unique(data.clusters[differ]))


def sees_states(problem: Problem) -> bool:
    """Whether a tabular model has states to tell apart: a column that never changes explains no return."""
    states = problem.dataset.states
    if states is None or not has_tabular(problem):
        return False
    return any(bool((states[part] != states[0]).any()) for part in parts(len(states)))


@dataclass(frozen=True)
class Question:
    """What was asked, before any answer."""

    problem: Problem
    overlap: Overlap
    behavior: BehaviorCheck | None
    settings: Settings
    model: str | Model = "auto"
    strict: bool = False
    cases: tuple[Case, ...] = ()  # where bounds were computed already: how a model fares is known there

    def bound(self, side: Side) -> Bound:
        """The recommended bound; refuses with the reason where there is none, and where only a model could answer."""
        _ = self.problem.ratios  # no overlap is an error here, not a reason to trust a model silently
        chosen = self.recommend(side)
        if chosen.bound is None:
            raise BoundError(no_answer(chosen, self.overlap, estimated=self.problem.behavior is not None))
        return chosen.bound

    def use(self, bounds: list[Bound], sides: Sequence[Side], about: About = "value") -> Use:
        """The advice on all sides in words, and where the bounds to use are; those that are new join the others."""
        texts, places, proven = [], [], []
        for side in sides:
            chosen = self.answer(side, about, bounds)
            exact = chosen if self.strict else self.recommend(side, about, bounds, strict=True)
            proven += [exact.bound] if exact.bound is not None and flaw(exact.bound) is None else []
            if chosen.bound is None or flaw(chosen.bound) is not None:
                texts.append(no_answer(chosen, self.overlap, estimated=self.problem.behavior is not None))
                continue
            texts.append(advice(chosen, exact.bound))
            texts[-1] += self._hint(chosen, side) if about == "value" else ""
            if chosen.bound not in bounds:
                bounds.append(chosen.bound)
            places.append(bounds.index(chosen.bound))
        text = for_sides(sides, texts)
        if places and not coded(self.overlap.warnings, "no-overlap"):
            worth = information(self.overlap, self.problem.dataset.n_trajectories)
            text += f"{chr(10) if len(sides) > 1 else ' '}{worth}."
        return Use(text, tuple(places), tuple(proven))

    def answer(self, side: Side, about: About = "value", known: Sequence[Bound] = ()) -> Recommendation:
        """What the rule recommends; where the weighted logs say nothing, the model's bound, if it may be right.

        Never from few episodes: that their weighted returns say nothing is chance, and the model's bound errs there.
        """
        chosen = self.recommend(side, about, known)
        few = n_independent(self.problem.dataset) < FEWEST
        if self.strict or few or chosen.bound is None or flaw(chosen.bound) is None or not has_tabular(self.problem):
            return chosen
        try:
            bound = self._part(Part("mb", "percentile"), side, about)
        except TightropeError:
            return chosen
        off = coded(self.overlap.warnings, "mean-ratio")
        why = "the importance ratios do not average to 1" if off else "the weighted logs say nothing here"
        why += ", so it rests on the model alone"
        return Recommendation(bound, (bound,), why) if flaw(bound) is None else chosen

    def recommend(
        self, side: Side, about: About = "value", known: Sequence[Bound] = (), *, strict: bool | None = None
    ) -> Recommendation:
        """The bound of the first rule that can be computed; none where no rule can. What is ``known`` is not redone."""
        names = {(bound.estimator, bound.method, bound.side, bound.about, bound.confidence): bound for bound in known}
        reasons = []
        for rule in rules(self.problem, self.overlap, side, about, strict=self.strict if strict is None else strict):
            try:
                parts = [
                    names.get((part.estimator, part.method, side, about, self._level(part)))
                    or self._part(part, side, about)
                    for part in rule.parts
                ]
            except TightropeError as error:
                reasons.append(str(error))
                continue
            return Recommendation(_best(parts, self.settings.confidence), tuple(parts), rule.why)
        return Recommendation(None, (), "; ".join(dict.fromkeys(reasons)))

    def _part(self, part: Part, side: Side, about: About) -> Bound:
        estimator: Estimator = find_estimator(part.estimator, model=self.model)
        own = replace(self.settings, confidence=self._level(part))
        # At so small a share, more rehearsals than it takes to see one error would buy nothing.
        rehearsed = part.method == Rehearsed.name
        method = Rehearsed(fewest(own.confidence), own.n_jobs) if rehearsed else find_method(part.method)
        pair = (gain(estimator) if about == "gain" else estimator, method)
        known = next((case for case in self.cases if case.side == side), None)
        case = known or Case(self.problem, self.overlap, side, own, self.behavior)
        (result,) = answers_of(replace(case, settings=own), [pair])
        if isinstance(result, TightropeError):
            raise result
        return result.bound

    def _hint(self, chosen: Recommendation, side: Side) -> str:
        """What a nearer end of the range would give, where the declared one makes up most of the width."""
        data, bound = self.problem.dataset, chosen.bound
        used = next((i for i, part in enumerate(chosen.parts) if bound is not None and part.value == bound.value), None)
        alike = data.returns.min() == data.returns.max()  # then there may be nothing between the ends
        if bound is None or data.value_range is None or used is None or alike or chosen.parts[used].estimator != "tdr":
            return ""
        low, high = data.value_range
        nearer = float(data.returns.min() if side == "lower" else data.returns.max())
        ends = (nearer, high) if side == "lower" else (low, nearer)
        other = replace(self, problem=replace(self.problem, dataset=replace(data, return_range=ends)), cases=())
        would = other._part(Part("tdr", chosen.parts[used].method, self._share(chosen.parts[used])), side, "value")
        possible = min(max(bound.estimate, low), high)  # counted from a far floor, estimates may lie anywhere
        if abs(would.value - bound.value) < DOMINATES * abs(possible - bound.value):
            return ""
        end, old = ("floor", low) if side == "lower" else ("ceiling", high)
        return (
            f" The declared {end} dominates the width: with {nearer:.4g} instead of {old:.4g} this bound would be "
            f"{would.value:.4g}. If you know a nearer one (not because the logs hold none beyond), declare it: "
            "return_range, --return-range."
        )

    def _level(self, part: Part) -> float:
        """The confidence of a part; its share of the error rate is the rest."""
        return 1 - part.share * (1 - self.settings.confidence) if part.share < 1 else self.settings.confidence

    def _share(self, part: Bound) -> float:
        return (1 - part.confidence) / (1 - self.settings.confidence)


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
