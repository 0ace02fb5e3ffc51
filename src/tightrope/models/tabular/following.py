"""The states after the logged steps, some episodes at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.base.dataset import IntArray, TrajectoryDataset
from tightrope.models.tabular.sorting import Stretch, stretches

UNKNOWN, END = -1, -2


@dataclass(frozen=True, eq=False)
class Following:
    """What comes after each step of some logs.

    Unless the logs hold the state after the horizon's last step for every episode that goes on, that step is unknown
    for all, the ended ones too: keeping those that ended and not the others would count ends more often than they
    happen.
    """

    data: TrajectoryDataset
    final: IntArray | None  # (n,): the state after the last step, of episodes that go on; None: some are not known

    @classmethod
    def of(cls, data: TrajectoryDataset) -> Following:
        """Look at the final states once."""
        final = data.final_states
        if final is None or final.ndim != 1 or final.dtype.kind not in "iu" or (final[~data.terminated] < 0).any():
            return cls(data, None)
        return cls(data, final.astype(np.int64))

    @property
    def open_ends(self) -> IntArray:
        """The states that episodes which go on were left in."""
        return np.zeros(0, dtype=np.int64) if self.final is None else self.final[~self.data.terminated]

    def after(self, some: Stretch, states: IntArray) -> IntArray:
        """The state after each step of some episodes, given theirs; END or UNKNOWN where there is none."""
        episodes = slice(some.first, some.first + len(some.last))
        result = np.append(states[1:], UNKNOWN)
        result[some.last] = END
        if self.final is None:
            result[some.last[some.lengths == self.data.horizon]] = UNKNOWN
        else:
            going_on = ~self.data.terminated[episodes]
            result[some.last[going_on]] = self.final[episodes][going_on]
        return result


def following_states(data: TrajectoryDataset, states: IntArray) -> tuple[IntArray, IntArray]:
    """The state after each step, (N,): END or UNKNOWN where there is none; and the final ones of open episodes."""
    following = Following.of(data)
    parts = [following.after(some, states[some.steps]) for some in stretches(data.offsets)]
    return np.concatenate(parts), following.open_ends
