"""The section on exact bounds of tethered values. Summaries come in, text goes out."""

from __future__ import annotations

from collections.abc import Sequence

from tightrope.base.records import About
from tightrope.studies.summary import Line, clopper_pearson

TITLE = "The exact bound on tethered values"
Lines = Sequence[tuple[About, Line]]
STEPS = {
    "is/betting-mixture": "IS, fixed mixture",
    "is/betting": "IS, planned bets",
    "tdr/betting": "TDR, planned bets",
}


def render(errors: Lines, tight: Lines) -> str:
    """Tightness first, then error rates."""
    count = sum(line.trials for _, line in errors if line.method == "tdr/betting" and line.side == "lower")
    worst = max((line for _, line in errors), key=lambda line: line.error_rate)
    return "\n".join(
        [
            "TDR with `betting` ([the tether](tether.md)). Mean 95 % lower bound ± its standard error, on the same "
            "data sets for all three columns; *errors* are of the last.",
            "",
            *_tightness(tight),
            "",
            f"### How often it errs: {count:,} data sets",
            "",
            "Both sides, the value and the gain over the behaviour policy, with the fitted tabular model and with a "
            "*wild* one, whose values are nonsense: Cauchy noise up to hundreds of times the range of the return. "
            f"Nominal is 5 %; the highest rate of all cells is {worst.error_rate:.1%} ({worst.domain}, n = {worst.n}).",
            "",
            *_errors(errors),
        ]
    )


def _tightness(tight: Lines) -> list[str]:
    lines = [f"| problem | n | data sets | truth | {' | '.join(STEPS.values())} | errors |", "|---|" + "---:|" * 7]
    cells: dict[tuple[str, int], dict[str, Line]] = {}
    for _, line in tight:
        cells.setdefault((line.domain, line.n), {})[line.method] = line
    for (name, n), cell in cells.items():
        last = cell["tdr/betting"]
        means = " | ".join(f"{cell[step].mean.value:.4g} ± {cell[step].mean.error / 1.96:.1g}" for step in STEPS)
        lines.append(f"| {name} | {n} | {last.trials} | {last.true_value:.4g} | {means} | {last.errors} |")
    return lines


def _errors(errors: Lines) -> list[str]:
    head = " | ".join(f"{side}, {model}" for side in ("lower", "upper") for model in ("fitted", "wild"))
    lines = [f"| problem | about | n | data sets | {head} |", "|---|---|---:|---:|" + "---:|" * 4]
    cells: dict[tuple[str, About, int], dict[tuple[str, str], Line]] = {}
    for about, line in errors:
        cells.setdefault((line.domain, about, line.n), {})[line.side, line.method] = line
    for (name, what, n), cell in cells.items():
        parts = [cell[side, method] for side in ("lower", "upper") for method in ("tdr/betting", "tdr-wild/betting")]
        rates = " | ".join(_rate(part) for part in parts)
        lines.append(f"| {name} | {what} | {n} | {parts[0].trials} | {rates} |")
    return lines


def _rate(line: Line) -> str:
    bounds = line.trials - line.failed
    return f"{line.errors} ({100 * clopper_pearson(line.errors, bounds)[1]:.1f} % at most)" if bounds else "–"
