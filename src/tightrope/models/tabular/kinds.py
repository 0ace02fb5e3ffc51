"""The distinct kinds of logged steps, found some episodes at a time."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.base import folder
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.folder import Anything, Scratch, distinct, parts, unique
from tightrope.models.tabular.sorting import Index, Stretch, stretches

ArcKeys = Callable[[Stretch], IntArray]  # a number for the pair and the next state of each step of some episodes


@dataclass(frozen=True, eq=False)
class Kinds:
    """What steps there are: K kinds, each an arc with a reward, sorted by both.

    Where rewards are continuous there are nearly as many kinds as steps; their arrays then lie in files too.
    """

    arc_keys: IntArray  # (M,): rising
    arcs: Index  # (K,): which arc key each kind has
    rewards: Array  # (K,)
    of_steps: Index  # (N,)
    scratch: Scratch  # for arrays of K numbers

    @classmethod
    def of(cls, data: TrajectoryDataset, keys: ArcKeys) -> Kinds:
        """Number the kinds."""
        scratch, arc_keys = data.scratch, np.zeros(0, dtype=np.int64)
        for some in stretches(data.offsets):
            arc_keys = unique(np.concatenate([arc_keys, keys(some)]))
        rewards, of_steps = distinct(data.rewards, scratch), scratch.empty(data.n_steps, np.int32)
        kind_keys = scratch.empty(data.n_steps, np.int64)
        for some in stretches(data.offsets):  # places of keys: keys of keys would not fit into 64 bits
            kind_keys[some.steps] = np.searchsorted(arc_keys, keys(some)) * len(rewards)
            kind_keys[some.steps] += np.searchsorted(rewards, data.rewards[some.steps])
        kinds = distinct(kind_keys, scratch)
        for part in parts(data.n_steps):
            of_steps[part] = np.searchsorted(kinds, kind_keys[part])
        room = scratch if len(kinds) > folder.FEW else Scratch()
        arcs, earned = room.empty(len(kinds), np.int32), room.empty(len(kinds))
        for part in parts(len(kinds)):
            arcs[part], of_reward = np.divmod(kinds[part], len(rewards))
            earned[part] = rewards[of_reward]
        return cls(arc_keys, arcs, earned, of_steps, room)

    def by_arc(self, values: Anything) -> Index:
        """Numbers of arc keys (M,) as those of kinds, (K,)."""
        result = self.scratch.empty(len(self.arcs), np.int32)
        for part in parts(len(self.arcs)):
            result[part] = values[self.arcs[part]]
        return result
