"""Recognise what a source is, and give its rows as a table. A reader is a function in ``SOURCES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tightrope.io import buffers, dicts, minari
from tightrope.io.aliases import ColumnMap
from tightrope.io.files import File
from tightrope.io.places import STDIN, are_places, files_of
from tightrope.io.tables import KnownSource, dataset_files, to_parts

# Each gives the columns of the sources that it knows by their looks, and None for all others.
SOURCES: tuple[Callable[[Any, ColumnMap], KnownSource | None], ...] = (
    minari.dataset,
    buffers.rollout,
    buffers.episodes,
    dicts.scope,
    dicts.open_bandit,
)


@dataclass(frozen=True, eq=False)
class Source:
    """A pyarrow table, and what is known about it."""

    table: Any
    broken: dict[str, str]  # why each column that is not in the table could not be converted
    one_step: bool | None = None  # whether each row is an episode; None: not known
    notes: tuple[str, ...] = ()  # what the source is


def open_source(source: Any, given: ColumnMap) -> Source:
    """The rows of any known source; the attributes of an object show its library, which is not imported."""
    for reader in SOURCES:
        known = reader(source, given)
        if known is not None:
            return Source(*to_parts(known.columns), known.one_step, known.notes)
    return Source(*to_parts(source, given))


def parquet_files(source: Any) -> list[File] | None:
    """The files of a source that could be read in pieces: a place, several, or pyarrow's dataset of Parquet files."""
    if minari.is_dataset(source):
        return None
    if are_places(source):
        return None if STDIN in (source if isinstance(source, (list, tuple)) else [source]) else files_of(source)
    return dataset_files(source)
