"""Models made elsewhere: a simulator that the user gives, or any regressor that works like one of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array, BoolArray
from tightrope.base.errors import DataError
from tightrope.base.problem import Problem
from tightrope.models.gram import clamped_cholesky
from tightrope.models.learner import Learner
from tightrope.models.rollouts.model import RolloutModel, RolloutSettings
from tightrope.models.rollouts.transitions import Transitions

Anything = npt.NDArray[Any]

FIT_ROWS = 8  # fitted regressors held at once: they can be large


@dataclass(frozen=True)
class SimulatorModel(RolloutSettings):
    """A simulator given by the user ("Bootstrapping with Models": the model is provided); never refitted.

    ``step(states, actions, uniforms)`` gets K rows as logged and K rows of ``noise_width`` uniform numbers, its only
    source of chance, and returns the next states, or (next states, rewards), or (next states, rewards, ended). Rewards
    must come from it or from ``reward``. Only the start states depend on the logs, so only they are resampled: a bound
    on its value says nothing about the simulator's own error.
    """

    name: ClassVar[str] = "simulator"

    step: Callable[[Anything, Anything, Array], Any] = field(kw_only=False)
    noise_width: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not isinstance(self.noise_width, int) or self.noise_width < 0:
            raise DataError(f"noise_width must be a whole number, 0 or more; got {self.noise_width!r}")

    def prepare(self, problem: Problem, *, anchor: str) -> SimulatorValues:
        """The simulator from the starts of these logs."""
        logs = Transitions.of(problem.dataset, discrete_states=True)
        dynamics = SimulatorDynamics(logs, self.step, np.ones(1, dtype=np.bool_), self.reward is None)
        rollouts = RolloutModel.of(
            problem, logs, self, anchor, self.noise_width, lambda weights: dynamics, normal=False
        )
        return SimulatorValues(rollouts)


@dataclass(frozen=True, eq=False)
class SimulatorDynamics:
    """One given simulator, whatever the weights."""

    logs: Transitions
    function: Callable[[Anything, Anything, Array], Any]
    fitted: BoolArray  # (1,)
    needs_reward: bool

    def take(self, rows: slice) -> SimulatorDynamics:
        """There is one row."""
        return self

    def step(self, states: Array, actions: Anything, noise: Array) -> tuple[Array, Array | None, Array | None]:
        """What the simulator returns, checked."""
        d, _, count = states.shape
        given = self.logs.as_logged(states.reshape(d, -1).T)
        outcome = self.function(lent(given), lent(actions), lent(noise.T))
        parts = list(outcome) if isinstance(outcome, tuple) else [outcome]
        if self.needs_reward and len(parts) < 2:
            raise DataError(
                "reward must be a function, reward(states, actions, next_states, t), because step returns next states "
                "only; or let step return (next_states, rewards)"
            )
        following = _numbers("next states", parts[0], given.shape).reshape(count, d).T.reshape(d, 1, count)
        rewards = _numbers("rewards", parts[1], (count,))[None] if len(parts) > 1 else None
        ends = _numbers("ends", parts[2], (count,))[None] if len(parts) > 2 else None
        return following.copy(), rewards, ends


def _numbers(name: str, values: Any, shape: tuple[int, ...]) -> Array:
    array = numbers(f"the simulator's {name}", values, DataError)
    if array.shape != shape:
        raise DataError(f"the simulator must return {name} of shape {shape}; got shape {array.shape}")
    bad = ~np.isfinite(array.reshape(len(array), -1)).all(axis=1)
    if bad.any():
        raise DataError(f"the simulator must return finite {name}; got {array[np.argmax(bad)]}")
    return array


@dataclass(frozen=True, eq=False)
class SimulatorValues:
    """A prepared simulator: simulated once, since no weights change it."""

    rollouts: RolloutModel

    @property
    def n_trajectories(self) -> int:
        """How many weights there are."""
        return self.rollouts.n_trajectories

    @property
    def start_values(self) -> Array:
        """v̂ of each episode's start, (n,)."""
        return self.rollouts.point.values

    def values(self, weights: Array) -> Array:
        """Σ w_i v̂(s0_i) / Σ w_i of each row, (rows, n) to (rows,)."""
        weights = np.asarray(weights, dtype=np.float64)
        with np.errstate(invalid="ignore"):
            result: Array = weights @ self.start_values / weights.sum(axis=1)
        return result

    @cached_property
    def _variates(self) -> tuple[Array, Array]:
        return self.rollouts.control_variates(np.ones(self.n_trajectories))

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """q̂ and v̂ of every logged step, (N,) each; the same whatever the weights."""
        return self._variates

    def influences(self, weights: Array) -> Array:
        """(v̂(s0_i) − V̂) / Σw under each row, (rows, n)."""
        slopes: Array = (self.start_values - self.values(weights)[:, None]) / weights.sum(axis=1, keepdims=True)
        return slopes

    def simulation_error(self) -> float:
        """The Monte Carlo standard error of the estimate."""
        return self.rollouts.point.standard_error

    def diagnostics(self) -> dict[str, float]:
        """How precise the roll-outs are."""
        return self.rollouts.point_diagnostics()


