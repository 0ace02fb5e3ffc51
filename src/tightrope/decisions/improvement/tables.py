"""Logs as tables: states and actions by number, the behaviour policy in each state, and a model of what follows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.policy import DiscretePolicy

CONSTANT = 1e-6  # a probability that differs by more between two steps is not the same number
MOST_PAIRS = 5_000_000  # of states and actions


@dataclass(frozen=True, eq=False)
class Coded:
    """Steps as numbers, and the behaviour policy as a table."""

    dataset: TrajectoryDataset
    states: npt.NDArray[Any]  # (S,): the name of each state
    actions: npt.NDArray[Any]  # (A,)
    place: IntArray  # (N,): the state of each step
    taken: IntArray  # (N,): its action
    behavior: Array  # (S, A)
    known: bool  # whether that is the behaviour policy itself; or else rows that the logs show in part were filled up

    @classmethod
    def of(cls, data: TrajectoryDataset) -> Coded:
        """All logs; refuses what has no table."""
        if data.behavior_log_probs is None:
            raise DataError(
                "a better policy is looked for near the one that made the logs, and these hold no behaviour "
                "probabilities: add a column behavior_prob, or give the behaviour policy, read(..., behavior=policy) "
                "(--behavior-policy)"
            )
        states, place = _numbered("state", data.states)
        actions, taken = _numbered("action", data.actions)
        if len(states) * len(actions) > MOST_PAIRS:
            raise DataError(
                f"states and actions must make at most {MOST_PAIRS:,} pairs for a table; the logs hold {len(states)} "
                f"states and {len(actions)} actions. Group the states"
            )
        policy = data.behavior
        if isinstance(policy, DiscretePolicy) and actions.dtype.kind in "iu":
            first, last = (policy.probs(states, np.full(len(states), t)) for t in (0, data.horizon - 1))
            width = max(first.shape[1], int(actions[-1]) + 1)
            if np.allclose(first, last, rtol=0.0, atol=CONSTANT):
                table = np.zeros((len(states), width))
                table[:, : first.shape[1]] = first
                return cls(data, states, np.arange(width), place, actions[taken].astype(np.int64), table, True)
        return cls(data, states, actions, place, taken, *_shown(data, place, taken, len(states), len(actions)))

    def take(self, episodes: IntArray) -> Coded:
        """Some of the episodes, with all states."""
        steps = self.dataset.steps_of(episodes)
        part, place, taken = self.dataset.take(episodes), self.place[steps], self.taken[steps]
        # What is not known is shown by these episodes alone: others must have no say in what is made of them.
        behavior = self.behavior if self.known else _shown(part, place, taken, *self.shape)[0]
        return Coded(part, self.states, self.actions, place, taken, behavior, self.known)

    @property
    def shape(self) -> tuple[int, int]:
        """How many states and actions there are."""
        return len(self.states), len(self.actions)

    @cached_property
    def pairs(self) -> IntArray:
        """The number of each step's state and action, (N,)."""
        return self.place * len(self.actions) + self.taken

    @cached_property
    def following(self) -> IntArray:
        """The state after each step, (N,): S after an end; −1 where it is not known, as after the horizon's last step.

        There it is unknown for all: keeping those that ended would count ends more often than they happen.
        """
        data = self.dataset
        result = np.append(self.place[1:], 0)
        last = data.offsets[1:] - 1
        result[last] = np.where(data.terminated, len(self.states), -1)
        result[data.times == data.horizon - 1] = -1
        return result


def _numbered(name: str, values: npt.NDArray[Any] | None) -> tuple[npt.NDArray[Any], IntArray]:
    if values is None or values.ndim != 1 or values.dtype.kind not in "iubU":
        held = "none" if values is None else f"{values.dtype} of shape {values.shape}"
        raise DataError(f"{name}s must be one whole number or text per step for a table; the logs hold {held}")
    labels, place = np.unique(values, return_inverse=True)
    return labels, place.astype(np.int64)


def _shown(data: TrajectoryDataset, place: IntArray, taken: IntArray, states: int, actions: int) -> tuple[Array, bool]:
    """The behaviour policy as the logged probabilities show it, and whether they show all of it."""
    assert data.behavior_log_probs is not None
    probs, pairs = np.exp(data.behavior_log_probs), place * actions + taken
    counts = np.bincount(pairs, minlength=states * actions)
    table = np.bincount(pairs, weights=probs, minlength=states * actions) / np.maximum(counts, 1)
    constant = bool((np.abs(probs - table[pairs]) <= CONSTANT).all())
    table = table.reshape(states, actions)
    total = table.sum(axis=1, keepdims=True)
    # In a state that these episodes do not hold: all actions that they know, alike.
    table[total[:, 0] == 0] = np.bincount(taken, minlength=actions) > 0
    total = table.sum(axis=1, keepdims=True)
    return table / total, constant and bool(np.allclose(total, 1.0, rtol=0.0, atol=CONSTANT))


@dataclass(frozen=True, eq=False)
class TableModel:
    """What follows a pair of state and action, counted: the mean reward, and the chances of the next states."""

    logs: Coded

    @cached_property
    def counts(self) -> Array:
        """How often each pair was logged, (S, A)."""
        return self._sums(np.ones(len(self.logs.pairs))).reshape(self.logs.shape)

    @cached_property
    def rewards(self) -> Array:
        """The mean reward of each pair, (S·A,); 0 where there is none."""
        result: Array = self._sums(self.logs.dataset.rewards) / np.maximum(self.counts.reshape(-1), 1)
        return result

    @cached_property
    def arcs(self) -> tuple[IntArray, IntArray, Array]:
        """The distinct moves: their pair, their next state, and their chance given the pair."""
        states = self.logs.shape[0]
        known = self.logs.following >= 0
        keys, count = np.unique(self.logs.pairs[known] * (states + 1) + self.logs.following[known], return_counts=True)
        pair = keys // (states + 1)
        total = np.bincount(pair, weights=count, minlength=self.counts.size)
        return pair, keys % (states + 1), count / total[pair]

    def action_values(self, ahead: Array) -> Array:
        """Q of every pair, (S, A), where the next states are worth ``ahead`` (S + 1,).

        A pair that was never logged counts as the mean of its state under the behaviour policy: neither good nor bad.
        """
        pair, following, chance = self.arcs
        moved = np.bincount(pair, weights=chance * ahead[following], minlength=self.counts.size)
        values = (self.rewards + self.logs.dataset.discount * moved).reshape(self.logs.shape)
        seen = self.counts > 0
        shares = np.where(seen, self.logs.behavior, 0.0)
        mean = (shares * values).sum(axis=1) / np.maximum(shares.sum(axis=1), np.finfo(float).tiny)
        return np.where(seen, values, mean[:, None])

    def _sums(self, values: Array) -> Array:
        sums = np.bincount(self.logs.pairs, weights=values, minlength=int(np.prod(self.logs.shape)))
        return sums.astype(np.float64)
