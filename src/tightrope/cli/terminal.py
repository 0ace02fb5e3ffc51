"""Printing to a terminal: no control characters except our own colours, and nothing that its encoding cannot show.

Names of columns, episodes, files and policies come from strangers. Every command prints with ``say`` and ``console``.
"""

from __future__ import annotations

import codecs
import io
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer
from typer.core import TyperGroup

from tightrope.base.errors import visible

if TYPE_CHECKING:
    from rich.console import Console

WORDS = {  # what our signs become where the encoding lacks them: a bound must not lose its direction
    "≥": ">=",
    "≤": "<=",
    "±": "+/-",
    "−": "-",
    "–": "-",
    "∞": "inf",
    "…": "...",
    "─": "-",
    "═": "=",
    "│": "|",
    "┃": "!",
    "├": "{",
    "┤": "}",
    "╭": ",",
    "╯": "'",
    "●": "o",
    "◆": "b",
    "★": "*",
    "◂": "<",
    "▸": ">",
    "▶": ">",
    "→": "->",
    "·": "*",
    "γ": "gamma",
    "π": "pi",
    "ρ": "rho",
}


def say(text: str, *, err: bool = False) -> None:
    """Print a line, to stdout or (``err``) to stderr."""
    typer.echo(visible(text), err=err)


def console(*, stderr: bool = False) -> Console:
    """A rich console whose tables show control characters instead of sending them."""
    from rich.console import Console
    from rich.segment import Segment

    class Visible(Console):
        def render(self, *arguments: Any, **options: Any) -> Iterable[Segment]:
            for text, style, control in super().render(*arguments, **options):
                yield Segment(text if control else visible(text), style, control)

    return Visible(stderr=stderr)


class Commands(TyperGroup):
    """The group of all commands, with streams that accept any text."""

    def main(self, *arguments: Any, **options: Any) -> Any:
        """Run a command; a stream that cannot be written to is an error in one line."""
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=_HANDLER)
        try:
            return super().main(*arguments, **options)
        except OSError as error:
            say(f"error: {error}", err=True)
            sys.exit(2)


def _replaced(error: UnicodeError) -> tuple[str | bytes, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    unknown = error.object[error.start : error.end]
    words = (WORDS.get(sign) or sign.encode("ascii", "backslashreplace").decode("ascii") for sign in unknown)
    return "".join(words), error.end


_HANDLER = "tightrope"
codecs.register_error(_HANDLER, _replaced)
