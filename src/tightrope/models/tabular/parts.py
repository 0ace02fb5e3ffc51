"""What compiled kernels take, as one argument each: the logs, a block of models, the candidate's chain, and room."""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.models.tabular.blocks import LANES, several
from tightrope.models.tabular.data import TabularData
from tightrope.models.tabular.sorting import Index


class Logs(NamedTuple):
    """What is counted, and whose steps were of which kind; see ``TabularData``."""

    start_edges: IntArray
    start_members: Index
    step_edges: IntArray
    step_members: Index
    kind_pair: Index
    kind_arc: Index
    kind_reward: Array
    offsets: IntArray
    kinds: Index
    starts: Index

    @classmethod
    def of(cls, data: TabularData) -> Self:
        """All of them."""
        starts, steps = data.start_meetings, data.step_meetings
        meetings = starts.edges, starts.members, steps.edges, steps.members
        of_kinds = data.kind_pair, data.kind_arc, data.kind_reward
        return cls(*meetings, *of_kinds, data.offsets, data.kinds, data.starts)


class Parts(NamedTuple):
    """A block of models; see ``TabularFit`` and ``TabularData``."""

    arcs: Array
    arc_pair: Index
    arc_next: Index
    pair_arcs: Index
    arc_totals: Array
    gaps: BoolArray
    rewards: Array
    visits: Array
    start_counts: Array
    counts: Array  # room for those of some kinds at a time
    probs: Array
    known_rewards: Array  # (P,), or none
    pseudo: float
    discount: float
    unseen: int
    unseen_reward: float


class Steps(NamedTuple):
    """The logged steps sorted by time; see ``Timeline``."""

    edges: IntArray
    trajectories: Index
    pairs: Index
    offsets: IntArray

    @classmethod
    def of(cls, data: TabularData) -> Self:
        """All of them."""
        line = data.timeline
        return cls(line.edges, line.trajectories, line.pairs, data.offsets)

    @classmethod
    def none(cls, data: TabularData) -> Self:
        """None, at any time."""
        nobody = np.zeros(0, dtype=np.int32)
        return cls(np.zeros(len(data.probs) + 1, dtype=np.int64), nobody, nobody, data.offsets)


class Walking(NamedTuple):
    """The candidate's chain, and room to go backwards through it; see ``Chain``."""

    states: Index
    edges: Index
    nexts: Index
    links: Index
    runs: IntArray
    opened: BoolArray  # (R,)
    moves: Array  # (M, lanes)
    earned: Array  # (R, lanes), and so on
    open_mass: Array
    ahead: Array
    spare: Array
    starts: Array
    sums: Array  # (2, lanes)

    @classmethod
    def of(cls, data: TabularData) -> Self:
        """As much as is needed at a time."""
        chain, count = data.chain, len(data.chain.states)
        room = several(len(chain.nexts), *[count] * 5, 2)
        opened = np.empty(count, dtype=np.bool_)
        return cls(chain.states, chain.edges, chain.nexts, chain.links, chain.runs, opened, *room)


class Moving(NamedTuple):
    """Room for derivatives: values of every time backwards, gains forwards, and what each episode moves."""

    kind_slope: Array  # (K, lanes)
    slopes: Array  # (n, lanes)
    later: Array  # (L + 1, S + 1, lanes)
    occupancy: Array  # (S + 1, lanes)
    following: Array  # (S + 1, lanes)
    start_slope: Array  # (S, lanes)
    q: Array  # (P, lanes)
    sources: Array  # (P, lanes)
    pair_gain: Array  # (P, lanes)
    arc_gain: Array  # (J, lanes)
    sums: Array  # (2, lanes)

    @classmethod
    def of(cls, data: TabularData) -> Self:
        """As much as is needed at a time."""
        horizon, n_states, n_actions = data.probs.shape
        n_pairs, places = n_states * n_actions, n_states + 1
        of_states = (horizon + 1) * places, places, places, n_states
        flat, *room = several(*of_states, *[n_pairs] * 3, len(data.arc_pair), 2)
        later = flat.reshape(horizon + 1, places, LANES)
        return cls(data.lanes_of_kinds(), data.lanes_of_weights(), later, *room)
