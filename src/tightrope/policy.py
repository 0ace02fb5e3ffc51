"""What a policy must answer, and the policies that need nothing but NumPy.

A policy answers ``log_prob(states, actions, t)``: the log-probability (log-density for continuous actions) of each
action in its state at its time. Policies over a finite action set also answer ``probs(states, t)``. States, actions
and times come as arrays with one row per step.

Policies that can act answer ``act(states, t, uniforms)``: actions as a function of ``noise_width`` uniform numbers per
step, so that whoever simulates decides about the noise and can hold it fixed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tightrope.errors import PolicyError

Array = npt.NDArray[np.float64]
Anything = npt.NDArray[Any]

SUM_TOLERANCE = 1e-6
_EDGE = 2.0**-40


@runtime_checkable
class Policy(Protocol):
    """Anything that can say how likely it would have taken the logged actions."""

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
    """Anything that can act, with the noise given from outside."""

    @property
    def noise_width(self) -> int:
        """How many uniform numbers an action takes."""
        ...

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """One action per state from uniforms (N, noise_width), each above 0 and below 1."""
        ...


class _Sampling:
    """Samples from ``act``."""

    def sample(self: Actor, states: Anything, t: npt.NDArray[np.int64], *, rng: np.random.Generator) -> Anything:
        """One action per state, (N,) or (N, k)."""
        return self.act(states, t, open_uniforms(rng, (len(states), self.noise_width)))


class _Discrete(_Sampling):
    """Log-probabilities and samples from ``probs``, for policies over a finite action set."""

    noise_width = 1

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        raise NotImplementedError

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log-probability of each action, (N,)."""
        table = self.probs(states, t)
        index = _action_index(actions, table.shape[1])
        with np.errstate(divide="ignore"):
            return np.log(table[np.arange(len(table)), index])

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """The action at which the cumulative probability passes the uniform, (N,)."""
        return _invert(self.probs(states, t), uniforms[:, 0])


