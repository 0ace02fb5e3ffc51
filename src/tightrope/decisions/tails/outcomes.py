"""What the distribution of the candidate's return is learned from: one return and one importance ratio an episode."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.errors import BoundError
from tightrope.base.problem import Problem
from tightrope.estimators.importance import check_ratio_size, missing_range


@dataclass(frozen=True, eq=False)
class Outcomes:
    """Returns G and final ratios ρ of independent episodes: E[ρ h(G)] is the candidate's E[h(G)], or less for h ≥ 0.

    It is less where the candidate does what is never logged. A lower bound on the mean of ρ h(G) holds all the same.
    """

    returns: Array  # (n,)
    ratios: Array  # (n,)
    cut: BoolArray  # (n,): the logger stopped early, and what followed is unknown
    low: float  # of the declared range of the return; −∞ where there is none
    high: float

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
        return cls(data.returns, np.exp(logs - largest), short, low, high)

    def __len__(self) -> int:
        return len(self.returns)

    def take(self, index: IntArray) -> Outcomes:
        """Some of the episodes."""
        return Outcomes(self.returns[index], self.ratios[index], self.cut[index], self.low, self.high)

    def weighed(self, values: Array) -> Array:
        """ρ h for values h ≥ 0, (n,); an episode that was cut off counts as the least, 0, whatever followed."""
        result: Array = np.where(self.cut, 0.0, self.ratios * values)
        return result

    def effective(self, event: BoolArray) -> float:
        """How many episodes of the candidate itself would say as much about an event.

        The smaller of (Σρ)² / Σρ² over the episodes of the event, and of its share of that over all.
        """

        def size(ratios: Array) -> float:
            return float(ratios.sum() ** 2 / squares) if (squares := float(np.square(ratios).sum())) > 0 else 0.0

        part = self.ratios[event]
        return min(size(part), size(self.ratios) * float(part.sum() / self.ratios.sum()))

    def steps(self) -> tuple[Array, Array]:
        """The distinct returns, rising, and the self-normalised share of the ratios at or below each."""
        values, place = np.unique(self.returns, return_inverse=True)
        mass = np.bincount(place, weights=self.ratios)
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
    if data.n_dropped:
        raise BoundError(
            "nothing exact can be said when episodes were left out for being cut off: which ones were may depend on "
            "how they went. Declare a shorter horizon, or ask for an approximate answer"
        )
    if not data.horizon_declared and not (data.terminated.all() and not data.any_cut):
        raise BoundError(f"an exact answer needs what is missing: {missing_range(data, 'low') or 'horizon'}")
