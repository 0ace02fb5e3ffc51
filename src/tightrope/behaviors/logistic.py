"""A behaviour policy by multinomial logistic regression, for discrete actions in states that do not recur."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.behaviors.logged import StateFeatures, discrete_actions, require, state_features

RIDGE = 1e-8  # of the mean squared logit: keeps the fit finite where the features predict an action perfectly
MOST_STEPS, MOST_HALVINGS = 100, 30
CONVERGED = 1e-16  # of the Newton decrement, in nats per step; the step taken then squares it once more
ROUNDING = 1e-14
SETTLED = 1e-12  # of the largest curvature


@dataclass(frozen=True)
class LogisticBehavior:
    """π̂_b(a|s) ∝ exp(φ(s)ᵀβ_a): maximum likelihood by Newton's method, from the fit to all logs.

    φ is 1 and the state (a column for each state where they are numbered), or ``features(states, t)``. Fails where
    log-odds are not linear in φ; the check on held-out episodes shows it.
    """

    name: ClassVar[str] = "logistic"

    features: StateFeatures | None = None

    def prepare(self, dataset: TrajectoryDataset) -> LogisticFit:
        """Features and numbered actions of these logs."""
        levels, choices = discrete_actions(dataset)
        require(len(levels) > 1, f"the logs hold one action only ({levels[0]}): there is no choice to estimate")
        features, _ = state_features(dataset, self.features)
        center, scale = features.mean(axis=0), features.std(axis=0)
        constant = scale <= 1e-12 * np.abs(center)
        if constant.any():  # with an intercept features may be centred: the fit is the same, its digits more
            features = features - np.where(constant, 0.0, center)
        features = features / np.where(constant, np.where(center == 0, 1.0, center), scale)
        return LogisticFit(np.ascontiguousarray(features), choices, len(levels), dataset.lengths)


class Point(NamedTuple):
    """The penalised log-likelihood at some coefficients, and its derivatives."""

    objective: float
    slope: Array  # (k-1, p)
    hessian: Array  # (k-1, p, k-1, p), negated


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """One logistic regression, to be fitted under any weights; the penalty is RIDGE/2 · the mean squared logit."""

    features: Array  # (N, p)
    choices: IntArray  # (N,)
    n_actions: int
    lengths: IntArray  # (n,)

    def fit(self, weights: Array) -> Array:
        """Coefficients (k-1, p), flat; NaN where Newton's method did not settle."""
        if (weights == 1.0).all():
            return self._start.ravel()
        return self._newton(np.repeat(weights, self.lengths), self._start).ravel()

    def log_probs(self, parameters: Array) -> Array:
        """Of all logged actions, (N,)."""
        logits = self._logits(parameters)
        own = np.where(self.choices > 0, logits[np.arange(len(logits)), self.choices - 1], 0.0)
        return np.asarray(own - _log_total(logits))

    def probs(self, parameters: Array) -> Array:
        """Of all actions at every step, (N, k)."""
        logits = self._logits(parameters)
        total = _log_total(logits)
        return np.exp(np.column_stack([-total, logits - total[:, None]]))

    def pull_back(self, parameters: Array, weights: Array, gradient: Array) -> Array:
        """dβ = H⁻¹ Σ_k φ_k (y_k − p_k − RIDGE·logits_k)ᵀ over an episode's steps, H the Hessian under the weights."""
        coefficients = parameters.reshape(self.n_actions - 1, -1)
        hessian = self._point(coefficients, np.repeat(weights, self.lengths)).hessian
        taken = self.choices[:, None] == np.arange(1, self.n_actions)
        off = taken - self.probs(parameters)[:, 1:]
        pulled = _solve(hessian, (gradient[:, None] * off).T @ self.features)
        moved = ((self.features @ pulled.T) * (off - RIDGE * self._logits(parameters))).sum(axis=1)
        return np.asarray(np.add.reduceat(moved, np.cumsum(self.lengths) - self.lengths))

    @cached_property
    def _start(self) -> Array:
        zero = np.zeros((self.n_actions - 1, self.features.shape[1]))
        return self._newton(np.ones(len(self.choices)), zero)

    def _newton(self, per_step: Array, coefficients: Array) -> Array:
        """Newton's method with halved steps, under weights (N,)."""
        per_step = per_step / per_step.sum()
        point = self._point(coefficients, per_step)
        for _ in range(MOST_STEPS):
            step = _solve(point.hessian, point.slope)
            decrement = float(np.sum(step * point.slope))
            following = self._point(coefficients + step, per_step)
            for _ in range(MOST_HALVINGS):
                if following.objective >= point.objective - ROUNDING:
                    break
                step = step / 2
                following = self._point(coefficients + step, per_step)
            coefficients, point = coefficients + step, following
            if decrement < CONVERGED:
                return coefficients
        return np.full_like(coefficients, np.nan)

    def _point(self, coefficients: Array, per_step: Array) -> Point:
        from tightrope.behaviors import logistic_kernels

        slope, hessian = np.empty_like(coefficients), np.empty(coefficients.shape * 2)
        objective = logistic_kernels.likelihood(
            self.features, self.choices, per_step, coefficients, RIDGE, slope, hessian
        )
        return Point(objective, slope, hessian)

    def _logits(self, parameters: Array) -> Array:
        return np.asarray(self.features @ parameters.reshape(self.n_actions - 1, -1).T)


def _solve(hessian: Array, slope: Array) -> Array:
    """H⁻¹ slope. What some weights leave redundant (a feature that varies in none of the episodes that they hold)
    is settled by a far smaller ridge on the coefficients, large enough beside rounding that H can always be inverted.
    """
    matrix = hessian.reshape(slope.size, slope.size)
    diagonal = np.arange(slope.size)
    matrix[diagonal, diagonal] += SETTLED * (matrix[diagonal, diagonal].max() or 1.0)
    return np.asarray(np.linalg.solve(matrix, slope.ravel()).reshape(slope.shape))


def _log_total(logits: Array) -> Array:
    """log(1 + Σ exp(logits)), (N,)."""
    top = np.maximum(logits.max(axis=1), 0.0)
    return np.asarray(top + np.log(np.exp(-top) + np.exp(logits - top[:, None]).sum(axis=1)))
