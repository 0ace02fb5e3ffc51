"""How far to trust a model: what it leaves unexplained on data it was not fitted to, weighted towards the candidate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.base.clusters import n_clusters, unit
from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.folder import parts
from tightrope.base.problem import Problem
from tightrope.base.records import ModelCheck
from tightrope.base.warnings import Caution, caution
from tightrope.bounds.model_bias.error import Likelihoods, ModelError, model_error
from tightrope.estimators.base import Anchor
from tightrope.estimators.clustered import by_cluster
from tightrope.estimators.doubly_robust import copy_steps, held_out_folds, held_out_values
from tightrope.estimators.weighted import PDWIS
from tightrope.evaluation.overlap import FEW_EFFECTIVE
from tightrope.functional.standard_errors import standard_error
from tightrope.functional.strata import levelled_by
from tightrope.models import CountedModel, Model, PreparedModel, prepared_model
from tightrope.models import model as find_model
from tightrope.models.likelihood import log_likelihoods, misfit
from tightrope.models.residuals import td_errors
from tightrope.models.rollouts.model import TooManyStepsError
from tightrope.models.tabular.prepared import PreparedTabular

CONTRADICTED = 3.0  # standard errors between what the model says and what the weighted logs say
UNSEEN = 0.01  # of the candidate's steps in the model, on pairs never logged
MOST_STEPS = 20_000  # that the test of memory looks at
PERMUTATIONS = 99
REMEMBERS = 1e-4  # a p-value below which the logged state is not all there is
TINY = 1e-12


def check_model(
    problem: Problem, chosen: str | Model, anchor: Anchor, *, effective: float, folds: int = 5
) -> ModelCheck:
    """Compare the model with the logs it was not fitted to.

    The correction, PDWIS of cross-fitted TD errors δ, is what WDR adds to the model: minus the model's bias, estimated.
    With few effective episodes it is noise and counts for nothing. The plain TD errors, in-sample and held-out,
    show over-fitting without any ratio, and so do importance-weighted negative log-likelihoods; for discrete states the
    held-out one bounds what wrong transitions do to the model's value ("Bootstrapping with Models", Corollary 1, of the
    smoothed model of the other folds, rewards taken as known, without allowance for the sampling error of the
    likelihood itself); with few effective episodes it is not given.
    """
    data, prepared = problem.dataset, prepared_model(chosen, problem, anchor)
    try:
        shared = td_errors(data, *prepared.control_variates(np.ones(data.n_trajectories)))
        held_out = td_errors(data, *held_out_values(problem, chosen, anchor, folds))
    except TooManyStepsError:  # then its likelihood and its residuals are all that is looked at
        shared = held_out = np.broadcast_to(np.nan, data.n_steps)
    correction, error = _correction(problem, held_out)
    unseen, fragile = prepared.weak_masses() if isinstance(prepared, CountedModel) else (None, None)
    scale = float(np.sqrt(_mean_square(data, data.rewards, float(data.rewards.mean())))) or 1.0
    fitted, unfitted = _likelihood_errors(problem, prepared, folds)
    result = ModelCheck(
        model=find_model(chosen, problem).name,
        correction=correction,
        correction_error=error,
        training_error=float(np.sqrt(_mean_square(data, shared))),
        held_out_error=float(np.sqrt(_mean_square(data, held_out))),
        unseen_mass=unseen,
        fragile_mass=fragile,
        memory=None if unseen is None else _memory(data, shared),
        misfit=misfit(prepared),
        likelihood_training=None if fitted is None else fitted.total,
        likelihood_held_out=None if unfitted is None else unfitted.total,
        likelihood_error=None if unfitted is None else unfitted.standard_error,
        bias_bound=_bias_bound(problem, unfitted) if effective >= FEW_EFFECTIVE else None,
        residue_free=_largest(shared) <= TINY * max(scale, _largest(data.rewards)),
    )
    return replace(result, warnings=tuple(_warnings(result, effective, unit(n_clusters(data))[:-1])))


def _largest(values: Array) -> float:
    """The largest absolute value."""
    return max(float(values.max()), -float(values.min()))


def _mean_square(data: TrajectoryDataset, values: Array, center: float = 0.0) -> float:
    """The mean of (x − center)² over all steps."""
    squares = data.scratch.empty(data.n_steps)
    np.subtract(values, center, out=squares)
    return float(np.square(squares, out=squares).mean())


def _likelihood_errors(
    problem: Problem, prepared: PreparedModel, folds: int
) -> tuple[ModelError | None, ModelError | None]:
    """Importance-weighted negative log-likelihood of the logs, fitted to them and held out from the fit."""
    data = problem.dataset
    try:
        ratios = problem.ratios
    except DataError:
        return None, None
    discrete = isinstance(prepared, PreparedTabular)

    def error(likelihoods: tuple[Array, Array]) -> ModelError:
        return model_error(ratios, Likelihoods(likelihoods[0], likelihoods[1], discrete), self_normalised=True)

    fitted = log_likelihoods(prepared, data.scratch.full(data.n_trajectories, 1.0))
    pairs = list(held_out_folds(data, folds))
    if fitted is None or len(pairs) < 2:
        return (error(fitted) if fitted else None), None
    steps, starts = data.scratch.empty(data.n_steps), data.scratch.empty(data.n_trajectories)
    for held, others in pairs:
        held_out = log_likelihoods(prepared, others)
        if held_out is None:
            return error(fitted), None
        copy_steps(data, held, held_out[0], steps)
        np.copyto(starts, held_out[1], where=held)
    return error(fitted), error((steps, starts))


def _bias_bound(problem: Problem, held_out: ModelError | None) -> float | None:
    """How far wrong transitions can move the model's value, at this likelihood; None where it bounds nothing."""
    data = problem.dataset
    if held_out is None or held_out.kind != "bound" or data.step_range is None:
        return None
    if not np.isfinite(data.step_range).all():
        return None
    return held_out.bias_bound(reward_range=data.step_range, discount=data.discount).value


