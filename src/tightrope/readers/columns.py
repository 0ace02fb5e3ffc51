"""The columns of a long-format table, sorted by episode and step, each checked as it is taken."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.checks import ROUNDING, check_finite, check_labels, check_log_probs, reads_as_number
from tightrope.dataset import Array, BoolArray, IntArray
from tightrope.errors import DataError

Values = npt.NDArray[Any]

_NOT_A_COMPONENT = re.compile(r"_(prob|logp|log_prob|mask|dist\w*)$")  # action_prob is no part of an action
_LOGARITHM = re.compile(r"(^|_)log(_|p|$)")  # eval_log_prob, logp_new; but not catalog_prob


class Columns:
    """A pyarrow table taken column by column; ``broken`` says of unreadable columns why, in case one is needed."""

    def __init__(self, table: Any, broken: Mapping[str, str]):
        self.table, self.broken = table, broken
        self.names = [*table.column_names, *broken]
        for name in ("episode", "t", "reward"):
            if name not in self.names:
                raise DataError(f"column {name!r} is missing; the logs have: {', '.join(self.names)}")
        self.order: IntArray | None = None
        episode = self._raw("episode")
        check_finite("column 'episode'", episode, _row)
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
        if seen < 0:
            raise DataError(f"episode {episode}, step {seen}, column 't': steps count from 0")
        if seen < wanted:
            raise DataError(
                f"episode {episode}, step {seen}, column 't': this step is there more than once; keep one row of each "
                "step, and give every episode its own name"
            )
        hint = "; steps count from 0" if wanted == 0 else ""
        raise DataError(f"episode {episode}, step {wanted}, column 't': this step is missing{hint}")

    def _raw(self, name: str) -> Values:
        """A column as a NumPy array, without missing values."""
        if name in self.broken:
            raise DataError(self.broken[name])
        column = self.table[name]
        if column.null_count:
            missing = np.asarray(column.is_null())
            first = int(np.argmax(missing if self.order is None else missing[self.order]))
            place = _row(first) if name in ("episode", "t") else self.where(first)
            raise DataError(f"column {name!r} has no value (missing or NaN) at {place}; every row needs one")
        try:
            values: Values = column.to_numpy()
        except (ValueError, TypeError, NotImplementedError) as error:  # pyarrow's own errors are among these
            raise DataError(f"column {name!r} cannot be read: {error}") from error
        if values.dtype.kind == "O":
            values = self._text(name, values)
        return values if self.order is None else values[self.order]

    def _text(self, name: str, values: Values) -> Values:
        kinds = {type(value) for value in values}
        if kinds != {str}:
            raise DataError(
                f"column {name!r} holds {', '.join(sorted(kind.__name__ for kind in kinds))}; numbers or text, one "
                "value per row, are expected"
            )
        return values.astype(str)

    def _integers(self, name: str) -> IntArray:
        values = self._raw(name)
        if values.dtype.kind not in "iuf":
            raise DataError(f"column {name!r} must hold whole numbers; it holds {_example(values)}")
        whole = (np.abs(values) < 2.0**53) & (values == np.floor(values))
        if not whole.all():
            row = int(np.argmin(whole))
            raise DataError(f"column {name!r} must hold whole numbers; it is {values[row]} at {_row(row)}")
        return values.astype(np.int64)

    def _not_numbers(self, name: str, values: Values) -> str:
        """Where the first value stands that is not a number."""
        row = next((i for i, value in enumerate(values) if not reads_as_number(str(value))), 0)
        return f"column {name!r} must hold numbers; it holds {_example(values[row:])} at {self.where(row)}"

    def floats(self, name: str) -> Array:
        """A column of finite numbers."""
        values = self._raw(name)
        if values.dtype.kind not in "iufb":
            raise DataError(self._not_numbers(name, values))
        check_finite(f"column {name!r}", values, self.where)
        return values.astype(np.float64)

    def one_or_many(self, *names: str, keep_text: bool = False) -> Values | None:
        """The column ``single``, or the columns ``prefix_*`` side by side; None when the logs have neither."""
        single, prefix = names[0], names[-1]
        several = [
            name for name in self.names if re.fullmatch(rf"{prefix}_\w+", name) and not _NOT_A_COMPONENT.search(name)
        ]
        if single in self.names:
            numbered = [name for name in several if re.search(r"_\d+$", name)]
            if numbered and single == prefix:  # a state with its features is common; two actions are a mix-up
                raise DataError(f"the logs have both {single!r} and {', '.join(numbered)}; keep one or the other")
            return self._single(single, keep_text)
        if not several:
            return None
        return np.stack([self.floats(name) for name in sorted(several, key=_natural)], axis=1)

    def _single(self, name: str, keep_text: bool) -> Values:
        values = self._raw(name)
        if values.dtype.kind == "U" and keep_text:
            check_labels(f"column {name!r}", values, self.where)
            return values
        if values.dtype.kind in "ib" or (values.dtype.kind == "u" and values.max() < 2**63):
            return values.astype(np.int64)
        return values if values.dtype.kind == "u" else self.floats(name)

    def log_probs(self, prob: str, log_prob: str, discrete: bool | None, *, zero: bool) -> Array | None:
        """Log-probabilities from whichever of the two columns is there."""
        names = [name for name in (prob, log_prob) if name in self.names]
        if len(names) == 2:
            raise DataError(f"the logs have both {prob!r} and {log_prob!r}; keep one of them")
        if not names:
            return None
        return self._as_log(names[0], names[0] == log_prob, discrete, zero)

    def eval_log_probs(self, column: str | None, discrete: bool | None) -> Array | None:
        """The candidate's, from the standard columns or the one named."""
        if column is None:
            return self.log_probs("eval_prob", "eval_log_prob", discrete, zero=True)
        if column not in self.names:
            raise DataError(f"the candidate's column {column!r} is not in the logs; they have: {', '.join(self.names)}")
        return self._as_log(column, bool(_LOGARITHM.search(column)), discrete, zero=True)

    def _as_log(self, name: str, log: bool, discrete: bool | None, zero: bool) -> Array:
        values = self._raw(name)
        if values.dtype.kind not in "iuf":
            raise DataError(self._not_numbers(name, values))
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
            if flag not in self.names:
                continue
            values = self._raw(flag)
            if values.dtype.kind not in "iubf":
                raise DataError(f"column {flag!r} must hold true or false; it holds {_example(values)}")
            known = np.isin(values, (0, 1))
            if not known.all():
                row = int(np.argmin(known))
                raise DataError(f"column {flag!r} must hold true or false; it is {values[row]} at {self.where(row)}")
            last = self.offsets[1:] - 1
            early = values.astype(bool)
            ends = early[last]
            early[last] = False
            if early.any():
                row = int(np.argmax(early))
                raise DataError(
                    f"column {flag!r} is set at {self.where(row)}, but the episode goes on after it; drop the rows "
                    "that follow, or give them an episode of their own"
                )
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


def _row(row: int) -> str:
    """A row by its place in the source, where episode and step are not known yet."""
    return f"row {row} (counted from 0)"


def _example(values: Values) -> str:
    kind = "text" if values.dtype.kind == "U" else values.dtype.name
    return f"{kind} such as {str(values[0])!r}"
