"""Find where episodes begin and end in a table: by a column, by flags on their last rows, or one in each row."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_finite
from tightrope.base.dataset import BoolArray, IntArray
from tightrope.base.errors import DataError
from tightrope.io.aliases import ONE_STEP, fix, missing
from tightrope.io.columns import Columns

FLAGS = ("terminated", "truncated", "done", "last")


class MissingStepError(DataError):
    """An episode with a gap."""


@dataclass(frozen=True, eq=False)
class Episodes:
    """The rows of a table in order of episode and step."""

    ids: npt.NDArray[Any]  # (n,)
    code: IntArray  # (N,): which episode each row belongs to
    steps: IntArray  # (N,)
    order: IntArray | None  # the row of the table that each row is; None: as they are

    @cached_property
    def offsets(self) -> IntArray:
        """Where each episode starts, and the end, (n+1,)."""
        return np.append(np.flatnonzero(np.diff(self.code, prepend=-1)), len(self.code)).astype(np.int64)

    @property
    def arrival(self) -> IntArray:
        """The row of the table where each episode begins, (n,)."""
        first = self.offsets[:-1]
        return first if self.order is None else self.order[first]

    def where(self, row: int) -> str:
        """A row by episode and step."""
        return f"episode {self.ids[self.code[row]]}, step {self.steps[row]}"


def is_one_step(columns: Columns, declared: bool | None) -> bool:
    """Whether each row is an episode: as declared, or if the names are those of bandits and no column is about time."""
    if declared is not None:
        return declared
    if any(columns.roles[role] for role in ("episode", "t", "next_state", "terminated", "truncated", "done", "last")):
        return False
    return any(name in ONE_STEP for role in ("behavior_prob", "reward") for name in columns.roles[role])


def check_roles(columns: Columns, one_step: bool) -> None:
    """Refuse logs without the columns that every dataset is made of, naming all that are missing."""
    names = {role: columns.name(role) for role in ("episode", "t", "reward", *FLAGS)}
    lacking = ["reward"] if names["reward"] is None else []
    if not one_step:
        counted = names["t"] is not None or columns.is_declared_missing("t")
        if names["episode"] is not None:
            lacking = [*([] if counted else ["t"]), *lacking]
        elif not any(names[flag] for flag in FLAGS):
            lacking = ["episode", *([] if counted else ["t"]), *lacking]
    if not lacking:
        return
    alone = "episode" in lacking and "t" in lacking
    hint = ". If every row is an episode of its own (a bandit's logs): one_step=True (--one-step)" if alone else ""
    raise DataError(f"{missing(lacking, columns.names)}{hint}")


def find_episodes(columns: Columns, one_step: bool) -> Episodes:
    """Order the rows; every episode must count its steps from 0 without a gap."""
    n = columns.n_rows
    if one_step:
        columns.say("every row is an episode of one step, which then ended for good")
        return Episodes(np.arange(n), np.arange(n), np.zeros(n, dtype=np.int64), None)
    ids, code = _codes(columns)
    order: IntArray | None = None
    if columns.name("t") is not None:
        steps = columns.integers("t")
        if (np.diff(code) < 0).any() or ((np.diff(code) == 0) & (np.diff(steps) < 0)).any():
            order = np.lexsort((steps, code))
            code, steps = code[order], steps[order]
    else:
        columns.say("t: the order of the rows")
        if (np.diff(code) < 0).any():
            order = np.argsort(code, kind="stable")
            code = code[order]
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        steps = np.arange(n) - np.repeat(starts, np.diff(np.append(starts, n)))
    episodes = Episodes(ids, code, steps, order)
    _check_steps(episodes, columns.name("t") or "t")
    return episodes


def _codes(columns: Columns) -> tuple[npt.NDArray[Any], IntArray]:
    """Which episode each row belongs to."""
    name = columns.name("episode")
    if name is not None:
        episode = columns.raw(name)
        if episode.ndim != 1:
            raise DataError(f"column {name!r} must hold one number or text per row, the episode's name; it holds lists")
        check_finite(f"column {name!r}", episode, columns.where)
        if (episode[1:] >= episode[:-1]).all():  # rows in order, as most are: nothing to sort
            first = np.append(True, episode[1:] != episode[:-1])
            return episode[first], np.cumsum(first) - 1
        return np.unique(episode, return_inverse=True)
    ends = _ends(columns)
    columns.say("episode: rows in their order, a new one after each flagged end")
    code = np.concatenate([[0], np.cumsum(ends[:-1])])
    return np.arange(code[-1] + 1), code


def _ends(columns: Columns) -> BoolArray:
    """Where rows in order end an episode; refused unless the flags mark every end."""
    flags = [role for role in FLAGS if columns.name(role) is not None]
    complete = "done" in flags or "last" in flags or {"terminated", "truncated"} <= set(flags)
    if not (complete or columns.is_declared_missing("episode")):
        raise DataError(
            f"{missing(['episode'], columns.names)}. {columns.name(flags[0])!r} alone may not mark the end of every "
            'episode; if it does, say so: columns={"episode": None} (--column episode=)'
        )
    ends: BoolArray = np.logical_or.reduce([columns.flag(role) for role in flags])
    return ends


def _check_steps(episodes: Episodes, column: str) -> None:
    offsets = episodes.offsets
    expected = np.arange(len(episodes.code)) - np.repeat(offsets[:-1], np.diff(offsets))
    wrong = np.flatnonzero(episodes.steps != expected)
    if not len(wrong):
        return
    row = int(wrong[0])
    episode, seen, wanted = episodes.ids[episodes.code[row]], episodes.steps[row], expected[row]
    if seen < 0:
        raise DataError(f"episode {episode}, step {seen}, column {column!r}: steps must count from 0")
    if seen < wanted:
        raise DataError(
            f"episode {episode}, step {seen}, column {column!r}: this step is there more than once; keep one row of "
            "each step, and give every episode its own name"
        )
    hint = "; steps count from 0" if wanted == 0 else ""
    raise MissingStepError(f"episode {episode}, step {wanted}, column {column!r}: this step is missing{hint}")


def without_last_rows(columns: Columns, episodes: Episodes) -> tuple[Episodes, IntArray]:
    """Leave out the rows that hold an episode's last observation and no step (RLDS); also return where they were.

    That is one row per episode, -1 where it has none. The action and reward of such a row mean nothing. A row with a
    reward is refused, because whoever wrote it may have meant a step.
    """
    name = columns.name("last")
    rows = np.full(len(episodes.ids), -1)
    if name is None:
        return episodes, rows
    order = np.arange(columns.n_rows) if episodes.order is None else episodes.order
    last = columns.flag("last")[order]
    early = last.copy()
    early[episodes.offsets[1:] - 1] = False
    if early.any():
        raise DataError(
            f"column {name!r} must be set on the last row of an episode only; it is set at "
            f"{episodes.where(int(np.argmax(early)))}, and the episode goes on after it"
        )
    reward = columns.name("reward")
    if reward is not None:
        paid = np.flatnonzero(last & (columns.raw(reward)[order] != 0))
        if len(paid):
            raise DataError(
                f"column {reward!r} must be 0 where {name!r} is set, because such a row holds the last observation and "
                f"no step; it is not at {episodes.where(int(paid[0]))}. If this row is a step like the others, say so: "
                f"{fix('done', name)}. Otherwise set its reward to 0"
            )
    alone = last & (episodes.steps == 0)
    if alone.any():
        raise DataError(
            f"{episodes.where(int(np.argmax(alone)))} holds a last observation only; leave this episode out"
        )
    rows[episodes.code[last]] = order[last]
    columns.say(f"last: {name!r}; {last.sum()} rows hold an episode's last observation, not a step, and were left out")
    return Episodes(episodes.ids, episodes.code[~last], episodes.steps[~last], order[~last]), rows
