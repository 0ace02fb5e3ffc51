"""Logs reduced to what a tabular model counts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.folder import Scratch, parts, ranked
from tightrope.models.tabular.blocks import lanes
from tightrope.models.tabular.chain import Chain
from tightrope.models.tabular.kinds import Kinds
from tightrope.models.tabular.sorting import Index, Meetings, Stretch, Timeline, stretches

MOST_ARCS = 2_000_000  # that smoothing may fill in


@dataclass(frozen=True, eq=False)
class TabularData:
    """Logs reduced to what counting needs: each step is one of K kinds (pair, next state, reward)."""

    offsets: IntArray  # (n+1,)
    kinds: Index  # (N,)
    starts: Index  # (n,)
    kind_pair: Index  # (K,)
    kind_arc: Index  # (K,): which distinct (pair, next state); -1 unknown
    kind_reward: Array  # (K,)
    arc_pair: Index  # (J,), rising
    arc_next: Index  # (J,): S is the end
    pair_arcs: Index  # (P+1,): the arcs of each pair
    probs: Array  # (L, S, A)
    unseen: int
    unseen_reward: float
    known_rewards: Array | None  # (P,)
    pseudo: float  # added to the count of every arc
    discount: float
    scratch: Scratch  # for arrays of N numbers
    whose: IntArray | None  # (n,): the cluster of each episode; None: every episode is an independent draw

    @classmethod
    def build(
        cls,
        data: TrajectoryDataset,
        places: Callable[[Stretch], tuple[IntArray, IntArray]],  # the pairs of some episodes' steps, and what follows
        starts: Index,
        *,
        probs: Array,
        unseen: int,
        unseen_reward: float,
        known_rewards: Array | None,
        smoothing: float,
    ) -> TabularData:
        """Find the distinct kinds and arcs; all arcs, seen or not, where they are smoothed."""
        _, n_states, n_actions = probs.shape
        width = n_states + 2

        def keys(some: Stretch) -> IntArray:
            pair, following = places(some)
            return np.asarray(pair * width + following + 1)  # unknown (-1) comes first

        kinds = Kinds.of(data, keys)
        known = kinds.arc_keys % width > 0
        arc_keys = kinds.arc_keys[known] if smoothing == 0 else _every_arc(n_states, n_actions)
        arc_pair = arc_keys // width
        return cls(
            data.offsets,
            kinds.of_steps,
            starts,
            kinds.by_arc(kinds.arc_keys // width),
            kinds.by_arc(np.where(known, np.searchsorted(arc_keys, kinds.arc_keys), -1)),
            kinds.rewards,
            arc_pair.astype(np.int32),
            (arc_keys % width - 1).astype(np.int32),
            np.searchsorted(arc_pair, np.arange(n_states * n_actions + 1)).astype(np.int32),
            probs,
            unseen,
            unseen_reward,
            known_rewards,
            smoothing / (n_states + 1),
            data.discount,
            data.scratch,
            None if data.clusters is None else ranked(data.clusters, data.scratch)[1],
        )

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return len(self.starts)

    @cached_property
    def step_meetings(self) -> Meetings:
        """Which episodes took each kind of step."""
        return Meetings.of(self.kinds, self.offsets, len(self.kind_pair), self.scratch)

    @cached_property
    def start_meetings(self) -> Meetings:
        """Which episodes started in each state."""
        places = self.scratch.numbered(self.n_trajectories + 1)
        return Meetings.of(self.starts, places, self.probs.shape[1], self.scratch)

    @cached_property
    def timeline(self) -> Timeline:
        """The steps sorted by time."""
        return Timeline.of(self.probs.shape, self.offsets, self.kinds, self.kind_pair, self.kind_reward, self.scratch)

    @cached_property
    def chain(self) -> Chain:
        """The states that the candidate can reach."""
        return Chain.of(self.probs, self.arc_pair, self.arc_next, self.starts)

    def outcomes(self) -> tuple[TabularData, Array, Array]:
        """Each kind of step that the model of all logs can take, its probability given the pair, and the pairs' visits.

        Smoothing makes transitions possible that were never logged: each becomes a kind with the pair's mean reward.
        """
        n_pairs = self.probs.shape[1] * self.probs.shape[2]
        counts = np.zeros(len(self.kind_pair))
        for some in parts(len(self.kinds)):
            np.add.at(counts, self.kinds[some], 1.0)
        visits: Array = np.bincount(self.kind_pair, weights=counts, minlength=n_pairs).astype(np.float64)
        if self.pseudo == 0:
            return self, counts / visits[self.kind_pair], visits
        known = self.kind_arc >= 0
        logged = np.bincount(self.kind_arc[known], weights=counts[known], minlength=len(self.arc_pair))
        added = np.flatnonzero((logged == 0) & (visits[self.arc_pair] > 0))
        earned = np.bincount(self.kind_pair, weights=counts * self.kind_reward, minlength=n_pairs)
        pair = np.concatenate([self.kind_pair, self.arc_pair[added]])
        arc = np.concatenate([self.kind_arc, added.astype(np.int32)])
        reward = np.concatenate([self.kind_reward, (earned / np.maximum(visits, 1))[self.arc_pair[added]]])
        smoothed = logged + self.pseudo
        by_arc = smoothed / np.bincount(self.arc_pair, weights=smoothed, minlength=n_pairs)[self.arc_pair]
        weighted = np.bincount(
            self.kind_pair[known], weights=counts[known], minlength=n_pairs
        )  # visits whose next is known
        part = np.where(known, counts / np.maximum(logged[self.kind_arc], 1), 0.0)  # of the arc's visits, by reward
        part = np.concatenate([part, np.ones(len(added))])
        shares = part * by_arc[arc] * weighted[pair] / visits[pair]
        unknown = np.flatnonzero(~known)
        shares[unknown] = counts[unknown] / visits[self.kind_pair[unknown]]
        order = np.argsort(pair, kind="stable")
        data = replace(self, kind_pair=pair[order], kind_arc=arc[order], kind_reward=reward[order])
        return data, shares[order], visits

    def lanes_of_kinds(self) -> Array:
        """Room for a number of each kind and lane, (K, lanes)."""
        return lanes(len(self.kind_pair), self.scratch)

    def lanes_of_weights(self) -> Array:
        """Room for a weight of each episode and lane, (n, lanes)."""
        return lanes(self.n_trajectories, self.scratch)

    @cached_property
    def held_once(self) -> BoolArray:
        """Which pairs a single episode holds, or a single cluster of them, (P,)."""
        pairs = self.probs.shape[1] * self.probs.shape[2]
        first, last = np.full(pairs, self.n_trajectories), np.full(pairs, -1)
        for some in stretches(self.offsets):
            here = self.kind_pair[self.kinds[some.steps]]
            whose = some.whose if self.whose is None else self.whose[some.whose]
            np.minimum.at(first, here, whose)
            np.maximum.at(last, here, whose)
        result: BoolArray = first == last
        return result


def _every_arc(n_states: int, n_actions: int) -> IntArray:
    """The keys of all pairs with all next states."""
    size = n_states * n_actions * (n_states + 1)
    if size > MOST_ARCS:
        raise DataError(f"smoothing must make at most {MOST_ARCS} transitions; with {n_states} states it makes {size}")
    pairs, nexts = np.divmod(np.arange(size), n_states + 1)
    return np.asarray(pairs * (n_states + 2) + nexts + 1)