@dataclass(frozen=True)
class RegressorModel(RolloutSettings):
    """Any regressor with ``fit(X, Y, sample_weight=...)`` and ``predict(X)``, copied and refitted for every weight row.

    X is s and a (discrete actions as columns of 0 and 1), Y the next state; learned rewards and ends are the targets of
    a second copy. Residual noise is Gaussian with the weighted covariance of the training residuals, too small for a
    regressor that fits its training data closely. A ``random_state`` left at None is set to ``seed``: replicates differ
    by their data alone. Each row is a fit: expect B times the price of one.
    """

    name: ClassVar[str] = "regressor"

    regressor: Any = field(kw_only=False)

    def prepare(self, problem: Problem, *, anchor: str) -> RolloutModel:
        """These logs as X and Y."""
        learner = Learner(self.regressor, self.seed)
        logs = Transitions.of(problem.dataset)
        if not logs.known.any():
            raise DataError(
                "the logs must hold a transition whose next state is known; they hold none. Give final_states"
            )
        learn_end = self.terminated is None and bool(logs.data.terminated.any())
        extra = ([logs.data.rewards] if self.reward is None else []) + ([logs.ends] if learn_end else [])
        if learn_end and self.reward is None:  # a given reward may look at the state in which an episode ended
            logs = logs.of_survivors()
        inputs = np.hstack([logs.states, logs.encode(logs.actions)])
        outcomes = np.stack(extra, axis=1) if extra else None
        task = Task(logs, learner, inputs, outcomes, self.reward is None, learn_end)
        fit = partial(RegressorDynamics.of, task)
        rollouts = RolloutModel.of(problem, logs, self, anchor, logs.width, fit, normal=True)
        return replace(rollouts, fit_rows=FIT_ROWS)


@dataclass(frozen=True, eq=False)
class Task:
    """The inputs and targets of a regression, and the regressor whose copies learn it."""

    logs: Transitions
    learner: Learner
    inputs: Array  # (N, d + w)
    outcomes: Array | None  # (N, [reward] [end])
    learn_reward: bool
    learn_end: bool

    def learn(self, targets: Array, weights: Array) -> Any:
        """A fitted copy, from the steps of positive weight."""
        return self.learner.learn(self.inputs, targets, weights)


@dataclass(frozen=True, eq=False)
class RegressorDynamics:
    """Copies of a regressor fitted under some rows of weights; None where there was nothing to fit."""

    task: Task
    moves: list[Any]
    outcomes: list[Any]
    factor: Array  # (rows, d, d)
    fitted: BoolArray  # (rows,)

    @classmethod
    def of(cls, task: Task, weights: Array) -> RegressorDynamics:
        """One fit per row."""
        logs, d = task.logs, task.logs.width
        steps = np.repeat(weights, logs.data.lengths, axis=1)
        known = steps * logs.known
        fitted: BoolArray = known.sum(axis=1) > 0
        moves: list[Any] = [None] * len(weights)
        outcomes: list[Any] = [None] * len(weights)
        covariance = np.zeros((len(weights), d, d))
        for row in np.flatnonzero(fitted):
            moves[row] = task.learn(logs.next_states, known[row])
            residuals = logs.next_states - task.learner.predict(moves[row], task.inputs, d)
            covariance[row] = (residuals * known[row][:, None]).T @ residuals / known[row].sum()
            if task.outcomes is not None:
                outcomes[row] = task.learn(task.outcomes, steps[row])
        scale = np.maximum(logs.next_states[logs.known].var(axis=0), np.finfo(np.float64).tiny)
        return cls(task, moves, outcomes, clamped_cholesky(covariance, floor=1e-12 * scale)[0], fitted)

    def take(self, rows: slice) -> RegressorDynamics:
        """Some of the rows."""
        return RegressorDynamics(self.task, self.moves[rows], self.outcomes[rows], self.factor[rows], self.fitted[rows])

    def step(self, states: Array, actions: Anything, noise: Array) -> tuple[Array, Array | None, Array | None]:
        """Each row's own predictions, with noise."""
        d, rows, count = states.shape
        inputs = np.empty((rows, count, self.task.inputs.shape[1]))
        inputs[..., :d] = states.transpose(1, 2, 0)
        inputs[..., d:] = self.task.logs.encode(actions).reshape(rows, count, -1)
        width = int(self.task.learn_reward) + int(self.task.learn_end)
        following, others = np.zeros((d, rows, count)), np.zeros((rows, count, width))
        for row in np.flatnonzero(self.fitted):
            following[:, row] = self.task.learner.predict(self.moves[row], inputs[row], d).T
            if width:
                others[row] = self.task.learner.predict(self.outcomes[row], inputs[row], width)
        following += (self.factor @ noise).transpose(1, 0, 2)
        low, high = self.task.logs.data.reward_range or (-np.inf, np.inf)
        rewards = np.clip(others[..., 0], low, high) if self.task.learn_reward else None
        ends = others[..., -1] if self.task.learn_end else None
        return following, rewards, ends
