"""Columns put in order of episode and step: what a dataset is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.base.dataset import BoolArray, IntArray
from tightrope.base.errors import DataError
from tightrope.io.aliases import ColumnMap
from tightrope.io.columns import Columns, Values, row_of_table
from tightrope.io.episodes import Episodes, check_roles, find_episodes, is_one_step, without_last_rows


@dataclass(frozen=True, eq=False)
class Logs:
    """Columns whose rows are steps, and where the episodes begin and end in them."""

    columns: Columns  # in order of episode and step
    episodes: Episodes
    last_rows: IntArray  # (n,): the row of the table with an episode's last observation; -1 for none
    one_step: bool  # whether every row is an episode
    row: Callable[[int], str]  # a row of the table, named for people

    @classmethod
    def of(
        cls,
        table: Any,
        broken: Mapping[str, str],
        given: ColumnMap | None = None,
        one_step: bool | None = None,
        where: Callable[[int], str] = row_of_table,
        numbered: bool = False,
    ) -> Logs:
        """Find the episodes of a table, whose rows are so named for people, and put the rows in their order.

        Episodes that are merely numbered, here from 0 in a part of the logs, have no names to tell people.
        """
        columns = Columns.of(table, broken, given).at(None, where)
        single = is_one_step(columns, one_step)
        check_roles(columns, single)
        episodes, last_rows = without_last_rows(columns, find_episodes(columns, single))
        if not numbered:
            columns = columns.at(episodes.order, episodes.where)
        elif episodes.order is not None:
            order = episodes.order
            columns = columns.at(order, lambda row: where(int(order[row])))
        return cls(columns, episodes, last_rows, single, where)

    def final(self) -> Values | None:
        """The state after each episode's last step, where the logs carry next states or last observations."""
        if (self.last_rows >= 0).all():
            return self._of_table(self.last_rows).vector("state")
        values = self.columns.vector("next_state")
        return None if values is None else values[self.episodes.offsets[1:] - 1]

    def ends(self, role: str) -> BoolArray:
        """A flag per episode, set on its last row only; nothing may follow it."""
        name = self.columns.name(role)
        if name is None:
            return np.zeros(len(self.episodes.ids), dtype=bool)
        early = self.columns.flag(role)
        last = self.episodes.offsets[1:] - 1
        ends = early[last]
        early[last] = False
        if early.any():
            row = int(np.argmax(early))
            raise DataError(
                f"column {name!r} is set at {self.columns.where(row)}, but the episode goes on after it; drop the rows "
                "that follow, or give them an episode of their own"
            )
        has_last = self.last_rows >= 0
        if has_last.any():
            ends[has_last] |= self._of_table(self.last_rows[has_last]).flag(role)
        self.columns.say(f"{role}: {name!r}")
        return ends

    def _of_table(self, rows: IntArray) -> Columns:
        """These rows of the table instead of the steps."""
        return self.columns.at(rows, lambda row: self.row(int(rows[row])))
