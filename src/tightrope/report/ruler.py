"""The number line in a terminal: what lies where, each mark with its label."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.base.records import Side
from tightrope.base.rounding import outward
from tightrope.report.line import Mark
from tightrope.report.scale import around, short

SIDES: tuple[Side, ...] = ("lower", "upper")
SIGNS = {"threshold": "┃", "behavior": "◆", "estimate": "●", "truth": "★"}
ENDS = {("bound", "lower"): "[", ("bound", "upper"): "]", ("exact", "exact lower"): "├", ("exact", "exact upper"): "┤"}


def ruler(marks: Sequence[Mark], held: tuple[float, float], width: int) -> list[str]:
    """The lines of the drawing, none longer than ``width``; what lies within ``held`` is drawn double.

    Marks of the left half have their labels above, to the right of them; those of the right half below, to the left:
    so no label crosses another, and none leaves the line. Where the labels are too long for that, they stand below
    each other.
    """
    near = [mark.value for mark in marks if mark.cls != "exact"]  # an exact bound may lie far away
    scale = around(near, [mark.value for mark in marks])
    cells = [round(scale.at(mark.value) * (width - 1)) for mark in marks]
    ends = [round(scale.at(end) * (width - 1)) for end in held]
    axis = ["═" if ends[0] <= cell <= ends[1] else "─" for cell in range(width)]
    for mark, cell in sorted(zip(marks, cells, strict=True), key=lambda pair: pair[0].cls != "exact"):
        beyond = "◂" if mark.value < scale.low else "▸"
        axis[cell] = _sign(mark) if scale.holds(mark.value) else beyond
    placed = sorted(zip(cells, map(_label, marks), strict=True))
    left = [(cell, label) for cell, label in placed if cell < width // 2]
    right = [(cell, label) for cell, label in placed if cell >= width // 2]
    room = [width - cell - 2 for cell, _ in left] + [cell - 1 for cell, _ in right]
    if any(len(label) > space for (_, label), space in zip([*left, *right], room, strict=True)):
        ordered = sorted(marks, key=lambda mark: mark.value)
        return ["".join(axis), *(f"{_sign(mark)} {_label(mark)}" for mark in ordered)]
    above = [_bars(left[:row])[:cell].ljust(cell) + f"╭ {label}" for row, (cell, label) in enumerate(left)]
    below = [
        f"{label} ╯".rjust(cell + 1) + _bars(right[row + 1 :])[cell + 1 :] for row, (cell, label) in enumerate(right)
    ]
    return [*above, "".join(axis), *below]


def _sign(mark: Mark) -> str:
    return SIGNS.get(mark.cls) or ENDS[mark.cls, mark.name.partition(" bound")[0]]


def _label(mark: Mark) -> str:
    """The name and the number, with the digits that the text has; bounds are rounded outwards."""
    side = next((side for side in SIDES if mark.cls in ("bound", "exact") and side in mark.name), None)
    return f"{mark.name} {short(mark.value if side is None else outward(mark.value, side))}"


def _bars(marks: Sequence[tuple[int, str]]) -> str:
    """A bar at each of the cells, as far as the last."""
    cells = {cell for cell, _ in marks}
    return "".join("│" if cell in cells else " " for cell in range(max(cells, default=-1) + 1))
