"""Gaussian policies over continuous actions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import numbers, read_only
from tightrope.base.errors import PolicyError
from tightrope.base.policy.base import Anything, Array, Sampling


@dataclass(frozen=True, eq=False)
class GaussianPolicy(Sampling):
    """Continuous actions: normal around ``mean(states, t)``, (N, k), with a full covariance matrix (k, k).

    >>> import numpy as np, tightrope
    >>> policy = tightrope.GaussianPolicy(lambda states, t: -0.5 * states, covariance=0.04)
    >>> policy.log_prob(np.array([[2.0]]), np.array([[-1.0]]), np.array([0])).round(3)
    array([0.69])
    """

    mean: Callable[[Anything, npt.NDArray[np.int64]], Anything]
    covariance: Array

    def __init__(self, mean: Callable[[Anything, npt.NDArray[np.int64]], Anything], covariance: npt.ArrayLike):
        matrix = np.atleast_2d(numbers("covariance", covariance))
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T):
            raise PolicyError(f"covariance must be a symmetric (k, k) matrix; got shape {matrix.shape}")
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise PolicyError(
                "covariance must be positive definite: a policy without noise has no density, and importance sampling "
                "cannot evaluate it"
            ) from None
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", read_only(matrix.copy()))

    @cached_property
    def _factor(self) -> Array:
        return np.linalg.cholesky(self.covariance).astype(np.float64)

    @property
    def max_log_density(self) -> float:
        """The log-density at the mean, the largest there is."""
        k = len(self.covariance)
        return -0.5 * k * float(np.log(2 * np.pi)) - float(np.log(np.diag(self._factor)).sum())

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log-density of each action, (N,)."""
        if actions.dtype.kind != "f":
            raise PolicyError(f"actions must be floats for a GaussianPolicy; the logs hold {actions.dtype}")
        given = actions.reshape(len(actions), -1)
        center = self._center(states, t)
        if given.shape != center.shape:
            raise PolicyError(
                f"actions must have the shape of the policy's mean, {center.shape}; the logs hold {given.shape}"
            )
        scaled = np.linalg.solve(self._factor, (given - center).T)
        squares: Array = np.square(scaled).sum(axis=0)
        return self.max_log_density - 0.5 * squares

    @property
    def noise_width(self) -> int:
        """One uniform per dimension of the action."""
        return len(self.covariance)

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """The mean plus correlated normal noise, by inversion, (N, k)."""
        return self.act_with(states, t, self.noise(uniforms))

    def noise(self, uniforms: Array) -> Array:
        """Correlated normal numbers, (N, k)."""
        from scipy.special import ndtri

        correlated: Array = ndtri(uniforms) @ self._factor.T
        return correlated

    def act_with(self, states: Anything, t: npt.NDArray[np.int64], noise: Array) -> Anything:
        """The mean plus noise, (N, k)."""
        return self._center(states, t) + noise

    def _center(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        center, k = numbers("mean", self.mean(states, t)), len(self.covariance)
        if center.shape != (len(states), k) and not (k == 1 and center.shape == (len(states),)):
            raise PolicyError(
                f"mean must return shape ({len(states)}, {k}), as the covariance has it; got {center.shape}"
            )
        return center.reshape(len(states), k)
