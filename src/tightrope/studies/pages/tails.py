"""The section on the tail of the return. Counts come in, text goes out."""

from __future__ import annotations

from collections.abc import Mapping

from tightrope.base.dataset import Array
from tightrope.studies.counts import rate

TITLE = "The tail of the return"
COLUMNS = ("level", "quantile 0.05", "quantile 0.5", "cvar", "band")
Cells = Mapping[tuple[str, int], Mapping[str, Array]]


def render(cells: Cells, means: Mapping[str, float]) -> str:
    """Exact first, then approximate beside naive, then how tight the exact bound on the worst is."""
    names = "a level | 5 % quantile | median | CVaR 10 % | band"
    worst = max((float(cell[f"exact {one}"].mean()), *key) for key, cell in cells.items() for one in COLUMNS)
    lines = [
        "How often a bound is wrong, in percent (exact 95 % interval), at a confidence of 95 %. *A level*: the "
        "probability to fall below it; *band*: the whole distribution function, wrong if it is wrong anywhere. The "
        "true distributions are enumerated. Both ends count.",
        "",
        f"**Exact.** Nominal is at most 5; the highest is {100 * worst[0]:.1f} ({worst[1]}, n = {worst[2]}).",
        "",
        *_table(cells, names, [f"exact {one}" for one in COLUMNS]),
        "",
        "**Approximate** (exact bounds stand in where a tail holds fewer than 10 effective episodes, or 50 for CVaR "
        "and for the ends of a band). Nominal is 5.",
        "",
        *_table(cells, names, [f"approximate {one}" for one in COLUMNS]),
        "",
        "**Naive ways.** *Percentile*: a percentile bootstrap however thin the tail is. *Pointwise*: ten intervals, "
        "each for itself, taken for a band. *Cut chosen on the same logs*: the best of six exact bounds on CVaR, one "
        "for each cut, none corrected.",
        "",
        *_table(
            cells,
            "percentile, 5 % quantile | percentile, CVaR 10 % | pointwise band | cut chosen on the same logs",
            ["naive percentile quantile", "naive percentile cvar", "naive band", "naive cvar"],
        ),
        "",
        "**How tight.** The mean lower bound on CVaR 10 %.",
        "",
        "| problem | n | truth | exact | approximate |",
        "|---|---:|---:|---:|---:|",
    ]
    for (name, n), cell in cells.items():
        exact, other = (cell[f"{kind} cvar lower"].mean() for kind in ("exact", "approximate"))
        lines.append(f"| {name} | {n} | {means[name]:.4g} | {exact:.4g} | {other:.4g} |")
    return "\n".join(lines)


def _table(cells: Cells, names: str, columns: list[str]) -> list[str]:
    rows = [f"| problem | n | data sets | {names} |", "|---|" + "---:|" * (2 + len(columns))]
    for (name, n), cell in cells.items():
        counts = " | ".join(rate(cell[column]) for column in columns)
        rows.append(f"| {name} | {n} | {len(cell[columns[0]]):,} | {counts} |")
    return rows
