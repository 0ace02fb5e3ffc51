"""Decisions as pages: one self-contained file each. They read records and compute nothing."""

from __future__ import annotations

import hashlib

from tightrope.base.errors import visible
from tightrope.decisions.comparison import Comparison
from tightrope.decisions.plans import Plan
from tightrope.decisions.tables import LOGGING, cautions, comparison_rows, logging_rows, step_header, step_rows
from tightrope.report import svg
from tightrope.report.forest import Row, drawn, mark
from tightrope.report.html import SYMBOLS, rendered
from tightrope.report.scale import Scale, around, short

FAR = 3.0  # times the planned number: beyond it the curve is flat


def comparison_page(result: Comparison, title: str = "") -> str:
    """The verdict, a forest plot of the gains, and all bounds."""
    from markupsafe import Markup

    key = f"t{hashlib.sha256(result.to_json().encode()).hexdigest()[:8]}"
    few = len(result.standings) <= 4
    pairs = [one for one in result.differences if few or one.lower > 0 or one.name == result.chosen]
    context = {
        "result": result,
        "title": visible(title),
        "key": key,
        "symbol": SYMBOLS[result.verdict.kind],
        "rows": comparison_rows(result),
        "cautions": cautions(result),
        "pairs": pairs,
        "forest": Markup(forest(result, f"{key}-forest")) if result.chosen else "",
    }
    return rendered("comparison.html.j2", context)


def forest(result: Comparison, key: str) -> str:
    """Each candidate's gain, from its lower bound to its estimate, beside a line at zero."""
    bounds = {one.name: (one.better, one.gain) for one in result.standings if one.gain is not None}
    rows: dict[tuple[str, str], Row] = {("", name): {"lower": row} for name, row in bounds.items()}
    ends = [x for _, bound in bounds.values() for x in (bound.value, bound.estimate)]
    chosen = bounds[result.chosen][1]
    axis = around([0.0, chosen.value, chosen.estimate], ends)
    better = ", ".join(name for name, (is_better, _) in bounds.items() if is_better)
    words = (
        f"Forest plot: the gains of {len(bounds)} candidates over {result.baseline}",
        f"Surely better: {better or 'none'}. The highest lower bound is that of {result.chosen}, "
        f"{svg.say(chosen.value)}, estimate {svg.say(chosen.estimate)}. All numbers stand in the table below.",
    )
    return drawn(key, words, rows, axis, lambda bottom: [mark(axis, 0.0, bottom, "behavior")], "gain")


def plan_page(result: Plan, title: str = "") -> str:
    """The answer, a curve of its chance, and what other logs would give."""
    from markupsafe import Markup

    key = f"t{hashlib.sha256(result.to_json().encode()).hexdigest()[:8]}"
    tables: list[tuple[str, tuple[str, ...], list[list[str]]]] = []
    if result.kind in ("yes", "no"):
        tables.append((f"How likely the answer is {result.kind}", step_header(result), step_rows(result)))
    if result.logging:
        tables.append(("New logs, with the candidate acting at a share of the steps", LOGGING, logging_rows(result)))
    context = {
        "result": result,
        "title": visible(title),
        "key": key,
        "tables": tables,
        "tone": {"settled": "yes", "broken": "broken"}.get(result.kind, "cannot-tell"),
        "curve": Markup(chances(result, f"{key}-chance")) if tables and len(result.steps) > 1 else "",
    }
    return rendered("plan.html.j2", context)


def chances(result: Plan, key: str) -> str:
    """The chance of the answer over the number of episodes, with the promised one as a line."""
    points = [(step.episodes, step.chance) for step in result.steps if step.episodes <= FAR * result.episodes]
    x = Scale(points[0][0], points[-1][0])
    words = f"At {short(result.episodes)} episodes it is {result.chance:.0%}. All numbers stand in the table below."
    marks = [(result.chance, "limit")]
    names = ("new episodes", "chance")
    return svg.chart(key, f"The chance of a {result.kind}", words, points, x, Scale(0.0, 1.0), names=names, marks=marks)
