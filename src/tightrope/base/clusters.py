"""Episodes that may depend on each other: clusters of them, of which each counts once, whatever its size.

With clusters the value is that of an episode drawn from a cluster drawn at random: the mean over clusters of each
cluster's mean. Where all clusters have equally many episodes, or their size has nothing to do with how they go, it is
the mean over episodes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError, DataError

FEWEST = 10  # clusters of a stratum


def refuse_clusters(data: TrajectoryDataset, what: str) -> None:
    """Refuse logs whose episodes depend on each other where every episode is taken for an independent draw."""
    if data.clusters is not None or data.strata is not None:
        raise BoundError(
            f"{what} takes every episode for an independent draw; got logs with clusters or strata. evaluate, "
            "lower_bound and constrained go by them; here give one episode of each cluster, and no cluster or strata"
        )


@dataclass(frozen=True, eq=False)
class Clusters:
    """Which cluster each of n episodes belongs to; clusters of one stratum stand together."""

    code: IntArray  # (n,)
    sizes: IntArray  # (clusters,)
    strata: IntArray  # (strata,): how many clusters each holds

    @classmethod
    def of(cls, data: TrajectoryDataset) -> Clusters | None:
        """Those of the logs; with strata alone every episode is a cluster. None where there are neither."""
        if data.clusters is None and data.strata is None:
            return None
        names = np.arange(data.n_trajectories) if data.clusters is None else data.clusters
        _, first, code, sizes = np.unique(names, return_index=True, return_inverse=True, return_counts=True)
        if data.strata is None:
            return cls(code.astype(np.int64), sizes, np.array([len(sizes)]))
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
        return cls(place[code], sizes[order], counts)

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.sizes)

    def means(self, values: npt.NDArray[Any]) -> Array:
        """The mean of each cluster: (n, ...) to (clusters, ...)."""
        total = np.zeros((self.n, *values.shape[1:]))
        np.add.at(total, self.code, values)
        return total / self.sizes.reshape(-1, *[1] * (values.ndim - 1))

    def expanded(self, weights: Array) -> Array:
        """Weights of clusters (..., clusters) as weights of their episodes, (..., n)."""
        shares: Array = (weights / self.sizes)[..., self.code]
        return shares

    def episodes(self, clusters: IntArray) -> IntArray:
        """The episodes of these clusters, one cluster after the other."""
        order = np.argsort(self.code, kind="stable")
        ends = np.cumsum(self.sizes)
        return np.concatenate(
            [np.zeros(0, dtype=np.int64), *(order[ends[c] - self.sizes[c] : ends[c]] for c in clusters)]
        )


def n_independent(data: TrajectoryDataset) -> int:
    """How many independent draws the logs hold: episodes, or clusters of them."""
    return data.n_trajectories if data.clusters is None else len(np.unique(data.clusters))
