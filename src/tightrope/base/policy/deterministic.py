"""Policies without noise over continuous actions: they act, but have no density."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import numbers
from tightrope.base.errors import NoOverlapError, PolicyError
from tightrope.base.policy.base import Anything, Array, Sampling


@dataclass(frozen=True, eq=False)
class DeterministicControl(Sampling):
    """Always the continuous action ``choose(states, t)``, (N, width) or (N,).

    Its density is singular: it takes any logged action with probability 0, so importance sampling learns nothing, and a
    model is the only way to evaluate it (docs/errata.md, "Deterministic π_e"). ``softened(policy, sigma=...)`` is the
    policy with Gaussian noise, a different one, which has a density.
    """

    choose: Callable[[Anything, npt.NDArray[np.int64]], Anything]
    width: int = 1  # numbers in an action

    noise_width = 0

    def __post_init__(self) -> None:
        if not isinstance(self.width, (int, np.integer)) or self.width < 1:
            raise PolicyError(f"width is {self.width!r}; it must be a whole number of action components, at least 1")

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """There is none: the error says what to do instead."""
        raise NoOverlapError(
            "the candidate is deterministic over continuous actions: its density is singular, and by importance "
            "sampling no logs say anything about it. Evaluate it in a model (estimator mb with a model for continuous "
            "states), or evaluate it with noise: softened(policy, sigma=...), --sigma"
        )

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """The action chosen, (N, width); the noise is not used."""
        chosen = numbers("choose", self.choose(states, t))
        if chosen.size != len(states) * self.width:
            raise PolicyError(
                f"choose returned shape {chosen.shape}; ({len(states)}, {self.width}) is expected: an action of "
                f"{self.width} numbers per state"
            )
        return chosen.reshape(len(states), self.width)
