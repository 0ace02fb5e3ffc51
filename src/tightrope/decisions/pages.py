"""Decisions as pages: one self-contained file each. They read records and compute nothing."""

from __future__ import annotations

import hashlib

from tightrope.base.errors import visible
from tightrope.decisions.comparison import Comparison
from tightrope.decisions.tables import comparison_rows
from tightrope.report import svg
from tightrope.report.forest import Row, drawn, mark
from tightrope.report.html import SYMBOLS, rendered
from tightrope.report.scale import around


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
