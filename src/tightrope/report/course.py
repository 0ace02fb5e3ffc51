"""The picture of a monitor: how both bounds moved as episodes arrived. It stands alone, with its own colours."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.base.rounding import outward
from tightrope.report.scale import Scale, around, short, tick_words
from tightrope.report.svg import element, group

WIDTH, HEIGHT = 760, 340  # pixels
LEFT, RIGHT, TOP, BOTTOM = 70, 590, 34, 290
STYLE = """
svg { background: #fff; } text { fill: #57606a; font: 12px system-ui, sans-serif; } .name { fill: #1b1f24; }
.grid { stroke: #e4e8ec; } .axis { stroke: #57606a; } .room { fill: #0a5bb5; opacity: .12; stroke: none; }
.bound { fill: none; stroke: #0a5bb5; stroke-width: 2; } text.bound { fill: #0a5bb5; stroke: none; font-weight: 600; }
.limit { fill: none; stroke: #b3261e; stroke-dasharray: 6 4; stroke-width: 1.5; }
text.limit { fill: #b3261e; stroke: none; }
@media (prefers-color-scheme: dark) { svg { background: #12161b; } text { fill: #a3adb8; } .name { fill: #e6eaef; }
.grid { stroke: #2a323b; } .axis { stroke: #a3adb8; } .room, text.bound { fill: #6cb2ff; } .bound { stroke: #6cb2ff; }
.limit { stroke: #ff8f85; } text.limit { fill: #ff8f85; } }
"""
Point = tuple[int, float, float]  # episodes, lower bound, upper bound


def course(
    points: Sequence[Point], possible: tuple[float, float], confidence: float, limits: Sequence[tuple[str, float]] = ()
) -> str:
    """Both bounds over the number of episodes; ``limits`` are (words, value) lines across.

    Before the first look the bounds are what is possible, and between two looks they are those of the earlier one.
    """
    x = Scale(0, points[-1][0])
    _, lower, upper = points[-1]
    y = around(
        [lower, upper, *(value for _, value in limits)], [*possible, *(side for point in points for side in point[1:])]
    )
    low, high = ([(x.at(n), value) for n, value in _steps(points, side, possible)] for side in (0, 1))
    room = _path(low, y) + "L" + _path(high[::-1], y)[1:] + "Z"
    words = (
        f"After {points[-1][0]} episodes the candidate's value is at least {short(outward(lower, 'lower'))} and at "
        f"most {short(outward(upper, 'upper'))}."
    )
    children = [
        element("title", "Bounds at every look"),
        element("desc", words),
        element("style", STYLE),
        _text(
            LEFT,
            16,
            f"bounds on the candidate's value; each holds at all looks with confidence {confidence:g}",
            cls="name",
        ),
        *_axes(x, y),
        element("path", d=room, cls="room"),
        *(element("path", d=_path(side, y), cls="bound") for side in (low, high)),
        *_ends(y, [("upper", upper), ("lower", lower)], limits),
    ]
    size = {"width": WIDTH, "height": HEIGHT, "viewBox": f"0 0 {WIDTH} {HEIGHT}"}
    return group("svg", children, xmlns="http://www.w3.org/2000/svg", role="img", **size)


def _steps(points: Sequence[Point], side: int, possible: tuple[float, float]) -> list[tuple[float, float]]:
    """The corners of a line that changes at looks alone."""
    corners, height = [(0.0, possible[side])], possible[side]
    for point in points:
        corners += [(point[0], height), (point[0], point[1 + side])]
        height = point[1 + side]
    return corners


def _path(corners: Sequence[tuple[float, float]], y: Scale) -> str:
    return "M" + "L".join(f"{LEFT + (RIGHT - LEFT) * at:.1f} {_down(y, value):.1f}" for at, value in corners)


def _down(y: Scale, value: float) -> float:
    return TOP + (BOTTOM - TOP) * (1 - y.at(value))


def _axes(x: Scale, y: Scale) -> list[str]:
    parts = []
    for value, words in zip(y.ticks(), tick_words(y.ticks()), strict=True):
        down = f"{_down(y, value):.1f}"
        parts.append(element("line", x1=LEFT, x2=RIGHT, y1=down, y2=down, cls="grid"))
        parts.append(_text(LEFT - 8, _down(y, value), words, anchor="end"))
    whole = [tick for tick in x.ticks(6) if tick == int(tick)]
    for value, words in zip(whole, tick_words(whole), strict=True):
        parts.append(_text(LEFT + (RIGHT - LEFT) * x.at(value), BOTTOM + 16, words, anchor="middle"))
    parts.append(element("line", x1=LEFT, x2=RIGHT, y1=BOTTOM, y2=BOTTOM, cls="axis"))
    return [*parts, _text((LEFT + RIGHT) / 2, BOTTOM + 38, "episodes counted", anchor="middle")]


def _ends(y: Scale, bounds: Sequence[tuple[str, float]], limits: Sequence[tuple[str, float]]) -> list[str]:
    """Words at the right end of every line, moved apart where they would meet."""
    lines = [
        element("line", x1=LEFT, x2=RIGHT, y1=f"{_down(y, value):.1f}", y2=f"{_down(y, value):.1f}", cls="limit")
        for _, value in limits
    ]
    named = [
        (f"{side} bound {short(outward(value, 'lower' if side == 'lower' else 'upper'))}", value, "bound")
        for side, value in bounds
    ]
    named += [(f"{words} {short(value, 5)}", value, "limit") for words, value in limits]
    above = float(TOP)
    for words, value, cls in sorted(named, key=lambda one: -one[1]):
        above = max(above, _down(y, value))
        lines.append(_text(RIGHT + 8, above, words, cls=cls))
        above += 15
    return lines


def _text(x: float, y: float, words: str, *, anchor: str = "start", cls: str = "") -> str:
    return element("text", words, x=f"{x:.1f}", y=f"{y:.1f}", dy=".35em", text_anchor=anchor, cls=cls)
