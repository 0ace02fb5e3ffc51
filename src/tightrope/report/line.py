"""The first picture of a report: one number line with the threshold, the behaviour policy and the believed bounds."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.base.records import Bound, Evaluation
from tightrope.report import svg
from tightrope.report.scale import Scale, around, rounded, short
from tightrope.report.words import Labels, bound_number, estimate_number, subject

LEFT, RIGHT = 6.0, 94.0  # percent: where the line begins and ends
NEAR = 35.0  # percent: a mark farther from both ends than this is central
ROW, TOP, DEEP = 20, 11, 14  # pixels: of one label, above the first, from the last to the line


@dataclass(frozen=True)
class Mark:
    """A place on the line, the class that it is drawn in, its name and its number in words."""

    value: float
    cls: str
    name: str
    number: str

    @property
    def words(self) -> str:
        """What stands at the mark."""
        return f"{self.name} {self.number}"


def number_line(result: Evaluation, labels: Labels, key: str) -> str:
    """Every mark with its own row of words above the line, so that words never meet at any width."""
    marks = marks_of(result)
    axis = _axis(result, marks)
    rows = sorted(marks, key=lambda mark: -abs(_across(axis, mark.value) - 50))  # words run inwards, over nobody
    down = float(TOP + ROW * len(rows) + DEEP)
    drawn = [part for i, mark in enumerate(rows) for part in _drawn(mark, axis, TOP + ROW * i, down)]
    words = [_label(mark, axis, TOP + ROW * i) for i, mark in enumerate(rows)]
    line = svg.across_axis(axis, "", down, left=LEFT, right=RIGHT)  # its name stands below, where it can wrap
    title = f"Number line of the candidate's {axis_name(result, labels)}"
    children = [*_region(result, axis, down), *line, *drawn, *words]
    return svg.image(key, title, _description(result, marks), down + 24, children, cls="line")


def axis_name(result: Evaluation, labels: Labels) -> str:
    """What the line measures, with its unit."""
    unit = f" ({labels.unit})" if labels.unit else ""
    if subject(result) == "value":
        return f"{labels.metric}{unit}"
    return f"gain{'' if labels.metric == 'value' else f' in {labels.metric}'} over the behaviour policy{unit}"


def marks_of(result: Evaluation) -> list[Mark]:
    """What has a place on the line; what lies at the same place is one mark."""
    about, summary = subject(result), result.summary
    bounds = believed(result)
    marks = []
    verdict = result.verdict
    threshold = verdict.threshold if verdict is not None and verdict.about == about else None
    if threshold is not None:
        marks.append(Mark(threshold, "threshold", "threshold", short(threshold, 5)))
    own = 0.0 if about == "gain" else summary.return_mean
    number = "0" if about == "gain" else rounded(own, summary.return_error)
    marks.append(Mark(own, "behavior", "behaviour policy", number))
    marks += [Mark(one.value, "bound", f"{one.side} bound", bound_number(one, threshold)) for one in bounds]
    exact = [one for one in result.exact if one.about == about and one.value not in [two.value for two in bounds]]
    marks += [Mark(one.value, "exact", f"exact {one.side} bound", bound_number(one, threshold)) for one in exact]
    marks += [Mark(one.estimate, "estimate", "estimate", estimate_number(one)) for one in bounds[:1]]
    if result.true_value is not None and about == "value":
        marks.append(Mark(result.true_value, "truth", "true value", short(result.true_value)))
    places: dict[float, list[Mark]] = {}
    for mark in marks:
        if math.isfinite(mark.value):
            places.setdefault(mark.value, []).append(mark)
    return [
        Mark(value, same[0].cls, " and ".join(mark.name for mark in same), same[0].number)
        for value, same in places.items()
    ]


def believed(result: Evaluation) -> tuple[Bound, ...]:
    """The bounds that the line is about."""
    return result.believed_gains if subject(result) == "gain" else result.believed


def _axis(result: Evaluation, marks: list[Mark]) -> Scale:
    """All marks but exact bounds far away; without a bound what is possible, and the behaviour policy's error."""
    core, summary = [mark.value for mark in marks if mark.cls != "exact"], result.summary
    if not believed(result):
        core += [summary.return_mean - summary.return_error, summary.return_mean + summary.return_error]
        core += summary.return_range or ()
    return around(core, [mark.value for mark in marks])


def _across(axis: Scale, value: float) -> float:
    return LEFT + (RIGHT - LEFT) * axis.at(value)


def _region(result: Evaluation, axis: Scale, down: float) -> list[str]:
    """Where the believed bounds leave room."""
    ends = {bound.side: _across(axis, bound.value) for bound in believed(result)}
    low, high = ends.get("lower", LEFT), ends.get("upper", RIGHT)
    if not ends or low > high:
        return []
    shape = {"x": svg.pct(low), "width": svg.pct(high - low), "y": f"{down - 5:g}", "height": 10}
    return [svg.element("rect", **shape, cls="region")]


def _drawn(mark: Mark, axis: Scale, top: float, down: float) -> list[str]:
    """A thin line from the words to the mark on the line; an arrow where it lies beyond."""
    place = _across(axis, mark.value)
    parts = [svg.line(place, top + 8, place, down, f"{mark.cls} lead")]
    wide = " wide plot" if _is_central(place) else ""  # on a phone the words stand above the line, not beside it
    parts.append(svg.line(place, top - 5, place, top + 8, f"{mark.cls} lead{wide}"))
    if not axis.holds(mark.value):
        return [*parts, svg.arrow(place, down, "left" if mark.value < axis.low else "right", mark.cls)]
    if mark.cls == "estimate":
        return [*parts, svg.element("circle", cx=svg.pct(place), cy=f"{down:g}", r=4.5, cls="estimate dot")]
    return [*parts, svg.line(place, down - 7, place, down + 7, f"{mark.cls} tick")]


def _is_central(place: float) -> bool:
    return NEAR <= place <= 100 - NEAR


def _label(mark: Mark, axis: Scale, top: float) -> str:
    """Words that run inwards, so that they stay in the picture."""
    place = _across(axis, mark.value)
    anchor = "start" if place < 50 else "end"
    return svg.label(place, top, mark.words, anchor, f"{mark.cls} {anchor}{' central' if _is_central(place) else ''}")


def _description(result: Evaluation, marks: list[Mark]) -> str:
    places = "; ".join(mark.words for mark in sorted(marks, key=lambda mark: mark.value))
    if not believed(result):
        return f"No bound is believed. From left to right: {places}."
    return f"From left to right: {places}."
