"""States and actions that are text, as numbers: what tables and counts are made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import numbers
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.folder import Scratch, distinct, parts
from tightrope.base.policy import DiscretePolicy, MixturePolicy, Policy
from tightrope.base.policy.base import Anything, Array

Times = npt.NDArray[np.int64]


@runtime_checkable
class LabelledActions(Protocol):
    """A policy over actions that have names."""

    labels: Anything  # (k,)

    def log_probs(self, states: Anything, t: Times) -> Array:
        """Log-probabilities of all labels, (N, k)."""
        ...


@dataclass(frozen=True, eq=False)
class Spelled:
    """A policy asked by number about states and actions that it knows by name."""

    policy: Any
    states: Anything | None  # (S,): the name of each number; None: states are no text
    actions: Anything | None  # (A,): likewise

    def log_prob(self, states: Anything, actions: Anything, t: Times) -> Array:
        """The log-probability of each action, (N,)."""
        named = actions if self.actions is None else self.actions[actions]
        result: Array = self.policy.log_prob(self._names(states), named, t)
        return result

    def _names(self, states: Anything) -> Anything:
        return states if self.states is None else self.states[states]


@dataclass(frozen=True, eq=False)
class SpelledList(Spelled):
    """The same of a policy that lists the probabilities of all its actions."""

    def probs(self, states: Anything, t: Times) -> Array:
        """Probabilities of all actions, (N, A)."""
        names = self._names(states)
        if self.actions is None:
            return numbers("probs", self.policy.probs(names, t))
        table = np.zeros((len(names), len(self.actions)))
        for part, weight in _parts(self.policy):
            table[:, np.searchsorted(self.actions, part.labels)] += weight * np.exp(part.log_probs(names, t))
        return table


def is_text(values: Anything | None) -> bool:
    """Whether it is one text per step."""
    return values is not None and values.ndim == 1 and values.dtype.kind == "U"


def coded(data: TrajectoryDataset, policy: Any) -> tuple[TrajectoryDataset, Any]:
    """The same logs and candidate with states and actions by number, in the order of their names."""
    owners = [part for one in (policy, data.behavior) for part, _ in _parts(one)]
    states = _names(data.states, [] if data.final_states is None else [data.final_states])
    actions = _names(data.actions, [part.labels for part in owners])

    def code(names: Anything | None, values: Anything | None) -> Anything | None:
        if names is None or values is None:
            return values
        if not is_text(values):
            return None  # a number is not the number of a name
        result = Scratch(data.folder).empty(len(values), np.int64)
        for part in parts(len(values)):
            result[part] = np.searchsorted(names, values[part])
        return result

    numbered = replace(
        data,
        states=code(states, data.states),
        final_states=code(states, data.final_states),
        actions=code(actions, data.actions),
        behavior=_spelled(data.behavior, states, actions),
    )
    return numbered, _spelled(policy, states, actions)


def _names(logged: Anything | None, others: list[Anything]) -> Anything | None:
    """All names of states or actions, rising; None where they are no text."""
    if logged is None or not is_text(logged):
        return None
    return np.unique(np.concatenate([distinct(logged), *(part for part in others if is_text(part))]))


def _spelled(policy: Any, states: Anything | None, actions: Anything | None) -> Any:
    if policy is None:
        return None
    named = _parts(policy)
    lists = bool(named) and all(is_text(part.labels) for part, _ in named)
    lists = isinstance(policy, DiscretePolicy) if actions is None else lists
    return (SpelledList if lists else Spelled)(policy, states, actions)


def _parts(policy: Policy | None) -> list[tuple[LabelledActions, float]]:
    """The parts of a policy that list their labels, with their weights; none unless all of them do."""
    if isinstance(policy, MixturePolicy):
        parts = [(_parts(one), weight) for one, weight in zip(policy.policies, policy.weights, strict=True)]
        if not all(labelled for labelled, _ in parts):
            return []
        return [(part, own * weight) for labelled, weight in parts for part, own in labelled]
    return [(policy, 1.0)] if isinstance(policy, LabelledActions) else []
