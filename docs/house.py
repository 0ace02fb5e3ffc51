"""Draw the house: the rooms in their layers, and the way of one log row through them.

``python docs/house.py`` writes ``docs/house.svg``. The layers are those of the import
contract in ``pyproject.toml``; a room without a place or words here is an error.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from html import escape
from pathlib import Path
from textwrap import wrap
from typing import NamedTuple

DOCS = Path(__file__).parent
PICTURE = DOCS / "house.svg"

LEFT, COLUMN, SHAFT = 112, 160, 50
WIDTH, MARGIN, SHEET = 942, 14, 62

# Room: its first column, how many it spans, and what it is.
ROOMS = {
    "cli": (0, 4, "The command line: reads options and logs (1), prints (7)."),
    "studies": (0, 4, "The same calls on thousands of data sets with known values."),
    "decisions": (0, 4, "Which of several, how much more data, by now, a better one."),
    "api": (0, 4, "What Python calls: evaluate, lower_bound, … (from 2 to 6)."),
    "report": (0, 2, "The record as page, table, frame or figure. Computes nothing."),
    "evaluation": (
        2,
        2,
        "Overlap, checks, which bound to believe and why, the verdict.",
    ),
    "adapters": (0, 1, "Policies of other libraries, policies in files."),
    "behaviors": (1, 1, "The logging policy, if nobody logged it."),
    "estimators": (2, 1, "What is summed: IS, WIS, MB, DR, …"),
    "bounds": (3, 1, "Approximate from replicates, exact from values."),
    "io": (0, 1, "Files and frames to episodes."),
    "domains": (1, 1, "Processes with known values."),
    "models": (2, 1, "Of the process: tabular, linear, …"),
    "functional": (3, 1, "Weights in, values out: the one idea."),
    "base": (0, 4, "What all rooms share: dataset, policy, ratios, problem, record."),
}
STOPS = ["io", "base", "estimators", "functional", "bounds", "evaluation", "report"]
HEIGHTS = [44, 44, 44, 44, 84, 104, 84, 86]  # of the layers, from the top
GAPS = [12, 12, 12, 30, 34, 42, 34, 0]  # below them

STYLE = """
  svg { --page: #fbfaf7; --room: #ffffff; --edge: #c4cad2; --text: #1d232b;
        --soft: #55606d; --row: #b4530a; --policy: #1f63b5; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #15191f; --room: #20262e; --edge: #46515e; --text: #e8ebef;
          --soft: #a5b0bd; --row: #f3a55b; --policy: #85b7f7; } }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
         font-size: 14px; fill: var(--soft); }
  .page { fill: var(--page); }
  .room { fill: var(--room); stroke: var(--edge); stroke-width: 1.2; }
  .name { font-size: 17px; font-weight: 650; fill: var(--text); }
  .way { fill: none; stroke: var(--row); stroke-width: 2.6; stroke-linejoin: round; }
  .by { fill: none; stroke: var(--policy); stroke-width: 2.2; stroke-dasharray: 6 5; }
  .help { fill: none; stroke: var(--soft); stroke-width: 1.4; stroke-dasharray: 2 4; }
  .stop { fill: var(--row); }
  .number { font-size: 13px; font-weight: 700; fill: var(--page); text-anchor: middle; }
  .what { font-size: 13px; font-style: italic; fill: var(--row); }
  .whose { font-size: 13px; font-style: italic; fill: var(--policy); }
  .layer { text-anchor: middle; }
  .sheet { fill: var(--room); stroke: var(--edge); stroke-width: 1.2; }
  .thing { font-weight: 650; fill: var(--text); text-anchor: middle; }
