"""Draw the map of the field: which estimator and which bound come nearest, and where.

``python docs/field_map_picture.py`` reads the table of ``docs/field.md`` and writes
``docs/pictures/field-map.svg``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import NamedTuple

from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.estimators import ESTIMATORS

DOCS = Path(__file__).parent
PAGE = DOCS / "field.md"
PICTURE = DOCS / "pictures" / "field-map.svg"

WIDTH, MARGIN, SIDE, GAP = 860, 16, 74, 26  # SIDE: where the steps stand
TILE, HIGH, APART = 118, 84, 4
TOP, HEAD = 118, 62  # above the panels, and above the tiles of one
STYLE = """
  svg { --page: #fbfaf7; --text: #1d232b; --soft: #55606d; --model: #f6dfae;
        --ratios: #bcd6f5; --both: #c4e6cd; --none: #e4e6ea; --bad: #b4230a; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #15191f; --text: #e8ebef; --soft: #aeb8c4; --model: #5c4614;
          --ratios: #1e4474; --both: #1d5232; --none: #333b45; --bad: #ff8f70; } }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
         font-size: 13px; fill: var(--soft); }
  .page { fill: var(--page); }
  .title { font-size: 18px; font-weight: 650; fill: var(--text); }
  .panel { font-size: 15px; font-weight: 650; fill: var(--text); }
  .name { font-size: 15.5px; font-weight: 650; fill: var(--text); }
  .in { fill: var(--text); font-size: 12.5px; }
  .middle { text-anchor: middle; }
  .end { text-anchor: end; }
  .model { fill: var(--model); } .ratios { fill: var(--ratios); }
  .both { fill: var(--both); } .none { fill: var(--none); }
  .over { stroke: var(--bad); stroke-width: 2.4; stroke-dasharray: 5 3; }
"""
KINDS = {
    "model": "rests on a model",
    "ratios": "weighs by ratios",
    "both": "a model, corrected by ratios",
}


class Tile(NamedTuple):
    """One row of the table."""

    state: str
    steps: int
    overlap: str
    n: int
    pair: str  # estimator and bound
    errors: str
    over: bool  # whether it errs more often than it may, beyond noise
    distance: str
    estimate: str

    @property
    def estimator(self) -> str:
        """As the registry calls it."""
        return self.pair.partition(" ")[0].lower()

    @property
    def bound(self) -> str:
        """Its name, and that it is exact where it is."""
        name = self.pair.partition(" ")[2]
        return f"{name}, exact" if name in METHODS and is_exact(METHODS[name]) else name

    @property
    def kind(self) -> str:
        """What the winner rests on."""
        if self.estimator not in ESTIMATORS:
            return "none"
        chosen = ESTIMATORS[self.estimator]()
        if not chosen.uses_ratios:
            return "model"
        return "both" if chosen.model is not None else "ratios"


def tiles(text: str) -> list[Tile]:
    """The rows of the map's table."""
    found = []
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) != 10 or not (cells[1].isdigit() and cells[3].isdigit()):
            continue
        state, steps, overlap, n, pair, errors, distance, _, estimate, _ = cells
        rate = re.search(r"[\d.]+", errors)
        found.append(
            Tile(
                state,
                int(steps),
                overlap,
                int(n),
                pair,
                rate[0] if rate else "–",
                "**" in errors,
                distance,
                estimate,
            )
        )
    return found


def draw(found: list[Tile]) -> str:
    """Two panels across (numbers of episodes), three down (what is logged)."""
    states = list(dict.fromkeys(one.state for one in found))
    sizes = list(dict.fromkeys(one.n for one in found))
    rows = len(dict.fromkeys(one.steps for one in found))
    wide = 3 * TILE + 2 * APART
    deep = HEAD + rows * (HIGH + APART)
    body: list[str] = []
    for down, state in enumerate(states):
        for across, n in enumerate(sizes):
            x = MARGIN + SIDE + across * (wide + GAP)
            y = TOP + down * (deep + GAP)
            some = [one for one in found if one.state == state and one.n == n]
            body += _panel(some, f"{_words(state)}, {n} episodes", x, y, not across)
    height = TOP + len(states) * (deep + GAP) + 60
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
            f' width="{WIDTH}" height="{height}" role="img">',
            "<title>Which estimator and which bound win where</title>",
            f"<desc>{escape('; '.join(_told(one) for one in found))}</desc>",
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{height}" rx="10"/>',
            _text("title", MARGIN, 30, "Which bound comes nearest to the truth?"),
            _text(
                "",
                MARGIN,
                52,
                "Of those that are wrong no more often than the 5 % they promise."
                " Find your logs: what they show of the state,",
            ),
            _text(
                "",
                MARGIN,
                70,
                "how many episodes there are, how long they are, and what each is"
                " worth of one of the candidate's (overlap).",
            ),
            *_key(),
            *body,
            *_foot(height),
            "</svg>",
            "",
        ]
    )


