"""Progress on a terminal: a bar of rows while reading, and one for each kind of work."""

from __future__ import annotations

import io
import sys

from tightrope.base.progress import tell
from tightrope.cli.shared import progress_bar, reading_bar


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self):
        return True


def on_a_terminal(monkeypatch):
    """Called in the test itself: pytest changes the streams after its fixtures."""
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setenv("TERM", "xterm")
    return stream


def test_rows_that_are_read_are_counted_from_the_first_batch_on(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    with reading_bar() as advance:
        assert "rows" not in terminal.getvalue()
        advance(250_000, 1_000_000)
        advance(1_000_000, 1_000_000)
    text = terminal.getvalue()
    assert "1,000,000 of 1,000,000 rows" in text
    assert "a second" in text


def test_each_kind_of_work_has_a_bar(monkeypatch):
    terminal = on_a_terminal(monkeypatch)
    with progress_bar("resampling") as advance:
        tell("asking the policy", 0.5)
        advance(1.0)
    assert "asking the policy" in terminal.getvalue()
    assert "resampling" in terminal.getvalue()


def test_without_a_terminal_there_is_none(monkeypatch):
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with reading_bar() as advance:
        assert advance is None
    with progress_bar("resampling") as advance:
        assert advance is None
