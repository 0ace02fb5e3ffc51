"""Draw measured error rates: dots with their intervals beside the nominal 5 %.

``python docs/trust.py`` reads the tables of ``docs/coverage.md`` and writes
``docs/pictures/errors-exact.svg``, ``errors-approximate.svg`` and, where the page has
that section, ``errors-recommended.svg``, which it then shows in ``docs/trust.md``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

DOCS = Path(__file__).parent
PAGE = DOCS / "coverage.md"
TRUST = DOCS / "trust.md"
START, END = "<!-- recommended -->", "<!-- end -->"
PICTURES = DOCS / "pictures"
NOMINAL = 5.0  # percent

WIDTH, LEFT, RIGHT, TOP, ROW = 810, 186, 24, 92, 26
STYLE = """
  svg { --page: #fbfaf7; --line: #d9dde2; --text: #1d232b; --soft: #55606d;
        --good: #1f63b5; --bad: #b4230a; --nominal: #1d232b; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #15191f; --line: #343d48; --text: #e8ebef; --soft: #a5b0bd;
          --good: #85b7f7; --bad: #ff8f70; --nominal: #e8ebef; } }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
         font-size: 14px; fill: var(--soft); }
  .page { fill: var(--page); }
  .title { font-size: 17px; font-weight: 650; fill: var(--text); }
  .name { fill: var(--text); text-anchor: end; }
  .group { font-weight: 650; }
  .tick { font-size: 13px; text-anchor: middle; }
  .grid { stroke: var(--line); }
  .nominal { stroke: var(--nominal); stroke-width: 1.6; stroke-dasharray: 6 4; }
  .good { stroke: var(--good); fill: var(--good); }
  .bad { stroke: var(--bad); fill: var(--bad); }
  .span { stroke-width: 1.6; stroke-opacity: .38; }
  .dot { stroke: none; fill-opacity: .9; }
