"""The columns of a table with one row per step by the roles they play; each is checked when it is read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_finite, check_labels, reads_as_number
from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.errors import DataError
from tightrope.io.aliases import ROLES, ColumnMap, assign

Values = npt.NDArray[Any]


def row_of_table(row: int) -> str:
    """A row by its place in the source, where episode and step are not known yet."""
    return f"row {row} (counted from 0)"


@dataclass(frozen=True, eq=False)
class Columns:
    """A pyarrow table that is read column by column, its rows in a given order."""

    table: Any
    broken: Mapping[str, str]  # why a column cannot be read
    given: ColumnMap
    roles: Mapping[str, tuple[str, ...]]  # which columns play each role
    order: IntArray | None = None  # the row of the table that each row is; None: as they are
    where: Callable[[int], str] = row_of_table  # a row, named for people
    notes: list[str] = field(default_factory=list)  # which column was used for what, in any order of the rows
    taken: set[str] = field(default_factory=set)

    @classmethod
    def of(cls, table: Any, broken: Mapping[str, str], given: ColumnMap | None = None) -> Columns:
        """The table as it is."""
        columns = cls(table, broken, given or {}, assign([*table.column_names, *broken], given))
        for role in ("episode", "t", "reward"):
            if columns.name(role) is not None:
                columns.say(f"{role}: {columns.name(role)!r}")
        return columns

    def at(self, rows: IntArray | None, where: Callable[[int], str]) -> Columns:
        """These rows of the table, so named."""
        return replace(self, order=rows, where=where)

    @property
    def names(self) -> list[str]:
        """All columns, unreadable ones too."""
        return [*self.table.column_names, *self.broken]

    @property
    def n_rows(self) -> int:
        """How many rows the table has."""
        return int(self.table.num_rows)

    def say(self, text: str) -> None:
        """Note which column was used for what."""
        if text not in self.notes:
            self.notes.append(text)

    def name(self, role: str) -> str | None:
        """The one column that plays a role."""
        return self.roles[role][0] if self.roles[role] else None

    def is_declared_missing(self, role: str) -> bool:
        """Whether the user says that the logs have no such column."""
        return role in self.given and self.given[role] is None

    # -- one column --------------------------------------------------------------------------------------------

    def raw(self, name: str) -> Values:
        """A column as a NumPy array, (N,) or (N, width) where it holds lists, without missing values."""
        self.taken.add(name)
        if name in self.broken:
            raise DataError(self.broken[name])
        column = self.table[name]
        if column.null_count:
            self._refuse_missing(name, np.asarray(column.is_null()))
        values = self._vectors(name, column) if _is_list(column.type) else self._scalars(name, column)
        return values if self.order is None else values[self.order]

    def _refuse_missing(self, name: str, rows: BoolArray) -> None:
        first = int(np.argmax(rows if self.order is None else rows[self.order]))
        raise DataError(f"column {name!r} must have a value in every row; it is missing or NaN at {self.where(first)}")

    def _scalars(self, name: str, column: Any) -> Values:
        try:
            values: Values = _without_decimals(column).to_numpy()
        except (ValueError, TypeError, NotImplementedError) as error:  # pyarrow's own errors are among these
            raise DataError(f"column {name!r} cannot be read: {error}") from error
        if values.dtype.kind != "O":
            return values
        kinds = {type(value) for value in values}
        if kinds != {str}:
            raise DataError(
                f"column {name!r} must hold numbers, text, or lists of numbers of one length; it holds "
                f"{', '.join(sorted(kind.__name__ for kind in kinds))}"
            )
        return values.astype(str)

    def _vectors(self, name: str, column: Any) -> Values:
        import pyarrow.compute as pc

        lengths = np.asarray(pc.list_value_length(column))
        if (lengths != lengths[0]).any() or lengths[0] == 0:
            shown = lengths if self.order is None else lengths[self.order]
            row = int(np.argmax(shown != shown[0]))
            raise DataError(
                f"column {name!r} must hold lists of one length, not empty ones; got {shown[0]} at {self.where(0)} and "
                f"{shown[row]} at {self.where(row)}"
            )
        flat = pc.list_flatten(column)
        if _is_list(flat.type):
            raise DataError(f"column {name!r} must hold plain lists of numbers; it holds lists within lists")
        if flat.null_count:
            hidden = np.asarray(flat.is_null()).reshape(len(lengths), -1)
            self._refuse_missing(name, np.logical_or.reduce(hidden, axis=1))
        return self._scalars(name, flat).reshape(len(lengths), -1)

    def integers(self, role: str) -> IntArray:
        """A column of whole numbers."""
        name = self.name(role)
        assert name is not None
        values = self.raw(name)
        if values.dtype.kind not in "iuf" or values.ndim != 1:
            raise DataError(f"column {name!r} must hold whole numbers; it holds {_example(values)}")
        if values.dtype.kind != "f" and values.dtype.itemsize <= 4:
            return values.astype(np.int64)
        wide = values.astype(np.float64)  # a half float would not hold the limit
        whole = (np.abs(wide) < 2.0**53) & (wide == np.floor(wide))
        if not whole.all():
            row = int(np.argmin(whole))
            raise DataError(f"column {name!r} must hold whole numbers; it is {values[row]} at {self.where(row)}")
        return values.astype(np.int64)

    def flag(self, role: str) -> BoolArray:
        """A column of true and false."""
        name = self.name(role)
        assert name is not None
        values = self.raw(name)
        if values.dtype.kind not in "iubf" or values.ndim != 1:
            raise DataError(f"column {name!r} must hold true or false; it holds {_example(values)}")
        if values.dtype.kind == "b":
            return values.copy()
        known = np.isin(values, (0, 1))
        if not known.all():
            row = int(np.argmin(known))
            raise DataError(f"column {name!r} must hold true or false; it is {values[row]} at {self.where(row)}")
        return values.astype(bool)

    def floats(self, name: str) -> Array:
        """A column of finite numbers."""
        values = self.numbers(name)
        check_finite(f"column {name!r}", values, self.where)
        return values

    def numbers(self, name: str, kinds: str = "iufb") -> Array:
        """A column of numbers, one in each row."""
        values = self.raw(name)
        if values.ndim == 2 and values.shape[1] == 1:
            values = values[:, 0]
        if values.ndim != 1:
            raise DataError(f"column {name!r} must hold one number per row; it holds lists of {values.shape[1]}")
        if values.dtype.kind not in kinds:
            row = next((i for i, value in enumerate(values) if not reads_as_number(str(value))), 0)
            raise DataError(
                f"column {name!r} must hold numbers; it holds {_example(values[row:])} at {self.where(row)}"
            )
        return values.astype(np.float64)

    # -- what the dataset is made of -----------------------------------------------------------------------------

    def rewards(self) -> Array:
        """The rewards."""
        name = self.name("reward")
        assert name is not None
        return self.floats(name)

    def vector(self, role: str, *, labels: bool = False) -> Values | None:
        """A state or an action: one column, or several side by side; None when the logs have neither.

        A single column may hold text, the names of states or actions. ``labels`` keeps lists of whole numbers whole.
        """
        names = self.roles[role]
        if not names:
            return None
        values = self._beside(names) if self._in_parts(role) else self._single(names[0], labels)
        width = "" if values.ndim == 1 else f", {values.shape[1]} components"
        self.say(f"{role}: {quoted(names)}{width}")
        return values

    def _in_parts(self, role: str) -> bool:
        """Whether there is one column for each component (obs_0, obs_1), or a list of columns was asked for."""
        if role in self.given:
            return not isinstance(self.given[role], str)
        return self.roles[role][0] not in ROLES[role]

    def _beside(self, names: tuple[str, ...]) -> Array:
        parts = [self._single(name, False) if self.raw(name).ndim == 2 else self.floats(name) for name in names]
        return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)

    def _single(self, name: str, labels: bool) -> Values:
        """A column as labels (whole numbers, or text where that makes sense) or as numbers."""
        values = self.raw(name)
        if values.ndim == 2:
            return self._lists(name, values, labels)
        if values.dtype.kind == "U":
            check_labels(f"column {name!r}", values, self.where)  # one word among numbers is a slip, not a name
            return values
        if values.dtype.kind in "ib" or (values.dtype.kind == "u" and values.max(initial=0) < 2**63):
            return values.astype(np.int64)
        return values if values.dtype.kind == "u" else self.floats(name)

    def _lists(self, name: str, values: Values, labels: bool) -> Values:
        if values.dtype.kind not in "iufb":
            raise DataError(f"column {name!r} must hold lists of numbers; it holds lists of {values.dtype.name}")
        if values.dtype.kind != "f" and (labels or values.shape[1] == 1):
            whole = values if values.dtype.kind == "u" and values.max() >= 2**63 else values.astype(np.int64)
            return whole[:, 0] if values.shape[1] == 1 else whole
        numbers = values.astype(np.float64)
        check_finite(f"column {name!r}", numbers, self.where)
        return numbers

    def unused(self) -> list[str]:
        """Columns taken for nothing so far."""
        return [name for name in self.names if name not in self.taken]


def _is_list(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _without_decimals(column: Any) -> Any:
    """Whole decimals as integers, others as the nearest floats; as text where numbers would merge what differs."""
    import pyarrow as pa

    if not pa.types.is_decimal(column.type):
        return column
    if column.type.scale <= 0:
        try:
            return column.cast(pa.int64())
        except pa.ArrowInvalid:  # beyond 64 bits
            return column.cast(pa.string())
    text = column.cast(pa.string())  # read from there it is the nearest float; a cast of decimals rounds otherwise
    numbers = text.cast(pa.float64())
    return numbers if len(numbers.unique()) == len(text.unique()) else text


def quoted(names: Sequence[str]) -> str:
    """A few names, for people."""
    shown = [repr(name) for name in names]
    return ", ".join(shown) if len(shown) <= 6 else f"{shown[0]} … {shown[-1]}"


def _example(values: Values) -> str:
    kind = "text" if values.dtype.kind == "U" else values.dtype.name
    return f"{kind} such as {str(values[0])!r}"
