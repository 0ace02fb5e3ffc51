"""Episodes that may depend on each other: clusters of them, of which each counts once, whatever its size.

With clusters the value is that of an episode drawn from a cluster drawn at random: the mean over clusters of each
cluster's mean. Where all clusters have equally many episodes, or their size has nothing to do with how they go, it is
the mean over episodes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.arrays import first_places, rises, steps_of
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError, DataError
from tightrope.base.folder import Scratch, distinct, parts, ranked, wide_parts
from tightrope.base.warnings import Caution, coded

FEWEST = 10  # clusters of a stratum


def extent(data: TrajectoryDataset) -> str:
    """How much was logged, in words."""
    words = counted(data.n_trajectories, n_clusters(data))
    return f"strata, {words}" if data.clusters is None and data.strata is not None else words


def counted(episodes: int, clusters: int | None) -> str:
    """So much, in words: "12 clusters, 340 episodes"."""
    words = f"{episodes:,} episodes"
    return words if clusters is None else f"{clusters:,} clusters, {words}"


def unit(clusters: int | None) -> str:
    """What the independent draws are, in words, one of them without the s."""
    return "episodes" if clusters is None else "clusters"


def growth(clusters: int | None) -> str:
    """What approximations need, in words: more episodes of the same clusters would not do."""
    return "the logs grow" if clusters is None else "the number of clusters grows"


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which cluster each of n episodes belongs to; clusters of one stratum stand together."""

    code: IntArray  # (n,)
    sizes: IntArray  # (clusters,)
    strata: IntArray  # (strata,): how many clusters each holds
    scratch: Scratch = field(default_factory=Scratch)  # room for more numbers of each

    @classmethod
    def of(cls, data: TrajectoryDataset) -> Clusters | None:
        """Those of the logs; with strata alone every episode is a cluster. None where there are neither."""
        if data.clusters is None and data.strata is None:
            return None
        room = data.scratch
        names = room.numbered(data.n_trajectories) if data.clusters is None else data.clusters
        labels, code = ranked(names, room)
        sizes = room.full(len(labels), 0, np.int64)
        for part in parts(len(code)):
            np.add.at(sizes, code[part], 1)
        if data.strata is None:
            return cls(code, sizes, np.array([len(sizes)]), room)
        first = first_places(code, len(labels), room)
        _, stratum = np.unique(data.strata[first], return_inverse=True)
        order = np.argsort(stratum, kind="stable")
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        counts = np.bincount(stratum)
        if counts.min() < FEWEST:
            few = data.strata[first][order][np.flatnonzero(counts[stratum[order]] < FEWEST)[0]]
            raise DataError(
                f"every stratum must hold at least {FEWEST} clusters, because drawing k of k shows (k - 1)/k of how "
                f"much they differ; stratum {few} holds {counts.min()}. Join it with another one, or leave strata out"
            )
        return cls(room.taken(place, code), room.taken(sizes, order), counts, room)

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.sizes)

    def means(self, values: npt.NDArray[Any]) -> Array:
        """The mean of each cluster: (n, ...) to (clusters, ...)."""
        total = self.scratch.full((self.n, *values.shape[1:]), 0.0)
        for part in parts(len(values)):
            np.add.at(total, self.code[part], values[part])
        total /= self.sizes.reshape(-1, *[1] * (values.ndim - 1))
        return total

    def log_means(self, logs: Array) -> Array:
        """The logarithm of each cluster's mean of exp(logs), (n,) to (clusters,).

        Of importance ratios these means average to 1, unless actions decide how many episodes a cluster has; then no
        bound by cluster holds.
        """
        largest = float(logs.max())
        if not np.isfinite(largest):
            return np.full(self.n, largest)
        with np.errstate(divide="ignore"):
            result: Array = np.log(self.means(np.exp(logs - largest))) + largest
        return result

    def check_two(self) -> None:
        """Refuse what resampling cannot say anything about."""
        if self.n < 2:
            raise BoundError("a bootstrap of clusters needs at least two of them; the logs hold 1")

    def check_alike(self) -> None:
        """Refuse strata where independent draws of one kind are needed."""
        if len(self.strata) > 1:
            raise BoundError(
                "an exact bound takes clusters that were all drawn alike; with strata, whose numbers of clusters are "
                "fixed, use a bootstrap method (no strict), or leave strata out where they were not fixed beforehand"
            )

    def take(self, chosen: IntArray) -> Clusters:
        """Some of them, in this order; their episodes come one cluster after the other, as ``episodes`` gives them."""
        sizes = self.sizes[chosen]
        return Clusters(np.repeat(np.arange(len(chosen)), sizes), sizes, np.array([len(chosen)]))

    def expanded(self, weights: Array) -> Array:
        """Weights of clusters (..., clusters) as weights of their episodes, (..., n)."""
        shares: Array = self.scratch.empty((*weights.shape[:-1], len(self.code)))
        for part in wide_parts(len(self.code)):
            code = self.code[part]
            shares[..., part] = weights[..., code] / self.sizes[code]
        return shares

    def together(self, values: Array, weights: Array) -> Array:
        """The mean of each episode's cluster: values (rows, ..., n), weights (rows, n), alike where all are 0."""
        first = np.append(0, np.cumsum(self.sizes)[:-1])
        drawn = np.add.reduceat(weights[:, self._by_cluster], first, axis=1)[:, self.code] > 0
        shares = np.where(drawn, weights, 1.0).reshape(len(weights), *[1] * (values.ndim - 2), -1)
        total, mass = (np.add.reduceat(one[..., self._by_cluster], first, axis=-1) for one in (shares * values, shares))
        result: Array = (total / mass)[..., self.code]
        return result

    def episodes(self, clusters: IntArray) -> IntArray:
        """The episodes of these clusters, one cluster after the other."""
        result: IntArray = self.scratch.empty(int(self.sizes[clusters].sum()), np.int64)
        done = 0
        for part in wide_parts(len(clusters)):
            some = self._by_cluster[steps_of(self._edges, clusters[part])]
            result[done : done + len(some)] = some
            done += len(some)
        return result

    @cached_property
    def _edges(self) -> IntArray:
        """Where each cluster's episodes begin where one cluster comes after the other, and the end."""
        result: IntArray = self.scratch.empty(self.n + 1, np.int64)
        result[0] = 0
        np.cumsum(self.sizes, out=result[1:])
        return result

    @cached_property
    def _by_cluster(self) -> IntArray:
        """All episodes, one cluster after the other, (n,)."""
        return self.scratch.copy(np.argsort(self.code, kind="stable"))


