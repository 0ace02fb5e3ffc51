"""Decisions in a terminal: the answer first, then a short table. It reads records and computes nothing."""

from __future__ import annotations

from rich.console import Group, RenderableType

from tightrope.base.rounding import outward
from tightrope.decisions.comparison import Comparison
from tightrope.report.answer import STYLES, text
from tightrope.report.rows import Rows

HEADER = ("", "candidate", "estimate", "value ≥", "gain", "gain ≥", "better", "may be best")
NUMBERS = ("estimate", "value ≥", "gain", "gain ≥")


def comparison_rows(result: Comparison) -> list[list[str]]:
    """One row for each candidate; the one chosen has a mark."""
    rows = []
    for one in result.standings:
        numbers = ["–"] * 4
        if one.value is not None and one.gain is not None:
            numbers = [
                words
                for bound in (one.value, one.gain)
                for words in (f"{bound.estimate:.4g}", f"{outward(bound.value, bound.side):.4g}")
            ]
        better = "unknown" if one.why else "yes" if one.better else "not shown"
        best = "unknown" if one.why else "yes" if one.may_be_best else "no"
        rows.append(["▶" if one.name == result.chosen else "", one.name, *numbers, better, best])
    return rows


def comparison_table(result: Comparison) -> Group:
    """The verdict, what it rests on, and all candidates."""
    verdict = result.verdict
    parts: list[RenderableType] = [text(verdict.headline, style=STYLES.get(verdict.kind, "bold green"))]
    parts += [text(words) for words in (verdict.text, verdict.change) if words]
    title = f"{result.confidence:.4%}".replace(".0000", "")
    caption = f"{title} confidence that the lower bounds of a column hold together; gain: over {result.baseline}"
    parts += [text(""), text(caption, style="italic")]
    parts.append(Rows(HEADER, comparison_rows(result), NUMBERS, names=1, style="bold green"))
    parts += [text(f"{one.name}: {one.why}", style="yellow") for one in result.standings if one.why]
    return Group(*parts)
