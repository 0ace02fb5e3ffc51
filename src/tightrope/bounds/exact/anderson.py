"""Anderson's bound with the Dvoretzky–Kiefer–Wolfowitz band."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.folder import parts
from tightrope.bounds.base import ExactBound
from tightrope.functional.values import TrajectoryValues


@dataclass(frozen=True)
class Anderson(ExactBound):
    """∫ max(0, 1 − F̂(x) − ε) dx over x ≥ 0, with ε = √(ln(1/δ) / 2n).

    The one-sided band holds for δ ≤ 1/2 (Massart 1990). It gives up the top ε of the sample, so it needs no ceiling.
    Anderson (1969).
    """

    name: ClassVar[str] = "anderson"
    preference: ClassVar[int] = 3

    def lower(self, sample: TrajectoryValues, *, delta: float, seed: int) -> float:
        """The lower bound on the mean."""
        n = len(sample.values)
        ordered = sample.scratch.taken(sample.values, sample.scratch.numbered(n))
        ordered.sort()
        band, total = np.sqrt(np.log(1 / delta) / (2 * n)), 0.0
        for part in parts(n):
            survival = 1.0 - np.arange(part.start, part.stop) / n - band  # just below the i-th smallest value
            before = ordered[part.start - 1] if part.start else 0.0
            total += float(np.diff(ordered[part], prepend=before) @ np.maximum(survival, 0.0))
        return total
