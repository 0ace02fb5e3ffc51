"""The smaller figures of a report: overlap over time, the tail of the weights, the bootstrap's values."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tightrope.base.clusters import unit
from tightrope.base.records import Evaluation
from tightrope.base.warnings import coded
from tightrope.report import svg
from tightrope.report.scale import Scale, around, percent, short

MOST_POINTS = 200
TOO_FEW = 10.0  # effective episodes, or clusters; the diagnostics warn below it
HALF = 0.5  # share of one episode, or cluster, above which the diagnostics warn


@dataclass(frozen=True)
class Drawing:
    """A figure, its title, and a sentence that says what it shows; that alone where there is nothing to draw."""

    svg: str
    title: str
    caption: str


def value_threshold(result: Evaluation) -> float | None:
    """The threshold on the value's axis; one on the gain has no place there."""
    return result.verdict.threshold if result.verdict is not None and result.verdict.about == "value" else None


def overlap_is_measured(result: Evaluation) -> bool:
    """Whether the effective sample size means anything: there are ratios, and they average to 1."""
    return not coded(result.overlap.warnings, "no-overlap", "mean-ratio")


def overlap_drawings(result: Evaluation, key: str) -> list[Drawing]:
    """Effective sample size and largest share at each step, and the tail of the final ratios."""
    overlap = result.overlap
    sizes, shares = overlap.effective_sample_size, overlap.largest_share
    if math.isnan(shares[-1]):  # there are no ratios
        return []
    steps = _thinned(len(sizes))
    x = Scale(0, max(1, len(sizes) - 1))
    drawn = [
        _effective(result, [(float(t), sizes[t]) for t in steps], x, f"{key}-effective"),
        _largest([(float(t), shares[t]) for t in steps], x, f"{key}-share", unit(overlap.n_clusters)[:-1]),
    ]
    tail = [(ratio, share) for ratio, share in overlap.tail if ratio > 0]
    return [*drawn, _tail(result, tail, f"{key}-tail")] if tail and tail[0][0] > tail[-1][0] else drawn


def _thinned(n: int) -> list[int]:
    """At most MOST_POINTS of 0..n-1, the ends among them."""
    if n <= MOST_POINTS:
        return list(range(n))
    return sorted({round(k * (n - 1) / (MOST_POINTS - 1)) for k in range(MOST_POINTS)})


def _effective(result: Evaluation, points: list[tuple[float, float]], x: Scale, key: str) -> Drawing:
    n, first, last = result.summary.n_clusters or result.summary.n_trajectories, points[0][1], points[-1][1]
    drawn = unit(result.overlap.n_clusters)
    title = f"Effective number of {drawn} at each step"
    worth = (
        f"{short(first, 3)} at the first step and {short(last, 3)} at the last" if len(points) > 1 else short(last, 3)
    )
    caption = f"{n} logged {drawn} carry as much information as {worth} of the candidate's."
    if last < TOO_FEW:
        caption += f" Below {TOO_FEW:g} (dashed) a bootstrap resamples almost the same few {drawn}."
    if not overlap_is_measured(result):
        caption += " But the ratios do not average to 1, so this number says little."
    y = Scale(1, max(10.0, float(n)), log=True)
    marks = [(TOO_FEW, "limit")] if n > TOO_FEW else []
    names = ("step", f"{drawn} (logarithmic)")
    picture = svg.chart(key, title, caption, points, x, y, names=names, marks=marks, whole=True)
    return Drawing(picture if len(points) > 1 else "", title, caption)


def _largest(points: list[tuple[float, float]], x: Scale, key: str, one: str) -> Drawing:
    title = f"Share of the heaviest {one} at each step"
    last = points[-1][1]
    where = "At the last step a" if len(points) > 1 else "A"
    caption = f"{where} single {one} carries {percent(last)} of the weight."
    if last > HALF:
        caption += f" Above 50% (dashed) one {one} decides the answer."
    shares = [(t, 100 * share) for t, share in points]
    picture = svg.chart(
        key, title, caption, shares, x, Scale(0, 100), names=("step", "share in %"), marks=[(50, "limit")], whole=True
    )
    return Drawing(picture if len(points) > 1 else "", title, caption)


def _tail(result: Evaluation, tail: list[tuple[float, float]], key: str) -> Drawing:
    k, mean = result.overlap.pareto_k, result.overlap.mean_ratio
    title = "Tail of the importance ratios"
    index = "There are too few to fit a tail" if k is None else f"The tail index is {short(k, 2)}"
    drawn = unit(result.overlap.n_clusters)
    limit = "" if k is None else f"; above 0.7, averages are unreliable at any practical number of {drawn}"
    given = "ratio" if result.overlap.n_clusters is None else "mean ratio"
    caption = (
        f"How many {drawn} have at least a given {given}. The largest ratio is {short(tail[0][0], 3)}, the mean is "
        f"{short(mean, 3)} (expected: 1). {index}{limit}."
    )
    ratios, shares = [ratio for ratio, _ in tail], [100 * share for _, share in tail]
    low = max(min(ratios), max(ratios) / 1e8)  # smaller ratios weigh nothing
    near = [(ratio, share) for ratio, share in zip(ratios, shares, strict=True) if ratio >= low]
    y = Scale(min(10 ** math.floor(math.log10(min(shares))), 10.0), 100, log=True)
    names = ("importance ratio (logarithmic)", "% with at least this ratio (logarithmic)")
    return Drawing(svg.chart(key, title, caption, near, _decades(low, max(ratios)), y, names=names), title, caption)


def _decades(low: float, high: float) -> Scale:
    """A logarithmic axis from one power of ten to another, so that it has ticks."""
    return Scale(10 ** math.floor(math.log10(low)), 10 ** math.ceil(math.log10(high) + 1e-9), log=True)


def bootstrap(result: Evaluation, key: str) -> Drawing | None:
    """The replicates behind the bound that the report looks into; None where there are none."""
    details = result.details
    if details is None or not details.counts:
        return None
    bound = result.bounds[details.bound]
    total = sum(details.counts) + details.n_beyond + details.n_undefined
    title = f"Bootstrap values of {bound.estimator.upper()}"
    parts = [
        f"{total} resamples of the logs. The estimate is {short(bound.estimate)}, the {bound.side} bound "
        f"{short(bound.value)} ({bound.method})."
    ]
    if bound.guarantee == "exact":
        parts.append("This bound is exact and was not computed from these values.")
    if details.n_undefined:
        parts.append(f"In {details.n_undefined} resamples the estimator had no value; they count as the worst.")
    if details.n_beyond:
        parts.append(f"{details.n_beyond} values lie too far out to be drawn.")
    marks = [(bound.estimate, "estimate"), (bound.value, "bound")]
    threshold = value_threshold(result)
    marks += [(threshold, "threshold")] if threshold is not None else []
    x = around([details.edges[0], details.edges[-1]], [value for value, _ in marks])
    caption = " ".join(parts)
    return Drawing(svg.histogram(key, title, caption, details.edges, details.counts, x, marks), title, caption)
