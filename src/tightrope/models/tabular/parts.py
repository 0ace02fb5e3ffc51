"""What compiled kernels that go through all times take, as one argument each."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.models.tabular.data import TabularData
from tightrope.models.tabular.sorting import Index


class Parts(NamedTuple):
    """A block of models as the kernels that go through all times take it; see ``TabularFit`` and ``TabularData``."""

    arcs: Array
    arc_next: Index
    pair_arcs: Index
    arc_totals: Array
    gaps: BoolArray
    rewards: Array
    probs: Array
    discount: float
    unseen: int
    unseen_reward: float


class Steps(NamedTuple):
    """The logged steps sorted by time, as kernels take them; see ``Timeline``."""

    edges: IntArray
    trajectories: Index
    pairs: Index
    offsets: IntArray

    @classmethod
    def of(cls, data: TabularData) -> Steps:
        """All of them."""
        line = data.timeline
        return cls(line.edges, line.trajectories, line.pairs, data.offsets)

    @classmethod
    def none(cls, data: TabularData) -> Steps:
        """None, at any time."""
        nobody = np.zeros(0, dtype=np.int32)
        return cls(np.zeros(len(data.probs) + 1, dtype=np.int64), nobody, nobody, data.offsets)
