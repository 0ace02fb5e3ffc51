"""What a source is, by its looks, and its rows as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tightrope.io import buffers, dicts, minari
from tightrope.io.aliases import ColumnMap
from tightrope.io.tables import to_parts


@dataclass(frozen=True, eq=False)
class Source:
    """A pyarrow table, why each column left out of it does not convert, and what the source itself tells."""

    table: Any
    broken: dict[str, str]
    one_step: bool | None = None  # known to be so
    said: tuple[str, ...] = ()


def open_source(source: Any, given: ColumnMap) -> Source:
    """The rows of whatever it is; other libraries are recognised by their attributes and not imported."""
    if minari.recognised(source):
        return Source(*to_parts(minari.columns(source)), None, ("a Minari dataset",))
    if buffers.is_rollout(source):
        columns, said = buffers.rollout_columns(source, given.get("terminated") == "done")
        return Source(*to_parts(columns), None, said)
    if buffers.is_episodes(source):
        return Source(*to_parts(buffers.episode_columns(source)), None, ("episodes, as d3rlpy holds them",))
    if isinstance(source, Mapping) and dicts.is_scope(source):
        columns, said = dicts.scope_columns(source)
        return Source(*to_parts(columns), None, said)
    if isinstance(source, Mapping) and dicts.is_obp(source):
        return Source(*to_parts(source), True, ("a bandit's feedback, as Open Bandit Pipeline holds it",))
    return Source(*to_parts(source, given))
