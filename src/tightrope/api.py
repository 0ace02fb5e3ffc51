"""The public calls, thin over the rest: estimate, statistic, lower_bound, upper_bound, interval, evaluate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal, Unpack

from tightrope.base.blas import one_blas_thread
from tightrope.base.checks import check_size, is_number
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import BoundError, TightropeError, failing
from tightrope.base.policy import DeterministicControl
from tightrope.base.problem import Problem
from tightrope.base.records import Advice, Bound, Interval, Side
from tightrope.behaviors import behavior as find_behavior
from tightrope.bounds import Method
from tightrope.bounds import method as find_method
from tightrope.bounds.base import is_exact
from tightrope.estimators import ESTIMATORS, Estimator, is_model_based
from tightrope.estimators import estimator as find_estimator
from tightrope.evaluation.case import Pair
from tightrope.evaluation.compute import Computed, cases_of, compute
from tightrope.evaluation.details import details, subject
from tightrope.evaluation.judge import Judgement, judge
from tightrope.evaluation.provenance import provenance
from tightrope.evaluation.settings import Options, Settings
from tightrope.evaluation.work import answers_of, is_valid
from tightrope.functional.statistic import FittedStatistic
from tightrope.models import Model, has_tabular
from tightrope.models import model as find_model
from tightrope.report.evaluation import Evaluation

DEFAULT_ESTIMATOR = "pdwis"
DEFAULT_METHOD = "studentized"  # of all, the nearest to its nominal error rate: docs/coverage.md
DEFAULT_METHODS = ("percentile", "bca", "studentized", "betting")


@one_blas_thread
def statistic(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    model: str | Model = "auto",
    behavior: Any = "logged",
) -> FittedStatistic:
    """The estimator as a function of trajectory weights: (..., n) to (...,), NaN where undefined."""
    with failing():
        return find_estimator(estimator, model=model)(_problem(dataset, policy, behavior))


@one_blas_thread
def estimate(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    model: str | Model = "auto",
    behavior: Any = "logged",
) -> float:
    """The point estimate of the candidate's value."""
    with failing():
        return statistic(dataset, policy, estimator=estimator, model=model, behavior=behavior).estimate


def lower_bound(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    method: str | Method = DEFAULT_METHOD,
    model: str | Model = "auto",
    **options: Unpack[Options],
) -> Bound:
    """A value that the candidate's true value exceeds with the given confidence.

    ``policy=None`` uses the logs' ``eval_prob`` column; ``model`` is for mb, dr and wdr given by name. See ``Options``
    for the other keywords.
    """
    return _one(dataset, policy, "lower", find_estimator(estimator, model=model), method, Settings(**options))


def upper_bound(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    method: str | Method = DEFAULT_METHOD,
    model: str | Model = "auto",
    **options: Unpack[Options],
) -> Bound:
    """A value that the candidate's true value stays below with the given confidence."""
    return _one(dataset, policy, "upper", find_estimator(estimator, model=model), method, Settings(**options))


def interval(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator = DEFAULT_ESTIMATOR,
    method: str | Method = DEFAULT_METHOD,
    model: str | Model = "auto",
    **options: Unpack[Options],
) -> Interval:
    """A lower and an upper bound that hold together with the given confidence, half the error on each side."""
    settings = Settings(**options)
    each = replace(settings, confidence=(1 + settings.confidence) / 2)
    chosen = find_estimator(estimator, model=model)
    low, high = (_one(dataset, policy, side, chosen, method, each) for side in ("lower", "upper"))
    return Interval(low, high, settings.confidence)


