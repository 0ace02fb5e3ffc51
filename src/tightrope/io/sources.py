"""Recognise what a source is, and give its rows as a table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tightrope.io import buffers, dicts, minari
from tightrope.io.aliases import ColumnMap
from tightrope.io.tables import to_parts


@dataclass(frozen=True, eq=False)
class Source:
    """A pyarrow table, and what is known about it."""

    table: Any
    broken: dict[str, str]  # why each column that is not in the table could not be converted
    one_step: bool | None = None  # whether each row is an episode; None: not known
    notes: tuple[str, ...] = ()  # what the source is


def open_source(source: Any, given: ColumnMap) -> Source:
    """The rows of any known source; the attributes of an object show its library, which is not imported."""
    if minari.recognised(source):
        return Source(*to_parts(minari.columns(source)), None, ("a Minari dataset",))
    if buffers.is_rollout(source):
        columns, notes = buffers.rollout_columns(source, given.get("terminated") == "done")
        return Source(*to_parts(columns), None, notes)
    if buffers.is_episodes(source):
        return Source(*to_parts(buffers.episode_columns(source)), None, ("episodes, as d3rlpy holds them",))
    if isinstance(source, Mapping) and dicts.is_scope(source):
        columns, notes = dicts.scope_columns(source)
        return Source(*to_parts(columns), None, notes)
    if isinstance(source, Mapping) and dicts.is_obp(source):
        return Source(*to_parts(source), True, ("a bandit's feedback, as Open Bandit Pipeline holds it",))
    return Source(*to_parts(source, given))
