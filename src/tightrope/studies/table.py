"""The results of a study as a table in a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group
from rich.table import Table
from rich.text import Text

from tightrope.report.rows import Rows
from tightrope.studies.claims import Finding
from tightrope.studies.summary import Line, Mean, Results

NUMBERS = ("wrong", "95 % interval", "mean", "warned")


def study_table(results: Results, lines: Sequence[Line]) -> Group:
    """The true value, one row per size, method and side, and how to read it."""
    truth, error = results.true_value, results.true_value_error
    nominal = 1 - results.configuration["confidence"]
    rollouts = results.configuration["domain"].get("truth_rollouts")
    known = "exact" if error == 0 and rollouts is None else f"± {error:.2g}, its standard error; wrong is beyond two"
    known += f"; by {rollouts} roll-outs" if rollouts else ""
    rows = [["!" if line.error_low > nominal else "", *_cells(line)] for line in lines]
    return Group(
        Text(_answer(lines, nominal), style="bold"),
        Text(f"{results.configuration['domain']['name']}: the candidate is worth {truth:.6g} ({known})."),
        Rows(["", "n", "method", *NUMBERS], rows, NUMBERS, names=2, style="bold red"),
        *_notes(lines, nominal),
    )


def _answer(lines: Sequence[Line], nominal: float) -> str:
    """In one sentence: which bounds err more often than they say, beyond doubt."""
    over = [line for line in lines if line.error_low > nominal]
    few = min((line.trials for line in lines), default=0)
    if not over:
        return f"No bound erred beyond doubt in more than {nominal:.1%} of the data sets (at least {few} each)."
    names = dict.fromkeys(f"{line.method} (n = {line.n})" for line in over)
    return f"These erred beyond doubt in more than {nominal:.1%} of the data sets: {', '.join(names)}."


def _cells(line: Line) -> list[str]:
    bounds = line.trials - line.failed
    wrong = f"{line.errors}/{bounds} = {line.error_rate:.1%}" if bounds else "all failed"
    interval = f"{line.error_low:.1%} to {line.error_high:.1%}" if bounds else "–"
    warned = f"{line.warned / bounds:.0%}" if bounds else "–"
    mean = f"{_mean(line.finite)} ({line.infinite} infinite)" if line.infinite else _mean(line.mean)
    side = "" if line.side == "lower" else " upper"
    return [str(line.n), f"{line.method}{side}", wrong, interval, mean, warned]


def _mean(mean: Mean) -> str:
    return f"{mean.value:.5g} ± {mean.error:.2g}" if mean.count else "–"


def _notes(lines: Sequence[Line], nominal: float) -> list[Text]:
    notes = [
        f"Wrong: beyond the true value; exact bounds promise at most {nominal:.1%}, approximate ones aim at it. "
        "! means above that beyond doubt. Means are ± 95 %; where bounds are infinite, of the finite ones. The mean of "
        "valid bounds only, which leaves a bound's errors out, flatters those that err. advice/believed is the bound "
        "that evaluate says to believe; infinite where it says that the data cannot answer."
    ]
    reasons: dict[str, list[str]] = {}
    for line in lines:
        if line.reason:
            reasons.setdefault(line.reason, []).append(f"{line.method} (n = {line.n})")
    notes += [f"Failed: {', '.join(names)}: {why}" for why, names in reasons.items()]
    return [Text(note, style="dim") for note in notes]


def findings_table(findings: Sequence[Finding]) -> Table:
    """Every claim, whether it holds, and the numbers."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    table.add_column("", justify="right", no_wrap=True)
    table.add_column("claim", ratio=2)
    table.add_column("", no_wrap=True)
    table.add_column("numbers", ratio=3)
    styles = {"came out": "green", "partly": "yellow", "did not": "red"}
    for one in findings:
        table.add_row(str(one.number), one.text, Text(one.verdict, style=styles[one.verdict]), one.evidence)
    return table
