"""A behaviour policy with normal noise around a regression, for continuous actions."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.behaviors.logged import StateFeatures, continuous_actions, state_features
from tightrope.models.gram import Gram

NO_NOISE = 1e-12  # of an action's variance
SETTLED = 1e-13  # of the largest sum of squares: beside rounding enough that normal equations can be solved


@dataclass(frozen=True)
class GaussianRegression:
    """a ~ N(Bᵀφ(s), Σ): weighted least squares and the residuals' covariance, by maximum likelihood.

    φ is 1 and the state (a column for each state where they are numbered), or ``features(states, t)``. Fails where the
    noise is not normal or its size depends on the state; the check on held-out episodes shows it.
    """

    name: ClassVar[str] = "gaussian"

    features: StateFeatures | None = None

    def prepare(self, dataset: TrajectoryDataset) -> GaussianFit:
        """The sums of these logs; refuses logs that do not determine the coefficients, and actions without noise."""
        actions = continuous_actions(dataset)
        features, names = state_features(dataset, self.features)
        everywhere = np.ones(dataset.n_steps, dtype=np.bool_)
        gram = Gram.of(dataset, lambda steps: features[steps], actions, everywhere, names)
        _, covariance, _ = gram.fit(np.ones((1, dataset.n_trajectories)))
        left, spread = np.linalg.eigvalsh(covariance[0])[0], float(np.var(actions, axis=0).max())
        if not left > NO_NOISE * spread:
            raise DataError(
                "behaviour policy: the logged actions follow from the states without noise in some direction, so they "
                "have no density to divide by; a deterministic logging policy says nothing about other actions"
            )
        return GaussianFit(gram, features, actions, dataset.lengths)


@dataclass(frozen=True, eq=False)
class GaussianFit:
    """One regression of actions on features, to be fitted under any weights."""

    gram: Gram
    features: Array  # (N, p)
    actions: Array  # (N, k)
    lengths: IntArray  # (n,)

    def fit(self, weights: Array) -> Array:
        """Coefficients (p, k), then the covariance (k, k); NaN where the weights determine none."""
        coefficients, covariance, fitted = self.gram.fit(weights[None])
        parameters = np.concatenate([coefficients.ravel(), covariance.ravel()])
        return parameters if fitted[0] else np.full_like(parameters, np.nan)

    def log_probs(self, parameters: Array) -> Array:
        """Log-densities of all logged actions, (N,)."""
        factor = self._factor(parameters)
        scaled = np.linalg.solve(factor, self._errors(parameters).T)
        constant = 0.5 * len(factor) * np.log(2 * np.pi) + np.log(np.diag(factor)).sum()
        return np.asarray(-constant - 0.5 * np.square(scaled).sum(axis=0))

    def residuals(self, parameters: Array) -> Array:
        """Standardised residuals, (N, k)."""
        return np.asarray(np.linalg.solve(self._factor(parameters), self._errors(parameters).T).T)

    def pull_back(self, parameters: Array, weights: Array, gradient: Array) -> Array:
        """dB = A⁻¹ Σ_k φ_k e_kᵀ and dΣ = Σ_k (e_k e_kᵀ − Σ) / C over an episode's steps, A = Σ w φφᵀ, C = Σ w.

        The covariance does not move with B to first order: B minimises it.
        """
        errors, per_step = self._errors(parameters), np.repeat(weights, self.lengths)
        covariance, root = self._parts(parameters)[1], np.linalg.inv(self._factor(parameters))
        pulled = errors @ root.T @ root  # Σ⁻¹e
        features = self._scaled
        normal = features.T @ (per_step[:, None] * features)
        normal[np.diag_indices_from(normal)] += SETTLED * normal.diagonal().max()
        by_mean = np.linalg.solve(normal, features.T @ (gradient[:, None] * pulled))
        by_spread = 0.5 * (pulled.T @ (gradient[:, None] * pulled) - gradient.sum() * (root.T @ root))
        moved = np.einsum("np,pk,nk->n", features, by_mean, errors, optimize=True)
        spread = np.einsum("nk,kl,nl->n", errors, by_spread, errors, optimize=True) - np.sum(by_spread * covariance)
        return np.add.reduceat(moved + spread / per_step.sum(), np.cumsum(self.lengths) - self.lengths)

    @cached_property
    def _scaled(self) -> Array:
        """The features centred and scaled, (N, p): the same fits, but their products keep their digits."""
        return (self.features - self.gram.feature_center) / self.gram.feature_scale

    def _parts(self, parameters: Array) -> tuple[Array, Array]:
        p, k = self.features.shape[1], self.actions.shape[1]
        return parameters[: p * k].reshape(p, k), parameters[p * k :].reshape(k, k)

    def _errors(self, parameters: Array) -> Array:
        return self.actions - self.features @ self._parts(parameters)[0]

    def _factor(self, parameters: Array) -> Array:
        """A root of the covariance; NaN where a resample leaves none."""
        covariance = self._parts(parameters)[1]
        try:
            return np.asarray(np.linalg.cholesky(covariance))
        except np.linalg.LinAlgError:
            return np.full_like(covariance, np.nan)
