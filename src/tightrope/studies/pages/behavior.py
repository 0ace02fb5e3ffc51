"""Tables that set an estimated behaviour policy beside the true one, in Markdown. Counts come in, text goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from tightrope.base.dataset import Array
from tightrope.studies.pages.labels import printed
from tightrope.studies.summary import Line, clopper_pearson


@dataclass(frozen=True)
class Accuracy:
    """How far the estimates of one estimator are from the value, with the true and with an estimated policy."""

    problem: str
    n: int
    estimator: str
    true_rmse: float
    estimated_rmse: float
    true_bias: float
    estimated_bias: float

    @classmethod
    def of(cls, problem: str, n: int, estimator: str, true: Array, estimated: Array) -> Self:
        """From the errors of both on the same data sets."""
        sizes = [float(np.sqrt(np.square(off).mean())) for off in (true, estimated)]
        return cls(problem, n, estimator, sizes[0], sizes[1], float(true.mean()), float(estimated.mean()))


def render(
    cells: Sequence[Line],
    accuracies: Sequence[Accuracy],
    *,
    abouts: Mapping[str, str],
    nominal: float,
    trials: int,
    resamples: int,
) -> str:
    """The whole page; a cell's estimator is its name and "true" or "estimated"."""
    lines = [
        "# Error rates with an estimated behaviour policy",
        "",
        "Written by `python -m tightrope.studies.behavior_coverage` (part of `make coverage`): "
        f"{trials} independent data sets a cell, B = {resamples}, lower bounds, nominal error {nominal:.0%}. *True*: "
        "the logged propensities. *Estimated*: counts of the same logs "
        '(`behavior="tabular"`), counted anew in every replicate. Both see the same data and weights. In brackets the '
        f"95 % Clopper–Pearson interval, in percent; **bold**: wholly above {nominal:.0%}. *Mean* is the mean of the "
        "finite bounds. Bias and root mean square error (RMSE) are those of the estimate.",
        "",
        *_reading(cells, accuracies, nominal),
        "",
    ]
    for problem in dict.fromkeys(cell.domain for cell in cells):
        chosen = [cell for cell in cells if cell.domain == problem and cell.bound]
        lines += [f"## {problem}: {abouts[problem]}", "", f"True value {chosen[0].true_value:.4f}.", ""]
        lines += [*_table(chosen, nominal), ""]
        lines += [*_accuracy([row for row in accuracies if row.problem == problem]), ""]
    return "\n".join(lines)


def _reading(cells: Sequence[Line], accuracies: Sequence[Accuracy], nominal: float) -> list[str]:
    pairs = _pairs(cells)
    over = [sum(_over(pair[known], nominal) for pair in pairs.values()) for known in ("true", "estimated")]
    tighter = sum(pair["estimated"].finite.value > pair["true"].finite.value for pair in pairs.values())
    ratios = np.array([row.estimated_rmse / row.true_rmse for row in accuracies])
    worst = max(pairs.values(), key=lambda pair: pair["estimated"].error_rate)["estimated"]
    lines = [
        "## In short",
        "",
        f"- Over-confident cells: {over[0]} of {len(pairs)} with the true policy, {over[1]} with the estimated one. "
        f"The worst with an estimate: {worst.errors / worst.count:.1%} ({printed(worst.label.split()[0])} with "
        f"{worst.bound}, {worst.domain}, n = {worst.n}).",
        f"- The mean bound is higher (tighter) with the estimate in {tighter} of {len(pairs)} cells.",
        f"- RMSE of the estimate relative to the true policy's: median {np.median(ratios):.2f}, from "
        f"{ratios.min():.2f} to {ratios.max():.2f}; lower in {int((ratios < 1).sum())} of {len(ratios)} cells. By "
        "estimator (geometric mean):",
        "",
        "| " + " | ".join(dict.fromkeys(printed(row.estimator) for row in accuracies)) + " |",
        "|" + "---:|" * len(dict.fromkeys(row.estimator for row in accuracies)),
    ]
    by_estimator = [
        np.exp(np.mean([np.log(row.estimated_rmse / row.true_rmse) for row in accuracies if row.estimator == name]))
        for name in dict.fromkeys(row.estimator for row in accuracies)
    ]
    return [*lines, "| " + " | ".join(f"{value:.2f}" for value in by_estimator) + " |"]


def _pairs(cells: Sequence[Line]) -> dict[tuple[str, int, str, str], dict[str, Line]]:
    """Lines of the true and the estimated policy side by side, by problem, n, estimator and method."""
    pairs: dict[tuple[str, int, str, str], dict[str, Line]] = {}
    for cell in cells:
        if cell.bound:
            estimator, known = cell.label.split()
            pairs.setdefault((cell.domain, cell.n, estimator, cell.bound), {})[known] = cell
    return pairs


def _table(cells: Sequence[Line], nominal: float) -> list[str]:
    sizes = sorted({cell.n for cell in cells})
    head = "".join(f" n = {n}: error %, true | estimated | mean, true | estimated |" for n in sizes)
    lines = [f"| estimator | method |{head}", "|---|---|" + "---:|" * 4 * len(sizes)]
    pairs = _pairs(cells)
    for estimator, method in dict.fromkeys((key[2], key[3]) for key in pairs):
        row = f"| {printed(estimator)} | {method} |"
        for n in sizes:
            pair = pairs[cells[0].domain, n, estimator, method]
            both = [pair["true"], pair["estimated"]]
            row += "".join(f" {_rate(cell, nominal)} |" for cell in both)
            row += "".join(f" {cell.finite.value:.3f} |" for cell in both)
        lines.append(row)
    return lines


def _rate(cell: Line, nominal: float) -> str:
    low, high = clopper_pearson(cell.errors, cell.count)
    rate = f"{100 * cell.errors / cell.count:.1f}"
    return f"{f'**{rate}**' if _over(cell, nominal) else rate} [{100 * low:.1f}, {100 * high:.1f}]"


def _over(cell: Line, nominal: float) -> bool:
    return clopper_pearson(cell.errors, cell.count)[0] > nominal


def _accuracy(rows: Sequence[Accuracy]) -> list[str]:
    lines = [
        "| estimator | n | RMSE, true | estimated | relative | bias, true | estimated |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for row in sorted(rows, key=lambda row: row.n):
        lines.append(
            f"| {printed(row.estimator)} | {row.n} | {row.true_rmse:.3f} | {row.estimated_rmse:.3f} | "
            f"{row.estimated_rmse / row.true_rmse:.2f} | {row.true_bias:.3f} | {row.estimated_bias:.3f} |"
        )
    return lines
