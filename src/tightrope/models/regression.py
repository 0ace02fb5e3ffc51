"""Regression models of a continuous state: s' = φ(s, a)ᵀB + ε, with Gaussian ε of estimated covariance.

Fitted from sums per episode (ΦᵀΦ, ΦᵀY, YᵀY), so that a refit under any weights is one matrix product and one small
solve. The residual noise is simulated, not dropped.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array, BoolArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.problem import Problem
from tightrope.models.gram import Gram, clamped_cholesky
from tightrope.models.rollouts.model import RolloutModel, RolloutSettings
from tightrope.models.rollouts.transitions import Transitions

Anything = npt.NDArray[Any]
FeatureMap = Callable[[Anything, Anything], Any]
Features = Callable[[Transitions, Array, Anything], Array]  # of states (K, d) and actions (K, ...)


@dataclass(frozen=True)
class LinearModel(RolloutSettings):
    """Linear regression of the next state on 1, s and a.

    Learned rewards are one more target, E[r | s, a], kept within the declared range; the end of an episode one more, a
    linear probability (below 0 counts as 0, above 1 as 1); with both learned, next states are those of episodes that
    went on. Fails where the dynamics are not linear, without a sign
    of it: compare its value with one that does not rest on the model.
    """

    name: ClassVar[str] = "linear"
    in_pieces: ClassVar[bool] = True

    def prepare(self, problem: Problem, *, anchor: str) -> RolloutModel:
        """The sums of these logs; refuses logs that do not determine the coefficients."""
        return _prepare(self, problem, Transitions.of(problem.dataset), anchor)

    def design(self, logs: Transitions) -> tuple[Features, list[str] | None]:
        """The features of states and actions, and their names."""
        return _linear, ["1", *(f"state {k}" for k in range(logs.width)), *logs.action_names()]


@dataclass(frozen=True)
class PolynomialModel(RolloutSettings):
    """Linear regression on features of s and a: 1, x² and x³ of every state feature and a, or any map given.

    "Bootstrapping with Models" uses 1, x², x³ without x, a deliberately wrong class.
    ``features(states, actions)`` gets rows as logged and returns (N, p); it should include a constant.
    """

    name: ClassVar[str] = "polynomial"
    in_pieces: ClassVar[bool] = True

    features: FeatureMap | None = None

    def prepare(self, problem: Problem, *, anchor: str) -> RolloutModel:
        """The sums of these logs; refuses logs that do not determine the coefficients."""
        return _prepare(self, problem, Transitions.of(problem.dataset), anchor)

    def design(self, logs: Transitions) -> tuple[Features, list[str] | None]:
        """The features of states and actions, and their names where they are ours."""
        if self.features is not None:
            return partial(_given, self.features), None
        squares = [f"state {k} squared" for k in range(logs.width)]
        cubes = [f"state {k} cubed" for k in range(logs.width)]
        return _cubic, ["1", *squares, *cubes, *logs.action_names()]


def _linear(logs: Transitions, states: Array, actions: Anything) -> Array:
    return np.hstack([np.ones((len(states), 1)), states, logs.encode(actions)])


def _cubic(logs: Transitions, states: Array, actions: Anything) -> Array:
    squares = states * states
    return np.hstack([np.ones((len(states), 1)), squares, squares * states, logs.encode(actions)])


def _given(features: FeatureMap, logs: Transitions, states: Array, actions: Anything) -> Array:
    values = numbers("features", features(lent(logs.as_logged(states)), lent(actions)), DataError)
    if values.ndim != 2 or len(values) != len(states):
        raise DataError(f"features must return shape (N, p) with N={len(states)}; got shape {values.shape}")
    return values


def check_final_states(settings: RolloutSettings, data: TrajectoryDataset) -> None:
    """Refuse a known end where the logs do not hold the states in which episodes ended."""
    if settings.terminated is not None and data.terminated.any() and data.final_states is None:
        raise DataError(
            "terminated=... needs the states in which episodes ended, and the logs do not hold them: fitted without "
            "them, the model would end too seldom. Log those states (next_obs_*), or leave terminated out, and the "
            "model learns the ends"
        )


def _prepare(settings: LinearModel | PolynomialModel, problem: Problem, logs: Transitions, anchor: str) -> RolloutModel:
    data = logs.data
    features, names = settings.design(logs)

    def of_steps(steps: Any) -> Array:
        return features(logs, logs.states[steps], logs.actions[steps])

    named = names or [f"feature {j}" for j in range(of_steps(slice(0, 1)).shape[1])]
    extra = [data.rewards] if settings.reward is None else []
    check_final_states(settings, data)
    learn_end = settings.terminated is None and bool(data.terminated.any())
    extra += [logs.ends] if learn_end else []
    if learn_end and settings.reward is None:  # a given reward may look at the state in which an episode ended
        logs = logs.of_survivors()
    moves = Gram.of(data, of_steps, logs.next_states, logs.known, named)
    targets = data.scratch.empty((data.n_steps, len(extra)))
    for column, values in enumerate(extra):
        targets[:, column] = values
    every = np.broadcast_to(np.True_, data.n_steps)
    outcomes = Gram.of(data, of_steps, targets, every, named) if extra else None
    fit = partial(_fit, logs, features, moves, outcomes, settings.reward is None, learn_end)
    return RolloutModel.of(problem, logs, settings, anchor, logs.width, fit, normal=True)


def _fit(
    logs: Transitions,
    features: Features,
    moves: Gram,
    outcomes: Gram | None,
    learn_reward: bool,
    learn_end: bool,
    weights: Array,
) -> RegressionDynamics:
    """The regression under each row of weights."""
    move = moves.fit(weights)
    factor, _ = clamped_cholesky(move.covariance, floor=1e-12 * moves.target_scale**2)
    coefficients, fitted = [move.coefficients], move.fitted
    if outcomes is not None:
        other = outcomes.fit(weights)
        coefficients.append(other.coefficients)
        fitted = fitted & other.fitted
    low, high = logs.data.reward_range or (-np.inf, np.inf)
    stacked = np.concatenate(coefficients, axis=2)
    return RegressionDynamics(logs, features, stacked, factor, fitted, learn_reward, learn_end, (low, high))


@dataclass(frozen=True, eq=False)
class RegressionDynamics:
    """Regressions fitted under some rows of weights."""

    logs: Transitions
    features: Features
    coefficients: Array  # (rows, p, d [+ reward] [+ end]); 0 where not fitted
    factor: Array  # (rows, d, d): of the noise covariance, lower triangle
    fitted: BoolArray  # (rows,)
    learn_reward: bool
    learn_end: bool
    reward_range: tuple[float, float]

    def take(self, rows: slice) -> RegressionDynamics:
        """Some of the rows."""
        return RegressionDynamics(
            self.logs,
            self.features,
            self.coefficients[rows],
            self.factor[rows],
            self.fitted[rows],
            self.learn_reward,
            self.learn_end,
            self.reward_range,
        )

    def step(self, states: Array, actions: Anything, noise: Array) -> tuple[Array, Array | None, Array | None]:
        """Next states with noise, mean rewards and probabilities of an end."""
        d, rows, count = states.shape
        design = self.features(self.logs, states.reshape(d, -1).T, actions).T.reshape(-1, rows, count)
        mean = np.empty((self.coefficients.shape[2], rows, count))
        np.matmul(self.coefficients.transpose(0, 2, 1), design.transpose(1, 0, 2), out=mean.transpose(1, 0, 2))
        following = mean[:d]
        following += (self.factor @ noise).transpose(1, 0, 2)
        rewards = np.clip(mean[d], *self.reward_range) if self.learn_reward else None
        ends = mean[-1] if self.learn_end else None
        return following, rewards, ends
