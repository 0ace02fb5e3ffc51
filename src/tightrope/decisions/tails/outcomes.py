"""What the distribution of the candidate's return is learned from: one return and one importance ratio an episode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.base.clusters import Clusters, by_arrival
from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.errors import BoundError
from tightrope.base.problem import Problem
from tightrope.estimators.importance import check_ratio_size, missing_range


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Returns G and final ratios ρ of independent episodes: E[ρ h(G)] is the candidate's E[h(G)], or less for h ≥ 0.

    It is less where the candidate does what is never logged. A lower bound on the mean of ρ h(G) holds all the same.

    Where episodes come in clusters, the distribution is that of the return of a random episode of a random cluster.
    Then h̄ = (1/m) Σ ρ_i h(G_i) over the m episodes of a cluster is an independent draw with mean E[h(G)], h̄ ≥ 0, and
    h̄ rises with h: whatever is asked of ρ h(G) below holds of it. Self-normalised estimates give every episode the
    mass ρ/m.
    """

    returns: Array  # (n,)
    ratios: Array  # (n,)
    cut: BoolArray  # (n,): the logger stopped early, and what followed is unknown
    low: float  # of the declared range of the return; −∞ where there is none
    high: float
    clusters: Clusters | None = None  # whose episodes they are; None: every episode is an independent draw

    @classmethod
    def of(cls, problem: Problem, *, exact: bool) -> Outcomes:
        """The outcomes of the logs; refuses what would not be exact. Relative ratios do for an approximate answer."""
        data, ratios = problem.dataset, problem.ratios
        if exact:
            _check_exact(problem)
        largest = 0.0 if exact else ratios.log_max[-1]
        logs = np.concatenate([ratios.log(start, stop)[:, -1] for start, stop in data.chunks()])
        short = np.zeros(data.n_trajectories, bool) if data.cut is None else data.cut & (data.lengths < data.horizon)
        # A range of steps says nothing about returns where the number of steps is only the longest seen.
        known = data.horizon_declared or data.return_range is not None
        low, high = (data.value_range if known else None) or (-np.inf, np.inf)
        clusters = problem.clusters
        result = cls(data.returns, np.exp(logs - largest), short, low, high, clusters)
        return result.take(by_arrival(data, clusters)) if exact else result  # a part is looked at beforehand

    def __len__(self) -> int:
        """How many independent draws there are: episodes, or clusters of them."""
        return len(self.returns) if self.clusters is None else self.clusters.n

    def take(self, index: IntArray) -> Outcomes:
        """Some of the independent draws, in this order."""
        clusters = None if self.clusters is None else self.clusters.take(index)
        rows = index if self.clusters is None else self.clusters.episodes(index)
        return Outcomes(self.returns[rows], self.ratios[rows], self.cut[rows], self.low, self.high, clusters)

    def weighed(self, values: Array) -> Array:
        """ρ h for values h ≥ 0 of the episodes, or the mean over each cluster: one for each independent draw.

        An episode that was cut off counts as the least, 0, whatever followed.
        """
        result: Array = np.where(self.cut, 0.0, self.ratios * values)
        return result if self.clusters is None else self.clusters.means(result)

    @property
    def mass(self) -> Array:
        """What each episode counts in a self-normalised estimate: ρ, or its part of that in its cluster."""
        return self.ratios if self.clusters is None else self.ratios / self.clusters.sizes[self.clusters.code]

    @property
    def heaviest(self) -> float:
        """The most that one independent draw counts: of an episode, or of the mean over a cluster."""
        drawn = self.ratios if self.clusters is None else self.clusters.means(self.ratios)
        return float(drawn.max())

    def effective(self, event: BoolArray) -> float:
        """How many episodes of the candidate itself, or clusters of them, would say as much about an event.

        The smaller of (Σρ)² / Σρ² over the episodes of the event, and of its share of that over all; with clusters, of
        what each cluster holds of the event instead of ρ.
        """

        def size(mass: Array) -> float:
            drawn = mass if self.clusters is None else self.clusters.means(mass)
            return float(drawn.sum() ** 2 / squares) if (squares := float(np.square(drawn).sum())) > 0 else 0.0

        part = np.where(event, self.ratios, 0.0)
        share = float(self.mass[event].sum() / self.mass.sum())
        return min(size(part), size(self.ratios) * share)

    def steps(self) -> tuple[Array, Array]:
        """The distinct returns, rising, and the self-normalised share of the ratios at or below each."""
        values, place = np.unique(self.returns, return_inverse=True)
        mass = np.bincount(place, weights=self.mass)
        return values, np.cumsum(mass) / mass.sum()

    def quantiles(self, shares: Array) -> Array:
        """The self-normalised quantile at each share."""
        values, heights = self.steps()
        return values[np.minimum(np.searchsorted(heights, np.asarray(shares) - 1e-12), len(values) - 1)]


def tail_mean(values: Array, heights: Array, share: float) -> Array:
    """The mean of the lowest ``share`` of a distribution with these heights (..., K) at these values (K,)."""
    capped = np.minimum(heights, share)
    result: Array = np.diff(capped, axis=-1, prepend=0.0) @ values / share
    return result


def _check_exact(problem: Problem) -> None:
    data = problem.dataset
    check_ratio_size("is", problem.ratios)
    if problem.clusters is not None:
        problem.clusters.check_alike()
    if data.n_dropped:
        raise BoundError(
            "nothing exact can be said when episodes were left out for being cut off: which ones were may depend on "
            "how they went. Declare a shorter horizon, or ask for an approximate answer"
        )
    if not data.horizon_declared and not (data.terminated.all() and not data.any_cut):
        raise BoundError(f"an exact answer needs what is missing: {missing_range(data, 'low') or 'horizon'}")
