"""What all commands share: exit codes, and errors as one line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import typer

ANSWERED, BAD_INPUT, NO_ANSWER = 0, 2, 3
EXITS = "Exit codes: 0 answered; 2 bad input or arguments, nothing was written; 3 the data cannot answer."


@contextmanager
def errors() -> Iterator[None]:
    """Our own errors become one line on stderr; anything else is a bug and keeps its traceback."""
    from tightrope.errors import NoOverlapError, TightropeError

    try:
        yield
    except TightropeError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(NO_ANSWER if isinstance(error, NoOverlapError) else BAD_INPUT) from None