"""


class Box(NamedTuple):
    """A room's place."""

    x: float
    y: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right wall."""
        return self.x + self.width

    @property
    def bottom(self) -> float:
        """Its floor."""
        return self.y + self.height

    @property
    def middle(self) -> float:
        """Half-way between its walls."""
        return self.x + self.width / 2

    @property
    def level(self) -> float:
        """Half-way between floor and ceiling."""
        return self.y + self.height / 2


def layers() -> list[list[str]]:
    """The rooms of each layer, the highest first, as the import contract has them."""
    settings = tomllib.loads((DOCS.parent / "pyproject.toml").read_text("utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    return [
        [room.strip().removeprefix("tightrope.") for room in layer.split("|")]
        for layer in contract["layers"]
    ]


def places() -> dict[str, Box]:
    """Where each room is."""
    boxes, top = {}, 52.0
    for rooms, height, gap in zip(layers(), HEIGHTS, GAPS, strict=True):
        for room in rooms:
            first, span, _ = ROOMS[room]
            x = LEFT + first * (COLUMN + SHAFT)
            width = span * (COLUMN + SHAFT) - SHAFT
            boxes[room] = Box(x, top, width, height)
        top += height + gap
    return boxes


def draw() -> str:
    """The whole picture."""
    boxes = places()
    height = max(box.bottom for box in boxes.values()) + MARGIN
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:g}"'
        ' role="img" aria-labelledby="title what">',
        '<title id="title">The rooms of tightrope, and the way of one log row</title>',
        f'<desc id="what">{escape(_in_words())}</desc>',
        f"<style>{STYLE}</style>",
        "<defs>",
        _arrowhead("tip", "row"),
        _arrowhead("policy-tip", "policy"),
        _arrowhead("help-tip", "soft"),
        "</defs>",
        f'<rect class="page" width="{WIDTH}" height="{height:g}" rx="14"/>',
        f'<text x="{LEFT}" y="34">A room imports from lower layers only.'
        " The line is the way of one log row.</text>",
    ]
    lines += [line for room, box in boxes.items() for line in _room(room, box)]
    lines += _layer_numbers(boxes)
    lines += _way(boxes)
    lines += _policy(boxes)
    lines += _help(boxes)
    return "\n".join([*lines, "</svg>", ""])


def _in_words() -> str:
    rows = "; ".join(
        f"layer {number}: {', '.join(rooms)}"
        for number, rooms in zip(range(len(layers()), 0, -1), layers(), strict=True)
    )
    return f"{rows}. One log row goes through {', '.join(STOPS)}, and out as a page."


def _arrowhead(name: str, color: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="8.5" refY="5" markerWidth="13"'
        ' markerHeight="13" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M0 0 10 5 0 10z" style="fill: var(--{color})"/></marker>'
    )


def _room(room: str, box: Box) -> Iterator[str]:
    yield (
        f'<rect class="room" x="{box.x:g}" y="{box.y:g}" width="{box.width:g}"'
        f' height="{box.height:g}" rx="8"/>'
    )
    _, span, words = ROOMS[room]
    on_the_way = room in STOPS
    beside = span == 4 and room != "base"  # the words stand beside the name
    top = box.y + (46 if room == "base" else 28 if beside else 26)
    left = box.x + (38 if on_the_way else 12)
    if on_the_way:
        x, number = box.x + 20, STOPS.index(room) + 1
        yield f'<circle class="stop" cx="{x:g}" cy="{top - 5:g}" r="11"/>'
        yield f'<text class="number" x="{x:g}" y="{top - 0.5:g}">{number}</text>'
    yield f'<text class="name" x="{left:g}" y="{top:g}">{room}</text>'
    for line, text in enumerate(wrap(words, 27 * span - 9)):
        x, y = (left + 104, top) if beside else (box.x + 12, top + 22 + 18 * line)
        yield f'<text x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _layer_numbers(boxes: dict[str, Box]) -> Iterator[str]:
    for number, rooms in zip(range(len(layers()), 0, -1), layers(), strict=True):
        y = boxes[rooms[0]].level + 5
        yield f'<text class="layer" x="{WIDTH - 24}" y="{y:g}">{number}</text>'
    yield f'<text class="layer" x="{WIDTH - 24}" y="34">layer</text>'


def _line(points: str, kind: str = "way", tip: str = "tip") -> str:
    return f'<path class="{kind}" d="{points}" marker-end="url(#{tip})"/>'


def _label(x: float, y: float, text: str, kind: str = "what") -> str:
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{escape(text)}</text>'


def _sheet(y: float, name: str) -> Iterator[str]:
    """Something outside the house, at its left wall."""
    yield (
        f'<path class="sheet" d="M{MARGIN} {y - 22:g}h{SHEET - 14}l14 14v30h-{SHEET}z'
        f' M{MARGIN + SHEET - 14} {y - 22:g}v14h14"/>'
    )
    yield f'<text class="thing" x="{MARGIN + SHEET / 2:g}" y="{y + 10:g}">{name}</text>'


def _way(boxes: dict[str, Box]) -> Iterator[str]:
    io, base, estimators = boxes["io"], boxes["base"], boxes["estimators"]
    functional, bounds = boxes["functional"], boxes["bounds"]
    evaluation, report = boxes["evaluation"], boxes["report"]
    outside = MARGIN + SHEET
    shaft = estimators.x - SHAFT / 2
    inside = base.y + 20
    yield from _sheet(io.level, "logs")
    yield _line(f"M{outside} {io.level:g}H{io.x:g}")
    yield _line(
        f"M{io.middle:g} {io.bottom:g}V{inside:g}H{shaft:g}"
        f"V{estimators.level:g}H{estimators.x:g}"
    )
    yield _label(io.middle - 84, io.bottom + 22, "an episode")
    yield _label(shaft - 156, inside + 17, "logs with a candidate")
    corridor = (estimators.bottom + functional.y) / 2
    down = functional.x + 36
    yield _line(
        f"M{estimators.middle:g} {estimators.bottom:g}V{corridor:g}H{down:g}"
        f"V{functional.y:g}"
    )
    yield _label(estimators.middle + 8, corridor - 5, "columns")
    up = functional.right - 26
    yield _line(f"M{up:g} {functional.y:g}V{bounds.bottom:g}")
    yield _label(up - 80, corridor + 5, "replicates")
    yield _line(f"M{estimators.right:g} {estimators.level:g}H{bounds.x:g}")
    yield _label(estimators.right + 3, estimators.level - 8, "values")
    yield _line(f"M{bounds.middle:g} {bounds.y:g}V{evaluation.bottom:g}")
    yield _label(bounds.middle + 10, bounds.y - 13, "a bound")
    yield _line(f"M{evaluation.x:g} {evaluation.level:g}H{report.right:g}")
    yield _label(report.right + 3, evaluation.level - 8, "record")
    yield from _sheet(report.level, "page")
    yield _line(f"M{report.x:g} {report.level:g}H{outside}")


def _policy(boxes: dict[str, Box]) -> Iterator[str]:
    adapters, base = boxes["adapters"], boxes["base"]
    outside, shaft = MARGIN + SHEET, adapters.right + SHAFT / 2
    yield from _sheet(adapters.level, "policy")
    yield _line(f"M{outside} {adapters.level:g}H{adapters.x:g}", "by", "policy-tip")
    yield _line(
        f"M{adapters.right:g} {adapters.level:g}H{shaft:g}V{base.y + 18:g}",
        "by",
        "policy-tip",
    )
    yield _label(shaft + 10, base.y - 12, "the candidate", "whose")


def _help(boxes: dict[str, Box]) -> Iterator[str]:
    """Rooms that estimators ask where the question needs them."""
    behaviors, models = boxes["behaviors"], boxes["models"]
    estimators = boxes["estimators"]
    y, x = estimators.y + 20, estimators.x + 40
    yield _line(f"M{behaviors.right:g} {y:g}H{estimators.x:g}", "help", "help-tip")
    yield _line(f"M{x:g} {models.y:g}V{estimators.bottom:g}", "help", "help-tip")


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
