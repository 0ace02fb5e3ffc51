"""Parquet that does not fit into memory: read batch by batch, kept as files of plain arrays, mapped.

Rows of an episode may lie in several row groups and files, in any order, and beside those of others; an episode counts
as complete once a whole batch has gone by without it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tightrope.base.dataset import BoolArray
from tightrope.base.errors import DataError
from tightrope.base.folder import Folder, overlapping
from tightrope.base.names import must_be_one_of
from tightrope.base.threads import AHEAD, Workers, cores, side_by_side
from tightrope.io.aliases import ColumnMap
from tightrope.io.columns import Columns, row_of_table
from tightrope.io.episodes import FLAGS, MissingStepError, is_one_step
from tightrope.io.files import File, is_parquet, opened_parquet
from tightrope.io.logs import Logs
from tightrope.io.partitions import Progress, shared_out
from tightrope.io.places import partition_kinds, partitioned, same_kind
from tightrope.io.steps import Growing, Named, Steps

ROW = "\0row"  # a column of our own: which row of all logs it is
COPIES = 4  # what reading takes at its worst, in sizes of the columns
WAITING = 4  # batches that are read, kept or written beside those that threads convert
LEAST_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Large:
    """Parquet files of one kind, and the columns of them that are read."""

    files: tuple[File, ...]
    schema: Any  # of all files together
    sizes: tuple[int, ...]  # rows of each file
    columns: Columns  # of a table without rows
    one_step: bool
    batch: int  # rows

    @property
    def rows(self) -> int:
        """Of all files."""
        return sum(self.sizes)

    @property
    def unnamed(self) -> bool:
        """Whether episodes have no names, and are numbered as they come."""
        return self.one_step or self.columns.name("episode") is None

    def steps(
        self, named: Named, folder: Folder, progress: Progress | None, workers: Workers | None = None
    ) -> tuple[Steps, Columns]:
        """All steps, in files of the folder; converted by workers where they can tell where episodes begin."""
        if workers is not None and (self.one_step or not self.unnamed):
            growing, columns = shared_out(self, named, folder, progress, workers)
        else:
            growing, columns = self.converted(named, folder, range(len(self.files)), progress)
        steps = growing.ordered()
        for part in overlapping(len(steps.episode_ids)):
            names = steps.episode_ids[part]
            same = np.flatnonzero(names[1:] == names[:-1])
            if len(same):
                raise self._scattered(names[same[0]])
        unused = [name for name in self.schema.names if name not in columns.taken]
        return steps, replace(columns, broken=dict.fromkeys(unused, "not read"))

    def converted(
        self, named: Named, folder: Folder, files: range, progress: Progress | None = None
    ) -> tuple[Growing, Columns]:
        """The steps of the episodes that begin in some of the files, and what their columns are taken for."""
        import pyarrow as pa

        growing = Growing(folder)
        columns, whole = self.columns, self._whole(files)

        def converted(table: Any) -> tuple[Steps, Columns] | tuple[DataError, Any]:
            try:
                logs = Logs.of(table, {}, self.columns.given, self.one_step)
                steps = Steps.of(logs, named)
                return replace(steps, arrival=table[ROW].to_numpy()[steps.arrival]), logs.columns
            except DataError as error:
                return error, table

        for piece, columns in side_by_side(converted, whole):
            if isinstance(piece, DataError):
                raise self._explained(piece, columns, whole, growing)
            if self.unnamed:
                piece = replace(piece, episode_ids=piece.episode_ids + growing.count)
            growing.append(piece)
            growing.taken += columns.n_rows
            if progress is not None:
                progress(growing.taken, self.rows)
        pa.default_memory_pool().release_unused()
        held = columns.table.schema.empty_table()  # a slice would keep all rows alive, and take them along
        held = held.drop_columns([ROW]) if ROW in held.column_names else held
        return growing, replace(columns, table=held, order=None, where=row_of_table)

    # -- whole episodes ----------------------------------------------------------------------------------------

    def _whole(self, files: range) -> Iterator[Any]:
        """Tables of whole episodes, of those that begin in these files."""
        import pyarrow as pa

        kept, earlier = None, self._names_before(files.start)
        for batch in self._batches(files):
            if self.one_step:
                yield batch
                continue
            if earlier is not None:
                going_on = self._among(batch, earlier)
                own, others = _apart(batch, going_on)
                batch, earlier = own, self._names(others) if others.num_rows else None
            if kept is None:
                kept = batch
                continue
            going_on = self._going_on(kept, batch)
            ended, kept = _apart(kept, going_on)
            kept = pa.concat_tables([kept, batch])
            if ended.num_rows:
                yield ended
        if kept is not None:
            yield from self._to_the_end(kept, files.stop)

    def _to_the_end(self, kept: Any, file: int) -> Iterator[Any]:
        """What is left, with those rows of its episodes that come in the files from there on."""
        import pyarrow as pa

        for batch in self._batches(range(file, len(self.files))):
            ended, kept = _apart(kept, self._going_on(kept, batch))
            if ended.num_rows:
                yield ended
            if not kept.num_rows:
                return
            _, more = _apart(batch, self._among(batch, self._names(kept)))
            kept = pa.concat_tables([kept, more])
        if kept.num_rows:
            yield kept

    def _names_before(self, file: int) -> Any:
        """The names in the last batch before a file: an episode of one of them belongs there. None: there is none."""
        before = [place for place in range(file) if self.sizes[place]]
        if not before or self.one_step:
            return None
        name, last = self.columns.name("episode"), None
        if name is None:  # then nobody else has any of the files
            return None
        for batch in self._batches(range(before[-1], before[-1] + 1), [name]):
            last = batch
        return self._names(last)

    def _names(self, table: Any) -> Any:
        import pyarrow.compute as pc

        return pc.unique(self._name_column(table))

    def _name_column(self, table: Any) -> Any:
        """The names of episodes as they are, also where they are kept as categories."""
        import pyarrow as pa

        column = table[self.columns.name("episode")]
        return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column

    def _among(self, table: Any, names: Any) -> BoolArray:
        """Which rows belong to one of these episodes."""
        import pyarrow.compute as pc

        result: BoolArray = pc.is_in(self._name_column(table), value_set=names).to_numpy()
        return result

    def _going_on(self, kept: Any, batch: Any) -> BoolArray:
        """Which rows belong to an episode that the batch goes on with."""
        if self.columns.name("episode") is not None:
            return self._among(kept, self._names(batch))
        part = Columns.of(kept, {}, self.columns.given)
        ends = np.logical_or.reduce([part.flag(role) for role in FLAGS if part.name(role) is not None])
        last = np.flatnonzero(ends)
        return np.arange(kept.num_rows) > (last[-1] if len(last) else -1)

    def _batches(self, files: range, wanted: Sequence[str] | None = None) -> Iterator[Any]:
        """The rows of some files, some at a time."""
        import pyarrow as pa

        wanted, kinds, first = wanted or self._wanted(), partition_kinds(self.files), sum(self.sizes[: files.start])
        schema = pa.schema([self.schema.field(name) for name in wanted], self.schema.metadata)
        for file in self.files[files.start : files.stop]:
            with opened_parquet(file) as parquet:
                held = [name for name in wanted if name in parquet.schema_arrow.names]
                for batch in parquet.iter_batches(batch_size=self.batch, columns=held):
                    table = partitioned(file, pa.Table.from_batches([batch]), kinds).select(wanted).cast(schema)
                    yield table.append_column(ROW, pa.array(np.arange(first, first + table.num_rows)))
                    first += table.num_rows

    def _wanted(self) -> list[str]:
        """The columns that play a role."""
        playing = {name for names in self.columns.roles.values() for name in names} | self.columns.taken
        return [name for name in self.schema.names if name in playing]

    # -- what is wrong with them -------------------------------------------------------------------------------

    def _explained(self, error: DataError, table: Any, rest: Iterator[Any], growing: Growing) -> DataError:
        """What is wrong with a piece; perhaps some rows of its episodes come elsewhere."""
        name = self.columns.name("episode")
        if name is None or not isinstance(error, MissingStepError):
            return error
        ids = np.unique(np.asarray(table[name]))
        for other in (growing.names(), *(np.unique(np.asarray(later[name])) for later in rest)):
            again = np.intersect1d(ids, other)
            if len(again):
                return self._scattered(again[0])
        return error

    def _scattered(self, episode: Any) -> DataError:
        name, t = self.columns.name("episode"), self.columns.name("t")
        by = ", ".join(column for column in (name, t) if column is not None)
        return DataError(
            f"the rows of episode {episode} must lie near each other, because these logs are too large for the memory; "
            f'they are {self.batch} rows or more apart. If it is one episode, sort the files once: duckdb -c "COPY '
            f"(FROM 'FOLDER/**/*.parquet' ORDER BY {by}) TO 'sorted.parquet'\". If there are two of this name, give "
            "each its own"
        )


def large_source(
    files: Sequence[File], given: ColumnMap, one_step: bool | None, named: Named, memory: int
) -> Large | None:
    """The files, where they are Parquet and would not fit; None where they are read as a whole."""
    if not all(is_parquet(file) for file in files):
        return None
    schemas, sizes, size, kinds = [], [], 0, partition_kinds(files)
    for file in files:
        with opened_parquet(file) as parquet:
            schemas.append(partitioned(file, parquet.schema_arrow.empty_table(), kinds).schema)
            sizes.append(parquet.metadata.num_rows)
            size += _bytes(parquet)
    rows = sum(sizes)
    if COPIES * size <= memory or rows == 0:
        return None
    schema = same_kind(files, schemas)
    columns = Columns.of(schema.empty_table(), {}, given)
    for name in named:
        if name is not None and name not in schema.names:
            raise DataError(must_be_one_of("every column that is named", name, schema.names))
    columns.taken.update(name for name in named if name is not None)
    batches = COPIES * (AHEAD * cores() + WAITING)
    batch = max(LEAST_ROWS, int(memory / batches / max(1, size / rows)))
    return Large(tuple(files), schema, tuple(sizes), columns, is_one_step(columns, one_step), batch)


def _bytes(parquet: Any) -> int:
    """What the columns take once they are decoded, nearly."""
    import pyarrow as pa

    total = 0
    for place, field in enumerate(parquet.schema_arrow):
        if pa.types.is_primitive(field.type):
            total += 8 * parquet.metadata.num_rows
        else:
            groups = range(parquet.metadata.num_row_groups)
            total += 2 * sum(
                parquet.metadata.row_group(group).column(place).total_uncompressed_size for group in groups
            )
    return total


def _apart(table: Any, later: BoolArray) -> tuple[Any, Any]:
    """The rows that are not marked, and those that are; without copying where the latter come last."""
    import pyarrow as pa

    first = int(np.argmax(later)) if later.any() else len(later)
    if later[first:].all():
        return table.slice(0, first), table.slice(first)
    return table.filter(pa.array(~later)), table.filter(pa.array(later))
