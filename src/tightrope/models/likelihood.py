"""The likelihood of the logged transitions in fitted models, and a test of whether a regression has the right form."""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array, IntArray
from tightrope.base.folder import parts
from tightrope.models.base import PreparedModel
from tightrope.models.gram import every
from tightrope.models.regression import RegressionDynamics
from tightrope.models.rollouts.model import RolloutModel
from tightrope.models.score_test import score_test, second_order
from tightrope.models.tabular.data import TabularData
from tightrope.models.tabular.prepared import PreparedTabular
from tightrope.models.tabular.sorting import stretches

MOST_STEPS = 20_000  # that the test of fit looks at


def log_likelihoods(prepared: PreparedModel, weights: Array) -> tuple[Array, Array] | None:
    """log P̂(s'|s, a) of every logged step, (N,), and log d̂_0 of every start, (n,), in the model fitted under weights.

    Tabular models are smoothed by one pseudo-visit a row, spread evenly over all next states: as they are, what they
    have not seen is impossible. Densities of regressions know nothing of starts (0); a transition whose next state was
    not logged counts 0 as well. None for models that give no likelihood.
    """
    if isinstance(prepared, PreparedTabular):
        return _tabular(prepared.data, weights)
    if isinstance(prepared, RolloutModel):
        dynamics = prepared.fit(weights[None])
        if isinstance(dynamics, RegressionDynamics) and dynamics.fitted[0]:
            return _gaussian(prepared, dynamics)
    return None


def _tabular(data: TabularData, weights: Array) -> tuple[Array, Array]:
    _, n_states, n_actions = data.probs.shape
    arcs, pairs = np.zeros(len(data.arc_pair) + 1), np.zeros(n_states * n_actions)  # the last arc (-1): unknown
    for some in stretches(data.offsets):
        kinds, steps = data.kinds[some.steps], weights[some.whose]
        known = data.kind_arc[kinds] >= 0
        np.add.at(arcs, data.kind_arc[kinds[known]], steps[known])
        np.add.at(pairs, data.kind_pair[kinds[known]], steps[known])
    starts = np.bincount(data.starts, weights=weights, minlength=n_states)
    likely = data.scratch.empty(len(data.kinds))
    for some in stretches(data.offsets):
        kinds = data.kinds[some.steps]
        pair, arc = data.kind_pair[kinds], data.kind_arc[kinds]
        chance = np.log((arcs[arc] + 1 / (n_states + 1)) / (pairs[pair] + 1))
        likely[some.steps] = np.where(arc >= 0, chance, np.nan)
    chances = np.log((starts + 1 / n_states) / (weights.sum() + 1))
    return likely, data.scratch.taken(chances, data.starts)


def _gaussian(prepared: RolloutModel, dynamics: RegressionDynamics) -> tuple[Array, Array] | None:
    logs, factor = prepared.transitions, dynamics.factor[0]
    scale = np.diag(factor)
    if not (scale > 0).all():  # part of the state is predicted without error: its density is infinite
        return None
    likely = logs.data.scratch.empty(logs.data.n_steps)
    for part in parts(logs.data.n_steps):
        design = dynamics.features(logs, logs.states[part], logs.actions[part])
        means = design @ dynamics.coefficients[0, :, : logs.width]
        apart = np.linalg.solve(factor, (logs.next_states[part] - means).T)
        density = -0.5 * np.square(apart).sum(axis=0) - np.log(scale).sum() - 0.5 * logs.width * np.log(2 * np.pi)
        likely[part] = np.where(logs.known[part], density, 0.0)
    return likely, np.zeros(prepared.n_trajectories)


def misfit(prepared: PreparedModel) -> float | None:
    """The p-value of a test: do squares and products of s and a still explain the residuals of a regression?

    Were the model right, residuals of next states, rewards and ends would be martingale differences, unrelated to
    anything known before. The score test of Z = (s, a, their squares and products), freed of the model's own features,
    with White's covariance, which noise of unequal size does not mislead; the smallest over the targets, times their
    number. It needs no importance ratio. None for other models, and where the steps are too few.
    """
    if not isinstance(prepared, RolloutModel):
        return None
    dynamics = prepared.fit(np.ones((1, prepared.n_trajectories)))
    if not isinstance(dynamics, RegressionDynamics) or not dynamics.fitted[0]:
        return None
    logs = prepared.transitions
    known = np.broadcast_to(np.True_, logs.data.n_steps)
    targets = [(logs.next_states[:, k], logs.known) for k in range(logs.width)]
    targets += [(logs.data.rewards, known)] if dynamics.learn_reward else []
    targets += [(logs.ends, known)] if dynamics.learn_end else []
    tails = [
        _score_test(prepared, dynamics, values, every(used, 1, MOST_STEPS), k)
        for k, (values, used) in enumerate(targets)
    ]
    p_values = [tail for tail in tails if tail is not None]
    return min(1.0, len(p_values) * min(p_values)) if p_values else None


def _score_test(
    prepared: RolloutModel, dynamics: RegressionDynamics, target: Array, steps: IntArray, column: int
) -> float | None:
    logs = prepared.transitions
    own = dynamics.features(logs, logs.states[steps], logs.actions[steps])
    residual = target[steps] - own @ dynamics.coefficients[0, :, column]
    if np.abs(residual).max(initial=0.0) <= 1e-9 * max(float(target.max()), -float(target.min()), 1e-300):
        return None  # predicted without error
    more = second_order(np.hstack([logs.states[steps], logs.encode(logs.actions[steps])]))
    return score_test(own, more, residual)
