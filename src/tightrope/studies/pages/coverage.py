"""Error-rate tables in Markdown. Counts come in, text goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tightrope.studies.pages.labels import printed
from tightrope.studies.summary import Line, clopper_pearson


def render(
    cells: Sequence[Line],
    compared: Sequence[Line],
    *,
    abouts: Mapping[str, str],
    nominal: float,
    trials: tuple[int, int],
) -> str:
    """The whole page."""
    lines = [
        "# Measured error rates",
        "",
        f"Written by `make coverage`: {trials[0]} independent data sets a cell, B = 2000, nominal error "
        f"{nominal:.0%} on each side. An error is a bound on the wrong side of the exactly known value; in brackets "
        f"the 95 % Clopper–Pearson interval, in percent. **Bold**: the interval lies wholly above {nominal:.0%}, so "
        "the bound is over-confident there. *Warned* is the share of data sets on which `evaluate` warned against "
        "the bound. *Mean* is the mean of the finite bounds. What `evaluate` recommends has a "
        "section of its own below. With a behaviour policy estimated from the same logs: [behavior.md](behavior.md).",
        "",
        *_reading(cells, nominal),
        "",
    ]
    for side in ("lower", "upper"):
        lines += [f"## {side.capitalize()} bounds", ""]
        for problem in dict.fromkeys(cell.domain for cell in cells):
            chosen = [cell for cell in cells if cell.domain == problem and cell.side == side]
            lines += [f"### {problem}: {abouts[problem]}", "", f"True value {chosen[0].true_value:.4f}.", ""]
            lines += [*_table(chosen, nominal), ""]
    return "\n".join([*lines, *_compared(compared, trials[1]), ""])


def render_models(cells: Sequence[Line], *, abouts: Mapping[str, str], nominal: float, trials: int) -> str:
    """The tables of the model-based estimators."""
    lines = [
        "",
        "## Models: MB, DR and WDR, lower bounds",
        "",
        f"{trials} data sets a cell, B = 2000. How models fare is not asked here, so *warned* "
        "counts warnings about resampling and overlap alone. On *cliff* moves are deterministic: one model fitted to "
        "the data it corrects leaves no residue, so that with 0 for pairs never logged the bounds err nearly always, "
        "whatever corrects them; the defaults (the worst possible reward, cross-fitting) do not. On *hidden* the model "
        "is wrong: MB errs always, DR and WDR do not.",
        "",
    ]
    for problem in dict.fromkeys(cell.domain for cell in cells):
        chosen = [cell for cell in cells if cell.domain == problem]
        lines += [f"### {problem}: {abouts[problem]}", "", f"True value {chosen[0].true_value:.4f}.", ""]
        lines += [*_table(chosen, nominal), ""]
    return "\n".join(lines)


def render_gains(cells: Sequence[Line], *, abouts: Mapping[str, str], nominal: float, trials: int) -> str:
    """The tables of bounds on the gain."""
    lines = [
        "",
        "## The gain on the behaviour policy",
        "",
        f"Bounds on the candidate's value less the behaviour policy's (`--baseline behavior`), {trials} data sets a "
        "cell, B = 2000. *Swapped* problems exchange the two policies, so that gains of either sign meet rewards of "
        "either sign. Columns as above.",
        "",
        *_reading(cells, nominal, "### The gain in short"),
        "",
    ]
    for side in ("lower", "upper"):
        for problem in dict.fromkeys(cell.domain for cell in cells):
            chosen = [cell for cell in cells if cell.domain == problem and cell.side == side]
            lines += [f"### Gain, {side} bounds, {problem}: {abouts[problem]}", ""]
            lines += [f"True gain {chosen[0].true_value:.4f}.", "", *_table(chosen, nominal), ""]
    return "\n".join(lines)


COMPARED = ("anderson", "cut", "betting-mixture", "betting")
EXACT = frozenset({"hoeffding", "empirical-bernstein", "anderson", "cut", "betting", "betting-mixture"})


def _reading(cells: Sequence[Line], nominal: float, title: str = "## In short") -> list[str]:
    """The tables in a few sentences, counted from the cells."""
    rows: dict[tuple[str, str], list[Line]] = {}
    for cell in cells:
        rows.setdefault((cell.label, cell.bound), []).append(cell)
    worst_exact = max((cell for cell in cells if cell.bound in EXACT), key=lambda cell: cell.errors / cell.count)
    over = {pair: sum(_over(cell, nominal) for cell in row) for pair, row in rows.items()}
    lines = [
        title,
        "",
        f"- Exact bounds: the highest error rate of all cells is {worst_exact.errors / worst_exact.count:.1%} "
        f"({printed(worst_exact.label)} with {worst_exact.bound}, {worst_exact.domain}, n = {worst_exact.n}).",
        "- Approximate bounds: cells (of both sides) whose error rate is above nominal beyond noise, and the worst:",
        "",
        "| estimator | method | over-confident cells | worst error rate | warned there |",
        "|---|---|---|---|---:|",
    ]
    for (estimator, method), row in rows.items():
        if method in EXACT:
            continue
        worst = max(row, key=lambda cell: cell.errors / cell.count)
        where = f"{worst.domain}, {worst.side}, n = {worst.n}"
        lines.append(
            f"| {printed(estimator)} | {method} | {over[estimator, method]} of {len(row)} | "
            f"{worst.errors / worst.count:.1%} ({where}) | {worst.warned / worst.count:.0%} |"
        )
    return lines


def _over(cell: Line, nominal: float) -> bool:
    return clopper_pearson(cell.errors, cell.count)[0] > nominal


def _table(cells: Sequence[Line], nominal: float) -> list[str]:
    sizes = sorted({cell.n for cell in cells})
    by_size = {(cell.label, cell.bound, cell.n): cell for cell in cells}
    head = "".join(f" n = {n}: error % | warned | mean |" for n in sizes)
    lines = [f"| estimator | method |{head}", "|---|---|" + "---:|---:|---:|" * len(sizes)]
    for estimator, method in dict.fromkeys((cell.label, cell.bound) for cell in cells):
        row = f"| {printed(estimator)} | {method} |"
        for n in sizes:
            cell = by_size.get((estimator, method, n))
            row += _cell(cell, nominal) if cell else " – | – | – |"
        lines.append(row)
    return lines


def _cell(cell: Line, nominal: float) -> str:
    low, high = clopper_pearson(cell.errors, cell.count)
    rate = f"{100 * cell.errors / cell.count:.1f}"
    if _over(cell, nominal):
        rate = f"**{rate}**"
    infinite = f" ({cell.infinite} infinite)" if cell.infinite else ""
    mean = f"{cell.finite.value:.3f}{infinite}"
    return f" {rate} [{100 * low:.1f}, {100 * high:.1f}] | {cell.warned / cell.count:.0%} | {mean} |"


def _compared(rows: Sequence[Line], trials: int) -> list[str]:
    lines = [
        "## How tight the exact bounds are",
        "",
        f"Mean 95 % lower bound ± standard error over {trials} data sets, the same for all methods.",
        "",
        f"| problem | true value | estimator | n | {' | '.join(COMPARED)} |",
        "|---|---:|---|---:|" + "---:|" * len(COMPARED),
    ]
    by_method = {(row.domain, row.n, row.label, row.bound): row for row in rows}
    for problem, n, estimator in dict.fromkeys((row.domain, row.n, row.label) for row in rows):
        parts = [by_method[problem, n, estimator, method] for method in COMPARED]
        values = " | ".join(f"{part.mean.value:.3f} ± {part.mean.error / 1.96:.3f}" for part in parts)
        lines.append(f"| {problem} | {parts[0].true_value:.3f} | {printed(estimator)} | {n} | {values} |")
    return lines
