"""The answer in one look: the verdict, a number line, what it rests on and what would change it."""

from __future__ import annotations

import math

from rich.console import Console, ConsoleOptions, RenderResult
from rich.text import Text

from tightrope.base.clusters import counted, unit
from tightrope.base.errors import visible
from tightrope.base.records import Evaluation
from tightrope.base.warnings import coded
from tightrope.report.line import believed, marks_of
from tightrope.report.ruler import ruler
from tightrope.report.scale import give_or_take

STYLES = {"yes": "bold green", "no": "bold red", "cannot tell": "bold yellow", "broken": "bold red"}
WIDEST = 100  # a longer line is no easier to read
INDENT = 2


def text(words: str, style: str = "") -> Text:
    """Words as plain text: a name from the logs must be neither markup nor a command to the terminal."""
    return Text(visible(words), style=style)


class Answer:
    """What is printed above everything else, as wide as the terminal is."""

    def __init__(self, evaluation: Evaluation) -> None:
        self.evaluation = evaluation

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """The lines, one below the other."""
        result, verdict = self.evaluation, self.evaluation.verdict
        if verdict is not None:
            yield text(verdict.headline, style=STYLES.get(verdict.kind, "bold green"))
        width = min(options.max_width, WIDEST) - 2 * INDENT
        for line in drawing(result, width):
            yield text(f"{' ' * INDENT}{line}")
        yield _labelled("Logs", logs_line(result))
        for label, words in sections(result):
            yield _labelled(label, words)


def sections(result: Evaluation) -> list[tuple[str, str]]:
    """What the answer rests on and what would change it, each with its label."""
    verdict = result.verdict
    about_gain = verdict is not None and verdict.about == "gain"
    parts = [("Bound" if result.believed else "Why", result.advice)]
    if verdict is not None and verdict.threshold is not None and verdict.kind != "broken":
        gains = [f"{one.estimator.upper()} with {one.method} ({one.side})" for one in result.believed_gains]
        parts = [("Why", verdict.text), *([("Bounds", f"{' and '.join(gains)}.")] if about_gain else parts)]
    if verdict is not None and about_gain and verdict.kind == "broken":
        parts = [("Gain", verdict.text), ("Value", result.advice)]
    if verdict is not None and verdict.change:
        parts.append(("What would change it", verdict.change))
    return parts


def drawing(result: Evaluation, width: int) -> list[str]:
    """The number line, with an empty line on both sides; nothing where there is nothing to compare."""
    marks = marks_of(result)
    if len(marks) < 2:
        return []
    bounds = {bound.side: bound.value for bound in believed(result)}
    held = (bounds.get("lower", -math.inf), bounds.get("upper", math.inf)) if bounds else (math.inf, -math.inf)
    return ["", *ruler(marks, held, width), ""]


def logs_line(result: Evaluation) -> str:
    """What was logged, and how much of it speaks of the candidate."""
    summary, overlap, check = result.summary, result.overlap, result.behavior_check
    declared = "" if summary.horizon_declared else " (the longest episode)"
    steps = f"{summary.n_steps:,} step{'s' if summary.n_steps > 1 else ''}"
    drawn = unit(overlap.n_clusters)
    worth = f"They carry as much information as {overlap.effective_sample_size[-1]:,.1f} {drawn} of the candidate. "
    measured = not coded(overlap.warnings, "no-overlap")
    return (
        f"{counted(summary.n_trajectories, summary.n_clusters)}, {steps}; discount {summary.discount:g}, horizon "
        f"{summary.horizon}{declared}. {worth if measured else ''}The behaviour policy's own value: "
        f"{give_or_take(summary.return_mean, summary.return_error)}."
        + (f" Behaviour policy estimated ({check.behavior})." if check else "")
    )


def _labelled(label: str, words: str) -> Text:
    return Text.assemble((f"{label}: ", "bold"), visible(words))
