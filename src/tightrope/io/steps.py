"""The arrays that a dataset is made of, from one table or from pieces of a larger one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.base.arrays import rises, steps_of
from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.folder import Column, Folder, parts
from tightrope.io import probabilities
from tightrope.io.columns import Columns
from tightrope.io.groups import column_of
from tightrope.io.logs import Logs


class Named(NamedTuple):
    """Columns that whoever reads has named apart from their roles."""

    eval_column: str | None = None
    cluster: str | None = None
    strata: str | None = None


@dataclass(frozen=True, eq=False)
class Steps:
    """Episodes, before horizon and discount are settled; N steps, n episodes."""

    lengths: IntArray  # (n,)
    rewards: Array  # (N,)
    states: npt.NDArray[Any] | None
    actions: npt.NDArray[Any] | None
    behavior_log_probs: Array | None
    eval_log_probs: Array | None
    terminated: BoolArray  # (n,)
    unclear: BoolArray  # (n,): done, and nothing says whether for good
    final_states: npt.NDArray[Any] | None
    episode_ids: npt.NDArray[Any]
    arrival: IntArray  # (n,): the row of the logs where each begins
    clusters: npt.NDArray[Any] | None
    strata: npt.NDArray[Any] | None

    @classmethod
    def of(cls, logs: Logs, named: Named) -> Steps:
        """What the columns hold."""
        columns, offsets = logs.columns, logs.episodes.offsets
        rewards = columns.rewards()
        states, actions = columns.vector("state"), columns.vector("action", labels=True)
        discrete = None if actions is None else actions.dtype.kind != "f"
        behavior = probabilities.log_probs(columns, "behavior", discrete, zero=False)
        lengths = np.diff(offsets)
        terminated = _terminated(logs)
        return cls(
            lengths, rewards, states, actions, behavior,
            probabilities.eval_log_probs(columns, named.eval_column, discrete),
            terminated,
            logs.ends("done") if _done_alone(columns) else np.zeros(len(lengths), dtype=bool),
            logs.final(), logs.episodes.ids, logs.episodes.arrival,
            column_of(columns, offsets, named.cluster, "cluster"), column_of(columns, offsets, named.strata, "strata"),
        )  # fmt: skip


PER_EPISODE = ("lengths", "terminated", "unclear", "final_states", "episode_ids", "arrival", "clusters", "strata")


class Growing:
    """Steps in files, appended to piece by piece."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.columns: dict[str, Column] = {}
        self.taken = 0  # rows of the logs that were looked at

    def place(self, steps: Steps) -> Callable[[], None]:
        """Keep room for the episodes of another piece; what is returned writes them."""
        writes = []
        for name, values in vars(steps).items():
            if values is not None:
                column = self.columns.setdefault(name, self.folder.column())
                writes.append(column.place(values))

        def write() -> None:
            for each in writes:
                each()

        return write

    @property
    def count(self) -> int:
        """How many episodes there are so far."""
        return self.columns["lengths"].rows if self.columns else 0

    def steps(self) -> Steps:
        """All of them, mapped."""
        if "final_states" in self.columns and self.columns["final_states"].rows < self.count:
            del self.columns["final_states"]  # known of some episodes alone, as whole logs would not keep them
        arrays: dict[str, Any] = {name: column.array() for name, column in self.columns.items()}
        return Steps(**{**dict.fromkeys(field.name for field in fields(Steps)), **arrays})

    def ordered(self) -> Steps:
        """All of them in the order of their names, as a table that fits into memory has them."""
        steps = self.steps()
        names = steps.episode_ids
        if rises(names):
            return steps
        order = np.argsort(names, kind="stable")
        offsets = np.append(0, np.cumsum(steps.lengths))
        for name, column in list(self.columns.items()):
            old, new = column.array(), self.folder.column()
            size = max(1, int(len(order) * (1 << 20) // max(1, len(old))))
            for some in parts(len(order), size):
                place = order[some] if name in PER_EPISODE else steps_of(offsets, order[some])
                new.append(old[place])
            self.columns[name] = new
            column.kept().path.unlink()
        return self.steps()


def _done_alone(columns: Columns) -> bool:
    """Whether there is "done", and nothing that says whether an end was for good."""
    return columns.name("done") is not None and columns.name("terminated") is columns.name("truncated") is None


def _terminated(logs: Logs) -> BoolArray:
    """Which episodes ended for good; "done" counts only where "truncated" says which ones were cut off."""
    if logs.one_step:
        return np.ones(len(logs.episodes.ids), dtype=bool)
    terminated, truncated, done = (logs.ends(role) for role in ("terminated", "truncated", "done"))
    name = logs.columns.name
    if name("terminated") is None and name("truncated") is not None:
        return done & ~truncated
    return terminated
