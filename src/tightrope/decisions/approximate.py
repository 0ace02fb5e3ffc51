"""Bounds on all candidates from shared resamples: they hold together, and differences are paired.

Where episodes come in clusters, every statistic is a function of cluster weights (``by_cluster``), the baseline's mean
return too, and one row of weights draws clusters (within strata, so many from each). Clusters are independent draws,
and every candidate has one row of columns for each, so the replicates of all candidates, of their gains and of their
differences have the joint distribution that the estimates have as the number of clusters grows; the band of
``family.band`` asks for no more. How many clusters there are, not how many episodes, decides which share of the error
rate is used.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from tightrope.base.behavior import BehaviorModel
from tightrope.base.clusters import Clusters, extent, n_clusters, n_independent
from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import BoundError
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound
from tightrope.decisions.contenders import Baseline, Contender
from tightrope.decisions.family import band, surely_above
from tightrope.decisions.findings import Findings, Pair, gain_range
from tightrope.estimators import Anchor, Estimator
from tightrope.estimators.clustered import by_cluster
from tightrope.evaluation.recommend import FEWEST_RESAMPLED, OF_FEW, WITHOUT_MODEL, sees_states
from tightrope.evaluation.sentences import FEWEST
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import scheme
from tightrope.functional.standard_errors import standard_error
from tightrope.functional.statistic import FittedStatistic, RatioSum, SumStatistic
from tightrope.functional.strata import levelled_by, within_strata

HOW = "Shared resamples: each bound gives up as many of its lowest replicates as all of them can afford together."
WHOLE = " Clusters are drawn whole, and each counts once."
WITHIN = " From each stratum as many are drawn as it holds."


@dataclass(frozen=True, eq=False)
class End:
    """A value counted from one end of the range of the return: its replicates, estimate and influence values."""

    replicates: Array  # (B,)
    estimate: float
    influence: Array  # (n,), of episodes or of clusters

    def less(self, other: End, shown: float) -> End:
        """The difference, on the same resamples; ``shown`` is the other's estimate as it is shown."""
        return End(self.replicates - other.replicates, self.estimate - shown, self.influence - other.influence)


class Ends(NamedTuple):
    """A value from both ends. A lower bound of a difference takes the first from below and the second from above."""

    low: End
    high: End
    name: str = ""  # of the estimator

    def above(self, other: Ends) -> End:
        """What this value exceeds another by, safe to be bounded from below; both estimates are those from below."""
        return self.low.less(other.high, other.low.estimate)


FEWEST_TOGETHER = 5 * FEWEST
TOGETHER: dict[About, float] = {"value": 0.2, "gain": 0.6}


def share(n: int, about: About, count: int, *, model: bool = True) -> float:
    """The share of the error rate that is used for so many bounds: from few episodes approximations err too often.

    Bounds that hold together lie further out in the tail than one alone, so they need more episodes to be near their
    level; values more than gains, whose skewness cancels in part: docs/decisions.md has the numbers.
    """
    alone = OF_FEW[about].share if n < FEWEST else 1.0 if model else WITHOUT_MODEL.share
    return min(alone, TOGETHER[about]) if n < FEWEST_TOGETHER and count > 1 else alone


def enough(count: int, n: int, settings: Settings) -> int:
    """Replicates that leave every pair of candidates a place in the tail."""
    return math.ceil(count * (count - 1) / ((1 - settings.confidence) * share(n, "gain", count)))


def _check_many(data: TrajectoryDataset) -> None:
    """Refuse logs that resampling cannot judge: then only exact bounds answer."""
    if n_independent(data) < FEWEST_RESAMPLED:
        raise BoundError(
            f"resampling compares nothing with fewer than {FEWEST_RESAMPLED} independent episodes, or clusters of "
            f"them, because so few may all lie on one side of the truth; got {extent(data)}. Use strict=True "
            "(--strict), whose bounds are exact"
        )


