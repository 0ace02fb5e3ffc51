"""The few numbers of a report's first screen, each rounded to what its uncertainty allows."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.base.beside import Lift
from tightrope.base.clusters import counted, unit
from tightrope.base.records import Bound, Evaluation
from tightrope.report.pictures import overlap_is_measured
from tightrope.report.scale import give_or_take, short, signed_percent
from tightrope.report.words import Labels, bound_number, level, subject


@dataclass(frozen=True)
class Card:
    """A number with its name above and what it means below."""

    name: str
    number: str
    note: str
    unit: str = ""


def cards(result: Evaluation, labels: Labels) -> list[Card]:
    """At most four: what is believed, the estimate, the behaviour policy, how much the logs say."""
    gained = subject(result) == "gain"
    bounds = result.believed_gains if gained else result.believed
    name = "Gain over the behaviour policy" if gained else f"Candidate’s {labels.metric}"
    first = [_believed(result, bounds, name, labels), _estimate(result, bounds[0], labels)] if bounds else []
    return [*first, _behavior(result, labels), _information(result)]


def _believed(result: Evaluation, bounds: tuple[Bound, ...], name: str, labels: Labels) -> Card:
    threshold = result.verdict.threshold if result.verdict is not None else None
    numbers = {bound.side: bound_number(bound, threshold) for bound in bounds}
    if len(numbers) == 2:
        number, each = f"{numbers['lower']} to {numbers['upper']}", "each side "
    else:
        number, each = f"{'≥' if 'lower' in numbers else '≤'} {next(iter(numbers.values()))}", ""
    kinds = dict.fromkeys(bound.guarantee for bound in bounds)
    kind = next(iter(kinds)) if len(kinds) == 1 else ", ".join(f"{b.side} {b.guarantee}" for b in bounds)
    note = f"{each}at {level(bounds[0].confidence)}, {kind}{_lifted(result.lift)}"
    return Card(name, number, note, labels.unit)


def _lifted(lift: Lift | None) -> str:
    """The bounds on the gain as shares."""
    ends = [] if lift is None else [signed_percent(end) for end in (lift.lower, lift.upper) if end is not None]
    return f"; relative: {' to '.join(ends)}" if ends else ""


def _estimate(result: Evaluation, bound: Bound, labels: Labels) -> Card:
    error = bound.standard_error
    number = short(bound.estimate) if error is None else give_or_take(bound.estimate, error)
    lift = result.lift
    share = "" if lift is None else f"; relative: {signed_percent(lift.estimate)}"
    return Card("Estimate", number, f"by {bound.estimator.upper()}, may be off either way{share}", labels.unit)


def _behavior(result: Evaluation, labels: Labels) -> Card:
    summary = result.summary
    number, note = (
        give_or_take(summary.return_mean, summary.return_error),
        f"mean of {counted(summary.n_trajectories, summary.n_clusters)}",
    )
    return Card(f"Behaviour policy’s own {labels.metric}", number, note, labels.unit)


def _information(result: Evaluation) -> Card:
    """What the logged episodes, or clusters, are worth, or why that is not known."""
    overlap, n = result.overlap, result.summary.n_clusters or result.summary.n_trajectories
    if math.isnan(overlap.mean_ratio):
        return Card("Overlap", "none", "there are no importance ratios")
    if not overlap_is_measured(result):
        return Card("Mean importance ratio", short(overlap.mean_ratio, 3), "should be 1")
    worth = short(overlap.effective_sample_size[-1], 3)
    return Card(f"Logged {unit(overlap.n_clusters)} are worth", worth, f"of the candidate’s own, out of {n:,}")