@dataclass(frozen=True, eq=False)
class TabularPolicy(_Discrete):
    """Probabilities in a table: (states, actions), or (times, states, actions) when they change with time."""

    table: Array

    def __init__(self, probs: npt.ArrayLike):
        table = _numbers("probs", probs)
        if table.ndim not in (2, 3):
            raise PolicyError(
                f"probs has shape {table.shape}; give (states, actions), or (times, states, actions) for a policy that "
                "changes with time"
            )
        check_probs("probs", table)
        object.__setattr__(self, "table", table)

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Probabilities of all actions, (N, k)."""
        if states.ndim != 1 or states.dtype.kind not in "iu":
            raise PolicyError(
                f"a TabularPolicy needs one integer state per step; the logs hold {states.dtype} of shape "
                f"{states.shape}"
            )
        _check_index("state", states, self.table.shape[-2], "the policy's table has that many rows")
        if self.table.ndim == 2:
            return self.table[states]
        _check_index("time", t, len(self.table), "the policy's table covers that many steps")
        return self.table[t, states]


@dataclass(frozen=True, eq=False)
class SoftmaxPolicy(_Discrete):
    """Probabilities ∝ exp(preference / temperature), with ``preferences(states, t)`` giving (N, k)."""

    preferences: Callable[[Anything, npt.NDArray[np.int64]], Anything]
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if not self.temperature > 0:
            raise PolicyError(f"temperature is {self.temperature}; it must be positive")

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log-probability of each action, (N,), exact where the probability itself is too small for a float."""
        table = self._log_probs(states, t)
        return table[np.arange(len(table)), _action_index(actions, table.shape[1])]

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Probabilities of all actions, (N, k)."""
        return np.exp(self._log_probs(states, t))

    def _log_probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        logits = _numbers("preferences", self.preferences(states, t)) / self.temperature
        if logits.ndim != 2 or len(logits) != len(states):
            raise PolicyError(f"preferences returned shape {logits.shape}; (N, actions) with N={len(states)} expected")
        top = logits.max(axis=1, keepdims=True)
        if not np.isfinite(top).all():
            row = int(np.argmin(np.isfinite(top)))
            raise PolicyError(f"preferences are {logits[row]}; numbers are expected, at least one above -inf", row=row)
        logits = logits - top
        normalized: Array = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return normalized


@dataclass(frozen=True, eq=False)
class DeterministicPolicy(_Discrete):
    """Always the action ``choose(states, t)``, an integer below ``n_actions``."""

    choose: Callable[[Anything, npt.NDArray[np.int64]], Anything]
    n_actions: int

    def __post_init__(self) -> None:
        _check_count(self.n_actions)

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """One on the chosen action, (N, k)."""
        chosen = np.asarray(self.choose(states, t))
        if chosen.shape != (len(states),):
            raise PolicyError(f"choose returned shape {chosen.shape}; one action per state, ({len(states)},), expected")
        return np.eye(self.n_actions)[_action_index(chosen, self.n_actions)]


@dataclass(frozen=True, eq=False)
class UniformPolicy(_Discrete):
    """Every one of ``n_actions`` actions alike."""

    n_actions: int

    def __post_init__(self) -> None:
        _check_count(self.n_actions)

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        """1/k everywhere, (N, k)."""
        return np.full((len(states), self.n_actions), 1.0 / self.n_actions)


@dataclass(frozen=True, eq=False)
class MixturePolicy(_Sampling):
    """At every step a fresh draw of which policy acts; not one policy for a whole episode."""

    policies: Sequence[Policy]
    weights: Sequence[float]

    def __post_init__(self) -> None:
        if len(self.policies) != len(self.weights) or not self.policies:
            raise PolicyError(
                f"{len(self.policies)} policies and {len(self.weights)} weights; as many of each, at least one"
            )
        check_probs("weights", _numbers("weights", [self.weights]))
        object.__setattr__(self, "policies", tuple(as_policy(policy) for policy in self.policies))

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log of the weighted sum of the parts' probabilities, (N,)."""
        parts = [
            np.log(weight) + policy.log_prob(states, actions, t)
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
            weight * policy.probs(states, t)  # type: ignore[attr-defined]
            for policy, weight in zip(self.policies, self.weights, strict=True)
        )

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
class GaussianPolicy(_Sampling):
    """Continuous actions: normal around ``mean(states, t)``, (N, k), with a full covariance matrix (k, k)."""

    mean: Callable[[Anything, npt.NDArray[np.int64]], Anything]
    covariance: Array

    def __init__(self, mean: Callable[[Anything, npt.NDArray[np.int64]], Anything], covariance: npt.ArrayLike):
        matrix = np.atleast_2d(_numbers("covariance", covariance))
        if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.allclose(matrix, matrix.T):
            raise PolicyError(f"covariance has shape {matrix.shape}; a symmetric (k, k) matrix is expected")
        try:
            np.linalg.cholesky(matrix)
        except np.linalg.LinAlgError:
            raise PolicyError(
                "covariance is not positive definite; a policy without noise has no density, and importance sampling "
                "cannot evaluate it"
            ) from None
        object.__setattr__(self, "mean", mean)
        object.__setattr__(self, "covariance", matrix)

    @cached_property
    def _factor(self) -> Array:
        return np.linalg.cholesky(self.covariance).astype(np.float64)

    @property
    def max_log_density(self) -> float:
        """The log-density at the mean, the largest there is."""
        k = len(self.covariance)
        return -0.5 * k * float(np.log(2 * np.pi)) - float(np.log(np.diag(self._factor)).sum())

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """Log-density of each action, (N,)."""
        if actions.dtype.kind != "f":
            raise PolicyError(f"a GaussianPolicy needs float actions; the logs hold {actions.dtype}")
        given = actions.reshape(len(actions), -1)
        center = self._center(states, t)
        if given.shape != center.shape:
            raise PolicyError(f"the logs' actions have shape {given.shape}, the policy's mean {center.shape}")
        scaled = np.linalg.solve(self._factor, (given - center).T)
        squares: Array = np.square(scaled).sum(axis=0)
        return self.max_log_density - 0.5 * squares

    @property
    def noise_width(self) -> int:
        """One uniform per dimension of the action."""
        return len(self.covariance)

    def act(self, states: Anything, t: npt.NDArray[np.int64], uniforms: Array) -> Anything:
        """The mean plus correlated normal noise, by inversion, (N, k)."""
        from scipy.special import ndtri

        return self._center(states, t) + ndtri(uniforms) @ self._factor.T

    def _center(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        center, k = _numbers("mean", self.mean(states, t)), len(self.covariance)
        if center.shape != (len(states), k) and not (k == 1 and center.shape == (len(states),)):
            raise PolicyError(f"mean returned shape {center.shape}; ({len(states)}, {k}), as the covariance, expected")
        return center.reshape(len(states), k)


@dataclass(frozen=True, eq=False)
class CallablePolicy:
    """Any function ``f(states, actions, t)`` of the logged actions' probabilities, or of their logarithms."""

    function: Callable[[Anything, Anything, npt.NDArray[np.int64]], Anything]
    log: bool = False

    def log_prob(self, states: Anything, actions: Anything, t: npt.NDArray[np.int64]) -> Array:
        """What the function returns, as logarithms, (N,)."""
        values = _numbers("the policy function", self.function(states, actions, t))
        if self.log:
            return values
        if (values < 0).any():
            raise PolicyError(
                f"the policy function returned {values[values < 0][0]:g}, below 0: if these are log-probabilities, "
                "wrap it as CallablePolicy(function, log=True)"
            )
        with np.errstate(divide="ignore"):
            return np.log(values)


def as_policy(policy: Any) -> Policy:
    """A policy as it is; a bare callable as one returning probabilities; a table as a TabularPolicy."""
    if isinstance(policy, Policy):
        return policy
    if isinstance(policy, np.ndarray):
        return TabularPolicy(policy)
    if callable(policy):
        return CallablePolicy(policy)
    raise PolicyError(
        f"policy is a {type(policy).__name__}; give an object with log_prob(states, actions, t), a function of "
        "(states, actions, t) returning probabilities, a table of probabilities, or None to use the logs' eval_prob"
    )


@dataclass(frozen=True, eq=False)
class _FromProbs(_Discrete):
    """Lets a policy of somebody else's act by the probabilities it lists."""

    policy: DiscretePolicy

    def probs(self, states: Anything, t: npt.NDArray[np.int64]) -> Array:
        return _numbers("probs", self.policy.probs(states, t))


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


def open_uniforms(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Uniform numbers kept off 0 and 1 by 2^-40, where inverse distribution functions fail."""
    draws = rng.random(shape)
    return np.clip(draws, _EDGE, 1.0 - _EDGE, out=draws)


def _invert(probs: Array, uniforms: Array) -> npt.NDArray[np.int64]:
    """The first index at which the cumulative probability of a row passes its uniform, (N,)."""
    cumulative = np.cumsum(probs, axis=1)
    chosen: npt.NDArray[np.int64] = ((uniforms * cumulative[:, -1])[:, None] >= cumulative).sum(axis=1)
    return chosen


def check_probs(name: str, table: Array) -> None:
    """Refuse entries below 0 or NaN and rows that do not sum to one."""
    bad = ~(table >= 0)
    if bad.any():
        at = tuple(int(i) for i in np.argwhere(bad)[0])
        raise PolicyError(f"{name}{list(at)} is {table[at]}; probabilities must be numbers ≥ 0")
    sums = table.sum(axis=-1)
    off = np.abs(sums - 1.0) > SUM_TOLERANCE
    if off.any():
        row = tuple(int(i) for i in np.argwhere(off)[0])
        raise PolicyError(f"row {list(row)} of {name} sums to {sums[row]:.8g}; each row must sum to one")


def _check_count(n_actions: Any) -> None:
    if not isinstance(n_actions, (int, np.integer)) or n_actions < 1:
        raise PolicyError(f"n_actions is {n_actions!r}; it must be a whole number, at least 1")


def _numbers(name: str, values: Any) -> Array:
    try:
        return np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise PolicyError(f"{name} must give numbers, all rows of one length: {error}") from error


def _check_index(name: str, values: Anything, size: int, why: str) -> None:
    bad = (values < 0) | (values >= size)
    if bad.any():
        row = int(np.argmax(bad))
        raise PolicyError(f"{name} {values[row]} is outside 0..{size - 1}: {why}", row=row)


def _action_index(actions: Anything, n_actions: int) -> Anything:
    if actions.ndim != 1 or actions.dtype.kind not in "iub":
        raise PolicyError(
            f"a policy over {n_actions} discrete actions needs one integer action per step; got {actions.dtype} of "
            f"shape {actions.shape}"
        )
    _check_index("action", actions, n_actions, f"the policy has {n_actions} actions")
    return actions.astype(np.int64)
