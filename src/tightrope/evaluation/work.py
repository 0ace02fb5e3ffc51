"""One estimator with one bound: what `lower_bound` computes once and `evaluate` for every valid pair."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tightrope.base.clusters import n_clusters
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.base.records import Bound
from tightrope.base.warnings import coded
from tightrope.bounds import Method
from tightrope.bounds.base import BootstrapBound, ExactBound, ModelledBound, ProcessBound, is_exact, learns
from tightrope.estimators import ESTIMATORS, USUAL, Estimator
from tightrope.estimators.base import IndependentEstimator, SequentialEstimator
from tightrope.estimators.clustered import independent_values, learned_values
from tightrope.estimators.gain import possible_range, subject
from tightrope.evaluation import cautions
from tightrope.evaluation.case import Answer, Case, Drawn, Pair, attempt
from tightrope.evaluation.draws import draw
from tightrope.evaluation.settings import Settings
from tightrope.functional.values import SequentialValues


def answers_of(case: Case, pairs: Sequence[Pair]) -> list[Answer | TightropeError]:
    """One bound, or the reason why there is none, for each pair, all bootstraps on the same weights."""
    _check_max_ratio(case.problem, case.settings)
    draws = draw(case, pairs)
    return [attempt(partial(_answer, case, estimator, method, draws.get(estimator))) for estimator, method in pairs]


def is_valid(estimator: Estimator, method: Method) -> bool:
    """Whether the pair means something: exact bounds need independent values, process bounds name their estimator."""
    if isinstance(method, ProcessBound):
        return estimator.name == method.of
    return not is_exact(method) or isinstance(estimator, IndependentEstimator)


def _check_max_ratio(problem: Problem, settings: Settings) -> None:
    if settings.max_ratio is None or problem.dataset.behavior_log_probs is None or problem.behavior is not None:
        return
    largest = problem.ratios.log_max.max()
    if largest > np.log(settings.max_ratio) + 1e-9:
        raise BoundError(
            f"max_ratio is {settings.max_ratio:g}, but the logs hold a cumulative importance ratio of "
            f"{np.exp(min(largest, 700.0)):.4g}: the declared bound is wrong"
        )


def _answer(case: Case, estimator: Estimator, method: Method, drawn: Drawn | TightropeError | None) -> Answer:
    """The bound of one pair; raises where there is none."""
    kept = None if isinstance(drawn, TightropeError) else drawn
    if isinstance(method, ProcessBound):
        bound = _process(case, estimator, method)
    elif isinstance(method, ExactBound):
        bound = _exact(case, estimator, method)
    elif isinstance(drawn, TightropeError):
        raise drawn
    else:
        assert drawn is not None
        bound = _approximate(case, estimator, method, drawn)
    return Answer(estimator, method, _with_estimate(bound, case, estimator, kept), kept)


def _with_estimate(bound: Bound, case: Case, estimator: Estimator, drawn: Drawn | None) -> Bound:
    """The bound with the one estimate that is shown for its estimator, and what its size says.

    An estimate that lies outside what is possible is shown as the nearest that is possible, and a warning says so.
    """
    point = case.point(estimator, drawn)
    low, high = possible_range(estimator, case.problem.dataset)
    return replace(
        bound,
        estimate=min(max(point.value, low), high),
        standard_error=point.error,
        warnings=(*bound.warnings, *cautions.of_range(case, estimator, point.value, bound.value)),
    )


def _approximate(case: Case, estimator: Estimator, method: BootstrapBound, drawn: Drawn) -> Bound:
    settings, replicates = case.settings, drawn.replicates
    lower = case.side == "lower"
    value, warnings = method.lower(replicates if lower else replicates.reflected(), delta=1 - settings.confidence)
    value = value if lower else -value
    resampled = "values" in method.needs
    undefined = replicates.n_undefined if resampled else 0
    estimated = case.problem.behavior if estimator.uses_ratios else None
    return Bound(
        value=value,
        side=case.side,
        confidence=settings.confidence,
        estimate=replicates.estimate,
        estimator=estimator.name,
        method=method.name,
        guarantee="approximate",
        warnings=(
            *cautions.of_bootstrap(case, estimator, method, drawn),
            *cautions.of_undefined(undefined, len(replicates.values)),
            *warnings,
        ),
        n_trajectories=case.problem.dataset.n_trajectories,
        n_clusters=n_clusters(case.problem.dataset),
        n_resamples=settings.n_resamples if resampled else None,
        n_undefined=undefined,
        seed=settings.seed if resampled else None,
        behavior=None if estimated is None else estimated.name,
        about=subject(estimator),
        rests_on_model=estimator.rests_on_model,
    )


def _exact(case: Case, estimator: Estimator, method: ExactBound) -> Bound:
    data, settings = case.problem.dataset, case.settings
    anchored = estimator.anchored(case.anchor)
    check_exact(case.problem, anchored, method)
    assert isinstance(anchored, IndependentEstimator)
    sample, bound = _bounded(case, anchored, method)
    value = float(sample.origin + sample.sign * max(0.0, bound))
    low, high = possible_range(estimator, data)
    value = max(value, low) if case.side == "lower" else min(value, high)  # what is declared is known as it is
    return Bound(
        value=value,
        side=case.side,
        confidence=settings.confidence,
        estimate=sample.estimate,
        estimator=estimator.name,
        method=method.name,
        guarantee="exact",
        warnings=(*data.notes, *coded(case.overlap.warnings, "mean-ratio")),
        n_trajectories=len(sample.values) if case.clusters is None else data.n_trajectories,
        n_clusters=n_clusters(data),
        seed=settings.seed if method.uses_seed else None,
        about=subject(estimator),
        rests_on_model=estimator.rests_on_model,
    )


def _bounded(case: Case, estimator: IndependentEstimator, method: ExactBound) -> tuple[SequentialValues, float]:
    """The values that the bound takes, and its lower bound on their mean."""
    settings = case.settings
    delta = 1 - settings.confidence
    if learns(method) and isinstance(estimator, SequentialEstimator):
        learned = learned_values(case.problem, estimator)
        return learned, method.lower(learned, delta=delta, seed=settings.seed)
    sample = independent_values(case.problem, estimator, max_ratio=settings.max_ratio)
    return sample, method.lower(sample, delta=delta, seed=settings.seed)


def check_exact(problem: Problem, estimator: Estimator, method: ExactBound) -> None:
    """Refuse what would not be exact."""
    behavior = problem.behavior
    if behavior is not None:
        raise BoundError(
            f"{method.name} is exact only with the true behaviour probabilities; with an estimate of them "
            f"(behavior={behavior.name!r}) nothing is. Log them, or use a bootstrap method"
        )
    if not isinstance(estimator, IndependentEstimator):
        independent = ", ".join(name for name in USUAL if isinstance(ESTIMATORS[name](), IndependentEstimator))
        raise BoundError(
            f"{method.name} needs one independent value per episode; {estimator.name} is no mean of such values "
            "(it divides by a sum over episodes or fits a model), so the pair has no guarantee. Use "
            f"{independent}, or a bootstrap method"
        )
    if problem.dataset.n_dropped:
        raise BoundError(
            "nothing exact can be said when episodes were left out for being cut off: which ones were may depend on "
            "how they went. Declare a shorter horizon, or use a bootstrap method"
        )


def _process(case: Case, estimator: Estimator, method: ProcessBound) -> Bound:
    if not is_valid(estimator, method):
        raise BoundError(f"{method.name} is a bound of {method.of}; got {estimator.name}")
    if case.clusters is not None:
        raise BoundError(
            f"{method.name} takes every episode for an independent draw, so it has no form for clusters or strata; use "
            "another method"
        )
    settings = case.settings
    if isinstance(method, ModelledBound):
        method = method.with_model(estimator.model)
    bound = method.bound(
        case.problem, confidence=settings.confidence, side=case.side, seed=settings.seed, about=subject(estimator)
    )
    warnings = (*bound.warnings, *cautions.of_process(case, estimator))
    return replace(bound, warnings=warnings, rests_on_model=estimator.rests_on_model)
