"""Decisions in a terminal: the answer first, then a short table. It reads records and computes nothing."""

from __future__ import annotations

import math

from rich.console import Group, RenderableType

from tightrope.base.rounding import outward
from tightrope.decisions.comparison import Comparison
from tightrope.decisions.plans import Plan
from tightrope.evaluation.needed import rounded
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
    return Group(*parts, *(text(f"! {words}", style="yellow") for words in cautions(result)))


def cautions(result: Comparison) -> list[str]:
    """What the importance ratios say, once where it is the same of several; then what the logs themselves say."""
    whose: dict[str, list[str]] = {}
    for one in result.standings:
        for caution in one.warnings:
            whose.setdefault(str(caution), []).append(one.name)
    return [*(f"{', '.join(names)}: {words}" for words, names in whose.items()), *map(str, result.notes)]


def step_rows(plan: Plan) -> list[list[str]]:
    """Numbers of episodes, and what each is expected to give; the planned one has a mark."""
    return [
        [
            "▶" if round(plan.episodes if plan.episodes < math.inf else 0) == step.episodes else "",
            *([] if (count := plan.clusters(step.episodes)) is None else [f"{count:,.0f}"]),
            f"{step.episodes:,.0f}",
            f"{step.bound:.4g}",
            f"{step.chance:.0%}",
            f"{step.chance_at_all:.0%}",
        ]
        for step in plan.steps
    ]


def logging_rows(plan: Plan) -> list[list[str]]:
    """Shares of the candidate in new logs; the soonest that is allowed has a mark."""
    return [
        [
            "▶" if one is plan.soonest else "",
            f"{one.share:.0%}",
            "unknown" if one.episodes is None else rounded(one.episodes),
            f"{one.loss + 0.0:.3g}",
            f"{outward(one.most_loss, 'upper', 3) + 0.0:.3g}",
            "yes" if one.allowed else "no",
        ]
        for one in plan.logging
    ]


def step_header(plan: Plan) -> tuple[str, ...]:
    """The columns of ``step_rows``."""
    seen = "chance as it looks" if plan.effect is None else "chance if so"
    counted = ("new episodes",) if plan.n_clusters is None else ("new clusters", "new episodes")
    return "", *counted, "expected bound", seen, "chance at all"


LOGGING = ("", "candidate's share", "new episodes", "loss of one", "at most", "allowed")


def plan_table(plan: Plan) -> Group:
    """The answer, what so many episodes would give, and what other logs would."""
    style = {"settled": "bold green", "broken": "bold red"}.get(plan.kind, "bold yellow")
    parts: list[RenderableType] = [text(plan.headline, style=style), text(plan.text)]
    if plan.kind in ("yes", "no"):
        title = (
            f"How likely the answer is {plan.kind} at so many episodes, if the candidate is as it looks now, and at all"
        )
        if plan.effect is not None:
            title = (
                f"How likely the answer is yes if the candidate is better by {plan.effect:.4g}, and by these logs alone"
            )
        parts += [text(""), text(title, style="italic")]
        parts.append(Rows(step_header(plan), step_rows(plan), step_header(plan)[1:], names=1, style="bold green"))
    if plan.logging:
        parts.append(text("New logs, with the candidate acting at a share of the steps", style="italic"))
        parts.append(Rows(LOGGING, logging_rows(plan), LOGGING[1:-1], names=1, style="bold green"))
    return Group(*parts, *(text(f"! {note}", style="yellow") for note in plan.notes))
