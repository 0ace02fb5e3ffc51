"""The greedy form of a policy: its most probable action, or its action without the noise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tightrope.adapters.outputs import DensityPolicy, LabelledPolicy, Times
from tightrope.adapters.soften import recognise
from tightrope.base.checks import numbers
from tightrope.base.errors import PolicyError
from tightrope.base.policy import (
    DeterministicControl,
    DeterministicPolicy,
    DiscretePolicy,
    GaussianPolicy,
    MixturePolicy,
    Policy,
    as_policy,
)
from tightrope.base.policy.base import Anything, Array, Unresolved
from tightrope.base.policy.discrete import Discrete


def greedy(policy: Any) -> Policy:
    """The policy without its randomness: what many libraries deploy as ``deterministic=True``.

    Over discrete actions it always takes the most probable one, the first of several. Over continuous actions it takes
    the middle of every component's distribution, which for a normal distribution is the mean; it then has no density,
    and only a model can evaluate it. It is another policy than the random one, and its value another one too.

    >>> import numpy as np, tightrope
    >>> policy = tightrope.greedy(tightrope.TabularPolicy([[0.7, 0.3], [0.2, 0.8]]))
    >>> policy.probs(np.array([0, 1]), np.array([0, 0]))
    array([[1., 0.],
           [0., 1.]])
    """
    known = recognise(policy) or as_policy(policy)
    return _Later(known) if isinstance(known, Unresolved) else _greedy(known)


def _greedy(policy: Policy) -> Policy:
    if isinstance(policy, (DeterministicPolicy, DeterministicControl)):
        return policy
    if isinstance(policy, LabelledPolicy):
        return replace(policy, scores=lambda s, t: np.where(_largest(policy.log_probs(s, t)), 0.0, -np.inf))
    if isinstance(policy, DensityPolicy):
        width = policy.noise_width
        return DeterministicControl(lambda s, t: policy.act(s, t, np.full((len(s), width), 0.5)), width)
    if isinstance(policy, GaussianPolicy):
        return DeterministicControl(policy.mean, policy.noise_width)
    parts = policy.policies if isinstance(policy, MixturePolicy) else (policy,)
    if all(isinstance(part, DiscretePolicy) for part in parts):
        return MostProbable(policy)  # type: ignore[arg-type]  # a mixture of such policies is one
    raise PolicyError(
        f"policy must list its probabilities (probs(states, t)) or be a known distribution to have a greedy form; a "
        f"{type(policy).__name__} only says how likely given actions are. Give the greedy policy itself: "
        "DeterministicPolicy(function, n_actions), or DeterministicControl(function) for continuous actions"
    )


@dataclass(frozen=True, eq=False)
class MostProbable(Discrete):
    """The most probable action of a policy that lists its probabilities."""

    policy: DiscretePolicy

    def probs(self, states: Anything, t: Times) -> Array:
        """One on the most probable action, (N, k)."""
        return np.where(_largest(numbers("probs", self.policy.probs(states, t))), 1.0, 0.0)


@dataclass(frozen=True, eq=False)
class _Later(Unresolved):
    """The greedy form of a policy whose kind shows only in what it returns for logged states."""

    policy: Unresolved

    def resolve(self, states: Anything, t: Times) -> Policy:
        return _greedy(self.policy.resolve(states, t))

    def log_prob(self, states: Anything, actions: Anything, t: Times) -> Array:
        return self.resolve(states[:1], t[:1]).log_prob(states, actions, t)


def _largest(table: Array) -> Any:
    """Which entry of each row is the first of its largest, (N, k)."""
    return np.arange(table.shape[1]) == table.argmax(axis=1)[:, None]
