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
from tightrope.base.records import Advice, Bound, Interval, Overlap, Side
from tightrope.behaviors import behavior as find_behavior
from tightrope.bounds import Method
from tightrope.bounds import method as find_method
from tightrope.bounds.base import ProcessBound, is_exact
from tightrope.estimators import ESTIMATORS, Estimator, is_model_based
from tightrope.estimators import estimator as find_estimator
from tightrope.estimators.gain import gain
from tightrope.evaluation.advice import advise as choose
from tightrope.evaluation.advice import reasons
from tightrope.evaluation.behavior_check import check_behavior
from tightrope.evaluation.details import details, subject
from tightrope.evaluation.overlap import overlap, summarize
from tightrope.evaluation.provenance import provenance
from tightrope.evaluation.recommend import Question
from tightrope.evaluation.settings import Options, Settings
from tightrope.evaluation.verdict import verdict
from tightrope.evaluation.work import Pair, Work, bounds_of, is_valid
from tightrope.functional.statistic import FittedStatistic
from tightrope.models import Model, has_tabular
from tightrope.models import model as find_model
from tightrope.report.evaluation import Evaluation

DEFAULT_ESTIMATOR = "pdwis"  # of a point estimate, or where only a method is asked for
DEFAULT_METHOD = "studentized"  # where only an estimator is asked for; the nearest to its nominal error rate
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
    estimator: str | Estimator | None = None,
    method: str | Method | None = None,
    model: str | Model = "auto",
    **options: Unpack[Options],
) -> Bound:
    """A value that the candidate's true value exceeds with the given confidence.

    Without an estimator and a method it is the recommended bound, as ``evaluate`` has it. ``policy=None`` uses the
    logs' ``eval_prob`` column; ``model`` is for estimators with a model, given by name. See ``Options`` for the other
    keywords.
    """
    return _one(dataset, policy, "lower", estimator, method, model, Settings(**options))


def upper_bound(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator | None = None,
    method: str | Method | None = None,
    model: str | Model = "auto",
    **options: Unpack[Options],
) -> Bound:
    """A value that the candidate's true value stays below with the given confidence."""
    return _one(dataset, policy, "upper", estimator, method, model, Settings(**options))


