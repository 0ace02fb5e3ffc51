"""The number line of a terminal: marks at their places, labels that never meet, at any width."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from tightrope.report.line import Mark
from tightrope.report.ruler import ruler

KINDS = [
    ("bound", "lower bound"),
    ("bound", "upper bound"),
    ("exact", "exact lower bound"),
    ("exact", "exact upper bound"),
    ("estimate", "estimate"),
    ("threshold", "threshold"),
    ("behavior", "behaviour policy"),
    ("truth", "true value"),
]
SIGNS = "[]├┤●┃◆★"


def marks(values):
    return [Mark(value, *kind, number="") for value, kind in zip(values, KINDS, strict=False)]


def axis_of(lines):
    return next(line for line in lines if "─" in line or "═" in line)


def test_marks_lie_where_their_numbers_are():
    lines = ruler([*marks([1.0, 3.0]), Mark(2.0, "estimate", "estimate", "")], (1.0, 3.0), 53)
    axis = axis_of(lines)
    assert [axis.index(sign) for sign in "[●]"] == [2, 26, 50]  # 4 percent are left at both ends
    assert set(axis[3:26] + axis[27:50]) == {"═"}
    assert set(axis[:2] + axis[51:]) == {"─"}


def test_by_hand():
    drawn = ruler([*marks([0.0, 10.0]), Mark(2.5, "estimate", "estimate", "")], (0.0, 10.0), 28)
    assert drawn == [
        " ╭ lower bound 0",
        " │     ╭ estimate 2.5",
        "─[═════●══════════════════]─",
        "           upper bound 10 ╯",
    ]


@given(
    st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True),
    st.integers(36, 120),
)
def test_no_line_is_longer_than_the_terminal_and_every_number_has_its_label(values, width):
    lines = ruler(marks(values), (-math.inf, math.inf), width)
    axis = axis_of(lines)
    assert max(map(len, lines)) <= max(width, max(len(mark.name) for mark in marks(values)) + 12)
    assert len(axis) == width
    text = "\n".join(lines)
    for mark in marks(values):
        assert mark.name in text
    labels = [line for line in lines if line is not axis]
    assert len(labels) == len(values)  # one line each: no label crosses another


@given(st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=8, unique=True), st.integers(80, 120))
def test_a_bar_leads_from_every_label_to_its_mark(values, width):
    """From each corner straight to the line there are bars, and no letters."""
    lines = ruler(marks(values), (-math.inf, math.inf), width)
    place = lines.index(axis_of(lines))
    corners = [(row, line.index(sign)) for row, line in enumerate(lines) for sign in "╭╯" if sign in line]
    assert len(corners) == len(values)
    for row, column in corners:
        between = lines[row + 1 : place] if row < place else lines[place + 1 : row]
        assert all(line.ljust(width)[column] in "│╭╯" for line in between)
        assert lines[place][column] in SIGNS + "◂▸"
