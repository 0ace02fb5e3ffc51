"""A behaviour policy by multinomial logistic regression, for discrete actions in states that do not recur."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar, NamedTuple

import numpy as np

from tightrope.behaviors.logged import StateFeatures, discrete_actions, require, state_features
from tightrope.dataset import Array, IntArray, TrajectoryDataset

RIDGE = 1e-8  # of the mean squared logit: keeps the fit finite where an action is told apart perfectly
MOST_STEPS, MOST_HALVINGS = 100, 30
CONVERGED = 1e-18  # of the Newton decrement, in nats per step


@dataclass(frozen=True)
class LogisticBehavior:
    """π̂_b(a|s) ∝ exp(φ(s)ᵀβ_a): maximum likelihood by Newton's method, from the fit to all logs.

    φ is 1 and the state (a column for each state where they are numbered), or ``features(states, t)``. Fails where
    log-odds are not linear in φ; the check on held-out trajectories shows it.
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
        return LogisticFit(features, choices, len(levels), dataset.lengths)


class Point(NamedTuple):
    """The likelihood at some coefficients."""

    objective: float  # mean log-likelihood less the penalty
    logits: Array  # (N, k-1)
    probs: Array  # (N, k-1): of all actions but the first


@dataclass(frozen=True, eq=False)
class LogisticFit:
    """One logistic regression, to be fitted under any weights; the penalty is RIDGE/2 · the mean squared logit."""

    features: Array  # (N, p)
    choices: IntArray  # (N,)
    n_actions: int
    lengths: IntArray  # (n,)

    def fit(self, weights: Array) -> Array:
        """Coefficients (p, k-1), flat; NaN where Newton's method did not settle."""
        if (weights == 1.0).all():
            return self._start.ravel()
        return self._newton(np.repeat(weights, self.lengths), self._start).ravel()

    def log_probs(self, parameters: Array) -> Array:
        """Of all logged actions, (N,)."""
        logits = self._logits(self._matrix(parameters))
        mine = np.where(self.choices > 0, logits[np.arange(len(logits)), self.choices - 1], 0.0)
        return np.asarray(mine - _log_total(logits))

    def probs(self, parameters: Array) -> Array:
        """Of all actions at every step, (N, k)."""
        others = self._point(self._matrix(parameters), np.ones(len(self.choices))).probs
        return np.column_stack([1 - others.sum(axis=1), others])

    def pull_back(self, parameters: Array, weights: Array, gradient: Array) -> Array:
        """dβ = H⁻¹ Σ_k φ_k (y_k − p_k − RIDGE·logits_k)ᵀ over a trajectory's steps, H the Hessian under the weights."""
        per_step = np.repeat(weights, self.lengths)
        point = self._point(self._matrix(parameters), per_step)
        off = self._taken - point.probs
        pulled = self._solve(point, per_step, self.features.T @ (gradient[:, None] * off))
        moved = np.einsum("np,pk,nk->n", self.features, pulled, off - RIDGE * point.logits, optimize=True)
        return np.asarray(np.add.reduceat(moved, np.cumsum(self.lengths) - self.lengths))

    @cached_property
    def _start(self) -> Array:
        zero = np.zeros((self.features.shape[1], self.n_actions - 1))
        return self._newton(np.ones(len(self.choices)), zero)

    @cached_property
    def _taken(self) -> Array:
        """One where an action but the first was taken, (N, k-1)."""
        return np.asarray(self.choices[:, None] == np.arange(1, self.n_actions), dtype=np.float64)

    def _newton(self, per_step: Array, coefficients: Array) -> Array:
        """Newton's method with halved steps, under weights (N,)."""
        per_step = per_step / per_step.sum()
        point = self._point(coefficients, per_step)
        for _ in range(MOST_STEPS):
            off = per_step[:, None] * (self._taken - point.probs - RIDGE * point.logits)
            slope = self.features.T @ off
            step = self._solve(point, per_step, slope)
            decrement = float(np.sum(step * slope))
            following = self._point(coefficients + step, per_step)
            for _ in range(MOST_HALVINGS):
                if following.objective >= point.objective - 1e-14:
                    break
                step = step / 2
                following = self._point(coefficients + step, per_step)
            coefficients, point = coefficients + step, following
            if decrement < CONVERGED:
                return coefficients
        return np.full_like(coefficients, np.nan)

    def _point(self, coefficients: Array, per_step: Array) -> Point:
        logits = self._logits(coefficients)
        total = _log_total(logits)
        each = (self._taken * logits).sum(axis=1) - total - RIDGE / 2 * np.square(logits).sum(axis=1)
        return Point(float(per_step @ each), logits, np.exp(logits - total[:, None]))

    def _solve(self, point: Point, per_step: Array, slope: Array) -> Array:
        """H⁻¹ slope; redundant features are settled by a far smaller ridge on the coefficients."""
        p, k = slope.shape
        hessian = np.empty((k, p, k, p))
        for a in range(k):
            for b in range(a, k):
                curvature = point.probs[:, a] * ((a == b) - point.probs[:, b]) + (RIDGE if a == b else 0.0)
                block = self.features.T @ ((per_step * curvature)[:, None] * self.features)
                hessian[a, :, b], hessian[b, :, a] = block, block.T
        matrix = hessian.reshape(k * p, k * p)
        diagonal = np.arange(k * p)
        matrix[diagonal, diagonal] *= 1 + 1e-12
        return np.asarray(np.linalg.solve(matrix, slope.T.ravel()).reshape(k, p).T)

    def _matrix(self, parameters: Array) -> Array:
        return parameters.reshape(self.features.shape[1], -1)

    def _logits(self, coefficients: Array) -> Array:
        return np.asarray(self.features @ coefficients)


def _log_total(logits: Array) -> Array:
    """log(1 + Σ exp(logits)), (N,)."""
    top = np.maximum(logits.max(axis=1), 0.0)
    return np.asarray(top + np.log(np.exp(-top) + np.exp(logits - top[:, None]).sum(axis=1)))
