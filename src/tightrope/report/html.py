"""The report: one self-contained page, or its first part for a notebook. Reads records, computes nothing."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import Any

from tightrope.base.clusters import unit
from tightrope.base.errors import visible
from tightrope.base.records import Evaluation, Verdict
from tightrope.base.warnings import Caution, codes_of
from tightrope.report.cards import cards
from tightrope.report.forest import forest
from tightrope.report.line import axis_name, number_line
from tightrope.report.pictures import Drawing, bootstrap, overlap_drawings, value_threshold
from tightrope.report.scale import give_or_take, percent, short
from tightrope.report.words import (
    Labels,
    assumptions,
    behavior_lines,
    guarantees,
    level,
    model_lines,
    origin,
    reading,
    settings_line,
    sources,
)

SYMBOLS = {"yes": "✓", "no": "✗", "cannot tell": "?", "broken": "!", "bound": ""}


def page(result: Evaluation, labels: Labels | None = None) -> str:
    """The whole report as HTML text that needs nothing from outside."""
    return rendered("report.html.j2", _context(result, labels or Labels()))


def fragment(result: Evaluation) -> str:
    """The first screen, the forest plot and the advice, for a notebook cell."""
    return rendered("fragment.html.j2", _context(result, Labels()))


@cache
def _environment() -> Any:
    import jinja2  # only a report needs it

    loader = jinja2.FileSystemLoader(Path(__file__).parent / "templates")
    environment = jinja2.Environment(
        loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters |= {"num": short, "give_or_take": give_or_take, "percent": percent, "level": level}
    return environment


def rendered(name: str, context: dict[str, Any]) -> str:
    """A template of the folder ``templates``, filled in; what is not drawn already is escaped."""
    return str(_environment().get_template(name).render(**context))


def _context(result: Evaluation, labels: Labels) -> dict[str, Any]:
    key = f"t{hashlib.sha256(result.to_json().encode()).hexdigest()[:8]}"  # ids that differ between notebook cells
    labels = Labels(visible(labels.title), visible(labels.metric), visible(labels.unit))
    believed = (*result.believed_gains, *result.believed)
    drawn = unit(result.summary.n_clusters)[:-1]
    verdict = result.verdict or Verdict("bound", "What the logs say about the candidate", result.advice)
    return {
        "result": result,
        "key": key,
        "labels": labels,
        "kind": verdict.kind,
        "symbol": SYMBOLS[verdict.kind],
        "headline": verdict.headline,
        "verdict_text": verdict.text,
        "change": verdict.change,
        "threshold": value_threshold(result),
        "provenance": result.provenance,
        "origin": origin(result),
        "sources": sources(result),
        "cards": cards(result, labels),
        "axis_name": axis_name(result, labels),
        "reading": reading(result),
        "cautions": tuple(dict.fromkeys(warning for bound in believed for warning in bound.warnings)),
        "drawn": drawn,
        "looked_into": result.bounds[result.details.bound] if result.details else None,
        "table": _table(result),
        "sides": [side for side in ("lower", "upper") if any(bound.side == side for bound in result.bounds)],
        "warnings": _warnings(result),
        "left_out": _left_out(result),
        "model_lines": model_lines(result.model_check, drawn) if result.model_check else [],
        "behavior_lines": behavior_lines(result.behavior_check) if result.behavior_check else [],
        "assumptions": assumptions(result),
        "guarantees": guarantees(result),
        "settings_line": settings_line(result),
        **_pictures(result, labels, key),
    }


def _pictures(result: Evaluation, labels: Labels, key: str) -> dict[str, Any]:
    """What is drawn already, so that a template must not escape it."""
    from markupsafe import Markup

    def safe(drawing: Drawing | None) -> dict[str, Any] | None:
        return None if drawing is None else {**vars(drawing), "svg": Markup(drawing.svg)}

    return {
        "line": Markup(number_line(result, labels, f"{key}-line")),
        "forest": Markup(forest(result, f"{key}-forest")),
        "overlaps": [safe(drawing) for drawing in overlap_drawings(result, key)],
        "bootstrap": safe(bootstrap(result, f"{key}-bootstrap")),
    }


def _table(result: Evaluation) -> list[dict[str, Any]]:
    """One row for each pair, the sides beside each other."""
    codes = [warning.code for warning in _warnings(result)]
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for bound in result.bounds:
        row = rows.setdefault((bound.estimator, bound.method), {"bounds": {}, "chosen": {}, "first": bound})
        row["bounds"][bound.side] = bound
        row["chosen"] = {**row["chosen"], bound.side: bound in result.believed}
        own = codes_of(warning for one in row["bounds"].values() for warning in one.warnings)
        row["notes"] = ", ".join(str(1 + number) for number in sorted(codes.index(code) for code in own))
    for row in rows.values():
        # Broken at a plus sign and nowhere else, so that a narrow table stays low.
        row["name"] = f"{row['first'].estimator.upper()}\u00a0{row['first'].method}".replace("+", "+\u200b")
        row["estimate"] = short(row["first"].estimate)
    return list(rows.values())


def _warnings(result: Evaluation) -> list[Caution]:
    """The first warning of each kind."""
    first: dict[str, Caution] = {}
    for warning in (*result.overlap.warnings, *(warning for bound in result.bounds for warning in bound.warnings)):
        first.setdefault(warning.code, warning)
    return list(first.values())


def _left_out(result: Evaluation) -> list[tuple[str, str]]:
    """Pairs that could not be computed, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for estimator, method, why in result.skipped:
        reasons.setdefault(why, []).append(f"{estimator.upper()} with {method}")
    return [(", ".join(pairs), why) for why, pairs in reasons.items()]
