"""Static figures for papers and slides, by matplotlib. Reads records, computes nothing."""

from __future__ import annotations

import math
from typing import Any, Literal

from tightrope.base.clusters import unit
from tightrope.base.errors import TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.base.records import Evaluation
from tightrope.report.pictures import value_threshold

FigureKind = Literal["forest", "overlap", "bootstrap", "rehearsal"]


def figure(result: Evaluation, kind: FigureKind) -> Any:
    """A matplotlib figure that belongs to no window: save it with ``savefig``."""
    drawers = {"forest": _forest, "overlap": _overlap, "bootstrap": _bootstrap, "rehearsal": _rehearsal}
    if kind not in drawers:
        raise TightropeError(must_be_one_of("kind", kind, drawers))
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise TightropeError('figures need matplotlib: pip install "tightrope[figures]"') from error
    return drawers[kind](result, Figure)


def _forest(result: Evaluation, make: Any) -> Any:
    bounds = [bound for bound in result.bounds if math.isfinite(bound.value) and math.isfinite(bound.estimate)]
    names = list(dict.fromkeys(f"{bound.estimator.upper()} {bound.method}" for bound in bounds))
    picture = make(figsize=(6.4, 1.2 + 0.22 * len(names)), layout="constrained")
    axes = picture.subplots()
    for bound in bounds:
        row, color = (
            names.index(f"{bound.estimator.upper()} {bound.method}"),
            "C0" if bound in result.believed else "0.45",
        )
        axes.plot([bound.value, bound.estimate], [row, row], color=color)
        axes.plot([bound.value], [row], "|", color=color, markersize=9)
        axes.plot([bound.estimate], [row], "o", color=color, markersize=4)
    summary = result.summary
    if math.isfinite(summary.return_error):
        ends = (summary.return_mean - summary.return_error, summary.return_mean + summary.return_error)
        axes.axvspan(*ends, color="C1", alpha=0.25, linewidth=0)
    axes.axvline(summary.return_mean, color="C1", linestyle="--", label="behaviour policy's own value")
    threshold = value_threshold(result)
    if threshold is not None:
        axes.axvline(threshold, color="C3", label="threshold")
    axes.set(yticks=range(len(names)), yticklabels=names, xlabel="value; from bound (bar) to estimate (dot)")
    axes.invert_yaxis()
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.18), frameon=False, ncols=2)
    return picture


def _overlap(result: Evaluation, make: Any) -> Any:
    picture = make(figsize=(6.4, 2.6), layout="constrained")
    left, right = picture.subplots(1, 2)
    left.semilogy(result.overlap.effective_sample_size)
    n, drawn = result.summary.n_clusters or result.summary.n_trajectories, unit(result.overlap.n_clusters)
    left.set(xlabel="step", ylabel=f"effective {drawn}", ylim=(0.9, 1.1 * n))
    right.plot(result.overlap.largest_share)
    right.set(xlabel="step", ylabel=f"share of the heaviest {drawn[:-1]}", ylim=(0, 1))
    return picture


def _bootstrap(result: Evaluation, make: Any) -> Any:
    details = result.details
    if details is None or not details.counts:
        raise TightropeError("there are no bootstrap values to draw: nothing was resampled for the bound in question")
    bound = result.bounds[details.bound]
    picture = make(figsize=(6.4, 2.8), layout="constrained")
    axes = picture.subplots()
    axes.stairs(details.counts, details.edges, fill=True, alpha=0.4)
    axes.axvline(bound.estimate, color="black", label=f"estimate ({bound.estimator.upper()})")
    if math.isfinite(bound.value):
        axes.axvline(bound.value, color="C3", label=f"{bound.side} bound ({bound.method})")
    axes.set(xlabel="value of the replicate", ylabel="replicates")
    axes.legend(frameon=False)
    return picture


def _rehearsal(result: Evaluation, make: Any) -> Any:
    """How often each bound was wrong on simulated logs, beside what it promises."""
    if not result.rehearsal:
        raise TightropeError("nothing was rehearsed: evaluate(..., rehearsals=200)")
    both = len({one.side for one in result.rehearsal}) > 1
    rows = [(f"{one.estimator.upper()} {one.method}" + both * f", {one.side}", one) for one in result.rehearsal]
    count, nominal = max(one.trials for one in result.rehearsal), 1 - result.bounds[0].confidence
    picture = make(figsize=(6.4, 1.2 + 0.22 * len(rows)), layout="constrained")
    axes = picture.subplots()
    for row, (_, one) in enumerate(rows):
        rate = one.errors / one.trials
        spread = math.sqrt(max(nominal, rate) * (1 - rate) / one.trials)
        color = "C3" if rate > nominal + 2 * spread else "C0"
        axes.plot([0, 100 * rate], [row, row], color=color, alpha=0.4)
        axes.plot([100 * rate], [row], "o", color=color, markersize=5)
    axes.axvline(100 * nominal, color="black", linestyle="--", label=f"promised: {100 * nominal:.3g} %")
    axes.set(yticks=range(len(rows)), yticklabels=[name for name, _ in rows], xlim=(0, None))
    axes.set_xlabel(f"wrong in % of {count} logs like yours,\nsimulated from a model of them")
    axes.invert_yaxis()
    axes.legend(loc="lower right", frameon=False)
    return picture