def by_arrival(data: TrajectoryDataset, clusters: Clusters | None) -> IntArray:
    """The independent draws, episodes or clusters, in the order in which they came.

    Whoever splits them at random draws places in this order, never ranks of names: names may rise with what episodes
    earn, and a fixed seed would then put the same kind on the same side each time.
    """
    assert data.arrival is not None
    if clusters is None:
        came = data.arrival
        return data.scratch.numbered(len(came)) if rises(came) else np.argsort(came, kind="stable")
    first = np.full(clusters.n, np.iinfo(np.int64).max)
    np.minimum.at(first, clusters.code, data.arrival)
    return np.argsort(first, kind="stable")


def fold_of(data: TrajectoryDataset, folds: int) -> IntArray:
    """Which fold each episode belongs to, (n,): by its identity, or its cluster's, so that repeats stay together."""
    names = data.episode_ids if data.clusters is None else data.clusters
    assert names is not None
    result: IntArray = data.scratch.empty(len(names), np.int64)
    place = data.scratch.numbered(len(names)) if rises(names, strictly=True) else ranked(names, data.scratch)[1]
    for part in parts(len(names)):
        result[part] = place[part] % folds
    return result


def forgotten(data: TrajectoryDataset) -> tuple[Caution, ...]:
    """What says that episodes depend on each other beyond the clusters that were named."""
    return coded(data.notes, "group-column", "serial")


def n_clusters(data: TrajectoryDataset) -> int | None:
    """How many clusters the logs name; None where they name none."""
    return None if data.clusters is None else len(distinct(data.clusters, data.scratch))


def n_independent(data: TrajectoryDataset) -> int:
    """How many independent draws the logs hold: episodes, or clusters of them."""
    return n_clusters(data) or data.n_trajectories
