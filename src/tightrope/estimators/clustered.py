"""Statistics and values by cluster instead of by episode: every bound of independent draws then is right for clusters.

An estimator is a function of episode weights. Give every cluster a weight, shared equally by its episodes, and it is a
function of cluster weights: resampling, leaving out, influence and standard errors go by clusters without further ado.
Sums of columns stay sums: a cluster's columns are the means of its episodes'.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from tightrope.base.clusters import Clusters, by_arrival
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import BoundError
from tightrope.base.folder import Scratch, parts
from tightrope.base.problem import Problem
from tightrope.estimators.base import IndependentEstimator, SequentialEstimator
from tightrope.estimators.gain import GainStatistic
from tightrope.estimators.model_based import ModelStatistic
from tightrope.functional.statistic import FittedStatistic, SumStatistic
from tightrope.functional.values import SequentialValues, TrajectoryValues
from tightrope.models import Evaluated, SmoothModel

Values = TypeVar("Values", bound=SequentialValues)


def by_cluster(statistic: FittedStatistic, clusters: Clusters | None) -> FittedStatistic:
    """The statistic as a function of cluster weights; as it is where there are no clusters."""
    if clusters is None:
        return statistic
    if isinstance(statistic, SumStatistic):
        return _summed(statistic, clusters)
    if isinstance(statistic, GainStatistic):
        return GainStatistic(by_cluster(statistic.value, clusters), clusters.means(statistic.returns))
    if isinstance(statistic, ModelStatistic):
        smooth = isinstance(statistic.model, SmoothModel)
        model = (SmoothClusteredModel if smooth else ClusteredModel)(statistic.model, clusters)
        return ModelStatistic(model, clusters.scratch)
    raise BoundError("this estimator cannot be computed by cluster: leave cluster and strata out, or use another one")


def _summed(statistic: SumStatistic, clusters: Clusters) -> SumStatistic:
    columns = clusters.scratch.full((clusters.n, statistic.n_columns), 0.0)
    for start, stop, part in statistic.chunks():
        np.add.at(columns, clusters.code[start:stop], part)
    columns /= clusters.sizes[:, None]
    return replace(statistic, n_trajectories=clusters.n, make_columns=lambda start, stop: columns[start:stop])


@dataclass(frozen=True, eq=False)
class ClusteredModel:
    """What is fitted anew under every row of cluster weights."""

    model: Evaluated
    clusters: Clusters

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.clusters.n

    def values(self, weights: Array) -> Array:
        """The candidate's value in the model fitted under each row."""
        return self.model.values(self.clusters.expanded(weights))


@dataclass(frozen=True, eq=False)
class SmoothClusteredModel(ClusteredModel):
    """The same of a model that knows how each episode moves its value."""

    def influences(self, weights: Array) -> Array:
        """∂value/∂w of each cluster: the mean of its episodes'."""
        assert isinstance(self.model, SmoothModel)
        slopes = self.model.influences(self.clusters.expanded(weights))
        means: Array = self.clusters.scratch.copy(self.clusters.means(slopes.T).T)
        return means


def independent_values(
    problem: Problem, estimator: IndependentEstimator, *, max_ratio: float | None = None
) -> TrajectoryValues:
    """The values that an exact bound takes, of episodes or clusters in the order in which they came."""
    clusters, came = problem.clusters, by_arrival(problem.dataset, problem.clusters)
    if clusters is not None:
        clusters.check_alike()
    sample = estimator.trajectory_values(problem, max_ratio=max_ratio)
    if sample.episodes is None:
        values = sample.values if clusters is None else clusters.means(sample.values)
        return replace(sample, values=sample.scratch.taken(values, came))
    if clusters is not None:
        raise BoundError(
            "with clusters tdr has no values of its own for this method; use betting with tdr, or is and pdis with any "
            "exact method"
        )
    return sample


def learned_values(problem: Problem, estimator: SequentialEstimator) -> SequentialValues:
    """The same of values that are learned on the way."""
    clusters = problem.clusters
    if clusters is not None:
        clusters.check_alike()
    return DrawnValues(estimator.sequential_values(problem), by_arrival(problem.dataset, clusters), clusters)


@dataclass(frozen=True, eq=False)
class DrawnValues:
    """X of independent draws, episodes or whole clusters, at the places where they came: ``SequentialValues``.

    Episodes and clusters are held by their names, and names may rise with what they earn. A fixed order of names then
    is no shuffle of values that are alike in law. X of a cluster is the mean of its episodes', and blocks are of whole
    clusters.
    """

    of: SequentialValues  # of the episodes
    came: IntArray  # which draw came at each place
    clusters: Clusters | None

    @property
    def origin(self) -> float:
        """As the episodes' values have it."""
        return self.of.origin

    @property
    def sign(self) -> float:
        """As the episodes' values have it."""
        return self.of.sign

    @cached_property
    def values(self) -> Array:
        """One for each draw, by name."""
        return self.of.values if self.clusters is None else self.clusters.means(self.of.values)

    @property
    def estimate(self) -> float:
        """Their mean, mapped back."""
        return self.origin + self.sign * float(self.values.mean())

    @property
    def scratch(self) -> Scratch:
        """As the episodes' values have it."""
        return self.of.scratch

    def unit(self, past: IntArray) -> float:
        """From those that came at these places."""
        drawn = self.came[past]
        return self.of.unit(drawn if self.clusters is None else self.clusters.episodes(drawn))

    def along(self, order: IntArray, edges: Sequence[int], tethers: Array) -> Array:
        """X of those that came at these places; all episodes of a cluster were told by what earlier blocks taught."""
        drawn = self.scratch.taken(self.came, order)
        if self.clusters is None:
            return self.of.along(drawn, edges, tethers)
        ends = np.append(0, np.cumsum(self.clusters.sizes[drawn]))
        table = self.of.along(self.clusters.episodes(drawn), [int(ends[edge]) for edge in edges], tethers)
        result: Array = self.scratch.empty((len(drawn), len(tethers)))
        for part in parts(len(drawn)):
            inside = slice(int(ends[part.start]), int(ends[part.stop]))
            sums = np.add.reduceat(table[inside], ends[part] - inside.start, axis=0)
            result[part] = sums / self.clusters.sizes[drawn[part], None]
        return result
