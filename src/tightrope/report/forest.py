"""The forest plot: every bound and estimate on one axis, the believed ones marked."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from tightrope.base.records import About, Bound, Evaluation
from tightrope.base.rounding import outward
from tightrope.report import svg
from tightrope.report.pictures import value_threshold
from tightrope.report.scale import Scale, around, short

# Percent: where the plot begins and how wide it is, on a phone and elsewhere. Browsers do not let a style sheet move an
# inner svg, so it is drawn for both, and the style sheet shows one.
PLOTS = {"narrow": (38.0, 33.0), "wide": (23.0, 59.0)}
ROW, GAP, TOP = 20, 6, 6  # pixels
LONGEST = 20  # letters of a row's name
SHORTER = {"empirical-bernstein": "emp.-bernstein"}

Row = dict[str, tuple[bool, Bound]]  # by side: whether believed, and the bound


def forest(result: Evaluation, key: str) -> str:
    """One row for each pair of estimator and method: its name, its bar, its numbers."""
    rows: dict[tuple[str, str], Row] = {}
    for bound in result.bounds:
        method = SHORTER.get(bound.method, bound.method)
        row = rows.setdefault((bound.estimator, f"{bound.estimator.upper()} {method}"), {})
        row[bound.side] = (bound in result.believed, bound)
    axis = _axis(result)
    title = f"Forest plot: {len(result.bounds)} bounds on the candidate's value"
    return drawn(key, (title, _description(result)), rows, axis, lambda bottom: _references(result, axis, bottom))


def drawn(
    key: str,
    words: tuple[str, str],
    rows: Mapping[tuple[str, str], Row],
    axis: Scale,
    references: Callable[[float], list[str]],
    about: About = "value",
) -> str:
    """Rows by (group, name), some room between groups; ``references`` are drawn down to the height given."""
    names: list[str] = []
    bars: list[str] = []
    down, last = float(TOP), ""
    for (group, name), row in rows.items():
        down += GAP if last and last != group else 0
        names += _names(name, row, down + ROW / 2)
        bars += [part for chosen, bound in row.values() for part in _bar(bound, axis, down + ROW / 2, chosen)]
        down, last = down + ROW, group
    inside = [*references(down), *bars, *svg.across_axis(axis, about, down + 4, left=0, right=100)]
    plots = [
        svg.group("svg", inside, x=svg.pct(left), width=svg.pct(width), cls=f"{name} plot", overflow="visible")
        for name, (left, width) in PLOTS.items()
    ]
    return svg.image(key, *words, down + 46, [*names, *plots])


def mark(axis: Scale, value: float, bottom: float, cls: str) -> str:
    """A line down through all rows."""
    return svg.line(_across(axis, value), TOP, _across(axis, value), bottom + 4, cls)


def _axis(result: Evaluation) -> Scale:
    summary = result.summary
    core = [summary.return_mean]
    core += [x for x in (value_threshold(result), result.true_value) if x is not None]
    for bound in result.believed:
        core += [bound.value, bound.estimate]
    if not result.believed:  # the middle half of the estimates, without extreme ones
        estimates = sorted(bound.estimate for bound in result.bounds if math.isfinite(bound.estimate))
        core += estimates[len(estimates) // 4 : 1 + 3 * len(estimates) // 4]
    return around(core, [x for bound in result.bounds for x in (bound.value, bound.estimate)])


def _across(axis: Scale, value: float) -> float:
    return 100 * axis.at(value)


def _references(result: Evaluation, axis: Scale, bottom: float) -> list[str]:
    """The behaviour policy's own value with its error, the threshold, the true value."""
    mean, error = result.summary.return_mean, result.summary.return_error
    parts = []
    if math.isfinite(error):
        low, high = _across(axis, mean - error), _across(axis, mean + error)
        height = f"{bottom - TOP:g}"
        parts.append(
            svg.element(
                "rect",
                x=svg.pct(low),
                width=svg.pct(high - low),
                y=TOP,
                height=height,
                cls="behavior-band",
            )
        )
    for value, cls in ((mean, "behavior"), (value_threshold(result), "threshold"), (result.true_value, "truth")):
        if value is not None:
            parts.append(mark(axis, value, bottom, cls))
    return parts


def _names(name: str, row: Row, down: float) -> list[str]:
    """The text left and right of the bar, on a tinted ground if a bound of the row is believed."""
    believed = any(chosen for chosen, _ in row.values())
    cls, name = ("believed", f"▸ {name}") if believed else ("other", name)
    words = name if len(name) <= LONGEST + 2 else f"{name[: LONGEST + 1]}…"
    ground = svg.element("rect", x="0", width="100%", y=f"{down - ROW / 2:g}", height=ROW, cls="row")
    return [
        *([ground] if believed else []),
        svg.label(0.8, down, words, cls=cls),
        svg.label(99.2, down, _numbers(row), "end", cls),
    ]


def _bar(bound: Bound, axis: Scale, down: float, believed: bool) -> list[str]:
    """From the bound to the estimate; what lies beyond the axis is an arrow."""
    if math.isnan(bound.value) or math.isnan(bound.estimate):
        return []
    cls = "believed" if believed else "other"
    start, end = _across(axis, bound.value), _across(axis, bound.estimate)
    parts = [svg.line(start, down, end, down, f"{cls} span")]
    if axis.holds(bound.value):
        parts.append(svg.line(start, down - 5, start, down + 5, f"{cls} end"))
    else:
        parts.append(svg.arrow(start, down, "left" if bound.value < axis.low else "right", cls))
    if axis.holds(bound.estimate):
        parts.append(svg.element("circle", cx=svg.pct(end), cy=f"{down:g}", r=3.5, cls=f"{cls} dot"))
    else:
        parts.append(svg.arrow(end, down, "left" if bound.estimate < axis.low else "right", cls))
    return parts


def _numbers(row: Row) -> str:
    """The bounds in figures, short enough for a phone."""
    values = {side: outward(bound.value, bound.side) for side, (_, bound) in row.items()}
    if len(values) == 1:
        return f"≥ {short(values['lower'])}" if "lower" in values else f"≤ {short(values['upper'])}"
    for digits in (4, 3, 2, 1):
        words = f"{short(values['lower'], digits)}…{short(values['upper'], digits)}"
        if len(words) <= 13:
            break
    return words


def _description(result: Evaluation) -> str:
    parts = [f"The behaviour policy's own value is {svg.say(result.summary.return_mean)}."]
    threshold = value_threshold(result)
    if threshold is not None:
        parts.append(f"The threshold is {svg.say(threshold)}.")
    for bound in result.believed:
        parts.append(
            f"Believed: the {bound.side} bound {svg.say(bound.value)}, {bound.method} on {bound.estimator.upper()}, "
            f"estimate {svg.say(bound.estimate)}."
        )
    if not result.believed:
        parts.append("No bound is believed.")
    endless = sum(not math.isfinite(bound.value) for bound in result.bounds)
    if endless:
        parts.append(f"{endless} of the bounds are infinite and say nothing.")
    return " ".join([*parts, "All numbers stand in the table of every bound below."])
