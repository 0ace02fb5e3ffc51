"""Logs as transitions of a continuous state: numbers for regression, and the shapes that users' functions expect."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_size, lent, numbers
from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.folder import distinct

Anything = npt.NDArray[Any]
Outcome = Callable[[Anything, Anything, Anything, IntArray], Any]  # (states, actions, next_states, t) -> (K,)


@dataclass(frozen=True, eq=False)
class Transitions:
    """The logs with their states as rows of numbers, and the state after each step where the logs hold it.

    The state after the last step of an episode is known where ``final_states`` holds it; otherwise that transition is
    left out. Rewards and ends are known for every step.
    """

    data: TrajectoryDataset
    states: Array  # (N, d)
    next_states: Array  # (N, d); 0 where unknown
    known: BoolArray  # (N,): whether the next state is
    actions: Anything  # (N,) or (N, k), as logged
    levels: IntArray | None  # the discrete actions logged, rising; None when actions are continuous
    whole: bool  # whether states are handed out as the integers they were logged as

    @classmethod
    def of(cls, data: TrajectoryDataset, *, discrete_states: bool = False) -> Transitions:
        """Take the logs apart; refuse states and actions that are not numbers."""
        states = _matrix(data, discrete_states)
        if data.actions is None or data.actions.dtype.kind not in "iubf" or data.actions.ndim > 2:
            held = "none" if data.actions is None else f"{data.actions.dtype} of shape {data.actions.shape}"
            raise DataError(f"actions must be integers (N,) or floats (N, k) for this model; the logs hold {held}")
        check_size("state", states, data.where)
        check_size("action", data.actions, data.where)
        discrete = bool(data.discrete_actions)
        if discrete and data.actions.ndim != 1:
            raise DataError(f"discrete actions must be one integer per step; got shape {data.actions.shape}")
        following, known = _following(data, states)
        levels = distinct(data.actions).astype(np.int64) if discrete else None
        assert data.states is not None
        whole = discrete_states and data.states.dtype.kind != "f"
        return cls(data, states, following, known, data.actions, levels, whole)

    @property
    def width(self) -> int:
        """How many numbers a state has."""
        return int(self.states.shape[1])

    @cached_property
    def ends(self) -> Array:
        """1 for the step that ended its episode for good, else 0, (N,)."""
        ends = self.data.scratch.empty(self.data.n_steps)
        ends[:] = 0.0
        ends[self.data.offsets[1:] - 1] = self.data.terminated
        return ends

    def of_survivors(self) -> Transitions:
        """The same with only the moves after which the episode went on, for models that learn ends apart."""
        known = self.data.scratch.empty(self.data.n_steps, np.bool_)
        np.logical_and(self.known, np.equal(self.ends, 0, out=known), out=known)
        return replace(self, known=known)

    def as_logged(self, states: Array) -> Anything:
        """States (K, d) in the shape of the logs: (K,) where those hold one number per step."""
        assert self.data.states is not None
        shaped = states.reshape(len(states), *self.data.states.shape[1:])
        return np.rint(shaped).astype(self.data.states.dtype) if self.whole else shaped

    def as_action(self, actions: Anything, count: int) -> Anything:
        """What a policy returned, in the shape of the logs' actions."""
        shape = (count, *self.actions.shape[1:])
        if np.size(actions) != np.prod(shape):
            raise DataError(
                f"the policy's actions must have shape {shape}, as in the logs; got shape {np.shape(actions)}"
            )
        return np.asarray(actions).reshape(shape)

    def encode(self, actions: Anything) -> Array:
        """Actions as numbers, (K, w): as they are, or one column per discrete action but the first logged."""
        if self.levels is None:
            return np.asarray(actions, dtype=np.float64).reshape(len(actions), -1)
        place = np.searchsorted(self.levels, actions).clip(max=len(self.levels) - 1)
        unseen = self.levels[place] != actions
        if unseen.any():
            raise DataError(
                f"the candidate's actions must be among the logged ones ({', '.join(map(str, self.levels))}), because "
                "a regression cannot know what follows others; it takes action "
                f"{actions[np.argmax(unseen)]}. Use a simulator, or a tabular model with a choice for unseen pairs"
            )
        columns: Array = (place[:, None] == np.arange(1, len(self.levels))).astype(np.float64)
        return columns

    def action_names(self) -> list[str]:
        """Names of the encoded columns, for messages."""
        if self.levels is not None:
            return [f"action = {level}" for level in self.levels[1:]]
        return [f"action {k}" for k in range(self.encode(self.actions[:1]).shape[1])]


def outcome(name: str, function: Outcome, *arguments: Any) -> Array:
    """What a user's function returns for K transitions, (K,); refuses other shapes, and numbers that are not finite."""
    values = numbers(name, function(*(lent(each) for each in arguments)), DataError)
    count = len(arguments[0])
    if values.shape != (count,):
        raise DataError(f"{name} must return one number per transition, ({count},); got shape {values.shape}")
    if not np.isfinite(values.sum()) and not np.isfinite(values).all():  # if the sum is finite, all of them are
        bad = ~np.isfinite(values)
        row = int(np.argmax(bad))
        raise DataError(f"{name} must return finite numbers; got {values[row]} for state {arguments[0][row]}")
    return values


def _matrix(data: TrajectoryDataset, discrete: bool) -> Array:
    """The states as rows of floats, (N, d)."""
    states = data.states
    if states is None:
        raise DataError(
            "the logs must hold states for this model, a number or a row of numbers per step; they hold none"
        )
    if states.dtype.kind not in "iubf" or states.ndim > 2:
        raise DataError(
            f"states must be numbers of shape (N,) or (N, d) for this model; got {states.dtype} of shape "
            f"{states.shape}. Use a tabular model for discrete states"
        )
    if states.ndim == 1 and states.dtype.kind != "f" and not discrete:
        raise DataError(
            f"states must be floats for this model; got one {states.dtype} per step. Use a tabular model for the names "
            "of discrete states; if these are quantities, give them as floats"
        )
    if states.dtype.kind in "iu" and (states.min() < -(2**53) or states.max() > 2**53):
        raise DataError(
            f"states must be below 2^53, where floats begin to have gaps; got {states.max()}. Number states from 0"
        )
    rows = states.reshape(len(states), -1)
    if rows.dtype == np.float64:
        return rows
    result = data.scratch.empty(rows.shape)
    result[:] = rows
    return result


def _following(data: TrajectoryDataset, states: Array) -> tuple[Array, BoolArray]:
    """The state after each step, and whether the logs hold it."""
    scratch = data.scratch
    following, known = scratch.empty(states.shape), scratch.empty(len(states), np.bool_)
    following[:-1], known[:] = states[1:], True
    last = data.offsets[1:] - 1
    final = np.full((len(last), states.shape[1]), np.nan)
    if data.final_states is not None:
        try:
            final = data.final_states.astype(np.float64).reshape(final.shape)
        except ValueError as error:
            raise DataError(
                f"final_states must have rows like those of states; got {data.final_states.dtype} of shape "
                f"{data.final_states.shape}: {error}"
            ) from error
    known[last] = np.isfinite(final).all(axis=1)
    following[last] = np.where(known[last][:, None], final, 0.0)
    return following, known
