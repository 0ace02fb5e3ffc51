"""Objects that can act but have no probabilities: without noise they are deterministic policies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.adapters.outputs import Times
from tightrope.base.errors import PolicyError
from tightrope.base.policy import Actor, DeterministicControl, DeterministicPolicy, Policy
from tightrope.base.policy.base import Anything, Array, Unresolved


@dataclass(frozen=True, eq=False)
class NoiselessActor(Unresolved):
    """``act`` with ``noise_width`` 0; its actions show whether they are continuous."""

    actor: Any

    def resolve(self, states: Anything, t: Times) -> Policy:
        """Deterministic over continuous actions; discrete ones would have declared how many there are."""
        shown = self._choose(states, t)
        if shown.dtype.kind != "f":
            raise PolicyError(
                f"{type(self.actor).__name__} must have n_actions, the number of discrete actions, because it acts "
                f"without noise and returns {shown.dtype}"
            )
        return DeterministicControl(self._choose, max(1, shown.size // len(states)))

    def log_prob(self, states: Anything, actions: Anything, t: Times) -> Array:
        """None: see DeterministicControl."""
        return self.resolve(states[:1], t[:1]).log_prob(states, actions, t)

    def _choose(self, states: Anything, t: Times) -> Anything:
        return np.asarray(self.actor.act(states, t, np.empty((len(states), 0))))


def from_actor(actor: Any) -> Policy | None:
    """An object that acts without noise: over ``n_actions`` discrete actions, or continuous ones."""
    if not isinstance(actor, Actor):
        return None
    if actor.noise_width != 0:
        raise PolicyError(f"{type(actor).__name__} must have log_prob(states, actions, t), because it acts with noise")
    policy, count = NoiselessActor(actor), getattr(actor, "n_actions", None)
    return policy if count is None else DeterministicPolicy(policy._choose, count)