def approximate(contenders: Sequence[Contender], baseline: Baseline, settings: Settings) -> Findings:
    """What resampling says of all candidates together."""
    data = contenders[0].problem.dataset
    _check_many(data)
    *own, base = _resampled(contenders, baseline, data, settings)
    about: About = "value" if baseline.number is not None else "gain"
    model = all(sees_states(one.problem) for one in contenders)
    by_value, by_gain, by_pair = (
        (1 - settings.confidence) * share(n_independent(data), key, len(own), model=model)
        for key in ("value", about, "gain")
    )
    behavior = contenders[0].problem.behavior
    lows = [one.low for one in own]
    gains = [one.above(base) for one in own]
    floor, least = (data.value_range or (-np.inf,))[0], gain_range(data, baseline)[0]
    return Findings(
        values=_bounds(own, lows, "value", by_value, floor, settings, behavior, data),
        gains=_bounds(own, gains, "gain", by_gain, least, settings, behavior, data),
        better=[bool(one) for one in surely_above(_table(gains), by_gain)],
        tops=[-float(band(_table([base.above(one)]), by_gain)[0]) for one in own],
        differences=_differences(own, by_pair),
        how=HOW + (WHOLE if data.clusters is not None else "") + (WITHIN if data.strata is not None else ""),
    )


def _table(ends: Sequence[End]) -> Array:
    return np.column_stack([one.replicates for one in ends])


def _bounds(
    own: Sequence[Ends],
    ends: Sequence[End],
    about: About,
    delta: float,
    least: float,
    settings: Settings,
    behavior: BehaviorModel | None,
    data: TrajectoryDataset,
) -> list[Bound]:
    """Lower bounds that hold together; what is declared is known as it is."""
    together, clusters = band(_table(ends), delta), Clusters.of(data)
    return [
        Bound(
            value=max(float(value), least),
            side="lower",
            confidence=settings.confidence,
            estimate=end.estimate,
            estimator=one.name,
            method="simultaneous percentile",
            guarantee="approximate",
            standard_error=standard_error(levelled_by(clusters, end.influence)),
            n_trajectories=data.n_trajectories,
            n_clusters=n_clusters(data),
            n_resamples=settings.n_resamples,
            n_undefined=int(np.isnan(end.replicates).sum()),
            seed=settings.seed,
            behavior=None if behavior is None else behavior.name,
            about=about,
        )
        for one, end, value in zip(own, ends, together, strict=True)
    ]


def _differences(own: Sequence[Ends], delta: float) -> list[Pair]:
    """Every ordered pair; their bounds hold together."""
    places = [(i, j) for i in range(len(own)) for j in range(len(own)) if i != j]
    if not places:
        return []
    ends = [own[i].above(own[j]) for i, j in places]
    together = band(_table(ends), delta)
    return [Pair(i, j, end.estimate, float(lower)) for (i, j), end, lower in zip(places, ends, together, strict=True)]


def _resampled(
    contenders: Sequence[Contender], baseline: Baseline, data: TrajectoryDataset, settings: Settings
) -> list[Ends]:
    """Both ends of every candidate and of the baseline, on the same resamples."""
    statistics: list[FittedStatistic] = []
    names = []
    clusters = contenders[0].problem.clusters
    for one in [*contenders, *([baseline.policy] if baseline.policy else [])]:
        estimator, both = one.first(partial(_statistics, one.problem, clusters))
        statistics += both
        names.append(estimator.name)
    if baseline.policy is None:
        number = baseline.number
        names.append("")
        mean = _mean(data.returns if number is None else np.full(data.n_trajectories, number))
        statistics += 2 * [by_cluster(mean, clusters)]
    drawn = replicate(
        statistics,
        within_strata(scheme(settings.resampling), clusters),
        n_resamples=settings.n_resamples,
        seed=settings.seed,
        progress=settings.progress,
        n_jobs=settings.n_jobs,
        scratch=data.scratch,
    )
    ends = [
        End(one.values, statistic.estimate, statistic.influence())
        for one, statistic in zip(drawn, statistics, strict=True)
    ]
    return [Ends(low, high, name) for low, high, name in zip(ends[::2], ends[1::2], names, strict=True)]


def _statistics(
    problem: Problem, clusters: Clusters | None, estimator: Estimator
) -> tuple[FittedStatistic, FittedStatistic]:
    """The estimator counted from the floor and, where there is one, from the ceiling."""
    _, high = problem.dataset.value_range or (-np.inf, np.inf)
    ends: tuple[Anchor, Anchor] = ("low", "high" if np.isfinite(high) else "low")
    first, second = (by_cluster(estimator.anchored(end)(problem), clusters) for end in ends)
    return first, second


def _mean(values: Array) -> SumStatistic:
    """The mean of one number for each episode."""
    combine = RatioSum(np.ones(1))

    def make_columns(start: int, stop: int) -> Array:
        return np.column_stack([np.ones(stop - start), values[start:stop]])

    return SumStatistic(len(values), combine.fields, make_columns, combine)