def interval(
    dataset: TrajectoryDataset,
    policy: Any = None,
    *,
    estimator: str | Estimator | None = None,
    method: str | Method | None = None,
    model: str | Model = "auto",
    **options: Unpack[Options],
) -> Interval:
    """A lower and an upper bound that hold together with the given confidence, half the error on each side."""
    settings = Settings(**options)
    each = replace(settings, confidence=(1 + settings.confidence) / 2)
    low, high = (_one(dataset, policy, side, estimator, method, model, each) for side in ("lower", "upper"))
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
    with failing():
        problem = _problem(dataset, policy, settings.behavior)
        found, behavior = overlap(problem), check_behavior(problem)
    pairs = _pairs(problem, estimators, methods, model)
    gains = [(gain(one), item) for one, item in pairs if not isinstance(item, ProcessBound)] if baseline else []
    sides: tuple[Side, ...] = ("lower", "upper") if side == "both" or threshold is not None else (side,)
    bounds: list[Bound] = []
    gained: list[Bound] = []
    origins: list[tuple[Estimator, Work]] = []  # of each bound
    skipped: dict[tuple[str, str], TightropeError] = {}
    for each in sides:
        results, work = bounds_of(problem, found, [*pairs, *gains], each, settings, behavior)
        gained += [result for result in results[len(pairs) :] if isinstance(result, Bound)]
        for pair, result in zip(pairs, results, strict=False):
            if isinstance(result, Bound):
                bounds.append(result)
                origins.append((pair[0], work))
            else:
                skipped[pair[0].name, pair[1].name] = result
    if not bounds:
        raise _reasons(skipped)
    if estimators is None and methods is None:  # by a rule that was fixed before any reward was looked at
        question = Question(problem, found, behavior, settings, model, strict=strict)
        text, believe = question.use(bounds, sides)
        why, improved = question.use(gained, sides, about="gain") if baseline else (text, ())
        origins += [origins[0]] * (len(bounds) - len(origins))
    else:  # of what was asked for
        text, believe = _believe(bounds, found, sides, dataset, strict)
        why, improved = _believe(gained, found, sides, dataset, strict) if baseline else (text, ())
    summary, check = summarize(dataset), next(iter(work.checks.values()), None)
    told = subject(bounds, believe)
    return Evaluation(
        bounds=tuple(bounds),
        skipped=tuple((*pair, str(why)) for pair, why in skipped.items()),
        summary=summary,
        overlap=found,
        reasons=reasons(found, check, summary, bounds, behavior),
        model_check=check,
        behavior_check=behavior,
        advice=text,
        believe=believe,
        true_value=true_value,
        settings={
            "confidence": settings.confidence,
            "n_resamples": settings.n_resamples,
            "seed": settings.seed,
            "behavior": "logged" if problem.behavior is None else problem.behavior.name,
        },
        gains=tuple(gained),
        believe_gains=improved,
        verdict=verdict(
            [gained[index] for index in improved] if baseline else [bounds[index] for index in believe],
            why,
            threshold=threshold,
            about="gain" if baseline else "value",
        ),
        details=details(told, *origins[told]),
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
        named = [name for name in named if not is_model_based(name)]
    chosen = [find_estimator(item, model=model) for item in named]
    pairs = [(one, find_method(item)) for one in chosen for item in (methods or DEFAULT_METHODS)]
    if methods is None:  # nobody asked for the pairs that mean nothing
        return [pair for pair in pairs if is_valid(*pair) and not (problem.behavior and is_exact(pair[1]))]
    return pairs


def advise(dataset: TrajectoryDataset, policy: Any = None, **options: Any) -> Advice:
    """What to believe on this data, and why; takes what ``evaluate`` takes."""
    result = evaluate(dataset, policy, **options)
    return Advice(result.advice, tuple(result.bounds[index] for index in result.believe), result.reasons)


def _believe(
    bounds: Sequence[Bound], found: Overlap, sides: Sequence[Side], dataset: TrajectoryDataset, strict: bool
) -> tuple[str, tuple[int, ...]]:
    """The advice, and which bounds it points to."""
    advice = [choose(bounds, found, each, dataset, strict=strict) for each in sides]
    texts = list(dict.fromkeys(text for text, _ in advice))
    if len(texts) > 1:
        texts = [f"{side.title()} bound: {text}" for side, text in zip(sides, texts, strict=True)]
    text = "\n".join(texts)
    return text, tuple(index for _, index in advice if index is not None)


def _problem(dataset: TrajectoryDataset, policy: Any, behavior: Any) -> Problem:
    """The question, with the behaviour policy as logged or to be estimated; refused where it cannot be."""
    problem = Problem(dataset, policy)
    check_size("reward", dataset.rewards, dataset.where)
    chosen = find_behavior(behavior, dataset)
    if chosen is not None:
        problem = replace(problem, behavior=chosen)
        _ = problem.fits  # refuse unfit logs now, not as a lack of overlap later
    return problem


def _reasons(skipped: dict[tuple[str, str], TightropeError]) -> TightropeError:
    """Why there is no bound at all: the one reason itself, or each reason once with the pairs it concerns."""
    pairs: dict[str, list[str]] = {}
    for (estimator, method), why in skipped.items():
        pairs.setdefault(str(why), []).append(f"{estimator} with {method}")
    if len(pairs) == 1:
        return next(iter(skipped.values()))
    return BoundError("; ".join(f"{', '.join(names)}: {why}" for why, names in pairs.items()))


@one_blas_thread
def _one(
    dataset: TrajectoryDataset,
    policy: Any,
    side: Side,
    estimator: str | Estimator | None,
    method: str | Method | None,
    model: str | Model,
    settings: Settings,
) -> Bound:
    with failing():
        problem = _problem(dataset, policy, settings.behavior)
        found, behavior = overlap(problem), check_behavior(problem)
        if estimator is None and method is None:
            return Question(problem, found, behavior, settings, model).bound(side)
        pair = (
            find_estimator(DEFAULT_ESTIMATOR if estimator is None else estimator, model=model),
            find_method(DEFAULT_METHOD if method is None else method),
        )
        (result,), _ = bounds_of(problem, found, [pair], side, settings, behavior)
    if isinstance(result, TightropeError):
        raise result
    return result
