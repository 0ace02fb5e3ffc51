"""The rows of many Parquet files, some at a time, from any row group on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.base.dataset import BoolArray
from tightrope.base.errors import DataError
from tightrope.io.files import File, opened_parquet
from tightrope.io.places import partition_kinds, partitioned

ROW = "\0row"  # a column of our own: which row of all logs it is
TOGETHER = 8  # batches that a unit has at least, where its file has as many


@dataclass(frozen=True)
class Unit:
    """Neighbouring row groups of one file: the least that is read by itself."""

    file: File
    groups: tuple[int, ...]
    rows: int
    of_file: int  # the rows of the whole file

    def check_unchanged(self, metadata: Any) -> None:
        """Refuse a file that was written anew since it was first looked at: some of its rows would be lost."""
        last = self.groups[-1] < metadata.num_row_groups
        rows = sum(metadata.row_group(group).num_rows for group in self.groups) if last else -1
        if (rows, metadata.num_rows) != (self.rows, self.of_file):
            raise DataError(
                f"{self.file.name} has changed while it was read: it had {self.of_file:,} rows, and has "
                f"{metadata.num_rows:,} now, or others. Read the logs once nobody writes to them"
            )


def units_of(file: File, groups: Sequence[int], batch: int) -> list[Unit]:
    """The row groups of a file, of so many rows each, as units of several batches; an empty file is one too."""
    units, some = [], range(0)
    for group in range(len(groups)):
        some = range(some.start, group + 1)
        if sum(groups[some.start : some.stop]) >= TOGETHER * batch:
            units.append(some)
            some = range(group + 1, group + 1)
    if units and len(some):  # a small rest by itself would be a small batch
        units[-1] = range(units[-1].start, some.stop)
    units = units or [some]
    return [Unit(file, tuple(some), sum(groups[some.start : some.stop]), sum(groups)) for some in units]


@dataclass(frozen=True, eq=False)
class Batches:
    """Files of one kind as units, and the columns of them that are read."""

    units: tuple[Unit, ...]
    schema: Any  # of the columns that are read
    rows: int  # of a batch, at most

    def of(self, some: range, wanted: Sequence[str] | None = None) -> Iterator[Any]:
        """Tables of the rows of some units, in their order, each row with its number among all."""
        import pyarrow as pa

        wanted, first = wanted or self.schema.names, sum(unit.rows for unit in self.units[: some.start])
        schema = pa.schema([self.schema.field(name) for name in wanted], self.schema.metadata)
        kinds = partition_kinds([unit.file for unit in self.units])
        for unit in self.units[some.start : some.stop]:
            if not unit.rows:
                continue
            size = -(-unit.rows // -(-unit.rows // self.rows))  # no small one at the end
            with opened_parquet(unit.file) as parquet:
                unit.check_unchanged(parquet.metadata)
                held = [name for name in wanted if name in parquet.schema_arrow.names]
                for batch in parquet.iter_batches(batch_size=size, row_groups=list(unit.groups), columns=held):
                    table = partitioned(unit.file, pa.Table.from_batches([batch]), kinds).select(wanted).cast(schema)
                    yield table.append_column(ROW, pa.array(np.arange(first, first + table.num_rows)))
                    first += table.num_rows

    def last_before(self, unit: int, wanted: Sequence[str]) -> Any:
        """The last batch of the units before this one; None: there is none."""
        before = [place for place in range(unit) if self.units[place].rows]
        last = None
        for batch in self.of(range(before[-1], before[-1] + 1), wanted) if before else ():
            last = batch
        return last


@dataclass(frozen=True, eq=False)
class Names:
    """The names of the episodes of a table's rows, where neighbours of one name count once."""

    values: Any  # of each run of rows
    counts: Any  # its rows

    @classmethod
    def of(cls, table: Any, column: str) -> Names:
        """Those that stand in this column, also where they are kept as categories."""
        import pyarrow as pa
        import pyarrow.compute as pc

        names = table[column]
        names = names.cast(names.type.value_type) if pa.types.is_dictionary(names.type) else names
        names = names.cast(pa.float32()) if pa.types.is_float16(names.type) else names  # what follows takes no halves
        runs = pc.run_end_encode(names.combine_chunks())
        return cls(runs.values, np.diff(np.asarray(runs.run_ends), prepend=0))

    def different(self) -> Any:
        """Each name once."""
        return self.values.unique()

    def among(self, others: Any) -> BoolArray:
        """Which rows belong to one of these episodes."""
        import pyarrow.compute as pc

        runs = pc.is_in(self.values, value_set=others).to_numpy(zero_copy_only=False)
        result: BoolArray = np.repeat(runs, self.counts)
        return result
