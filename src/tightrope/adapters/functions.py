"""Policies that are functions of the states; what they return shows what kind they are."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.adapters.outputs import OUTPUTS, Output, Times, as_logits, labelled, tell_output
from tightrope.adapters.torch_distributions import from_distributions, is_distribution
from tightrope.base.checks import numbers
from tightrope.base.errors import PolicyError, policy_failed
from tightrope.base.names import must_be_one_of
from tightrope.base.policy import Policy
from tightrope.base.policy.base import Anything, Array, Unresolved


@dataclass(frozen=True, eq=False)
class StatePolicy(Unresolved):
    """A function of ``(states, t)`` that returns a torch distribution, or one row of numbers per state.

    The k numbers of a row belong to the actions 0 to k-1. Rows in [0, 1] that sum to one are probabilities; rows whose
    exponentials sum to one are log-probabilities; anything else must be declared by ``output``, such as "logits". Every
    row is checked.

    >>> import numpy as np, tightrope
    >>> policy = tightrope.StatePolicy(lambda states, t: np.outer(states, [1.0, 0.0]), output="logits")
    >>> np.exp(policy.log_prob(np.array([0.0, 1.0]), np.array([1, 1]), np.array([0, 0]))).round(3)
    array([0.5  , 0.269])
    """

    function: Callable[[Anything, Times], Any]
    output: Output | None = None

    def __post_init__(self) -> None:
        if self.output is not None and self.output not in OUTPUTS:
            raise PolicyError(must_be_one_of("output", self.output, OUTPUTS, "None"))

    def resolve(self, states: Anything, t: Times) -> Policy:
        """The policy as what its answers to these states show it to be."""
        given = self._ask(states, t)
        if is_distribution(given):
            return from_distributions(self._ask, given)
        table = self._table(given, states)
        output = self.output or tell_output(table)
        return labelled(lambda s, t: as_logits(output, self._table(self._ask(s, t), s)), np.arange(table.shape[1]))

    def log_prob(self, states: Anything, actions: Anything, t: Times) -> Array:
        """Log-probability or log-density of each action, (N,)."""
        return self.resolve(states[:1], t[:1]).log_prob(states, actions, t)

    def _ask(self, states: Anything, t: Times) -> Any:
        try:
            return self.function(states, t)
        except PolicyError:
            raise
        except Exception as error:  # the user's own code
            raise policy_failed(states, error) from error

    def _table(self, given: Any, states: Anything) -> Array:
        if isinstance(given, tuple):
            raise PolicyError(f"the policy must return a distribution or one array; got {len(given)} things")
        if hasattr(given, "detach"):  # a torch tensor, wherever it lies
            given = given.detach().cpu().numpy()
        table = numbers("the policy", given)
        if table.ndim != 2 or len(table) != len(states):
            raise PolicyError(
                f"the policy must return shape (N, actions); got shape {table.shape} for {len(states)} states. A "
                "policy "
                "that returns its action is deterministic: DeterministicPolicy(function, n_actions), or "
                "DeterministicControl(function) for continuous actions"
            )
        return table


def from_function(function: Any) -> Policy | None:
    """A function of (states) or (states, t); those of (states, actions, t) are left to CallablePolicy."""
    if not callable(function):
        return None
    names = required(function)
    if names is None or len(names) == 3:
        return None
    return StatePolicy(of_states(function, names))


def of_states(function: Callable[..., Any], names: list[str]) -> Callable[[Anything, Times], Any]:
    """A function of (states, t) that asks one of (states) or (states, t)."""
    if len(names) == 1:
        return lambda states, t: function(states)
    if len(names) == 2 and not names[1].startswith("a"):
        return lambda states, t: function(states, t)
    raise PolicyError(
        f"the policy function must take (states), (states, t) or (states, actions, t); it takes ({', '.join(names)})"
    )


def required(function: Callable[..., Any]) -> list[str] | None:
    """The names of the positional arguments without a default; None where they cannot be known."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in parameters if one.kind in positional and one.default is one.empty]
