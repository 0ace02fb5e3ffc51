"""The collapsed upper tail inequality of Thomas, Theocharous and Ghavamzadeh (2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.errors import BoundError
from tightrope.bounds.base import ExactBound
from tightrope.bounds.exact.empirical_bernstein import bernstein
from tightrope.functional.values import TrajectoryValues

AT_A_TIME = 1 << 17  # values, a megabyte: thresholds are tried in groups


@dataclass(frozen=True)
class CUT(ExactBound):
    """Empirical Bernstein on min(X, c), for values ≥ 0 with a long upper tail; needs no ceiling.

    The threshold c is the best for a random 1/20 of the data and the bound is computed on the rest: chosen on the same
    data, it would be void. "High-Confidence Off-Policy Evaluation" (AAAI 2015), Theorem 1.
    """

    name: ClassVar[str] = "cut"
    uses_seed: ClassVar[bool] = True
    preference: ClassVar[int] = 2

    share: float = 0.05  # of the data, for the threshold

    def lower(self, sample: TrajectoryValues, *, delta: float, seed: int) -> float:
        """The lower bound on the mean."""
        n = len(sample.values)
        first = max(2, round(self.share * n))
        if n - first < 2:
            raise BoundError(
                f"cut splits the data to choose its threshold and needs at least 4 episodes; the logs hold {n}"
            )
        shuffled = sample.scratch.taken(sample.values, sample.scratch.permutation(n, np.random.default_rng(seed)))
        look, rest = shuffled[:first], shuffled[first:]
        threshold = _threshold(look, delta, len(rest))
        return max(0.0, float(bernstein(np.minimum(rest, threshold), threshold, delta, len(rest))))


def _threshold(look: Array, delta: float, n: int) -> float:
    """The c whose bound at size n would be highest, judging from a first look."""
    largest = float(look.max())
    if largest <= 0:
        return 1.0
    candidates = largest * np.geomspace(1e-4, 1.0, 200)
    pieces = np.array_split(candidates, max(1, candidates.size * len(look) // AT_A_TIME))
    bounds = [bernstein(np.minimum(look, piece[:, None]), piece, delta, n) for piece in pieces]
    return float(candidates[int(np.argmax(np.concatenate(bounds)))])
