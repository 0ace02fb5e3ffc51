"""The one-sided mixture betting bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tightrope.dataset import Array
from tightrope.statistic import TrajectoryValues

_BETS: Array = np.concatenate([np.geomspace(1e-4, 0.5, 24), 1.0 - np.geomspace(0.4, 0.01, 8)])
_PIECE = 1 << 15


@dataclass(frozen=True)
class Betting:
    """The largest m with Σ_j w_j Π_i (1 − c_j + c_j X_i / m) ≥ 1/δ, for values ≥ 0; needs no ceiling.

    Against any mean m the left side is the wealth of a gambler with fixed bets c_j in [0, 1), a non-negative
    supermartingale when E[X] ≤ m, so by Ville's inequality it reaches 1/δ with probability at most δ, at every n at
    once. The bets are fixed beforehand and mixed evenly. Waudby-Smith and Ramdas (2024), "Estimating means of bounded
    random variables by betting".
    """

    name: ClassVar[str] = "betting"

    def lower(self, sample: TrajectoryValues, *, delta: float, seed: int) -> float:
        """The lower bound on the mean."""
        values = sample.values
        mean = float(values.mean())
        if mean <= 0:
            return 0.0
        target = np.log(1 / delta) + np.log(len(_BETS))
        relative, counts = np.unique(values / mean, return_counts=True)
        counts = counts.astype(np.int64)

        def enough(m: float) -> bool:
            return bool(_log_wealth(relative / m, counts) >= target)

        # Wealth falls in m, is at most 1 at the sample mean (AM-GM), and grows without limit towards 0.
        low, high = 0.5, 1.0
        while not enough(low):
            low, high = low / 4, low
            if low < 1e-12:
                return 0.0
        while high - low > 1e-10 * high:
            middle = np.sqrt(low * high)
            low, high = (middle, high) if enough(middle) else (low, middle)
        return low * mean


def _log_wealth(ratio: Array, counts: npt.NDArray[np.int64]) -> float:
    """log Σ_j Π_i (1 + c_j (ratio_i − 1))."""
    logs = np.zeros(len(_BETS))
    for start in range(0, len(ratio), _PIECE):
        piece = slice(start, start + _PIECE)
        logs += np.log1p(_BETS[:, None] * (ratio[piece] - 1.0)) @ counts[piece]
    return float(np.logaddexp.reduce(logs))
