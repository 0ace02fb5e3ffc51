"""The replicates that the approximate bounds need: every estimator on the same weight rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np

from tightrope.base.errors import BoundError, TightropeError
from tightrope.bounds.base import BootstrapBound, Need, rank
from tightrope.estimators import Estimator
from tightrope.estimators.model_based import ModelStatistic
from tightrope.evaluation.case import Case, Drawn, Pair, attempt
from tightrope.functional.engines import Replicates, cuda, replicate
from tightrope.functional.resampling import ModelBootstrap, scheme
from tightrope.functional.statistic import FittedStatistic
from tightrope.functional.strata import levelled_by, within_strata
from tightrope.models import ParametricModel

Draws = dict[Estimator, Drawn | TightropeError]
Needs = dict[Estimator, set[Need]]


def draw(case: Case, pairs: Sequence[Pair]) -> Draws:
    """Replicates of every estimator that an approximate bound among the pairs asks for, or why there are none."""
    needs: Needs = {}
    for estimator, method in pairs:
        if isinstance(method, BootstrapBound):
            needs.setdefault(estimator, set()).update(method.needs)
    attempts = {one: attempt(partial(_statistic, case, one)) for one in needs}
    whole = {one: statistic for one, statistic in attempts.items() if not isinstance(statistic, TightropeError)}
    resampled = _resample(case, {one: whole[one] for one in whole if "values" in needs[one]}, needs)
    draws: Draws = {one: failure for one, failure in attempts.items() if isinstance(failure, TightropeError)}
    for one, statistic in whole.items():
        draws[one] = attempt(partial(_drawn, case, statistic, resampled.get(one), "leave_one_out" in needs[one]))
    return draws


def _statistic(case: Case, estimator: Estimator) -> FittedStatistic:
    if case.problem.dataset.n_trajectories < 2:
        raise BoundError("a bootstrap needs at least two episodes; the logs hold 1")
    if case.clusters is not None:
        case.clusters.check_two()
    return case.statistic(estimator)


def _drawn(
    case: Case, statistic: FittedStatistic, replicates: Replicates | TightropeError | None, leave_one_out: bool
) -> Drawn:
    if isinstance(replicates, TightropeError):
        raise replicates
    if replicates is None:  # nobody asked for replicates
        replicates = Replicates(statistic.n_trajectories, statistic.estimate, np.empty(0))
    if not leave_one_out:
        return Drawn(statistic, replicates)
    others = levelled_by(case.clusters, statistic.leave_one_out())
    return Drawn(statistic, replace(replicates, leave_one_out=others))


def _resample(
    case: Case, statistics: dict[Estimator, FittedStatistic], needs: Needs
) -> dict[Estimator, Replicates | TightropeError]:
    if not statistics:
        return {}
    settings = case.settings
    rank(1 - settings.confidence, settings.n_resamples)  # refuse too few before the work, not after it
    if isinstance(settings.resampling, ModelBootstrap) and case.clusters is not None:
        raise BoundError('resampling="model" simulates independent episodes, so it has no form for clusters or strata')
    if isinstance(settings.resampling, ModelBootstrap):
        return {one: attempt(partial(_simulated, case, statistic)) for one, statistic in statistics.items()}
    together = attempt(partial(_replicated, case, statistics, needs))
    if not isinstance(together, TightropeError):
        return dict(zip(statistics, together, strict=True))
    # One of them fails: each by itself gives the same bits, and shows which.
    alone = {one: attempt(partial(_replicated, case, {one: each}, needs)) for one, each in statistics.items()}
    return {one: result if isinstance(result, TightropeError) else result[0] for one, result in alone.items()}


def _replicated(case: Case, statistics: dict[Estimator, FittedStatistic], needs: Needs) -> list[Replicates]:
    settings = case.settings
    chosen = within_strata(scheme(settings.resampling), case.clusters)
    if settings.engine == "cuda":
        cuda.check_scheme(chosen)
    return replicate(
        list(statistics.values()),
        chosen,
        n_resamples=settings.n_resamples,
        seed=settings.seed,
        precision=settings.precision,
        standard_errors=["standard_errors" in needs[one] for one in statistics],
        progress=settings.progress,
        n_jobs=settings.n_jobs,
        engine=settings.engine,
        scratch=case.problem.dataset.scratch,
    )


def _simulated(case: Case, statistic: FittedStatistic) -> Replicates:
    """Replicates by the parametric bootstrap, where the model can be simulated from."""
    model = statistic.model if isinstance(statistic, ModelStatistic) else None
    if not isinstance(model, ParametricModel):
        raise BoundError(
            'resampling="model" simulates from a fitted tabular model; of the estimators only mb rests on one'
        )
    values = model.simulated_values(case.settings.n_resamples, seed=case.settings.seed)
    return Replicates(statistic.n_trajectories, statistic.estimate, values)
