"""What an estimated behaviour policy is: settings that, prepared for some logs, can be fitted under any weights.

Where the logs hold no propensities, π_b is fitted to the logged states and actions. It is one more function of the
episode weights: every replicate, every episode left out, has a fit of its own, so that the bounds see what the
estimate of π_b does to the value.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

from tightrope.base.dataset import Array, TrajectoryDataset

KEPT_BYTES = 256 << 20  # size of the fits that are kept, because several estimators need the same ones


class PreparedBehavior(Protocol):
    """A behaviour policy that can be fitted under any weights."""

    def fit(self, weights: Array) -> Array:
        """Parameters fitted under weights (n,), as one array; NaN where the weights determine none."""
        ...

    def log_probs(self, parameters: Array) -> Array:
        """Log-probabilities (or log-densities) of all logged actions, (N,); -inf where the fit never saw one."""
        ...


@runtime_checkable
class SmoothBehavior(Protocol):
    """A behaviour policy that also knows how each episode moves its fit."""

    def pull_back(self, parameters: Array, weights: Array, gradient: Array) -> Array:
        """Σ_k g_k ∂log b_k/∂w_i over all steps k, (n,), for a gradient (N,) that is 0 where the weight is."""
        ...


@runtime_checkable
class DiscreteBehavior(Protocol):
    """A behaviour policy over a finite action set."""

    @property
    def choices(self) -> Array:
        """Which action was logged, numbered, (N,)."""
        ...

    def probs(self, parameters: Array) -> Array:
        """Probabilities of all actions at every step, (N, k); rows of NaN where the fit cannot say."""
        ...


@runtime_checkable
class GaussianBehavior(Protocol):
    """A behaviour policy with normal noise."""

    def residuals(self, parameters: Array) -> Array:
        """Standardised residuals of the logged actions, (N, k): independent standard normals where the fit is true."""
        ...


@runtime_checkable
class FeaturedBehavior(Protocol):
    """A behaviour policy that predicts actions from features."""

    @property
    def features(self) -> Array:
        """What actions are predicted from, (N, k)."""
        ...


@runtime_checkable
class BehaviorModel(Protocol):
    """A frozen dataclass of settings."""

    @property
    def name(self) -> str:
        """The short name used in tables and on the command line."""
        ...

    def prepare(self, dataset: TrajectoryDataset) -> PreparedBehavior:
        """The behaviour policy for these logs; refuses logs it cannot be fitted to."""
        ...


@dataclass(frozen=True, eq=False)
class Fits:
    """Fits under rows of weights, kept for the next use while there is room; the oldest are dropped first."""

    behavior: PreparedBehavior
    kept: dict[bytes, Array] = field(default_factory=dict)

    def __call__(self, weights: Array) -> Array:
        """The parameters fitted under weights (n,)."""
        key = hashlib.blake2b(weights.tobytes(), digest_size=16).digest()
        parameters = self.kept.get(key)
        if parameters is None:
            parameters = self.behavior.fit(weights)
            while self.kept and (len(self.kept) + 1) * parameters.nbytes > KEPT_BYTES:
                del self.kept[next(iter(self.kept))]
            self.kept[key] = parameters
        return parameters
