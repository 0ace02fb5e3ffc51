"""Logs that the workers of a cluster read: each converts a part of the files, and then puts its rows in their place.

An episode belongs to whoever has the batch in which it begins. That worker reads on beyond its own part until the
episode has ended, and the next one leaves its rows out. What comes back are names of files and numbers of rows.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from tightrope.base.errors import DataError
from tightrope.base.folder import Column, Folder, Kept, parts, wider
from tightrope.base.threads import Workers
from tightrope.io.columns import Columns
from tightrope.io.steps import Growing, Named

Progress = Callable[[int, int], None]  # rows read, of so many

TASKS = 4  # for each part that runs side by side: those that are slow or lost are then no great loss


class Source(Protocol):
    """Files of which parts can be converted by themselves."""

    @property
    def units(self) -> Sequence[Any]:
        """What can be converted by itself."""
        ...

    @property
    def rows(self) -> int:
        """Of all files."""
        ...

    @property
    def unnamed(self) -> bool:
        """Whether episodes are numbered as they come."""
        ...

    def converted(self, named: Named, folder: Folder, units: range) -> tuple[Growing, Columns]:
        """The episodes that begin in some of the units."""
        ...


class Piece(NamedTuple):
    """What one worker converted."""

    columns: Mapping[str, Kept]
    rows: int  # of the files that it took
    layout: Columns  # of a table without rows


@dataclass(frozen=True, eq=False)
class Conversion:
    """Convert the episodes that begin in some of the units."""

    large: Source
    named: Named
    place: Path

    def __call__(self, units: range) -> Piece:
        """What they hold, in a folder of its own: whoever does it again begins anew."""
        folder = Folder(self.place, passing=False)
        growing, layout = self.large.converted(self.named, folder, units)
        columns = {name: column.kept() for name, column in growing.columns.items()}
        return Piece(columns, growing.taken, layout)


@dataclass(frozen=True, eq=False)
class Placement:
    """Write what some of the pieces hold to where it belongs among all of them."""

    pieces: Sequence[Mapping[str, Kept]]  # the columns of each
    targets: Mapping[str, Kept]
    unnamed: bool  # episodes are numbered by their place

    def __call__(self, numbers: range) -> None:
        """These pieces; whoever does it again writes the same."""
        for number in numbers:
            for name, kept in self.pieces[number].items():
                first = sum(one[name].rows for one in self.pieces[:number] if name in one)
                self._write(kept, self.targets[name], first, first if self.unnamed and name == "episode_ids" else 0)

    def _write(self, kept: Kept, target: Kept, first: int, added: int) -> None:
        values = kept.opened()
        for part in parts(kept.rows):
            last = part.stop == kept.rows
            target.write(values[part] + added if added else values[part], first + part.start, lasting=last)


def shared_out(
    large: Source, named: Named, folder: Folder, progress: Progress | None, workers: Workers
) -> tuple[Growing, Columns]:
    """All steps, in files of the folder, converted and written by the workers."""
    count = min(len(large.units), TASKS * workers.parts)
    edges = np.linspace(0, len(large.units), count + 1).astype(np.int64)
    ranges = [range(a, b) for a, b in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True)]
    place, pieces, done = Path(tempfile.mkdtemp(dir=folder.path)), [], 0
    for piece in workers.map(Conversion(large, named, place), ranges):
        pieces.append(piece)
        done += piece.rows
        if progress is not None:
            progress(done, large.rows)
    if done != large.rows:
        raise DataError(
            f"the files hold {large.rows:,} rows, but workers found {done:,}: their episodes are scattered, or the "
            "files have changed meanwhile. Sort them once by episode and step, or read them without engine="
        )
    growing = Growing(folder)
    for name in dict.fromkeys(name for piece in pieces for name in piece.columns):
        growing.columns[name] = _room(name, pieces, folder)
    targets = {name: column.kept() for name, column in growing.columns.items()}
    writing = Placement([piece.columns for piece in pieces], targets, large.unnamed)
    for _ in workers.map(writing, [range(number, number + 1) for number in range(len(pieces))]):
        pass
    shutil.rmtree(place)
    return growing, next(piece.layout for piece in reversed(pieces) if piece.columns)


def _room(name: str, pieces: Sequence[Piece], folder: Folder) -> Column:
    """A column for what all pieces hold, to be filled in."""
    held = [piece.columns[name] for piece in pieces if name in piece.columns]
    widths = sorted({one.width for one in held})
    if len(widths) > 1:
        raise DataError(f"all rows must have as many components; got {widths[0]} and {widths[1]}")
    column = folder.column()
    column.add(sum(one.rows for one in held), reduce(wider, (one.dtype for one in held)), widths[0])
    return column
