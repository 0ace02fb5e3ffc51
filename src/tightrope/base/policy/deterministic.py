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

    It has no density: it takes any given logged action with probability 0, so importance sampling learns nothing, and
    only a model can evaluate it (docs/errata.md, "Deterministic π_e"). ``softened(policy, sigma=...)`` adds Gaussian
    noise; that is a different policy, and it has a density.

    >>> import numpy as np, tightrope
    >>> brake = tightrope.DeterministicControl(lambda states, t: -0.5 * states)
    >>> brake.act(np.array([[2.0]]), np.array([0]), np.empty((1, 0)))
    array([[-1.]])
    """

    choose: Callable[[Anything, npt.NDArray[np.int64]], Anything]
    width: int = 1  # numbers in an action

    noise_width = 0

    def __post_init__(self) -> None:
        if not isinstance(self.width, (int, np.integer)) or self.width < 1:
            raise PolicyError(f"width must be a whole number of action components, at least 1; got {self.width!r}")

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Raise: there is no density. The error says what to do instead."""
        raise NoOverlapError(
            "the candidate is deterministic over continuous actions, so it has no density, and importance sampling "
            "cannot evaluate it. Evaluate it in a model (estimator MB with a model for continuous states), or with "
            "noise: softened(policy, sigma=...), --sigma"
        )

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """The action chosen, (N, width); the noise is not used."""
        chosen = numbers("choose", self.choose(states, t))
        if chosen.size != len(states) * self.width:
            raise PolicyError(
                f"choose must return shape ({len(states)}, {self.width}), an action of {self.width} numbers per "
                f"state; got shape {chosen.shape}"
            )
        return chosen.reshape(len(states), self.width)
