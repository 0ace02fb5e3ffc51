"""The distribution function of the candidate's return as a picture: the estimate, and the band around it."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.report import svg
from tightrope.report.scale import Scale, short

Points = Sequence[tuple[float, float]]

STYLE = """text{fill:#57606a;font:12px system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
.grid{stroke:#e4e8ec}.axis{stroke:#57606a}.paper{fill:#fff}.band{fill:#a9c7ea;opacity:.55}
.curve{fill:none;stroke:#0a5bb5;stroke-width:2}"""
LEFT, RIGHT, TOP, HIGH = 9.0, 97.0, 30, 250  # percent, and pixels
EMPTY = 0.03  # of the axis: how far it goes on beyond the returns that were seen


def band_picture(steps: Points, lower: Points, upper: Points, ends: tuple[float, float], name: str) -> str:
    """A whole file: P(return ≤ x) from 0 to 1, as a line of steps within its band."""
    axis = _axis([x for x, _ in (*steps, *lower, *upper)], ends)
    band = [*_climb(axis, upper, first=True), *reversed(_climb(axis, lower, first=False))]
    parts = [
        svg.element("path", d=_path(band, "Z"), cls="band"),
        svg.element("path", d=_path(_climb(axis, steps, first=False)), cls="curve", vector_effect="non-scaling-stroke"),
    ]
    plot = svg.group(
        "svg", parts, x=svg.pct(LEFT), y=TOP, width=svg.pct(RIGHT - LEFT), height=HIGH, viewBox="0 0 100 100",
        preserveAspectRatio="none",
    )  # fmt: skip
    rows = [svg.label(0.5, 12, f"probability of a {name} of at most x")]
    for tick in (0.0, 0.25, 0.5, 0.75, 1.0):
        down = TOP + HIGH * (1 - tick)
        rows += [svg.line(LEFT, down, RIGHT, down, "grid"), svg.label(LEFT - 1, down, short(tick), "end")]
    across = svg.across_axis(axis, name, TOP + HIGH, left=LEFT, right=RIGHT)
    paper = svg.element("rect", width="100%", height="100%", cls="paper")
    words = f"The estimate rises in {len(steps)} steps from {short(steps[0][0])} to {short(steps[-1][0])}."
    drawn = [svg.group("style", [STYLE]), paper, *rows, *across, plot]
    return svg.image("distribution", f"Distribution of the candidate's {name}", words, TOP + HIGH + 48, drawn)


def _axis(places: Sequence[float], ends: tuple[float, float]) -> Scale:
    low, high = min(places), max(places)
    pad, near = EMPTY * (high - low) or 1.0, 0.5 * (high - low)
    first = ends[0] if low - ends[0] < near else low - pad
    return Scale(first, ends[1] if ends[1] - high < near else high + pad)


def _climb(axis: Scale, points: Points, *, first: bool) -> list[tuple[float, float]]:
    """The corners of a line of steps across the axis.

    A height is reached at its point and kept; of upper bounds (``first``) each stands before its point, and 1 after.
    """
    corners, height = [], 0.0
    if first:
        place = 0.0
        for x, p in points:
            corners += [(place, p), (100 * axis.at(x), p)]
            place = 100 * axis.at(x)
        return [*corners, (place, 1.0), (100.0, 1.0)]
    corners = [(0.0, 0.0)]
    for x, p in points:
        place = 100 * axis.at(x)
        corners += [(place, height), (place, max(height, p))]
        height = max(height, p)
    return [*corners, (100.0, height)]


def _path(corners: Sequence[tuple[float, float]], end: str = "") -> str:
    return "M" + "L".join(f"{x:.2f} {100 - 100 * y:.2f}" for x, y in corners) + end
