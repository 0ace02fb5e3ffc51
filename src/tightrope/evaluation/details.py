"""One bound looked into for its report: how its estimator's replicates spread, and which episodes carry it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.base.beside import Details, Influence
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import TightropeError, failing, visible
from tightrope.base.folder import parts
from tightrope.base.problem import Problem
from tightrope.base.records import Bound
from tightrope.evaluation.case import Answer, Case

BINS = 40
FAR = 4.0  # spans of the middle half beyond which a replicate is counted instead of drawn
MOST_INFLUENTIAL = 5
ROUNDING = 1e-12
TINY, HUGE = 1e-307, 1e307  # beyond them differences are no numbers


def subject(bounds: Sequence[Bound], believe: Sequence[int]) -> int:
    """Which bound to look into: the believed one, else the first with replicates, else the first."""
    drawn = [index for index, bound in enumerate(bounds) if bound.n_resamples is not None]
    return next(iter([*believe, *drawn, 0]))


def details(index: int, answer: Answer, case: Case) -> Details:
    """The details of the bound of this index, an answer to this case."""
    values = np.empty(0) if answer.drawn is None else answer.drawn.replicates.values
    edges, counts, beyond = _histogram(values[np.isfinite(values)])
    try:
        with failing():
            influential = _influential(answer, case)
    except TightropeError:  # the bound stands without them
        influential = ()
    return Details(
        bound=index,
        edges=edges,
        counts=counts,
        n_beyond=beyond,
        n_undefined=int(np.isnan(values).sum()),
        influential=influential,
    )


def _histogram(values: Array) -> tuple[tuple[float, ...], tuple[int, ...], int]:
    """Edges and counts of the bins, and how many values lie far outside them."""
    largest = float(np.abs(values).max(initial=0.0))
    if not BINS * TINY < largest < HUGE or np.ptp(values) <= max(ROUNDING * largest, BINS * TINY):
        return (), (), 0  # none, all alike, or no numbers in between to cut at
    low, high = np.quantile(values, [0.25, 0.75])
    # Half of them alike, but for rounding: draw all.
    reach = FAR * (high - low) if high - low > ROUNDING * np.abs(values).max() else np.inf
    near = values[(values >= low - reach) & (values <= high + reach)]
    counts, edges = np.histogram(near, bins=BINS)
    return tuple(map(float, edges)), tuple(map(int, counts)), len(values) - len(near)


def _influential(answer: Answer, case: Case) -> tuple[Influence, ...]:
    """The episodes, or clusters, of the largest absolute influence; none where all are alike or there is no value."""
    data, clusters = case.problem.dataset, case.clusters
    statistic = case.statistic(answer.estimator) if answer.drawn is None else answer.drawn.statistic
    n = statistic.n_trajectories
    influence = statistic.influence()
    top = _largest(influence, n * ROUNDING * abs(statistic.estimate))
    if not len(top):
        return ()
    weights = data.scratch.full((len(top), n), 1.0)
    weights[np.arange(len(top)), top] = 0.0
    others = statistic(weights)
    shares = _shares(case.problem, top) if answer.estimator.uses_ratios else [None] * len(top)
    names = data.episode_ids if data.clusters is None else data.clusters
    assert names is not None
    returns = data.returns if clusters is None else clusters.means(data.returns)
    first = top if clusters is None else [int(clusters.episodes(np.array([one]))[0]) for one in top]
    return tuple(
        Influence(visible(str(names[i])), share, float(returns[one]), float(influence[one] / n), float(without))
        for one, i, share, without in zip(top, first, shares, others, strict=True)
    )


def _largest(influence: Array, least: float) -> IntArray:
    """The places of the largest absolute numbers, of equals the first; none where none exceeds the least."""

    def size(places: slice | IntArray) -> Array:
        some = influence[places]
        return np.where(np.isfinite(some), np.abs(some), 0.0)

    most = max(float(size(part).max()) for part in parts(len(influence)))
    if most <= least:
        return np.zeros(0, dtype=np.int64)

    def first(places: IntArray) -> IntArray:  # no rounding in the last digits decides
        return places[np.argsort(-np.round(size(places) / most, 12), kind="stable")[:MOST_INFLUENTIAL]]

    return first(np.concatenate([first(np.arange(part.start, part.stop)) for part in parts(len(influence))]))


def _shares(problem: Problem, those: IntArray) -> list[float | None]:
    """The parts of Σρ that these episodes, or the means of these clusters, carry at the last step."""
    ratios, clusters = problem.ratios, problem.clusters
    weights = problem.dataset.per_episode(lambda *chunk: np.exp(ratios.log(*chunk)[:, -1] - ratios.log_max[-1]))
    weights = weights if clusters is None else clusters.means(weights)
    return [float(share) for share in weights[those] / weights.sum()]
