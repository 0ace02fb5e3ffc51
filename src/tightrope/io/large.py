"""Parquet that does not fit into memory: read batch by batch, kept as files of plain arrays, mapped.

Rows of an episode may lie in several row groups and files, in any order, and beside those of others; an episode counts
as complete once a whole batch has gone by without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from tightrope.base.checks import check_labels
from tightrope.base.dataset import BoolArray, IntArray
from tightrope.base.errors import DataError
from tightrope.base.folder import Folder, overlapping
from tightrope.base.names import must_be_one_of
from tightrope.base.threads import AHEAD, Workers, cores, side_by_side
from tightrope.io.aliases import ColumnMap
from tightrope.io.batches import ROW, Batches, Names, Unit, units_of
from tightrope.io.columns import Columns, row_of_table
from tightrope.io.episodes import FLAGS, MissingStepError, check_roles, is_one_step
from tightrope.io.files import File, is_parquet, opened_parquet
from tightrope.io.logs import Logs
from tightrope.io.partitions import Progress, shared_out
from tightrope.io.places import partition_kinds, partitioned, same_kind
from tightrope.io.steps import Growing, Named, Steps

COPIES = 4  # what reading takes at its worst, in sizes of the columns
WAITING = 4  # batches that are read or kept beside those that threads convert and write
LEAST_ROWS = 4096


@dataclass(frozen=True, eq=False)
class Large:
    """Parquet files of one kind, and the columns of them that are read."""

    batches: Batches
    columns: Columns  # of a table without rows
    one_step: bool

    @property
    def units(self) -> tuple[Unit, ...]:
        """What can be converted by itself."""
        return self.batches.units

    @property
    def rows(self) -> int:
        """Of all files."""
        return sum(unit.rows for unit in self.units)

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
            growing, columns = self.converted(named, folder, range(len(self.units)), progress)
            if growing.taken != self.rows:
                raise DataError(
                    f"the files held {self.rows:,} rows, but {growing.taken:,} were read: they have changed"
                )
        steps = growing.ordered()
        state = columns.name("state")
        if state is not None:  # in all pieces together; of each it was looked at before
            check_labels(f"column {state!r}", steps.states, partial(_step, steps))
        for part in overlapping(len(steps.episode_ids)):
            names = steps.episode_ids[part]
            same = np.flatnonzero(names[1:] == names[:-1])
            if len(same):
                raise self._scattered(names[same[0]])
        unused = [name for name in self.columns.names if name not in columns.taken]
        return steps, replace(columns, broken=dict.fromkeys(unused, "not read"))

    def converted(
        self, named: Named, folder: Folder, units: range, progress: Progress | None = None
    ) -> tuple[Growing, Columns]:
        """The steps of the episodes that begin in some of the units, and what their columns are taken for."""
        import pyarrow as pa

        growing, columns = Growing(folder), self.columns

        def converted(table: Any) -> tuple[Steps, Columns]:
            try:
                logs = Logs.of(table, {}, self.columns.given, self.one_step, _rows_of(table), numbered=self.unnamed)
                steps = Steps.of(logs, named)
            except MissingStepError as error:
                raise self._explained(error, table) from None
            return replace(steps, arrival=table[ROW].to_numpy()[steps.arrival]), logs.columns

        def placed() -> Iterator[tuple[Callable[[], None], int]]:
            nonlocal columns
            for piece, columns in side_by_side(converted, self._whole(units)):
                if self.unnamed:
                    piece = replace(piece, episode_ids=piece.episode_ids + growing.count)
                yield growing.place(piece), columns.n_rows

        def written(piece: tuple[Callable[[], None], int]) -> int:
            write, rows = piece
            write()
            return rows

        for rows in side_by_side(written, placed()):  # reading and converting go on while the disk takes its time
            growing.taken += rows
            if progress is not None:
                progress(growing.taken, self.rows)
        pa.default_memory_pool().release_unused()
        held = columns.table.schema.empty_table()  # a slice would keep all rows alive, and take them along
        held = held.drop_columns([ROW]) if ROW in held.column_names else held
        return growing, replace(columns, table=held, order=None, where=row_of_table)

    # -- whole episodes ----------------------------------------------------------------------------------------

    def _whole(self, units: range) -> Iterator[Any]:
        """Tables of whole episodes, of those that begin in these units."""
        import pyarrow as pa

        kept, earlier = None, self._names_before(units.start)
        for batch in self.batches.of(units):
            if self.one_step:
                yield batch
                continue
            if earlier is not None:
                own, others = _apart(batch, self._names(batch).among(earlier))
                batch, earlier = own, self._names(others).different() if others.num_rows else None
            if kept is None:
                kept = batch
                continue
            ended, kept = _apart(kept, self._going_on(kept, batch))
            kept = pa.concat_tables([kept, batch])
            if ended.num_rows:
                yield ended
        if kept is not None:
            yield from self._to_the_end(kept, units.stop)

    def _to_the_end(self, kept: Any, unit: int) -> Iterator[Any]:
        """What is left, with those rows of its episodes that come in the units from there on."""
        import pyarrow as pa

        for batch in self.batches.of(range(unit, len(self.units))):
            ended, kept = _apart(kept, self._going_on(kept, batch))
            if ended.num_rows:
                yield ended
            if not kept.num_rows:
                return
            _, more = _apart(batch, self._names(batch).among(self._names(kept).different()))
            kept = pa.concat_tables([kept, more])
        if kept.num_rows:
            yield kept

    def _names_before(self, unit: int) -> Any:
        """The names in the last batch before a unit: an episode of one of them belongs there. None: there is none."""
        name = self.columns.name("episode")
        if name is None or self.one_step:  # then nobody else has any of the units
            return None
        last = self.batches.last_before(unit, [name])
        return None if last is None else self._names(last).different()

    def _names(self, table: Any) -> Names:
        name = self.columns.name("episode")
        assert name is not None
        return Names.of(table, name)

    def _going_on(self, kept: Any, batch: Any) -> BoolArray:
        """Which rows belong to an episode that the batch goes on with."""
        if self.columns.name("episode") is not None:
            return self._names(kept).among(self._names(batch).different())
        part = Columns.of(kept, {}, self.columns.given).at(None, _rows_of(kept))
        ends = np.logical_or.reduce([part.flag(role) for role in FLAGS if part.name(role) is not None])
        last = np.flatnonzero(ends)
        return np.arange(kept.num_rows) > (last[-1] if len(last) else -1)

    # -- what is wrong with them -------------------------------------------------------------------------------

    def _explained(self, error: MissingStepError, table: Any) -> DataError:
        """What is wrong with a table; perhaps some rows of its episodes come elsewhere."""
        import pyarrow.compute as pc

        name = self.columns.name("episode")
        if name is None:
            return error
        own = self._names(table).different()

        def rows_of_each(batches: Iterable[Any]) -> IntArray:
            rows = np.zeros(len(own), dtype=np.int64)
            for names in map(self._names, batches):
                place = pc.index_in(names.values, value_set=own).fill_null(-1).to_numpy(zero_copy_only=False)
                np.add.at(rows, place[place >= 0], names.counts[place >= 0])
            return rows

        everywhere = rows_of_each(self.batches.of(range(len(self.units)), [name]))
        apart = np.flatnonzero(everywhere != rows_of_each([table]))
        return self._scattered(own[int(apart[0])].as_py()) if len(apart) else error

    def _scattered(self, episode: Any) -> DataError:
        name, t = self.columns.name("episode"), self.columns.name("t")
        by = ", ".join(column for column in (name, t) if column is not None)
        return DataError(
            f"the rows of episode {episode} must lie near each other, within some {self.batches.rows} rows, because "
            "these logs are too large for the memory. If it is one episode, sort the files once: duckdb -c "
            f"\"COPY (FROM 'FOLDER/**/*.parquet' ORDER BY {by}) TO 'sorted.parquet'\". If there are two of this "
            "name, give each its own"
        )


def large_source(
    files: Sequence[File], given: ColumnMap, one_step: bool | None, named: Named, memory: int
) -> Large | None:
    """The files, where they are Parquet and would not fit; None where they are read as a whole."""
    import pyarrow as pa

    if not all(is_parquet(file) for file in files):
        return None
    schemas, groups, size, kinds = [], [], 0, partition_kinds(files)
    for file in files:
        with opened_parquet(file) as parquet:
            schemas.append(partitioned(file, parquet.schema_arrow.empty_table(), kinds).schema)
            groups.append([parquet.metadata.row_group(k).num_rows for k in range(parquet.metadata.num_row_groups)])
            size += _bytes(parquet)
    rows = sum(map(sum, groups))
    if COPIES * size <= memory or rows == 0:
        return None
    schema = same_kind(files, schemas)
    columns = Columns.of(schema.empty_table(), {}, given)
    for name in named:
        if name is not None and name not in schema.names:
            raise DataError(must_be_one_of("every column that is named", name, schema.names))
    columns.taken.update(name for name in named if name is not None)
    single, episode = is_one_step(columns, one_step), columns.name("episode")
    check_roles(columns, single)
    if episode is not None and pa.types.is_nested(schema.field(episode).type):
        raise DataError(
            f"column {episode!r} must hold one number or text per row, the episode's name; it holds "
            f"{schema.field(episode).type}"
        )
    batch = max(LEAST_ROWS, int(memory / (COPIES * _waiting()) / max(1, size / rows)))
    units = [unit for file, some in zip(files, groups, strict=True) for unit in units_of(file, some, batch)]
    playing = {name for names in columns.roles.values() for name in names} | columns.taken
    read = pa.schema([_as_text(field) for field in schema if field.name in playing], schema.metadata)
    return Large(Batches(tuple(units), read, batch), columns, single)


def _as_text(field: Any) -> Any:
    """The column; text that is held as views, which pyarrow cannot filter, as text."""
    import pyarrow as pa

    return field.with_type(pa.large_string()) if pa.types.is_string_view(field.type) else field


def _rows_of(table: Any) -> Callable[[int], str]:
    """Its rows, named by their numbers among all."""
    rows = table[ROW].to_numpy()
    return lambda row: row_of_table(int(rows[row]))


def _step(steps: Steps, row: int) -> str:
    """A step by episode and time."""
    ends = np.cumsum(steps.lengths)
    episode = int(np.searchsorted(ends, row, side="right"))
    return f"episode {steps.episode_ids[episode]}, step {row - int(ends[episode] - steps.lengths[episode])}"


def _waiting() -> int:
    """How many batches there are at a time: read, converted or written by threads, or beside those."""
    return 2 * AHEAD * cores() + WAITING


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
