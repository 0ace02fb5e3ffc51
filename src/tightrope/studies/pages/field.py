"""The section on estimators that one must ask for. Summaries come in, text goes out."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence

from tightrope.base.records import Side
from tightrope.estimators import ESTIMATORS
from tightrope.studies.pages.labels import printed
from tightrope.studies.summary import Line, clopper_pearson

TITLE = "Error rates of the others"
HEAD = (
    "# The field, measured\n\n"
    "Which estimator and which bound to use where, and how often the estimators that one must ask for by name are "
    "wrong. Written by `make field`; error rates of the usual ones: [coverage.md](coverage.md).\n"
)
SIDES: tuple[Side, ...] = ("lower", "upper")


def render(lines: Sequence[Line], *, abouts: Mapping[str, str], nominal: float) -> str:
    """What the estimators are, the worst of each, then a table for each problem."""
    counts = sorted({line.trials for line in lines})
    few = f"{counts[0]:,}" if len(counts) == 1 else f"{counts[0]:,} to {counts[-1]:,}"
    text = [
        f"{few} independent data sets a cell, B = 2000, nominal error {nominal:.0%} on each side. An error is a bound "
        "on the wrong side of the exactly known value; in brackets the 95 % Clopper–Pearson interval, in percent. "
        f"**Bold**: the interval lies wholly above {nominal:.0%}. *Distance* is that of the mean of the finite bounds "
        "to the truth; a small one is worth nothing where the error rate is bold. None of these estimators is "
        "recommended by `evaluate`.",
        "",
        *(f"- **{printed(name)}**: {_meaning(name)}" for name in dict.fromkeys(line.label for line in lines)),
        "",
        "### The worst of each",
        "",
        *_worst(lines, nominal),
    ]
    for problem in dict.fromkeys(line.domain for line in lines):
        chosen = [line for line in lines if line.domain == problem]
        text += ["", f"### {problem}: {abouts[problem]}", "", f"True value {chosen[0].true_value:.4f}.", ""]
        text += _table(chosen, nominal)
    return "\n".join(text)


def _meaning(name: str) -> str:
    """The first sentence that the estimator says about itself."""
    return (inspect.getdoc(ESTIMATORS[name]) or "").partition("\n\n")[0].replace("\n", " ")


def _worst(lines: Sequence[Line], nominal: float) -> list[str]:
    """For each pair: cells above nominal beyond noise, and the highest rate."""
    pairs: dict[tuple[str, str], list[Line]] = {}
    for line in lines:
        pairs.setdefault((line.label, line.bound), []).append(line)
    rows = ["| estimator | method | over-confident cells | worst error rate | no bound |", "|---|---|---:|---|---:|"]
    for (name, bound), cells in pairs.items():
        there = [cell for cell in cells if cell.count]
        worst = max(there, key=lambda cell: cell.error_rate, default=None)
        where = "–" if worst is None else f"{worst.error_rate:.1%} ({worst.domain}, {worst.side}, n = {worst.n})"
        over, failed = sum(_over(cell, nominal) for cell in there), sum(cell.failed for cell in cells)
        rows.append(f"| {printed(name)} | {bound} | {over} of {len(cells)} | {where} | {failed:,} |")
    return rows


def _over(line: Line, nominal: float) -> bool:
    return clopper_pearson(line.errors, line.count)[0] > nominal


def _table(lines: Sequence[Line], nominal: float) -> list[str]:
    sizes = sorted({line.n for line in lines})
    columns = [(n, side) for n in sizes for side in SIDES]
    head = "".join(f" n = {n}, {side}: error % | distance |" for n, side in columns)
    rows = [f"| estimator | method |{head}", "|---|---|" + "---:|---:|" * len(columns)]
    cells = {(line.label, line.bound, line.n, line.side): line for line in lines}
    for name, bound in dict.fromkeys((line.label, line.bound) for line in lines):
        parts = "".join(_cell(cells[name, bound, n, side], nominal) for n, side in columns)
        rows.append(f"| {printed(name)} | {bound} |{parts}")
    return rows


def _cell(line: Line, nominal: float) -> str:
    if not line.count:
        return " no bound | – |"
    rate = f"{100 * line.error_rate:.1f}"
    rate = f"**{rate}**" if _over(line, nominal) else rate
    sign = 1 if line.side == "lower" else -1
    infinite = f" ({line.infinite} infinite)" if line.infinite else ""
    distance = f"{sign * (line.true_value - line.finite.value):.4g}{infinite}"
    return f" {rate} [{100 * line.error_low:.1f}, {100 * line.error_high:.1f}] | {distance} |"
