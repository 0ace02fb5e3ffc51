"""The one-sided betting bound with a fixed mixture of bets."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array
from tightrope.bounds.base import ExactBound
from tightrope.functional.values import TrajectoryValues

_BETS: Array = np.concatenate([np.geomspace(1e-4, 0.5, 24), 1.0 - np.geomspace(0.4, 0.01, 8)])
_PIECE = 1 << 12  # values at a time: with all bets a megabyte
_LEAST = 1e-12  # of the sample's mean: a bound below it is 0
_LOST = 40.0  # a bet whose log-wealth lies this far below the target adds less than rounding
_STEPS, _CLOSE = 100, 1e-10  # of Newton's method: far more than it takes, and how close it comes


@dataclass(frozen=True)
class BettingMixture(ExactBound):
    """The largest m with Σ_j w_j Π_i (1 − c_j + c_j X_i / m) ≥ 1/δ, for values ≥ 0; needs no ceiling.

    Against any mean m the left side is the wealth of a gambler with fixed bets c_j in [0, 1), a non-negative
    supermartingale when E[X] ≤ m, so by Ville's inequality it reaches 1/δ with probability at most δ, at every n at
    once. The bets are fixed beforehand and mixed evenly. Waudby-Smith and Ramdas (2024), "Estimating means of bounded
    random variables by betting".
    """

    name: ClassVar[str] = "betting-mixture"

    def lower(self, sample: TrajectoryValues, *, delta: float, seed: int) -> float:
        """The lower bound on the mean."""
        values = sample.values
        mean = float(values.mean())
        if mean <= 0:
            return 0.0
        target = float(np.log(1 / delta) + np.log(len(_BETS)))
        relative, counts = np.unique(values / mean, return_counts=True)
        return mean * _largest_mean(relative, counts.astype(np.float64), target)


def _largest_mean(values: Array, counts: Array, target: float) -> float:
    """The largest m at which the log-wealth reaches the target, from below, for values of mean one.

    As a function of log m each product of the wealth is log-convex and falls, and so is and does their sum. Newton's
    steps from where the wealth is enough therefore never go past the place where it is just enough: whatever the
    number of steps, the result is a valid bound. So it is without bets that have long lost everything: leaving
    some out can only make the wealth smaller.
    """
    n = counts.sum()
    spread = np.sqrt(counts @ np.square(values - 1.0) / n)
    at, bets = -(spread * np.sqrt(2 * target / n) + target / n), _BETS  # about where it will be
    logs, slopes = _log_wealth(values * np.exp(-at), counts, bets)
    while (total := np.logaddexp.reduce(logs)) < target + _CLOSE:
        at *= 2
        if at < np.log(_LEAST):
            return 0.0
        logs, slopes = _log_wealth(values * np.exp(-at), counts, bets)
    for _ in range(_STEPS):
        step = (target + _CLOSE - total) / (np.exp(logs - total) @ slopes)
        if step < _CLOSE:
            break
        bets = bets[logs > target - _LOST]
        logs, slopes = _log_wealth(values * np.exp(-at - step), counts, bets)
        total = np.logaddexp.reduce(logs)
        if total < target:  # what rounding does must not make it invalid
            break
        at += step
    return float(np.exp(at))


def _log_wealth(ratio: Array, counts: Array, bets: Array) -> tuple[Array, Array]:
    """log Π_i (1 + c (ratio_i − 1)) for each bet c, and its derivative by log m, where ratio_i = X_i / m."""
    logs, inverse = np.zeros(len(bets)), np.zeros(len(bets))
    for start in range(0, len(ratio), _PIECE):
        piece = slice(start, start + _PIECE)
        gains = bets[:, None] * (ratio[piece] - 1.0)
        logs += np.log1p(gains) @ counts[piece]
        gains += 1.0
        inverse += np.reciprocal(gains, out=gains) @ counts[piece]
    return logs, (1.0 - bets) * inverse - counts.sum()
