"""Policies over a finite action set."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import numbers, read_only
from tightrope.base.errors import PolicyError
from tightrope.base.policy.base import (
    Anything,
    Array,
    Sampling,
    action_index,
    check_count,
    check_index,
    check_probs,
)


class Discrete(Sampling):
    """Log-probabilities and samples from ``probs``, for policies over a finite action set."""

    noise_width = 1

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Probabilities of all actions, (N, k)."""
        raise NotImplementedError

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log-probability of each action, (N,)."""
        table = self.probs(states, t)
        index = action_index(actions, table.shape[1])
        with np.errstate(divide="ignore"):
            return np.log(table[np.arange(len(table)), index])

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """The action at which the cumulative probability passes the uniform, (N,)."""
        return invert(self.probs(states, t), uniforms[:, 0])


@dataclass(frozen=True, eq=False)
class TabularPolicy(Discrete):
    """Probabilities in a table: (states, actions), or (times, states, actions) when they change with time.

    Row s is state s, or the state that ``states`` (S,) names for it: numbers, which may have gaps, or texts.

    >>> import numpy as np, tightrope
    >>> policy = tightrope.TabularPolicy([[0.7, 0.3], [0.2, 0.8]])
    >>> policy.probs(np.array([1, 0]), np.array([0, 1]))
    array([[0.2, 0.8],
           [0.7, 0.3]])
    """

    table: Array
    states: Anything  # (S,), rising; whole numbers or texts

    def __init__(self, probs: npt.ArrayLike, states: npt.ArrayLike | None = None):
        table = numbers("probs", probs)
        if table.ndim not in (2, 3) or not table.size:
            raise PolicyError(
                "probs must have shape (states, actions), or (times, states, actions) for a policy that changes with "
                f"time; got shape {table.shape}"
            )
        labels = _labels(states, table.shape[-2])
        check_probs("probs", table, labels)
        order = np.argsort(labels)
        object.__setattr__(self, "table", read_only(table[..., order, :]))
        object.__setattr__(self, "states", read_only(labels[order]))

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Probabilities of all actions, (N, k)."""
        named = self.states.dtype.kind == "U"
        if states.ndim != 1 or states.dtype.kind not in ("U" if named else "iu"):
            raise PolicyError(
                f"states must be one {'text' if named else 'integer'} per step for a TabularPolicy"
                f"{' that names its states' if named else ''}; the logs hold {states.dtype} of shape {states.shape}"
            )
        rows = self._rows(states)
        if self.table.ndim == 2:
            return self.table[rows]
        check_index("time", t, len(self.table), f"the policy's table covers {len(self.table)} steps")
        return self.table[t, rows]

    def _rows(self, states: Anything) -> Anything:
        """Which row of the table each state is."""
        count = len(self.states)
        if self.states.dtype.kind == "i" and self.states[0] == 0 and self.states[-1] == count - 1:
            check_index("state", states, count, f"the policy's table has {count} rows")
            return states
        wanted = states if states.dtype.kind == "U" else states.astype(np.int64)
        rows = np.searchsorted(self.states, wanted).clip(max=count - 1)
        unknown = self.states[rows] != states
        if unknown.any():
            row = int(np.argmax(unknown))
            raise PolicyError(f"state must be one of the {count} in the policy's table; got {states[row]}", row=row)
        return rows


def _labels(states: npt.ArrayLike | None, count: int) -> Anything:
    """The state of each row of a table."""
    labels = np.arange(count) if states is None else np.asarray(states)
    whole = labels.dtype.kind in "iu" and not ((labels < 0).any() or (labels >= 2**63).any())
    if labels.shape != (count,) or not (whole or labels.dtype.kind == "U"):
        raise PolicyError(
            f"states must be one whole number, 0 or more, or one text for each of the table's {count} rows; got shape "
            f"{labels.shape} ({labels.dtype})"
        )
    if len(np.unique(labels)) != count:
        raise PolicyError("states must name each state once; one is there twice")
    return labels if labels.dtype.kind == "U" else labels.astype(np.int64)


@dataclass(frozen=True, eq=False)
class SoftmaxPolicy(Discrete):
    """Probabilities ∝ exp(preference / temperature), with ``preferences(states, t)`` giving (N, k).

    >>> import numpy as np, tightrope
    >>> policy = tightrope.SoftmaxPolicy(lambda states, t: np.outer(states, [1.0, 0.0]), temperature=0.5)
    >>> policy.probs(np.array([0.0, 1.0]), np.array([0, 0])).round(3)
    array([[0.5  , 0.5  ],
           [0.881, 0.119]])
    """

    preferences: Callable[[Anything, npt.NDArray[np.int64]], Anything]
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise PolicyError(f"temperature must be positive; got {self.temperature}")

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log-probability of each action, (N,), exact where the probability itself is too small for a float."""
        table = self._log_probs(states, t)
        return table[np.arange(len(table)), action_index(actions, table.shape[1])]

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Probabilities of all actions, (N, k)."""
        return np.exp(self._log_probs(states, t))

    def _log_probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        return log_softmax(
            "preferences", numbers("preferences", self.preferences(states, t)) / self.temperature, states
        )


@dataclass(frozen=True, eq=False)
class DeterministicPolicy(Discrete):
    """Always the action ``choose(states, t)``, an integer below ``n_actions``.

    >>> import numpy as np, tightrope
    >>> policy = tightrope.DeterministicPolicy(lambda states, t: states % 2, n_actions=2)
    >>> policy.probs(np.array([4, 7]), np.array([0, 0]))
    array([[1., 0.],
           [0., 1.]])
    """

    choose: Callable[[Anything, npt.NDArray[np.int64]], Anything]
    n_actions: int

    def __post_init__(self) -> None:
        check_count(self.n_actions)

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """One on the chosen action, (N, k)."""
        chosen = np.asarray(self.choose(states, t))
        if chosen.shape != (len(states),):
            raise PolicyError(f"choose must return one action per state, ({len(states)},); got shape {chosen.shape}")
        return np.eye(self.n_actions)[action_index(chosen, self.n_actions)]


@dataclass(frozen=True, eq=False)
class UniformPolicy(Discrete):
    """All ``n_actions`` actions with the same probability.

    >>> import numpy as np, tightrope
    >>> tightrope.UniformPolicy(4).probs(np.array([0]), np.array([0]))
    array([[0.25, 0.25, 0.25, 0.25]])
    """

    n_actions: int

    def __post_init__(self) -> None:
        check_count(self.n_actions)

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """1/k everywhere, (N, k)."""
        return np.full((len(states), self.n_actions), 1.0 / self.n_actions)


def log_softmax(name: str, scores: Array, states: Anything) -> Array:
    """Scores (N, k) minus the logarithm of the sum of their exponentials; refuses other shapes and NaN."""
    if scores.ndim != 2 or len(scores) != len(states):
        raise PolicyError(f"{name} must return shape (N, actions) with N={len(states)}; got shape {scores.shape}")
    top = scores.max(axis=1, keepdims=True)
    if not np.isfinite(top).all():
        row = int(np.argmin(np.isfinite(top)))
        raise PolicyError(f"{name} must be numbers, at least one of them above -inf; got {scores[row]}", row=row)
    scores = scores - top
    normalized: Array = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    return normalized


def invert(probs: Array, uniforms: Array) -> npt.NDArray[np.int64]:
    """The first index at which the cumulative probability of a row passes its uniform, (N,)."""
    cumulative = np.cumsum(probs, axis=1)
    chosen: npt.NDArray[np.int64] = ((uniforms * cumulative[:, -1])[:, None] >= cumulative).sum(axis=1)
    return chosen
