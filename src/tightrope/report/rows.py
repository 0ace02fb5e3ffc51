"""Rows of names and numbers in a terminal of any width, none of them cut."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from tightrope.base.errors import visible

WIDE = 10_000  # columns: a table that is measured must not be squeezed


@dataclass(frozen=True)
class Rows:
    """A table where it fits, else one block for each row.

    The first cell of a row is its mark, empty for most; the next ``names`` cells say what the row is about. A row with
    a mark has a ``style`` too.
    """

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    numbers: Collection[str]  # the columns that are aligned to the right
    names: int
    style: str

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """As a table, or as blocks."""
        table = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for name in self.header:
            table.add_column(name, justify="right" if name in self.numbers else "left", no_wrap=True)
        for row in self.rows:
            table.add_row(*(Text(visible(cell)) for cell in row), style=self.style if row[0] else None)
        if Measurement.get(console, options.update(width=WIDE), table).maximum <= options.max_width:
            yield table
            return
        for mark, *cells in self.rows:
            named = zip(self.header[self.names + 1 :], cells[self.names :], strict=True)
            yield Text(visible(f"{mark or ' '} {', '.join(cells[: self.names])}"), style=self.style if mark else "bold")
            yield Text(visible("\n".join(f"    {name} {cell}" for name, cell in named if cell)))
