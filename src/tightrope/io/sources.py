"""What a source is, by its looks, and its rows as a table. A reader is a function in ``SOURCES``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tightrope.io import buffers, dicts, minari
from tightrope.io.aliases import ColumnMap
from tightrope.io.tables import Found, to_parts

# Each gives the columns of the sources that it knows by their looks, and None for all others.
SOURCES: tuple[Callable[[Any, ColumnMap], Found | None], ...] = (
    minari.dataset,
    buffers.rollout,
    buffers.episodes,
    dicts.scope,
    dicts.open_bandit,
)


@dataclass(frozen=True, eq=False)
class Source:
    """A pyarrow table, why each column left out of it does not convert, and what the source itself tells."""

    table: Any
    broken: dict[str, str]
    one_step: bool | None = None  # known to be so
    said: tuple[str, ...] = ()


def open_source(source: Any, given: ColumnMap) -> Source:
    """The rows of whatever it is; other libraries are recognised by their attributes and not imported."""
    for reader in SOURCES:
        found = reader(source, given)
        if found is not None:
            return Source(*to_parts(found.columns), found.one_step, found.said)
    return Source(*to_parts(source, given))
