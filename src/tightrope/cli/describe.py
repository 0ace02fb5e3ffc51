"""What is in a source, whether or not it can be used as logs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from tightrope.cli.terminal import console, say

if TYPE_CHECKING:
    from tightrope.base.records import BehaviorCheck, Overlap, Summary
    from tightrope.evaluation.gaps import Gap

MOST = 40  # characters of an example


class Parts(TypedDict):
    """How the logs compare with the candidate and with an estimate of the behaviour policy, where that is known."""

    overlap: Overlap | None
    behavior_check: BehaviorCheck | None


def described(source: Any, given: Any) -> list[dict[str, str]] | None:
    """Every column with its type, the role that it would play and an example; None where there is no table at all."""
    from tightrope.base.errors import TightropeError
    from tightrope.io.aliases import assign
    from tightrope.io.sources import open_source

    try:
        opened = open_source(source[0] if isinstance(source, list) and len(source) == 1 else source, given)
    except TightropeError:
        return None
    names = [*opened.table.column_names, *opened.broken]
    try:
        roles = {name: role for role, several in assign(names, given).items() for name in several}
    except TightropeError:  # two columns for one role: the error itself says so
        roles = {}
    columns = []
    for name in names:
        column = None if name in opened.broken else opened.table[name]
        example = opened.broken.get(name, "") if column is None else str(column[0].as_py())
        columns.append(
            {
                "column": name,
                "type": "unreadable" if column is None else str(column.type),
                "role": roles.get(name, "not used"),
                "example": example if len(example) <= MOST else f"{example[: MOST - 1]}…",
                "missing": "" if column is None else str(column.null_count),
            }
        )
    return columns


def show_columns(source: Any, given: Any, error: Exception, json: bool) -> None:
    """Print what is in a source that cannot be read as logs; the error itself is printed by whoever raised it."""
    columns = described(source, given)
    if columns is None:
        return
    if json:
        import json as encoder

        say(encoder.dumps({"columns": columns, "error": str(error)}))
        return
    from rich.table import Table
    from rich.text import Text

    table = Table(header_style="bold", box=None, pad_edge=False)
    for name in columns[0]:
        table.add_column(name, overflow="fold")
    for column in columns:
        table.add_row(*(Text(value) for value in column.values()))
    console().print(table)


def show_logs(summary: Summary, parts: Parts, missing: Sequence[Gap], json: bool) -> None:
    """Print what is in the logs, how they compare with the candidate, and what is missing."""
    if json:
        import json as encoder

        plain: dict[str, object] = {name: _plain(part) for name, part in parts.items()}
        say(encoder.dumps({"summary": summary.to_dict(), **plain, "missing": [one.to_dict() for one in missing]}))
        return
    from tightrope.report.table import summary_table

    console().print(summary_table(summary, parts["overlap"], parts["behavior_check"]))
    for one in missing:
        say(f"- {one}")


def _plain(part: Any) -> Any:
    return None if part is None else part.to_dict()
