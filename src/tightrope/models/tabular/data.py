"""Logs reduced to what a tabular model counts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.models.tabular.chain import Chain, Index, Meetings, Timeline

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

    @classmethod
    def build(
        cls,
        data: TrajectoryDataset,
        pair: IntArray,
        following: IntArray,
        starts: IntArray,
        *,
        probs: Array,
        unseen: int,
        unseen_reward: float,
        known_rewards: Array | None,
        smoothing: float,
    ) -> TabularData:
        """Find the distinct kinds and arcs; all arcs, seen or not, where they are smoothed."""
        _, n_states, n_actions = probs.shape
        arc_key = pair * (n_states + 2) + following + 1  # unknown (-1) comes first
        rewards, reward_of = np.unique(data.rewards, return_inverse=True)
        distinct, arc_of = np.unique(arc_key, return_inverse=True)  # keys of keys would not fit into 64 bits
        kind_key, kinds = np.unique(arc_of * len(rewards) + reward_of, return_inverse=True)
        kind_arc_key = distinct[kind_key // len(rewards)]
        known = kind_arc_key % (n_states + 2) > 0
        arc_keys = np.unique(kind_arc_key[known])
        if smoothing > 0:
            size = n_states * n_actions * (n_states + 1)
            if size > MOST_ARCS:
                raise DataError(
                    f"smoothing must make at most {MOST_ARCS} transitions; with {n_states} states it makes {size}"
                )
            pairs, nexts = np.divmod(np.arange(size), n_states + 1)
            arc_keys = pairs * (n_states + 2) + nexts + 1
        kind_arc = np.full(len(kind_key), -1)
        kind_arc[known] = np.searchsorted(arc_keys, kind_arc_key[known])
        arc_pair = arc_keys // (n_states + 2)
        return cls(
            data.offsets,
            kinds.astype(np.int32),
            starts.astype(np.int32),
            (kind_arc_key // (n_states + 2)).astype(np.int32),
            kind_arc.astype(np.int32),
            rewards[kind_key % len(rewards)],
            arc_pair.astype(np.int32),
            (arc_keys % (n_states + 2) - 1).astype(np.int32),
            np.searchsorted(arc_pair, np.arange(n_states * n_actions + 1)).astype(np.int32),
            probs,
            unseen,
            unseen_reward,
            known_rewards,
            smoothing / (n_states + 1),
            data.discount,
        )

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return len(self.starts)

    @property
    def trajectories(self) -> IntArray:
        """Which episode each step belongs to, (N,)."""
        return np.repeat(np.arange(self.n_trajectories), np.diff(self.offsets))

    @cached_property
    def step_meetings(self) -> Meetings:
        """Which episodes took each kind of step."""
        return Meetings.of(self.kinds, self.trajectories, len(self.kind_pair))

    @cached_property
    def start_meetings(self) -> Meetings:
        """Which episodes started in each state."""
        return Meetings.of(self.starts, np.arange(self.n_trajectories), self.probs.shape[1])

    @cached_property
    def timeline(self) -> Timeline:
        """The steps sorted by time."""
        return Timeline.of(self.probs.shape, self.offsets, self.kind_pair[self.kinds], self.kind_reward[self.kinds])

    @cached_property
    def chain(self) -> Chain:
        """The states that the candidate can reach."""
        return Chain.of(self.probs, self.arc_pair, self.arc_next, self.starts)

    @cached_property
    def places(self) -> tuple[IntArray, IntArray]:
        """The state and the time of each step, (N,) each."""
        states = self.kind_pair[self.kinds] // self.probs.shape[2]
        return states, np.arange(len(self.kinds)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def outcomes(self) -> tuple[TabularData, Array, Array]:
        """Each kind of step that the model of all logs can take, its probability given the pair, and the pairs' visits.

        Smoothing makes transitions possible that were never logged: each becomes a kind with the pair's mean reward.
        """
        n_pairs = self.probs.shape[1] * self.probs.shape[2]
        counts = np.bincount(self.kinds, minlength=len(self.kind_pair)).astype(np.float64)
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
