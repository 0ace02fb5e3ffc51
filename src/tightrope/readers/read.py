"""A long-format table (one row per step) to a validated dataset."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from tightrope.dataset import (
    ROUNDING,
    Array,
    BoolArray,
    IntArray,
    TrajectoryDataset,
    check_finite,
    check_log_probs,
)
from tightrope.errors import DataError
from tightrope.ratios import eval_log_probs
from tightrope.readers.tables import to_table

Incomplete = Literal["error", "terminate", "drop"]
Values = npt.NDArray[Any]

_NOT_A_COMPONENT = re.compile(r"_(prob|logp|log_prob|mask|dist\w*)$")  # action_prob is no part of an action


def read(
    source: Any,
    *,
    discount: float = 1.0,
    horizon: int | None = None,
    reward_range: tuple[float | None, float | None] | None = None,
    return_range: tuple[float | None, float | None] | None = None,
    incomplete: Incomplete = "error",
    eval_column: str | None = None,
    behavior: Any = None,
) -> TrajectoryDataset:
    """Logs in long format, one row per step, as a dataset.

    Columns: ``episode``, ``t`` (from 0), ``reward``; ``state`` or ``obs_*``; ``action`` or ``action_*``;
    ``behavior_prob`` or ``behavior_log_prob``; optionally ``eval_prob`` or ``eval_log_prob`` (or the one named by
    ``eval_column``), ``terminated``, ``truncated``, ``next_state`` or ``next_obs_*``. Rows may come in any order; other
    columns are left alone.

    ``horizon`` defaults to the longest episode; exact bounds want it declared. ``reward_range`` and ``return_range``
    are what is *possible*, not what was seen. ``incomplete`` says what to do with episodes that are shorter than the
    horizon and not flagged as terminated. ``behavior`` supplies the behaviour policy where the logs carry no
    probabilities.
    """
    if incomplete not in ("error", "terminate", "drop"):
        raise DataError(f'incomplete is {incomplete!r}; "error", "terminate" or "drop"')
    columns = _Columns(to_table(source))
    rewards = columns.floats("reward")
    actions = columns.one_or_many("action", keep_text=True)
    discrete = None if actions is None else actions.dtype.kind in "iubU"
    lengths = np.diff(columns.offsets)
    terminated = columns.last_flags("terminated")
    declared = horizon is not None
    horizon = int(lengths.max()) if horizon is None else horizon
    short = (lengths < horizon) & ~terminated
    notes = []
    if incomplete != "error" and short.any():
        done = "taken to have ended for good" if incomplete == "terminate" else "left out"
        notes.append(
            f"incomplete: {short.sum()} of {len(lengths)} episodes stop before the horizon without having "
            "terminated; they "
            f'were {done} (incomplete="{incomplete}")'
        )
    dropped = np.flatnonzero(~short) if incomplete == "drop" else None
    if dropped is not None and len(dropped) == 0:
        raise DataError('incomplete="drop" leaves no episode: none reaches the horizon or is flagged as terminated')
    dataset = TrajectoryDataset(
        offsets=columns.offsets,
        rewards=rewards,
        terminated=terminated | short if incomplete != "error" else terminated,
        horizon=horizon,
        horizon_declared=declared,
        discount=discount,
        behavior_log_probs=columns.log_probs("behavior_prob", "behavior_log_prob", discrete, zero=False),
        eval_log_probs=columns.eval_log_probs(eval_column, discrete),
        states=columns.one_or_many("state", "obs"),
        actions=actions,
        final_states=columns.final("next_state", "next_obs"),
        episode_ids=columns.ids,
        reward_range=reward_range,  # type: ignore[arg-type]  # None ends become infinite there
        return_range=return_range,  # type: ignore[arg-type]
        notes=tuple(notes),
    )
    if dropped is not None:
        dataset = dataset.take(dropped)
    if behavior is None:
        return dataset
    if dataset.behavior_log_probs is not None:
        return replace(dataset, behavior=behavior)
    return replace(dataset, behavior=behavior, behavior_log_probs=eval_log_probs(dataset, behavior))


class _Columns:
    """The table's columns, sorted by episode and step, each checked as it is taken."""

    def __init__(self, table: Any):
        self.table = table
        for name in ("episode", "t", "reward"):
            if name not in table.column_names:
                raise DataError(f"column {name!r} is missing; the logs have: {', '.join(table.column_names)}")
        self.order: IntArray | None = None
        episode = self._raw("episode")
        steps = self._integers("t")
        self.ids, code = np.unique(episode, return_inverse=True)
        if (np.diff(code) < 0).any() or ((np.diff(code) == 0) & (np.diff(steps) < 0)).any():
            self.order = np.lexsort((steps, code))
            code, steps = code[self.order], steps[self.order]
        self.code, self.steps = code, steps
        starts = np.flatnonzero(np.diff(code, prepend=-1))
        self.offsets = np.append(starts, len(code)).astype(np.int64)
        self._check_steps()

    def where(self, row: int) -> str:
        """A row by episode and step."""
        return f"episode {self.ids[self.code[row]]}, step {self.steps[row]}"

    def _check_steps(self) -> None:
        expected = np.arange(len(self.code)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        wrong = np.flatnonzero(self.steps != expected)
        if not len(wrong):
            return
        row = int(wrong[0])
        episode, seen, wanted = self.ids[self.code[row]], self.steps[row], expected[row]
        if seen < wanted:
            raise DataError(f"episode {episode}, step {seen}, column 't': this step is there more than once")
        hint = "; steps count from 0" if wanted == 0 else ""
        raise DataError(f"episode {episode}, step {wanted}, column 't': this step is missing{hint}")

    def _raw(self, name: str) -> Values:
        """A column as a NumPy array, without missing values."""
        column = self.table[name].combine_chunks() if self.table[name].num_chunks > 1 else self.table[name]
        if column.null_count:
            row = int(np.flatnonzero(np.asarray(column.is_null()))[0])
            place = f"row {row}" if name in ("episode", "t") else self.where(self._sorted_position(row))
            raise DataError(f"column {name!r} has no value at {place}; every row needs one")
        values: Values = column.to_numpy()
        if values.dtype.kind == "O":
            kinds = {type(value) for value in values}
            if kinds != {str}:
                raise DataError(
                    f"column {name!r} holds {', '.join(sorted(kind.__name__ for kind in kinds))}; numbers or "
                    "text, one value "
                    "per row, are expected"
                )
            values = values.astype(str)
        return values if self.order is None else values[self.order]

    def _sorted_position(self, row: int) -> int:
        return row if self.order is None else int(np.flatnonzero(self.order == row)[0])

    def _integers(self, name: str) -> IntArray:
        values = self._raw(name)
        if values.dtype.kind == "f" and (values == np.floor(values)).all():
            values = values.astype(np.int64)
        if values.dtype.kind not in "iu":
            raise DataError(f"column {name!r} must hold whole numbers; it holds {values.dtype}, such as {values[0]!r}")
        return values.astype(np.int64)

    def floats(self, name: str) -> Array:
        """A column of finite numbers."""
        values = self._raw(name)
        if values.dtype.kind not in "iufb":
            raise DataError(f"column {name!r} must hold numbers; it holds {_example(values)} at {self.where(0)}")
        check_finite(f"column {name!r}", values, self.where)
        return values.astype(np.float64)

    def one_or_many(self, *names: str, keep_text: bool = False) -> Values | None:
        """The column ``name``, or the columns ``prefix_*`` side by side; None when the logs have neither."""
        single, prefix = names[0], names[-1]
        pattern = re.compile(re.escape(prefix) + r"_(\d+|\w+)$")
        several = [
            name for name in self.table.column_names if pattern.match(name) and not _NOT_A_COMPONENT.search(name)
        ]
        if single in self.table.column_names:
            if several and single == prefix:
                raise DataError(f"the logs have both {single!r} and {', '.join(several)}; keep one or the other")
            return self._single(single, keep_text)
        if not several:
            return None
        return np.stack([self.floats(name) for name in sorted(several, key=_natural)], axis=1)

    def _single(self, name: str, keep_text: bool) -> Values:
        values = self._raw(name)
        if values.dtype.kind == "U" and keep_text:
            self._check_text(name, values)
            return values
        if values.dtype.kind in "iub":
            return values.astype(np.int64)
        return self.floats(name)

    def _check_text(self, name: str, values: Values) -> None:
        """Text is fine as a label; text that is a number here and a word there is a mix-up."""
        labels, place = np.unique(values, return_inverse=True)
        numeric = np.array([_is_number(label) for label in labels])[place]
        if numeric.any() and not numeric.all():
            row = int(np.argmax(numeric != numeric[0]))
            raise DataError(
                f"column {name!r} holds mixed types: {values[0]!r} at {self.where(0)}, {values[row]!r} at "
                f"{self.where(row)}; "
                "use numbers or names, not both"
            )

    def log_probs(self, prob: str, log_prob: str, discrete: bool | None, *, zero: bool) -> Array | None:
        """Log-probabilities from whichever of the two columns is there."""
        names = [name for name in (prob, log_prob) if name in self.table.column_names]
        if len(names) == 2:
            raise DataError(f"the logs have both {prob!r} and {log_prob!r}; keep one of them")
        if not names:
            return None
        return self._as_log(names[0], names[0] == log_prob, discrete, zero)

    def eval_log_probs(self, column: str | None, discrete: bool | None) -> Array | None:
        """The candidate's, from the standard columns or the one named."""
        if column is None:
            return self.log_probs("eval_prob", "eval_log_prob", discrete, zero=True)
        if column not in self.table.column_names:
            raise DataError(
                f"eval_column is {column!r}, which is not in the logs; they have: {', '.join(self.table.column_names)}"
            )
        return self._as_log(column, "log" in column.split("__")[0], discrete, zero=True)

    def _as_log(self, name: str, log: bool, discrete: bool | None, zero: bool) -> Array:
        values = self._raw(name)
        if values.dtype.kind not in "iuf":
            raise DataError(f"column {name!r} must hold numbers; it holds {_example(values)} at {self.where(0)}")
        values = values.astype(np.float64)
        if log:
            check_log_probs(f"column {name!r}", values, discrete, self.where, zero=zero)
            return values
        check_finite(f"column {name!r}", values, self.where)
        low = values < 0 if zero else values <= 0
        if low.any():
            row = int(np.argmax(low))
            hint = "; are these logarithms? Then name the column as such" if values[row] < 0 else ""
            need = "≥ 0" if zero else "> 0: the behaviour policy took this action"
            raise DataError(
                f"column {name!r} is {values[row]:g} at {self.where(row)}; a probability must be {need}{hint}"
            )
        if discrete is not False and values.max() > 1 + ROUNDING:
            row = int(np.argmax(values > 1 + ROUNDING))
            why = "actions are discrete" if discrete else "the logs hold no action column, so they count as discrete"
            raise DataError(
                f"column {name!r} is {values[row]:g} > 1 at {self.where(row)}; {why}, and only a density may exceed 1"
            )
        with np.errstate(divide="ignore"):
            return np.log(values)

    def last_flags(self, name: str) -> BoolArray:
        """A flag per episode, set on its last row only; checks that nothing follows it, for both flags."""
        result: BoolArray = np.zeros(len(self.ids), dtype=bool)
        for flag in ("terminated", "truncated"):
            if flag not in self.table.column_names:
                continue
            values = self._raw(flag)
            if values.dtype.kind not in "iubf" or not np.isin(values, (0, 1)).all():
                raise DataError(f"column {flag!r} must hold true or false; it holds {_example(values)}")
            last = self.offsets[1:] - 1
            early = values.astype(bool)
            ends = early[last]
            early[last] = False
            if early.any():
                row = int(np.argmax(early))
                raise DataError(f"column {flag!r} is set at {self.where(row)}, but the episode goes on after it")
            if flag == name:
                result = ends
        return result

    def final(self, single: str, prefix: str) -> Values | None:
        """The state after each episode's last step, where the logs carry next states."""
        values = self.one_or_many(single, prefix)
        return None if values is None else values[self.offsets[1:] - 1]


def _natural(name: str) -> tuple[Any, ...]:
    """Sort key by which obs_2 comes before obs_10."""
    return tuple((0, int(part)) if part.isdigit() else (1, part) for part in re.split(r"(\d+)", name))


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _example(values: Values) -> str:
    return (
        f"{values.dtype.name} such as {values[0]!r}" if values.dtype.kind != "U" else f"text such as {str(values[0])!r}"
    )
