"""Functions of states alone, told apart by what they return."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.adapters.outputs import OUTPUTS, Output, Times, as_logits, labelled, tell_output
from tightrope.adapters.torch_distributions import from_distributions, is_distribution
from tightrope.base.checks import numbers
from tightrope.base.errors import PolicyError
from tightrope.base.policy import Policy
from tightrope.base.policy.base import Anything, Array, Unresolved


@dataclass(frozen=True, eq=False)
class StatePolicy(Unresolved):
    """``function(states, t)`` returns a torch distribution, or a row of numbers per state for actions 0..k-1.

    Rows in [0, 1] that sum to one are probabilities; rows whose exponentials sum to one are log-probabilities; anything
    else must be declared by ``output`` ("logits"). Every row is held to it.
    """

    function: Callable[[Anything, Times], Any]
    output: Output | None = None

    def __post_init__(self) -> None:
        if self.output is not None and self.output not in OUTPUTS:
            raise PolicyError(f"output is {self.output!r}; one of {', '.join(OUTPUTS)}, or None to be told by the rows")

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
            raise PolicyError(
                f"the policy failed on states of shape {states.shape} ({states.dtype}): {type(error).__name__}: {error}"
            ) from error

    def _table(self, given: Any, states: Anything) -> Array:
        if isinstance(given, tuple):
            raise PolicyError(f"the policy returned {len(given)} things; a distribution or one array is expected")
        if hasattr(given, "detach"):  # a torch tensor, wherever it lies
            given = given.detach().cpu().numpy()
        table = numbers("the policy", given)
        if table.ndim != 2 or len(table) != len(states):
            raise PolicyError(
                f"the policy returned shape {table.shape} for {len(states)} states; (N, actions) is expected. A policy "
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
        f"the policy function takes ({', '.join(names)}); (states), (states, t) or (states, actions, t) is expected"
    )


def required(function: Callable[..., Any]) -> list[str] | None:
    """The names of the positional arguments without a default; None where they cannot be known."""
    try:
        found = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return None
    if any(one.kind is one.VAR_POSITIONAL for one in found):
        return None
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return [one.name for one in found if one.kind in positional and one.default is one.empty]
