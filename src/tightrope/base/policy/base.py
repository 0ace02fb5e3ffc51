"""What a policy must be able to do, and the checks that all policies share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tightrope.base.errors import PolicyError

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Anything = npt.NDArray[Any]

SUM_TOLERANCE = 1e-6
CHUNK_ROWS = 1 << 16  # rows passed to the user's code at once
_EDGE = 2.0**-40


@runtime_checkable
class Policy(Protocol):
    """Anything that has probabilities for the logged actions.

    >>> import numpy as np, tightrope
    >>> class Coin:
    ...     def log_prob(self, states, actions, t):
    ...         return np.full(len(actions), np.log(0.5))
    >>> isinstance(Coin(), tightrope.Policy)
    True
    """

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log-probability of each action, (N,); -inf where the policy never takes it."""
        ...


@runtime_checkable
class DiscretePolicy(Policy, Protocol):
    """A policy over actions 0..k-1 that can list all their probabilities."""

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Probabilities of all k actions, (N, k)."""
        ...


@runtime_checkable
class Actor(Protocol):
    """Anything that can act, with noise that the caller gives."""

    @property
    def noise_width(self) -> int:
        """How many uniform numbers an action takes."""
        ...

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """One action per state from uniforms (N, noise_width), each above 0 and below 1."""
        ...


@runtime_checkable
class PreparedActor(Actor, Protocol):
    """An actor whose noise does not depend on the state, so that it is made once: act = act_with ∘ noise."""

    def noise(self, uniforms: Array) -> Array:
        """The noise that uniforms (N, noise_width) become, whatever the state, (N, ...)."""
        ...

    def act_with(self, states: Anything, t: npt.NDArray[np.int64], noise: Array) -> Anything:
        """One action per state from such noise."""
        ...


class Sampling:
    """Samples from ``act``."""

    def sample(self: Actor, states: Anything, t: npt.NDArray[np.int64], *, rng: np.random.Generator) -> Anything:
        """One action per state, (N,) or (N, k)."""
        return self.act(states, t, open_uniforms(rng, (len(states), self.noise_width)))


class Unresolved:
    """A policy whose kind shows only in what it returns for logged states."""

    def resolve(self, states: Anything, t: npt.NDArray[np.int64]) -> Policy:
        """The policy of the kind that its answers to these states show."""
        raise NotImplementedError


def open_uniforms(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Uniform numbers at least 2^-40 away from 0 and 1, where inverse distribution functions fail."""
    draws = rng.random(shape)
    return np.clip(draws, _EDGE, 1.0 - _EDGE, out=draws)


def in_chunks(answer: Callable[..., Anything], *columns: Anything) -> Anything:
    """The answer to many rows, computed CHUNK_ROWS at a time to save memory."""
    parts = []
    for start in range(0, len(columns[0]), CHUNK_ROWS):
        try:
            parts.append(answer(*(column[start : start + CHUNK_ROWS] for column in columns)))
        except PolicyError as error:
            error.row = None if error.row is None else error.row + start
            raise
    return np.concatenate(parts)


def check_probs(name: str, table: Array, labels: Anything | None = None) -> None:
    """Refuse entries below 0 or NaN, and rows that do not sum to one; ``labels`` are the states of the rows."""

    def named(row: tuple[int, ...]) -> list[Any]:
        return list(row) if labels is None else [*row[:-1], labels[row[-1]].item()]

    bad = ~(table >= 0)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise PolicyError(f"{name}{[*named(at[:-1]), at[-1]]} must be a probability ≥ 0; got {table[at]}")
    sums = table.sum(axis=-1)
    off = np.abs(sums - 1.0) > SUM_TOLERANCE
    if off.any():
        row = tuple(int(i) for i in np.argwhere(off)[0])
        raise PolicyError(f"row {named(row)} of {name} must sum to 1; got {sums[row]:.8g}")


def check_count(n_actions: Any) -> None:
    """Refuse anything that is not a number of actions."""
    if not isinstance(n_actions, (int, np.integer)) or n_actions < 1:
        raise PolicyError(f"n_actions must be a whole number, at least 1; got {n_actions!r}")


def check_index(name: str, values: Anything, size: int, why: str) -> None:
    """Refuse numbers outside 0..size-1, naming the first row."""
    bad = (values < 0) | (values >= size)
    if bad.any():
        row = int(np.argmax(bad))
        raise PolicyError(f"{name} must lie between 0 and {size - 1}, because {why}; got {values[row]}", row=row)


def action_index(actions: Anything, n_actions: int) -> Anything:
    """Actions as numbers below n_actions."""
    if actions.ndim != 1 or actions.dtype.kind not in "iub":
        raise PolicyError(
            f"actions must be one integer per step for a policy over {n_actions} discrete actions; got "
            f"{actions.dtype} of shape {actions.shape}"
        )
    check_index("action", actions, n_actions, f"the policy has {n_actions} actions")
    return actions.astype(np.int64)
