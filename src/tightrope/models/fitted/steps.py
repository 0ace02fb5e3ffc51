"""Logged steps as fitted Q evaluation needs them: features of what was done, and of what the candidate would do.

A *place* is a state that the logs hold: the state of each step, N in all, and then the final states of the episodes
that go on. A *basis* turns places and actions into features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset

END, UNKNOWN = -1, -2  # what follows a step instead of a place: nothing, or nobody knows what
CHUNK_BYTES = 8 << 20  # what the features of some steps may take


class Choices(NamedTuple):
    """What the candidate would do in some places: m choices in all, each with the features of its pair."""

    owners: IntArray  # (m,), rising: which of the places each belongs to
    probs: Array  # (m,): how likely the candidate makes it there
    inputs: Array  # (m, p)

    def mean(self, values: Array, count: int) -> Array:
        """The candidate's average of values (m,) in each of ``count`` places."""
        return np.bincount(self.owners, weights=self.probs * values, minlength=count).astype(np.float64)


class Basis(Protocol):
    """Features of pairs of a place and an action."""

    @property
    def names(self) -> list[str]:
        """Their names, for messages, (p,)."""
        ...

    def taken(self, steps: IntArray) -> Array:
        """Features of what was done at these steps, (k, p)."""
        ...

    def choices(self, places: IntArray, times: IntArray) -> Choices:
        """What the candidate would do in these places at these times."""
        ...

    def expected(self, places: IntArray, times: IntArray) -> Array:
        """The candidate's average features in these places at these times, (k, p)."""
        ...

    def signature(self, places: IntArray, t: int) -> bytes:
        """What the candidate would do in these places at time t; equal where it would do the same."""
        ...


@dataclass(frozen=True, eq=False)
class Steps:
    """The logged steps: what was done, and where each led."""

    data: TrajectoryDataset
    basis: Basis
    following: IntArray  # (N,): the place after each step; END or UNKNOWN
    stationary: bool  # whether the candidate is known not to change with time

    @property
    def width(self) -> int:
        """How many features there are."""
        return len(self.basis.names)

    @cached_property
    def known(self) -> BoolArray:
        """Whether it is known what follows, (N,)."""
        return np.asarray(self.following != UNKNOWN)

    @property
    def starts(self) -> IntArray:
        """The place where each episode starts, (n,)."""
        return self.data.offsets[:-1]

    def expected(self, places: IntArray, times: IntArray) -> Array:
        """The candidate's average features in each place at its time, (k, p); 0 where there is no place."""
        result = np.zeros((len(places), self.width))
        real = np.flatnonzero(places >= 0)
        if len(real):
            result[real] = self.basis.expected(places[real], times[real])
        return result

    def chunks(self, copies: int = 1) -> Iterator[tuple[int, int]]:
        """Ranges of episodes, small enough that ``copies`` of their features fit into a cache."""
        return self.data.ranges(max(1, CHUNK_BYTES // (8 * self.width * copies)))

    @cached_property
    def kinds(self) -> IntArray:
        """Times at which the candidate does the same wherever a step led have the same number, (horizon,).

        Time 0 is left out, since no step leads to it.
        """
        horizon, numbers = self.data.horizon, np.zeros(self.data.horizon, dtype=np.int64)
        if self.stationary or horizon < 3:
            return numbers
        places, seen = self.following[self.following >= 0], dict[bytes, int]()
        for t in range(1, horizon):
            numbers[t] = seen.setdefault(self.basis.signature(places, t), len(seen))
        return numbers

    @property
    def typical_times(self) -> list[int]:
        """One time of each kind, in the order of their numbers."""
        return [int(np.flatnonzero(self.kinds == kind)[-1]) for kind in range(int(self.kinds.max()) + 1)]


def following_places(data: TrajectoryDataset, final_known: BoolArray) -> IntArray:
    """The place after each step, (N,); final states of episodes that go on follow the N logged ones, in their order.

    Unless the logs hold the state after the horizon's last step for every episode that goes on, that step is unknown
    for all, the ended ones too: keeping those that ended and not the others would count ends more often than they
    happen. Logs without such states may flag as ended what only reached the horizon. After the only step of an episode
    nothing is earned, whether it has ended or not.
    """
    following, last, going_on = np.arange(1, data.n_steps + 1), data.offsets[1:] - 1, ~data.terminated
    following[last] = END
    if data.horizon == 1:
        return following
    if data.final_states is None or (going_on & ~final_known).any():
        following[last[data.lengths == data.horizon]] = UNKNOWN
    else:
        following[last[going_on]] = data.n_steps + np.arange(int(going_on.sum()))
    return following


def stacked(data: TrajectoryDataset, final_known: BoolArray) -> npt.NDArray[Any]:
    """The state of every place."""
    assert data.states is not None
    going_on = ~data.terminated
    if data.final_states is None or (going_on & ~final_known).any():
        return data.states
    final = data.final_states[going_on].reshape(-1, *data.states.shape[1:])
    return np.concatenate([data.states, final.astype(data.states.dtype)])
