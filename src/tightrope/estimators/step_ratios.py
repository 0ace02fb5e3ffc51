"""Estimators that weigh each step by its own ratio, π_e(a|s) / π_b(a|s), not by the product of all ratios up to it.

The behaviour policy is the logged one, or one that is fitted anew under every row of weights.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tightrope.base.behavior import SmoothBehavior
from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.errors import BoundError, DataError, NoOverlapError
from tightrope.base.problem import Problem
from tightrope.base.ratios import ratios
from tightrope.estimators.importance import LARGEST_LOG
from tightrope.estimators.model_based import ModelStatistic
from tightrope.models.tabular.model import is_numbered


class StepWeighing(Protocol):
    """An estimator as a function of episode weights and of the ratio of every step (N,)."""

    @property
    def n_trajectories(self) -> int:
        """How many weights it takes."""
        ...

    def values(self, weights: Array, step_ratios: Array) -> Array:
        """The estimate under each row: (rows, n) to (rows,); NaN without any weight."""
        ...

    def slopes(self, weights: Array, step_ratios: Array) -> Array:
        """∂value/∂w_i under each row with the ratios as they are: (rows, n) to (rows, n)."""
        ...

    def ratio_slopes(self, weights: Array, step_ratios: Array) -> Array:
        """∂value/∂log ratio of every step, (N,), under weights (n,)."""
        ...

    def mass(self, step_ratios: Array) -> float:
        """The share of the candidate's episodes that the logs can follow to the end; about 1 where there is overlap."""
        ...


def logged_step_ratios(problem: Problem, name: str) -> Array:
    """π_e / π_b of every logged step, (N,); an estimated behaviour policy is fitted to all logs."""
    if problem.behavior is not None:
        behavior_log_probs = problem.fits.behavior.log_probs(problem.fits(np.ones(problem.dataset.n_trajectories)))
    elif problem.dataset.behavior_log_probs is not None:
        behavior_log_probs = problem.dataset.behavior_log_probs
    else:
        ratios(problem.dataset, problem.policy)  # says what is missing, and what to do
        raise AssertionError
    logs = problem.eval_log_probs - behavior_log_probs
    if not logs.max() <= LARGEST_LOG:
        step = int(np.argmin(logs <= LARGEST_LOG))
        raise BoundError(
            f"the importance ratio of {problem.dataset.where(step)} is exp({logs[step]:.0f}), which no average "
            f"survives: {name} has no usable value on these logs; use wis or pdwis, which need only relative ratios"
        )
    return np.exp(logs)


def refuse_cut_paths(name: str, mass: float) -> None:
    """Refuse logs in which no path of the candidate goes on to the end."""
    if mass == 0.0:
        raise NoOverlapError(
            f"all importance weights are zero from some step on: {name} finds no way through the logs that the "
            "candidate could have taken, even when it puts steps of different episodes together. It needs logs of a "
            "policy that sometimes acts as the candidate does"
        )


def step_weighted(name: str, weighing: StepWeighing, problem: Problem) -> ModelStatistic:
    """The statistic of an estimator by steps, with the problem's behaviour policy, logged or estimated."""
    step_ratios = logged_step_ratios(problem, name)
    refuse_cut_paths(name, weighing.mass(step_ratios))
    if problem.behavior is None:
        return ModelStatistic(Logged(weighing, step_ratios))
    smooth = isinstance(problem.fits.behavior, SmoothBehavior)
    return ModelStatistic((SmoothReestimatedSteps if smooth else ReestimatedSteps)(weighing, problem))


@dataclass(frozen=True, eq=False)
class Logged:
    """With ratios that do not depend on the weights."""

    weighing: StepWeighing
    step_ratios: Array  # (N,)

    @property
    def n_trajectories(self) -> int:
        """How many weights it takes."""
        return self.weighing.n_trajectories

    def values(self, weights: Array) -> Array:
        """The estimate under each row of weights, (rows,)."""
        return self.weighing.values(weights, self.step_ratios)

    def influences(self, weights: Array) -> Array:
        """∂value/∂w_i under each row, (rows, n)."""
        return self.weighing.slopes(weights, self.step_ratios)


@dataclass(frozen=True, eq=False)
class ReestimatedSteps:
    """With π̂_b fitted under the same weights."""

    weighing: StepWeighing
    problem: Problem

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.weighing.n_trajectories

    def values(self, weights: Array) -> Array:
        """The estimate under each row of weights, (rows,); NaN where a row has no fit."""
        return np.array([self._value(row) for row in weights])

    def _value(self, weights: Array) -> float:
        step_ratios, defined = self._fitted(weights)
        return float(self.weighing.values(weights[None], step_ratios)[0]) if defined else np.nan

    def _fitted(self, weights: Array) -> tuple[Array, bool]:
        """The ratios of the steps that have weight, others 0, and whether the fit has seen all of these."""
        if not weights.any():
            return np.zeros(self.problem.dataset.n_steps), False
        fits = self.problem.fits
        held: BoolArray = np.repeat(weights > 0, self.problem.dataset.lengths)
        under = np.where(held, fits.behavior.log_probs(fits(weights)), 0.0)
        defined = bool(np.isfinite(under).all())
        over = np.where(held, self.problem.eval_log_probs, -np.inf)
        return np.exp(over - under) if defined else np.zeros_like(over), defined


@dataclass(frozen=True, eq=False)
class SmoothReestimatedSteps(ReestimatedSteps):
    """The same, with derivatives through the fit as well."""

    def influences(self, weights: Array) -> Array:
        """∂value/∂w_i under each row, (rows, n); 0 where the weight is 0 or the value undefined."""
        return np.array([self._influence(row) for row in weights])

    def _influence(self, weights: Array) -> Array:
        step_ratios, defined = self._fitted(weights)
        if not defined:
            return np.zeros(len(weights))
        behavior = self.problem.fits.behavior
        assert isinstance(behavior, SmoothBehavior)
        slope = self.weighing.slopes(weights[None], step_ratios)[0]
        slope += behavior.pull_back(
            self.problem.fits(weights), weights, -self.weighing.ratio_slopes(weights, step_ratios)
        )
        return np.where((weights > 0) & np.isfinite(slope), slope, 0.0)


def numbered_states(problem: Problem, name: str, otherwise: str) -> IntArray:
    """A number for each logged state, (N,); text counts as its place in the alphabet."""
    states = problem.coded.dataset.states
    if not is_numbered(states):
        held = "none" if states is None else f"{states.dtype} of shape {states.shape}"
        raise DataError(
            f"{name} counts how often each state is visited, so states must be one integer (or name) per step; the "
            f"logs hold {held}. Number the states, or use {otherwise}"
        )
    return np.unique(states, return_inverse=True)[1].reshape(-1).astype(np.int64)