def _memory(data: TrajectoryDataset, deltas: Array) -> float | None:
    """How likely TD errors that depend this much on the step before would be, were the logged state all there is.

    If the model's states are Markov, what a state-action pair leads to at some time has nothing to do with what led to
    it: within (pair, time) the errors may be exchanged between predecessors. Their sum of squares between predecessors
    is held against such permutations, whose distribution is taken as a scaled chi-square with their mean and variance.
    No importance ratio is needed, so it speaks where overlap is poor. None where there is nothing to exchange.
    """
    from scipy.special import chdtrc

    assert data.states is not None
    assert data.actions is not None
    enough, so_far = 0, 0
    for part in parts(data.n_trajectories):
        after_first = so_far + np.cumsum(data.lengths[part] - 1)
        enough, so_far = part.start + int(np.searchsorted(after_first, MOST_STEPS)) + 1, int(after_first[-1])
        if so_far >= MOST_STEPS:
            break
    times = data.times_of(0, min(enough, data.n_trajectories))
    first = (values[: len(times)] for values in (data.states, data.actions))
    (_, state), (levels, action) = (np.unique(values, return_inverse=True) for values in first)
    pair = state * len(levels) + action
    later = np.flatnonzero(times > 0)[:MOST_STEPS]  # before the first step there is nothing to remember
    _, stratum = np.unique(np.stack([pair[later], times[later]]), axis=1, return_inverse=True)
    stratum = stratum.reshape(-1)
    _, group = np.unique(np.stack([stratum, pair[later - 1]]), axis=1, return_inverse=True)
    group = group.reshape(-1)
    if len(later) == 0 or group.max() == stratum.max():
        return None
    counts = np.bincount(stratum)
    errors = deltas[later] / (_largest(deltas) or 1.0)  # fourth powers are to come
    off = errors - (np.bincount(stratum, weights=errors) / counts)[stratum]
    sizes, order, rng = np.bincount(group), np.argsort(stratum, kind="stable"), np.random.default_rng(0)

    def between(errors: Array) -> float:
        return float(np.sum(np.bincount(group[order], weights=errors, minlength=len(sizes)) ** 2 / sizes))

    seen = between(off[order])
    shuffled = [between(off[np.lexsort((rng.random(len(off)), stratum))]) for _ in range(PERMUTATIONS)]
    mean, variance = float(np.mean(shuffled)), float(np.var(shuffled, ddof=1))
    if variance <= TINY * mean**2:
        return None
    return float(chdtrc(2 * mean**2 / variance, 2 * mean * seen / variance))


def _correction(problem: Problem, deltas: Array) -> tuple[float, float]:
    """PDWIS of the TD errors in place of the rewards, and its standard error; unknown where there is no overlap."""
    try:
        _ = problem.ratios
    except DataError:
        return float("nan"), float("nan")
    if np.isnan(deltas[0]):
        return float("nan"), float("nan")
    # An estimated behaviour policy counts as known here: for a diagnosis its ratios are near enough.
    data = replace(problem.ratios.dataset, rewards=deltas, reward_range=None, return_range=None)
    statistic = by_cluster(PDWIS()(Problem(data, problem.policy)), problem.clusters)
    return statistic.estimate, standard_error(levelled_by(problem.clusters, statistic.influence()))


def _warnings(check: ModelCheck, effective: float, drawn: str = "episode") -> list[Caution]:
    warnings = []
    measured = effective >= FEW_EFFECTIVE and np.isfinite(check.correction)
    if check.unseen_mass is None and check.misfit is None and not measured:
        warnings.append(caution("model-unchecked", "nothing in the logs could be held against this model"))
    elif np.isnan(check.training_error):
        text = (
            f"the logs are too large to simulate from every step, so only the likelihood and the residuals of the "
            f"{check.model} model were looked at"
        )
        warnings.append(caution("model-unchecked", text))
    if effective >= FEW_EFFECTIVE and abs(check.correction) > CONTRADICTED * check.correction_error > 0:
        text = (
            f"weighted towards the candidate, the logs differ from the {check.model} model by "
            f"{check.correction:.3g} ± {check.correction_error:.2g}"
        )
        numbers = {"correction": check.correction, "error": check.correction_error}
        warnings.append(caution("model-contradicted", text, **numbers))
    if check.memory is not None and check.memory < REMEMBERS:
        text = (
            f"what follows a logged state depends on what came before it (p = {check.memory:.1g}), so the "
            f"{check.model} model misses part of the state"
        )
        warnings.append(caution("model-contradicted", text, p=check.memory))
    if check.misfit is not None and check.misfit < REMEMBERS:
        text = (
            f"what the {check.model} model leaves over still depends on the state and the action "
            f"(p = {check.misfit:.1g}): the dynamics, rewards or ends are of another shape"
        )
        warnings.append(caution("model-contradicted", text, p=check.misfit))
    if check.unseen_mass is not None and check.unseen_mass > UNSEEN:
        text = f"{check.unseen_mass:.1%} of the candidate's steps in the model fall on pairs never logged"
        warnings.append(caution("unseen-pairs", text, share=check.unseen_mass))
    if check.fragile_mass is not None and check.fragile_mass > UNSEEN:
        text = (
            f"{check.fragile_mass:.1%} of the candidate's steps in the model fall on pairs held by a single "
            f"{drawn}; standard errors do not see how much hangs on it"
        )
        warnings.append(caution("fragile-pairs", text, share=check.fragile_mass))
    return warnings
