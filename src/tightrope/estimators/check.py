"""How far to trust a model: what it leaves unexplained on data it was not fitted to, weighted towards the candidate."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.dataset import Array, TrajectoryDataset
from tightrope.diagnostics import FEW_EFFECTIVE
from tightrope.errors import DataError
from tightrope.estimators.base import Anchor
from tightrope.estimators.doubly_robust import cross_fitted, td_errors
from tightrope.estimators.weighted import PDWIS
from tightrope.models import Model
from tightrope.models import model as find_model
from tightrope.models.tabular import TabularData
from tightrope.problem import Problem
from tightrope.records import ModelCheck
from tightrope.statistic import standard_error

CONTRADICTED = 3.0  # standard errors between what the model says and what the weighted logs say
UNSEEN = 0.01  # of the candidate's steps in the model, on pairs never logged
FEW = 10  # steps a group needs to be compared
REMEMBERS = 1e-4  # a p-value below which the logged state is not all there is
TINY = 1e-12


def check_model(
    problem: Problem, chosen: str | Model, anchor: Anchor, *, effective: float, folds: int = 5
) -> ModelCheck:
    """Compare the model with the logs it was not fitted to.

    The correction, PDWIS of cross-fitted TD errors δ, is what WDR adds to the model: in expectation the model's bias.
    With few effective trajectories it is noise and counts for nothing. The plain TD errors, in-sample and held-out,
    show over-fitting without any ratio.
    """
    data, model = problem.dataset, find_model(chosen, problem)
    prepared = model.prepare(problem, anchor=anchor)
    shared = td_errors(data, *prepared.control_variates(np.ones(data.n_trajectories)))
    held_out = td_errors(data, *cross_fitted(data, prepared, folds))
    correction, error = _correction(problem, held_out)
    unseen = prepared.unseen_mass() if isinstance(prepared, TabularData) else None
    scale = float(np.std(data.rewards)) or 1.0
    result = ModelCheck(
        model=model.name,
        correction=correction,
        correction_error=error,
        training_error=float(np.sqrt(np.square(shared).mean())),
        held_out_error=float(np.sqrt(np.square(held_out).mean())),
        unseen_mass=unseen,
        memory=_memory(data, shared) if isinstance(prepared, TabularData) else None,
        residue_free=bool(np.abs(shared).max() <= TINY * max(scale, float(np.abs(data.rewards).max()))),
    )
    return ModelCheck(**{**vars(result), "warnings": tuple(_warnings(result, effective))})


def _memory(data: TrajectoryDataset, deltas: Array) -> float | None:
    """How likely TD errors that depend this much on the step before would be, were the logged state all there is.

    If the model's states are Markov, what a state-action pair leads to has nothing to do with what led to it, and the
    in-sample errors of a pair average to zero after every predecessor: an analysis of variance within pairs, its
    statistic taken as chi-square. No importance ratio is needed, so it speaks where overlap is poor. None where there
    is nothing to compare.
    """
    from scipy.special import chdtrc

    assert data.states is not None
    assert data.actions is not None
    width = int(data.actions.max()) + 1
    pair = data.states.astype(np.int64) * width + data.actions.astype(np.int64)
    before = np.append(0, pair[:-1] + 1)
    before[data.offsets[:-1]] = 0  # nothing came before the first step
    (of_pair, _), group = np.unique(np.stack([pair, before]), axis=1, return_inverse=True)
    group = group.reshape(-1)
    counts, sums = np.bincount(group), np.bincount(group, weights=deltas)
    visits, totals = np.bincount(pair), np.bincount(pair, weights=deltas)
    variance = np.bincount(pair, weights=deltas**2) / np.maximum(visits, 1) - (totals / np.maximum(visits, 1)) ** 2
    large = counts >= FEW
    siblings = np.bincount(of_pair, weights=large, minlength=len(visits))[of_pair]
    usable = large & (siblings > 1) & (variance[of_pair] > TINY * max(float(np.square(deltas).mean()), TINY))
    freedom = int(usable.sum() - len(np.unique(of_pair[usable])))
    if freedom < 1:
        return None
    off = sums[usable] / counts[usable] - (totals / np.maximum(visits, 1))[of_pair[usable]]
    chi_square = float(np.sum(counts[usable] * off**2 / variance[of_pair[usable]]))
    return float(chdtrc(float(freedom), chi_square))


def _correction(problem: Problem, deltas: Array) -> tuple[float, float]:
    """PDWIS of the TD errors in place of the rewards, and its standard error; unknown where there is no overlap."""
    try:
        _ = problem.ratios
    except DataError:
        return float("nan"), float("nan")
    data = replace(problem.dataset, rewards=deltas, reward_range=None, return_range=None)
    statistic = PDWIS()(Problem(data, problem.policy))
    return statistic.estimate, standard_error(statistic.influence())


def _warnings(check: ModelCheck, effective: float) -> list[str]:
    warnings = []
    if effective >= FEW_EFFECTIVE and abs(check.correction) > CONTRADICTED * check.correction_error > 0:
        warnings.append(
            f"model-contradicted: weighted towards the candidate, the logs differ from the {check.model} model by "
            f"{check.correction:.3g} ± {check.correction_error:.2g}"
        )
    if check.memory is not None and check.memory < REMEMBERS:
        warnings.append(
            f"model-contradicted: what follows a logged state depends on what came before it (p = {check.memory:.1g}), "
            f"so the {check.model} model misses part of the state"
        )
    if check.unseen_mass is not None and check.unseen_mass > UNSEEN:
        warnings.append(
            f"unseen-pairs: {check.unseen_mass:.1%} of the candidate's steps in the model fall on pairs never logged"
        )
    return warnings
