"""Policies made of others, and of whatever the user has: mixtures, functions, tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import lent, numbers
from tightrope.base.errors import PolicyError
from tightrope.base.policy.base import Actor, Anything, Array, DiscretePolicy, Policy, Sampling, Unresolved, check_probs
from tightrope.base.policy.discrete import Discrete, TabularPolicy, UniformPolicy

EXAMPLES = 64  # logged states that tell what a function of states returns


@dataclass(frozen=True, eq=False)
class MixturePolicy(Sampling, Unresolved):
    """At every step a fresh draw of which policy acts; not one policy for a whole episode."""

    policies: Sequence[Policy]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.policies) != len(self.weights) or not self.policies:
            raise PolicyError(
                f"{len(self.policies)} policies and {len(self.weights)} weights; as many of each, at least one"
            )
        check_probs("weights", numbers("weights", [self.weights]))
        object.__setattr__(self, "policies", tuple(as_policy(policy) for policy in self.policies))

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log of the weighted sum of the parts' probabilities, (N,)."""
        parts = [
            np.log(weight) + policy.log_prob(lent(states), lent(actions), lent(t))
            for policy, weight in zip(self.policies, self.weights, strict=True)
            if weight > 0
        ]
        mixed: Array = np.logaddexp.reduce(parts, axis=0)
        return mixed

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Weighted sum of the parts' probabilities, (N, k); every part must be discrete."""
        for policy in self.policies:
            if not isinstance(policy, DiscretePolicy):
                raise PolicyError(
                    f"{type(policy).__name__} has no probs(states, t): the mixture cannot list probabilities"
                )
        return sum(  # type: ignore[return-value]
            weight * policy.probs(lent(states), lent(t))  # type: ignore[attr-defined]
            for policy, weight in zip(self.policies, self.weights, strict=True)
        )

    def resolve(self, states: Anything, t: npt.NDArray[np.int64]) -> MixturePolicy:
        """The mixture with every part resolved."""
        return MixturePolicy([resolved(policy, states, t) for policy in self.policies], self.weights)

    @cached_property
    def _actors(self) -> list[Actor]:
        return [as_actor(policy) for policy in self.policies]

    @property
    def noise_width(self) -> int:
        """One uniform to pick the part, and what the neediest part takes."""
        return 1 + max(actor.noise_width for actor in self._actors)

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """The action of the part that the first uniform picks."""
        edges = np.cumsum(np.asarray(self.weights, dtype=np.float64))
        part = np.searchsorted(edges, uniforms[:, 0] * edges[-1], side="right")
        chosen: Anything = np.empty(0)
        for k in np.unique(part):
            rows, actor = np.flatnonzero(part == k), self._actors[k]
            made = actor.act(states[rows], t[rows], uniforms[rows, 1 : 1 + actor.noise_width])
            if not len(chosen):
                chosen = np.empty((len(states), *made.shape[1:]), dtype=made.dtype)
            chosen[rows] = made
        return chosen


def epsilon_softened(policy: Policy, epsilon: float, n_actions: int) -> MixturePolicy:
    """The policy with probability 1 − ε, one of ``n_actions`` actions at random with probability ε."""
    if not 0.0 <= epsilon <= 1.0:
        raise PolicyError(f"epsilon is {epsilon}; it must lie in [0, 1]")
    return MixturePolicy((policy, UniformPolicy(n_actions)), (1.0 - epsilon, epsilon))


@dataclass(frozen=True, eq=False)
class CallablePolicy:
    """Any function ``f(states, actions, t)`` of the logged actions' probabilities, or of their logarithms."""

    function: Callable[[Anything, Anything, npt.NDArray[np.int64]], Anything]
    log: bool = False

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """What the function returns, as logarithms, (N,)."""
        values = numbers("the policy function", self.function(states, actions, t))
        if self.log:
            return values
        if (values < 0).any():
            raise PolicyError(
                f"the policy function returned {values[values < 0][0]:g}, below 0: if these are log-probabilities, "
                "wrap it as CallablePolicy(function, log=True)"
            )
        with np.errstate(divide="ignore"):
            return np.log(values)


# What recognises objects of other libraries, asked in order; `tightrope.adapters` fills it, being above this layer.
ADAPTERS: list[Callable[[Any], Policy | None]] = []


def as_policy(policy: Any) -> Policy:
    """A policy as it is; a table as a TabularPolicy; what an adapter knows; a callable as one giving probabilities."""
    if isinstance(policy, type):
        raise PolicyError(f"policy is the class {policy.__name__}; give an instance of it")
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, np.ndarray):
        return TabularPolicy(policy)
    for adapt in ADAPTERS:
        adapted = adapt(policy)
        if adapted is not None:
            return adapted
    if callable(policy):
        return CallablePolicy(policy)
    raise PolicyError(
        f"policy is a {type(policy).__name__}; give an object with log_prob(states, actions, t), a function of "
        "(states, actions, t) returning probabilities, a table of probabilities, a model of scikit-learn, "
        "Stable-Baselines3 or PyTorch, or None to use the logs' eval_prob"
    )


def resolved(policy: Policy, states: Anything | None, t: npt.NDArray[np.int64]) -> Policy:
    """The policy once it has seen a few logged states."""
    if not isinstance(policy, Unresolved) or states is None:
        return policy
    return policy.resolve(lent(states[:EXAMPLES]), lent(t[:EXAMPLES]))


@dataclass(frozen=True, eq=False)
class _FromProbs(Discrete):
    """Lets a policy of somebody else's act by the probabilities it lists."""

    policy: DiscretePolicy

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        return numbers("probs", self.policy.probs(states, t))


def as_actor(policy: Any) -> Actor:
    """The policy as something that can act: by its own ``act``, else by the probabilities it lists."""
    if isinstance(policy, Actor):
        return policy
    if isinstance(policy, DiscretePolicy):
        return _FromProbs(policy)
    if policy is None:
        raise PolicyError(
            "policy is None: the logs' eval_prob column says how likely the logged actions were, not how to act in "
            "other states; give the policy itself"
        )
    raise PolicyError(
        f"{type(policy).__name__} cannot act: it only says how likely given actions are. Give it "
        "act(states, t, uniforms) and noise_width (how many uniform numbers an action takes), or probs(states, t)"
    )