"""


class Cell(NamedTuple):
    """A measured error rate and its 95 % Clopper–Pearson interval, in percent."""

    rate: float
    low: float
    high: float
    where: str
    bad: bool  # whether the whole interval lies above the nominal rate


def section(text: str, title: str) -> str:
    """What stands below a heading of the page, up to the next one of its rank."""
    found = re.search(rf"^(#+) {re.escape(title)}.*$", text, re.MULTILINE)
    if found is None:
        return ""
    rest = text[found.end() :]
    end = re.search(rf"^#{{1,{len(found[1])}}} ", rest, re.MULTILINE)
    return rest[: end.start()] if end else rest


def rows_of(text: str) -> Iterator[list[str]]:
    """The rows of all tables, without their heads."""
    for line in text.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and any(re.search(r"\d", one) for one in cells[1:]):
            yield cells


def percent(text: str, where: str) -> Cell:
    """A cell such as ``**9.1** [7.8, 10.4]``."""
    found = re.fullmatch(r"(\**)([\d.]+)\** \[([\d.]+), ([\d.]+)\]", text)
    if found is None:
        raise ValueError(f"no error rate: {text!r}")
    rate, low, high = (float(found[place]) for place in (2, 3, 4))
    return Cell(rate, low, high, where, bool(found[1]))


def counted(errors: int, trials: int, where: str) -> Cell:
    """Of so many errors among so many data sets."""
    from tightrope.studies.summary import clopper_pearson

    low, high = clopper_pearson(errors, trials)
    rate = 100 * errors / trials
    return Cell(rate, 100 * low, 100 * high, where, 100 * low > NOMINAL)


def approximate(text: str) -> dict[str, list[Cell]]:
    """Approximate bounds of the ratios alone: a dot for each problem, size and side."""
    found: dict[str, list[Cell]] = {}
    for side in ("Lower", "Upper"):
        for part in re.split(r"^### ", section(text, f"{side} bounds"), flags=re.M)[1:]:
            problem = part.partition(":")[0]
            sizes = re.findall(r"n = (\d+): error %", part)
            for estimator, method, *cells in rows_of(part):
                if method not in ("percentile", "bca", "basic", "studentized", "t"):
                    continue
                row = found.setdefault(f"{estimator.upper()} {method}", [])
                for size, cell in zip(sizes, cells[::3], strict=True):
                    row.append(percent(cell, f"{problem}, {side.lower()}, n = {size}"))
    return found


def exact(text: str) -> dict[str, list[Cell]]:
    """TDR with betting: a dot for each side and model, all sizes together."""
    sums: dict[str, dict[str, list[int]]] = {}
    part = section(text, "How often it errs")
    names = ("lower, fitted", "lower, wild", "upper, fitted", "upper, wild")
    for problem, about, _size, trials, *cells in rows_of(part):
        row = sums.setdefault(f"{problem}" + ", gain" * (about == "gain"), {})
        for name, cell in zip(names, cells, strict=True):
            total = row.setdefault(name, [0, 0])
            total[0] += int(cell.partition(" ")[0])
            total[1] += int(trials)
    return {
        problem: [counted(*total, name) for name, total in row.items()]
        for problem, row in sums.items()
    }


def recommended(text: str) -> dict[str, list[Cell]]:
    """The recommended bound: a dot for each problem and number of episodes."""
    found: dict[str, list[Cell]] = {}
    whole = section(text, "The recommended bound")
    gains = section(whole, "The gain over the behaviour policy")
    for about, part in ((", gain", gains), ("", whole.partition("\n### ")[0])):
        for cells in rows_of(part):
            if len(cells) == 10 and cells[3] != "–":
                row = found.setdefault(f"{cells[0]}{about}", [])
                row.append(percent(cells[3], f"n = {cells[1]}"))
    return dict(sorted(found.items(), key=lambda one: ", gain" in one[0]))


def draw(title: str, told: str, rows: dict[str, list[Cell]], most: float) -> str:
    """One picture: a row for each bound or problem."""
    height = TOP + ROW * len(rows) + 44

    def x(rate: float) -> float:  # a root, so that small rates can be told apart
        share = math.sqrt(min(rate, most) / most)
        return LEFT + (WIDTH - LEFT - RIGHT) * share

    bottom = TOP + ROW * len(rows)
    body = [
        f'<text class="title" x="16" y="28">{escape(title)}</text>',
        f'<text x="16" y="50">{escape(told)}</text>',
    ]
    for tick in (0, 0.5, 1, 2, 5, 10, 20, 40):
        if tick > most or (most > 15 and tick == 0.5):
            continue
        kind = "nominal" if tick == NOMINAL else "grid"
        place = f"{x(tick):.1f}"
        body.append(
            f'<path class="{kind}" d="M{place} {TOP - 6}V{bottom}" fill="none"/>'
        )
        words = f"{tick:g} %, nominal" if tick == NOMINAL else f"{tick:g} %"
        body.append(f'<text class="tick" x="{place}" y="{bottom + 20}">{words}</text>')
    for number, (name, cells) in enumerate(rows.items()):
        middle = TOP + ROW * (number + 0.5)
        body.append(
            f'<text class="name" x="{LEFT - 12}" y="{middle + 5:g}">'
            f"{escape(name)}</text>"
        )
        body += _dots(sorted(cells, key=lambda cell: cell.rate), middle, x)
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
            f' width="{WIDTH}" height="{height}" role="img">',
            f"<title>{escape(title)}</title>",
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{height}" rx="10"/>',
            *_key(),
            *body,
            "</svg>",
            "",
        ]
    )


def _key() -> Iterator[str]:
    y = 74
    for left, kind, words in (
        (16, "good", "the interval reaches 5 % or lies below it"),
        (356, "bad", "the interval lies wholly above 5 %: over-confident there"),
    ):
        yield f'<path class="span {kind}" d="M{left} {y - 5}h28"/>'
        yield f'<circle class="dot {kind}" cx="{left + 14}" cy="{y - 5}" r="3.4"/>'
        yield f'<text x="{left + 36}" y="{y}">{words}</text>'


def _dots(cells: Sequence[Cell], middle: float, x: object) -> Iterator[str]:
    assert callable(x)
    step = min(5.0, (ROW - 8) / max(1, len(cells) - 1))
    for place, cell in enumerate(cells):
        y = middle + step * (place - (len(cells) - 1) / 2)
        kind = "bad" if cell.bad else "good"
        yield (
            f'<path class="span {kind}" fill="none"'
            f' d="M{x(cell.low):.1f} {y:.1f}H{x(cell.high):.1f}"/>'
        )
        yield (
            f'<circle class="dot {kind}" cx="{x(cell.rate):.1f}" cy="{y:.1f}" r="2.6">'
            f"<title>{escape(cell.where)}: {cell.rate:.1f} %</title></circle>"
        )


def pictures(text: str) -> dict[str, str]:
    """All pictures that the page has numbers for, by their file names."""
    found = {
        "errors-exact.svg": draw(
            "The exact bound (TDR with betting): how often it is wrong",
            "A dot: 1,260 data sets of one problem, one side, one model (fitted, or"
            " nonsense). The line: its 95 % interval.",
            exact(text),
            8,
        ),
        "errors-approximate.svg": draw(
            "Approximate bounds, one by one: how often they are wrong",
            "A dot: 2,000 data sets of one problem, size and side. The line through it:"
            " its 95 % interval.",
            approximate(text),
            45,
        ),
    }
    rows = recommended(text)
    if rows:
        found["errors-recommended.svg"] = draw(
            "The recommended bound: how often it is wrong",
            "A dot: the data sets of one problem and size. The line through it: its"
            " 95 % interval.",
            rows,
            20,
        )
    return found


def with_recommended(trust: str, text: str) -> str:
    """The page of reasons to trust, with the picture that the numbers allow."""
    rows = recommended(text)
    cells = [cell for row in rows.values() for cell in row]
    over = sum(cell.bad for cell in cells)
    found = (
        "![Error rates of the recommended bound, with their intervals]"
        "(pictures/errors-recommended.svg)\n\n"
        f"Of {len(cells)} cells, {over or 'none'} lie above 5 % beyond noise.\n"
        if rows
        else "It has not been measured anew since the rule was last changed.\n"
    )
    return re.sub(
        rf"(?<={START}\n\n).*?(?=\n{END})", lambda _: found, trust, flags=re.DOTALL
    )


def main() -> None:
    """Write them."""
    text = PAGE.read_text(encoding="utf-8")
    for name, picture in pictures(text).items():
        (PICTURES / name).write_text(picture, encoding="utf-8")
    trust = TRUST.read_text(encoding="utf-8")
    TRUST.write_text(with_recommended(trust, text), encoding="utf-8")


if __name__ == "__main__":
    main()
