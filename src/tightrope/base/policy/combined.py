"""Policies made of other policies, of functions and of tables."""

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
from tightrope.base.policy.discrete import Discrete, TabularPolicy

EXAMPLES = 64  # logged states that show what a function of states returns


@dataclass(frozen=True, eq=False)
class MixturePolicy(Sampling, Unresolved):
    """Draws at every step which policy acts; it does not keep one policy for a whole episode.

    >>> import numpy as np, tightrope
    >>> first = tightrope.TabularPolicy([[1.0, 0.0]])
    >>> mixture = tightrope.MixturePolicy([first, tightrope.UniformPolicy(2)], weights=[0.8, 0.2])
    >>> mixture.probs(np.array([0]), np.array([0])).round(3)
    array([[0.9, 0.1]])
    """

    policies: Sequence[Policy]  # any policies over the same actions
    weights: Sequence[float]  # how often each of them acts

    def __post_init__(self) -> None:
        if len(self.policies) != len(self.weights) or not self.policies:
            raise PolicyError(
                f"a mixture must have one weight for each policy, and at least one policy; got {len(self.policies)} "
                f"policies and {len(self.weights)} weights"
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
                    f"every policy of the mixture must have probs(states, t) to list probabilities; "
                    f"{type(policy).__name__} has none"
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
        """One uniform to pick the part, and as many as the part that needs most."""
        return 1 + max(actor.noise_width for actor in self._actors)

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """The action of the part that the first uniform picks."""
        edges = np.cumsum(np.asarray(self.weights, dtype=np.float64))
        part = np.searchsorted(edges, uniforms[:, 0] * edges[-1], side="right")
        chosen: Anything = np.empty(0)
        for k in np.unique(part):
            rows, actor = np.flatnonzero(part == k), self._actors[k]
            actions = actor.act(states[rows], t[rows], uniforms[rows, 1 : 1 + actor.noise_width])
            if not len(chosen):
                chosen = np.empty((len(states), *actions.shape[1:]), dtype=actions.dtype)
            chosen[rows] = actions
        return chosen


@dataclass(frozen=True, eq=False)
class CallablePolicy:
    """Any function ``f(states, actions, t)`` that returns the actions' probabilities, or (``log``) their logarithms.

    >>> import numpy as np, tightrope
    >>> policy = tightrope.CallablePolicy(lambda states, actions, t: np.where(actions == 1, 0.8, 0.2))
    >>> np.exp(policy.log_prob(np.array([0, 0]), np.array([0, 1]), np.array([0, 1]))).round(3)
    array([0.2, 0.8])
    """

    function: Callable[[Anything, Anything, npt.NDArray[np.int64]], Anything]
    log: bool = False

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """What the function returns, as logarithms, (N,)."""
        values = numbers("the policy function", self.function(states, actions, t))
        if self.log:
            return values
        if (values < 0).any():
            raise PolicyError(
                f"the policy function must return probabilities ≥ 0; got {values[values < 0][0]:g}. If it returns "
                "log-probabilities, wrap it: CallablePolicy(function, log=True)"
            )
        with np.errstate(divide="ignore"):
            return np.log(values)


# Functions that recognise objects of other libraries, tried in order. `tightrope.adapters`, a layer above, fills it.
ADAPTERS: list[Callable[[Any], Policy | None]] = []


def as_policy(policy: Any) -> Policy:
    """Turn what the user gave into a policy: a policy, a table, an object that an adapter knows, or a function."""
    if isinstance(policy, type):
        raise PolicyError(
            f"policy must be an instance, such as {policy.__name__}(...); got the class {policy.__name__}"
        )
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
        "policy must be an object with log_prob(states, actions, t), a function of (states, actions, t) that returns "
        "probabilities, a table of probabilities, a model of scikit-learn, Stable-Baselines3 or PyTorch, or None to "
        f"use the eval_prob column of the logs; got type {type(policy).__name__}"
    )


def resolved(policy: Policy, states: Anything | None, t: npt.NDArray[np.int64]) -> Policy:
    """The policy once it has seen a few logged states."""
    if not isinstance(policy, Unresolved) or states is None:
        return policy
    return policy.resolve(lent(states[:EXAMPLES]), lent(t[:EXAMPLES]))


@dataclass(frozen=True, eq=False)
class _FromProbs(Discrete):
    """Lets a policy that lists its probabilities act."""

    policy: DiscretePolicy

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        return numbers("probs", self.policy.probs(states, t))


def as_actor(policy: Any) -> Actor:
    """The policy as an actor: by its own ``act``, or by the probabilities that it lists."""
    if isinstance(policy, Actor):
        return policy
    if isinstance(policy, DiscretePolicy):
        return _FromProbs(policy)
    if policy is None:
        raise PolicyError(
            "policy must be the policy itself here, not None: the eval_prob column says how likely the logged actions "
            "were, but not how to act in other states"
        )
    raise PolicyError(
        f"policy must be able to act, and {type(policy).__name__} only says how likely given actions are. Give it "
        "act(states, t, uniforms) and noise_width (how many uniform numbers an action takes), or probs(states, t)"
    )