@one_blas_thread
def evaluate(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimators: Sequence[str | Estimator] | None = None,
    methods: Sequence[str | Method] | None = None,
    model: str | Model = "auto",
    side: Literal["lower", "upper", "both"] = "lower",
    strict: bool = False,
    threshold: float | None = None,
    baseline: Literal["behavior"] | None = None,
    true_value: float | None = None,
    **options: Unpack[Options],
) -> Evaluation:
    """Every estimator with every bound that is valid for it, on one set of weights, and which to believe.

    ``model`` is the one that estimators given by name use: "auto" (tabular where states and actions are discrete), a
    name, or an object. Pairs that cannot be computed are listed with the reason in ``skipped``. With ``side="both"``
    each bound has the given confidence on its own side. With a ``threshold`` both sides are computed, and the
    verdict says whether the value exceeds it. With ``baseline="behavior"`` it says whether the candidate gains on the
    behaviour policy (by more than the threshold, if there is one), from bounds on the paired difference. ``strict``
    believes exact bounds alone: where none says anything, the answer is that this data cannot answer.
    """
    if side not in ("lower", "upper", "both"):
        raise BoundError(f'side is {side!r}; "lower", "upper" or "both"')
    if threshold is not None and not (is_number(threshold) and abs(threshold) < math.inf):
        raise BoundError(f"threshold is {threshold!r}; it must be a finite number")
    if baseline not in (None, "behavior"):
        raise BoundError(f'baseline is {baseline!r}; "behavior" or None')
    if baseline is not None and threshold is None:
        threshold = 0.0
    settings = Settings(**options)
    sides: tuple[Side, ...] = ("lower", "upper") if side == "both" or threshold is not None else (side,)
    with failing():
        problem = _problem(dataset, policy, settings.behavior)
        cases = cases_of(problem, sides, settings)
    pairs = _pairs(problem, estimators, methods, model)
    computed = compute(cases, pairs, about="value" if baseline is None else "gain")
    judgement = judge(computed, threshold=threshold, strict=strict)
    return _assembled(computed, judgement, true_value)


def _assembled(computed: Computed, judgement: Judgement, true_value: float | None) -> Evaluation:
    """The record of what was computed and how it was judged."""
    case = computed.cases[-1]
    looked_into = subject(computed.bounds, judgement.believe)
    return Evaluation(
        bounds=computed.bounds,
        skipped=tuple((*pair, str(why)) for pair, why in computed.skipped.items()),
        summary=judgement.summary,
        overlap=case.overlap,
        reasons=judgement.reasons,
        model_check=case.first_check,
        behavior_check=case.behavior,
        advice=judgement.advice,
        believe=judgement.believe,
        true_value=true_value,
        settings=case.settings.shown(case.problem.behavior),
        gains=tuple(answer.bound for answer, _ in computed.gains),
        believe_gains=judgement.believe_gains,
        verdict=judgement.verdict,
        details=details(looked_into, *computed.values[looked_into]),
        provenance=provenance(),
    )


def _pairs(
    problem: Problem,
    estimators: Sequence[str | Estimator] | None,
    methods: Sequence[str | Method] | None,
    model: str | Model,
) -> list[Pair]:
    """What to compute: what was asked for, or all that means something and does not take long."""
    named = [estimators] if isinstance(estimators, str) else list(estimators or ESTIMATORS)
    methods = [methods] if isinstance(methods, str) else methods
    find_model(model, problem)  # an unknown name is an error even where no estimator would use it
    # A continuous model takes its time: only when asked for, or where nothing else can answer.
    needless = not has_tabular(problem) and not isinstance(problem.policy, DeterministicControl)
    if estimators is None and model == "auto" and needless:
        named = [name for name in ESTIMATORS if not is_model_based(name)]
    chosen = [find_estimator(item, model=model) for item in named]
    pairs = [(one, find_method(item)) for one in chosen for item in (methods or DEFAULT_METHODS)]
    if methods is None:  # nobody asked for the pairs that mean nothing
        return [pair for pair in pairs if is_valid(*pair) and not (problem.behavior and is_exact(pair[1]))]
    return pairs


def advise(dataset: TrajectoryDataset, policy: Any = None, **options: Any) -> Advice:
    """What to believe on this data, and why; takes what ``evaluate`` takes."""
    result = evaluate(dataset, policy, **options)
    return Advice(result.advice, tuple(result.bounds[index] for index in result.believe), result.reasons)


def _problem(dataset: TrajectoryDataset, policy: Any, behavior: Any) -> Problem:
    """The question, with the behaviour policy as logged or to be estimated; refused where it cannot be."""
    problem = Problem(dataset, policy)
    check_size("reward", dataset.rewards, dataset.where)
    chosen = find_behavior(behavior, dataset)
    if chosen is not None:
        problem = replace(problem, behavior=chosen)
        _ = problem.fits  # refuse unfit logs now, not as a lack of overlap later
    return problem


@one_blas_thread
def _one(
    dataset: TrajectoryDataset,
    policy: Any,
    side: Side,
    estimator: Estimator,
    method: str | Method,
    settings: Settings,
) -> Bound:
    pair = (estimator, find_method(method))
    with failing():
        (case,) = cases_of(_problem(dataset, policy, settings.behavior), [side], settings)
        (result,) = answers_of(case, [pair])
    if isinstance(result, TightropeError):
        raise result
    return result.bound
