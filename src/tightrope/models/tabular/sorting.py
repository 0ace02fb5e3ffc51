"""Logged steps sorted by their kind and by their time, in files where the logs are in files."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tightrope.base import folder
from tightrope.base.arrays import ranges
from tightrope.base.dataset import Array, IntArray
from tightrope.base.folder import Scratch, parts

Index = npt.NDArray[np.int32]


@dataclass(frozen=True, eq=False)
class Stretch:
    """Some episodes, one after the other."""

    first: int
    offsets: IntArray  # (k+1,)

    @property
    def steps(self) -> slice:
        """Where their steps lie."""
        return slice(int(self.offsets[0]), int(self.offsets[-1]))

    @property
    def lengths(self) -> IntArray:
        """How many steps each has, (k,)."""
        return np.diff(self.offsets)

    @property
    def whose(self) -> IntArray:
        """Which episode each step belongs to."""
        return np.repeat(np.arange(self.first, self.first + len(self.offsets) - 1), self.lengths)

    @property
    def times(self) -> IntArray:
        """The time of each step within its episode."""
        return np.asarray(np.arange(self.offsets[0], self.offsets[-1]) - np.repeat(self.offsets[:-1], self.lengths))

    @property
    def last(self) -> IntArray:
        """The last step of each, (k,), counted from the first of all of them."""
        return np.asarray(self.offsets[1:] - 1 - self.offsets[0])


def stretches(offsets: IntArray) -> Iterator[Stretch]:
    """All episodes, about PART steps at a time; cut alike whether the logs are in files or not."""
    for start, stop in ranges(offsets, folder.PART):
        yield Stretch(start, offsets[start : stop + 1])


@dataclass(frozen=True, eq=False)
class Meetings:
    """Which episodes took each kind of step, sorted by kind, so that counting only reads."""

    edges: IntArray  # (K+1,)
    members: Index  # (N,)

    @classmethod
    def of(cls, kinds: Index, offsets: IntArray, n_kinds: int, scratch: Scratch) -> Meetings:
        """Each episode met the kinds of its steps."""
        keys = scratch.empty(len(kinds), np.int64)
        for some in stretches(offsets):
            keys[some.steps] = kinds[some.steps].astype(np.int64) << 32 | some.whose
        keys.sort()  # where they lie: a file takes no other memory for it
        edges, members = scratch.empty(n_kinds + 1, np.int64), scratch.empty(len(kinds), np.int32)
        for part in parts(n_kinds + 1):
            edges[part] = np.searchsorted(keys, np.arange(part.start, part.stop) << 32)
        for part in parts(len(kinds)):
            members[part] = keys[part] & 0xFFFFFFFF
        return cls(edges, members)


@dataclass(frozen=True, eq=False)
class Timeline:
    """The logged steps sorted by time, as the induction backwards meets them."""

    offsets: IntArray  # (n+1,)
    edges: IntArray  # (L+1,): the steps of each time
    trajectories: Index  # (N,)
    pairs: Index  # (N,)
    nexts: Index  # (N,): the state that the episode acts in next; S where it acts no more
    rewards: Array  # (N,)
    scratch: Scratch

    @classmethod
    def of(
        cls,
        shape: tuple[int, ...],
        offsets: IntArray,
        kinds: Index,
        kind_pair: Index,
        kind_reward: Array,
        scratch: Scratch,
    ) -> Timeline:
        """Sort the steps; the shape is that of the policy's table, (L, S, A)."""
        horizon, n_states, n_actions = shape
        ending = np.bincount(np.diff(offsets), minlength=horizon + 1)[1:]
        edges = np.append(0, np.cumsum(np.cumsum(ending[::-1])[::-1]))
        whose, pairs, nexts = (scratch.empty(len(kinds), np.int32) for _ in range(3))
        result = cls(offsets, edges, whose, pairs, nexts, scratch.empty(len(kinds)), scratch)
        for some, order, place in result._sorted():
            kind = kinds[some.steps]
            pair = kind_pair[kind]
            following = np.append(pair[1:] // n_actions, n_states)
            following[some.last] = n_states
            whose[place], pairs[place], nexts[place] = some.whose[order], pair[order], following[order]
            result.rewards[place] = kind_reward[kind[order]]
        return result

    def in_order(self, values: Array) -> Array:
        """Values of all steps (N,), sorted by time."""
        result = self.scratch.empty(len(values))
        for some, order, place in self._sorted():
            result[place] = values[some.steps][order]
        return result

    def _sorted(self) -> Iterator[tuple[Stretch, IntArray, IntArray]]:
        """Some episodes, the order of their steps by time, and where each then stands among all."""
        reached = self.edges[:-1].copy()
        for some in stretches(self.offsets):
            times = some.times
            counts = np.bincount(times, minlength=len(reached))
            place = np.repeat(reached - (np.cumsum(counts) - counts), counts) + np.arange(len(times))
            reached += counts
            yield some, np.argsort(times, kind="stable"), place
