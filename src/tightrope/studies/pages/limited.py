"""The section on exact bounds with limited ratios. Bounds come in, text goes out."""

from __future__ import annotations

from collections.abc import Mapping

from tightrope.base.dataset import Array, BoolArray
from tightrope.base.records import About
from tightrope.studies.summary import clopper_pearson

TITLE = "Clipped and shrunk ratios, exactly"
CLOSE = 1e-9  # what differs by less is rounding
SIDES = ("lower", "upper")
KINDS = [(about, side) for about in ("value", "gain") for side in SIDES]
TIGHT = (
    "pdis/betting",
    "clipped/betting",
    "clipped at 2/betting",
    "shrunk/betting",
    "clipped at 2/empirical-bernstein",
    "two parts/bottou",
    "two parts, by episode/bottou",
)
Cells = Mapping[tuple[str, int], Mapping[str, Array]]
Truths = Mapping[tuple[str, About], float]


def render(cells: Cells, truths: Truths) -> str:
    """Error rates of everything, then how tight the bounds are."""
    wrong = {
        (key, name, n): is_wrong(values, key, truths[name, _about(key)])
        for (name, n), cell in cells.items()
        for key, values in cell.items()
    }
    (key, name, n), worst = max(wrong.items(), key=lambda item: float(item[1].mean()))
    bounds = list(dict.fromkeys(one.rsplit("/", 2)[0] for one, _, _ in wrong))
    return "\n".join(
        [
            "Every exact bound on `clipped` and `shrunk` (limit √n, and clipped at 2), and the two-part interval "
            f"`bottou`; {len(worst):,} data sets a cell, n = 20 and 200, confidence 95 % on each side. Nominal is at "
            f"most 5 %; the highest rate of all {len(wrong)} cells is {worst.mean():.1%} ({key.replace('/', ', ')}, "
            f"{name}, n = {n}). What is limited is given up on the safe side, so most rates lie far below.",
            "",
            "**Errors** of all problems and sizes, in percent; in brackets the most that the exact 95 % interval "
            "allows in the worst cell.",
            "",
            "| bound | " + " | ".join(f"{about}, {side}" for about, side in KINDS) + " |",
            "|---|" + "---:|" * 4,
            *(f"| {one.replace('/', ', ')} | " + " | ".join(_rate(wrong, one, *kind) for kind in KINDS) + " |"
              for one in bounds),
            "",
            "**How tight**: the mean lower and upper bound on the value.",
            "",
            "| problem | n | truth | " + " | ".join(one.replace("/", ", ") for one in TIGHT) + " |",
            "|---|" + "---:|" * (2 + len(TIGHT)),
            *(_tight(cell, name, n, truths[name, "value"]) for (name, n), cell in cells.items()),
        ]
    )  # fmt: skip


def is_wrong(values: Array, key: str, truth: float) -> BoolArray:
    """Which bounds lie on the wrong side of the truth."""
    result: BoolArray = values > truth + CLOSE if key.endswith("lower") else values < truth - CLOSE
    return result


def _about(key: str) -> About:
    return "gain" if "/gain/" in key else "value"


def _rate(wrong: Mapping[tuple[str, str, int], BoolArray], bound: str, about: str, side: str) -> str:
    cells = [one for (key, _, _), one in wrong.items() if key == f"{bound}/{about}/{side}"]
    if not cells:
        return "–"
    most = max(clopper_pearson(int(one.sum()), len(one))[1] for one in cells)
    return f"{100 * sum(one.mean() for one in cells) / len(cells):.2f} ({100 * most:.1f})"


def _tight(cell: Mapping[str, Array], name: str, n: int, truth: float) -> str:
    ends = [" to ".join(f"{cell[f'{one}/value/{side}'].mean():.4g}" for side in SIDES) for one in TIGHT]
    return f"| {name} | {n} | {truth:.4g} | " + " | ".join(ends) + " |"