def _words(state: str) -> str:
    return {
        "all seen": "All of the state is logged",
        "models too simple": "Models are too simple",
        "a part hidden": "A part of the state is hidden",
    }[state]


def _told(one: Tile) -> str:
    return (
        f"{one.state}, {one.n} episodes of {one.steps} steps, overlap {one.overlap}: "
        f"{one.pair}"
    )


def _panel(
    some: list[Tile], title: str, x: float, y: float, named: bool
) -> Iterator[str]:
    overlaps = list(dict.fromkeys(one.overlap for one in some))
    steps = list(dict.fromkeys(one.steps for one in some))
    yield _text("panel", x, y + 18, title)
    for place, overlap in enumerate(overlaps):
        middle = x + place * (TILE + APART) + TILE / 2
        words = f"overlap {overlap}" if place == 0 else overlap
        yield _text("middle", middle, y + 48, words)
    for one in some:
        left = x + overlaps.index(one.overlap) * (TILE + APART)
        top = y + HEAD + steps.index(one.steps) * (HIGH + APART)
        yield from _tile(one, left, top)
    for place, count in enumerate(steps if named else []):
        level = y + HEAD + place * (HIGH + APART) + HIGH / 2 + 5
        yield _text("end", x - 10, level, f"{count} steps")


def _tile(one: Tile, x: float, y: float) -> Iterator[str]:
    over = " over" if one.over else ""
    yield (
        f'<rect class="{one.kind}{over}" x="{x:g}" y="{y:g}" width="{TILE}"'
        f' height="{HIGH}" rx="6"><title>{escape(_told(one))}</title></rect>'
    )
    middle = x + TILE / 2
    name = one.pair.partition(" ")[0]
    yield _text("name middle", middle, y + 21, name)
    yield _text("in middle", middle, y + 38, one.bound or "holds its level")
    if one.bound:
        told = f"{float(one.distance):.2g} off, {float(one.errors):.0f} %"
        yield _text("in middle", middle, y + 56, told)
    yield _text("in middle", middle, y + 74, f"estimate: {one.estimate}")


def _key() -> Iterator[str]:
    x, y = MARGIN, 84
    for kind, words in KINDS.items():
        yield f'<rect class="{kind}" x="{x}" y="{y}" width="22" height="16" rx="4"/>'
        yield _text("", x + 30, y + 13, words)
        x += 52 + 7 * len(words)
    yield f'<rect class="none over" x="{x}" y="{y}" width="22" height="16" rx="4"/>'
    yield _text("", x + 30, y + 13, "wrong too often on fresh logs")


def _foot(height: float) -> Iterator[str]:
    lines = (
        "In a tile: the estimator, its bound, how far that lies below the truth (in"
        " standard deviations of the return) and how often",
        "it is wrong, both on logs that had no part in the choice; last, the estimator"
        " whose estimate comes nearest.",
        "The processes are small (six states, three actions): where all is logged, a"
        " table learns them soon.",
    )
    for place, line in enumerate(lines):
        yield _text("", MARGIN, height - 56 + 19 * place, line)


def _text(kind: str, x: float, y: float, words: str) -> str:
    chosen = f' class="{kind}"' if kind else ""
    return f'<text{chosen} x="{x:g}" y="{y:g}">{escape(words)}</text>'


def main() -> None:
    """Write it."""
    found = tiles(PAGE.read_text(encoding="utf-8"))
    PICTURE.write_text(draw(found), encoding="utf-8")


if __name__ == "__main__":
    main()
