"""Which bound to believe on this data, and why: rules on overlap, tails and skew, in an order fixed beforehand.

Choosing the tightest of many bounds, or the one with the smallest standard error, would void its level: the data sets
on which an estimator looks best are those that miss what it fears. So estimators and methods come in a fixed order and
the first that nothing speaks against is named. Two things are read off the values: a bound that says nothing (vacuous,
infinite) is not believed, and an exact bound that beats the chosen approximate one is preferred to it. The orders
(``preference`` of estimators and bounds) and the thresholds for skew come from docs/coverage.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.folder import summed
from tightrope.base.records import BehaviorCheck, Bound, ModelCheck, Overlap, Side, Summary
from tightrope.base.warnings import CODES, Caution, caution, coded
from tightrope.evaluation.case import Answer
from tightrope.evaluation.model_check import REMEMBERS
from tightrope.evaluation.sentences import (
    CHECK,
    CLOSER,
    LOGGED,
    TRY_ACTIONS,
    WRONG_RATIOS,
    against_model,
    any_number,
    inequality,
    information,
    named,
    pair,
)

EXCESS = 0.2  # of the nominal error rate: how much more is worth a warning
EXCESS_SECOND_ORDER = 0.4  # likewise for methods that correct for skew themselves, which they do only in part


def spread_warning(
    influence: Array, estimate: float, side: Side, confidence: float, *, second_order: bool, drawn: str = "episodes"
) -> list[Caution]:
    """Whether the influence values of the ``drawn`` are too alike, or skewed towards the unsafe side.

    Rare episodes that pull towards the unsafe side are what no resampling of the others reveals. The yardstick is
    the first Edgeworth term of Student's one-sided interval for a mean, φ(z)(2z² + 1)/6 · skewness/√n (Hall 1992,
    section 2.6); other intervals and estimators differ in the factor, and a sample's skewness understates the true one.
    """
    spread = float(np.sqrt(summed(influence, np.square) / len(influence)))
    if np.isnan(spread):
        return [caution("one-episode", f"without one of the {drawn} the estimate is undefined")]
    if not spread > 1e-12 * abs(estimate):
        return [caution("no-spread", f"all {drawn} have the same influence, so the bootstrap sees no uncertainty")]
    skew = summed(influence, lambda some: (some / spread) ** 3) / len(influence)
    toward = -skew if side == "lower" else skew
    normal = NormalDist()
    z = normal.inv_cdf(confidence)
    excess = normal.pdf(z) * (2 * z * z + 1) / 6 * toward / np.sqrt(len(influence))
    if excess <= (EXCESS_SECOND_ORDER if second_order else EXCESS) * (1 - confidence):
        return []
    where = "low" if side == "lower" else "high"
    text = (
        f"a few {drawn} pull the estimate towards {where} values (skewness {skew:.1f}, n = {len(influence)}); "
        f"bounds from resampling then err more often than the nominal {1 - confidence:.3g}"
    )
    return [caution("skew", text, skewness=skew, n=len(influence))]


def advise(
    answers: Sequence[Answer], overlap: Overlap, side: Side, dataset: TrajectoryDataset, *, strict: bool = False
) -> tuple[str, int | None]:
    """A line of advice and which answer of this side it points to; None when these logs cannot answer."""
    here = {i: answer for i, answer in enumerate(answers) if answer.bound.side == side}
    bounds = {i: answer.bound for i, answer in here.items()}
    first, exact = _first_exact(here, dataset), exact_of(answers, side, dataset)
    if strict:
        if exact is not None:
            return f"Use {named(bounds[exact])}. It holds {any_number(bounds[exact])}.", exact
        why = _why_not_exact(None if first is None else bounds[first])
        return (
            f"These logs cannot answer strictly: {why}. What would help: {_help(bounds, overlap, side, dataset)}.",
            None,
        )
    sound = _best_sound({i: one for i, one in here.items() if not one.bound.rests_on_model}, dataset)
    if sound is not None:
        return _use_approximate(here, sound, exact, overlap)
    why = _why_not(bounds)
    also = f" Without a model: {named(bounds[exact])}." if exact is not None else ""
    model = _best_sound({i: one for i, one in here.items() if one.bound.rests_on_model}, dataset)
    if model is not None:
        return (
            f"Use {named(bounds[model])}, if you believe the model. It rests on the model alone, which nothing in the "
            f"logs contradicts{why and '; '}{why}.{also}",
            model,
        )
    if exact is not None:
        return f"Use {named(bounds[exact])}. It holds {any_number(bounds[exact])}{why and '; '}{why}.", exact
    nothing = "" if why else "no bound improves on what is possible anyway"
    return f"These logs cannot answer: {why}{nothing}. What would help: {_help(bounds, overlap, side, dataset)}.", None


def exact_of(answers: Sequence[Answer], side: Side, dataset: TrajectoryDataset) -> int | None:
    """The first exact bound of this side in the fixed order, if it says anything."""
    here = {i: answer for i, answer in enumerate(answers) if answer.bound.side == side}
    first = _first_exact(here, dataset)
    return None if first is None or _is_doubted(here[first].bound) else first


def _first_exact(here: dict[int, Answer], dataset: TrajectoryDataset) -> int | None:
    """The first exact bound in the fixed order, whatever it says."""
    exact = [i for i, answer in here.items() if answer.bound.guarantee == "exact"]
    places = {i: (here[i].method.preference, here[i].estimator.preference(dataset)) for i in exact}
    return min(exact, key=places.__getitem__, default=None)


def _best_sound(here: dict[int, Answer], dataset: TrajectoryDataset) -> int | None:
    """The first approximate bound in the fixed order that no warning speaks against."""
    skewed = _skewed(here)
    sound = [
        i
        for i, (estimator, _, bound, _) in here.items()
        if bound.guarantee == "approximate"
        and np.isfinite(bound.value)
        and not _is_doubted(bound)
        and estimator.name not in skewed
    ]
    return min(sound, key=lambda i: (here[i].estimator.preference(dataset), here[i].method.preference), default=None)


def _skewed(here: dict[int, Answer]) -> set[str]:
    """The estimators that skew speaks against: where one bound shows it, its own and all that weigh episodes alike.

    The data sets on which one of them looks free of it are those that miss the episodes in question.
    """
    shown = [one.estimator for one in here.values() if coded(one.bound.warnings, "skew")]
    seen = {estimator.name for estimator in shown if not estimator.rests_on_model}
    alike = {one.estimator.name for one in here.values() if one.estimator.shares_weights}
    return seen | alike if seen & alike else seen


def _use_approximate(
    here: dict[int, Answer], sound: int, exact: int | None, overlap: Overlap
) -> tuple[str, int | None]:
    bounds = {i: answer.bound for i, answer in here.items()}
    chosen, skewed = bounds[sound], sorted(_skewed(here))
    if exact is not None and (bounds[exact].value - chosen.value) * (1 if chosen.side == "lower" else -1) >= 0:
        return (
            f"Use {named(bounds[exact])}. It holds {any_number(bounds[exact])}, and is no looser than {pair(chosen)} "
            f"({inequality(chosen)}).",
            exact,
        )
    also = f" Exact, {any_number(bounds[exact])}: {named(bounds[exact])}." if exact is not None else ""
    out = f" Ruled out: {', '.join(skewed).upper()}, whose bounds err too often on data this skewed." if skewed else ""
    return f"Use {named(chosen)}. {information(overlap, chosen.n_trajectories)}.{out}{also}", sound


def _why_not_exact(first: Bound | None) -> str:
    """Why the first exact bound of the order is not believed."""
    if first is None:
        return "no exact bound could be computed"
    if coded(first.warnings, "mean-ratio"):
        return WRONG_RATIOS
    if against_model(first):
        return f"this speaks against the model: {against_model(first)}"
    return f"{pair(first)} does not improve on what is possible anyway"


def _why_not(bounds: dict[int, Bound]) -> str:
    """Why no approximate bound is believed; empty when none was asked for."""
    if any(coded(bound.warnings, "mean-ratio") for bound in bounds.values()):
        return WRONG_RATIOS
    approximate = [bound for bound in bounds.values() if bound.guarantee == "approximate"]
    weighted = [bound for bound in approximate if not bound.rests_on_model]
    if weighted:
        return f"resampling the weighted logs is not to be trusted here ({_doubts(weighted) or 'infinite'})"
    model = list(dict.fromkeys(against_model(bound) for bound in approximate if against_model(bound)))
    if model:
        return f"this speaks against the model: {model[0]}"
    return f"resampling is not to be trusted here ({_doubts(approximate)})" if _doubts(approximate) else ""


def _doubts(bounds: Sequence[Bound]) -> str:
    """The codes of what speaks against the bounds, in the order of the registry."""
    doubts = {warning.code for bound in bounds for warning in bound.warnings if warning.against}
    return ", ".join([*(code for code in CODES if code in doubts), *sorted(doubts - CODES.keys())])


def _help(bounds: dict[int, Bound], overlap: Overlap, side: Side, dataset: TrajectoryDataset) -> str:
    if coded(overlap.warnings, "no-overlap"):
        return TRY_ACTIONS
    estimated = any(bound.behavior is not None for bound in bounds.values())
    if coded(overlap.warnings, "mean-ratio"):
        return LOGGED if estimated else CHECK
    if any(bound.guarantee == "exact" for bound in bounds.values()):
        return CLOSER
    if estimated:
        return f"{LOGGED}, for an exact bound; {CLOSER}"
    low, high = dataset.value_range or (-np.inf, np.inf)
    if not np.isfinite(low if side == "lower" else high):
        return f"a declared reward_range, for an exact bound; {CLOSER}"
    if not dataset.horizon_declared:
        return f"a declared horizon, for an exact bound; {CLOSER}"
    return f"an exact bound (betting), or what it lacks (--all says it); {CLOSER}"


def _is_doubted(bound: Bound) -> bool:
    """Whether a warning speaks against it. A bound carries only warnings that concern it."""
    return any(warning.against is not None for warning in bound.warnings)


def reasons(
    overlap: Overlap,
    check: ModelCheck | None,
    summary: Summary,
    answers: Sequence[Answer],
    behavior: BehaviorCheck | None = None,
) -> tuple[str, ...]:
    """The measured quantities that the advice weighs, a line each."""
    lines = [_overlap_line(overlap, summary.n_trajectories)]
    if behavior is not None:
        lines.append(f"behaviour policy {behavior.summary}; no bound that rests on it is exact")
    if overlap.unlogged_mass is not None:
        lines.append(
            f"support: {overlap.unlogged_mass:.1%} of the candidate's choices in logged states were never logged"
        )
    lines += [f"determinism: {text}" for text in overlap.deterministic]
    if check is not None:
        lines.append(_model_line(check))
        lines += _bias_line(check, [answer.bound for answer in answers], summary)
    return (*lines, *_sensitivity_line(answers))


def _overlap_line(overlap: Overlap, n: int) -> str:
    none = coded(overlap.warnings, "no-overlap")
    if none:
        return f"overlap: not measured; {none[0].text}"
    them = "of them" if overlap.n_clusters is None else "of the episodes"
    impossible = f"could not have produced {overlap.zero_share:.0%} {them}"
    possible = f"could have produced all {them}" if overlap.zero_share == 0 else impossible
    tail = "no tail to fit" if overlap.pareto_k is None else f"tail index {overlap.pareto_k:.2f}"
    return f"overlap: {information(overlap, n, digits=1)}; the candidate {possible}; {tail}"


def _model_line(check: ModelCheck) -> str:
    parts = []
    if np.isfinite(check.training_error):
        parts.append(f"one-step error {check.training_error:.3g} fitted, {check.held_out_error:.3g} held out")
    if np.isfinite(check.correction):
        parts.append(f"the weighted logs correct it by {check.correction:.3g} ± {check.correction_error:.2g}")
    if check.unseen_mass is not None:
        parts.append(f"{check.unseen_mass:.1%} of the candidate's steps on pairs never logged")
    if check.memory is not None:
        sign = "something is missing" if check.memory < REMEMBERS else "no sign that something is missing"
        parts.append(f"test of the logged state: p = {check.memory:.2g} ({sign})")
    if check.misfit is not None:
        sign = "the shape is wrong" if check.misfit < REMEMBERS else "no sign of a wrong shape"
        parts.append(f"test of the residuals: p = {check.misfit:.2g} ({sign})")
    if check.likelihood_training is not None and check.likelihood_held_out is not None:
        parts.append(
            f"weighted negative log-likelihood of an episode {check.likelihood_training:.3g} fitted, "
            f"{check.likelihood_held_out:.3g} held out"
        )
    return f"{check.model} model: {'; '.join(parts)}"


def _bias_line(check: ModelCheck, bounds: Sequence[Bound], summary: Summary) -> list[str]:
    """The model's own bound, moved by the most that its bias can be: "Bootstrapping with Models", after Corollary 2."""
    if check.bias_bound is None or summary.horizon == 1:  # after one step nothing follows that could be wrong
        return []
    alone = [b for b in bounds if b.hangs_on_model and np.isfinite(b.value)]
    moved = [
        f"{b.method} {b.side} bound {b.value - (1 if b.side == 'lower' else -1) * check.bias_bound:.4g} instead of "
        f"{b.value:.4g}"
        for b in alone[:1]
    ]
    less = f"; {alone[0].estimator.upper()} less that: {moved[0]}" if moved else ""
    low, high = summary.return_range or (-np.inf, np.inf)
    if check.bias_bound >= high - low:
        less = ": more than the whole range of the return, so it says nothing here"
    return [
        "bias: judging by its likelihood of held-out transitions, entropy of the process included, errors in the "
        f"model's transitions move its value by at most about {check.bias_bound:.4g}, those in its rewards not "
        f"counted{less}"
    ]


def _sensitivity_line(answers: Sequence[Answer]) -> list[str]:
    """What the model does to the estimate that corrects it."""
    first = {one.estimator.name: one for one in reversed(answers) if one.bound.guarantee == "approximate"}
    compared = [
        (one.bound, first[one.estimator.without_model].bound)
        for one in first.values()
        if one.estimator.without_model in first
    ]
    return [
        f"sensitivity: {model.estimator.upper()} is {model.estimate:.4g} ± {model.standard_error:.2g} with the model "
        f"and {without.estimate:.4g} ± {without.standard_error:.2g} without it ({without.estimator.upper()})"
        for model, without in compared
    ]
