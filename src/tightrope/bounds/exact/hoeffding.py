"""Hoeffding's inequality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.bounds.base import ExactBound, ceiling
from tightrope.functional.values import TrajectoryValues


@dataclass(frozen=True)
class Hoeffding(ExactBound):
    """mean − b √(ln(1/δ) / 2n) for values in [0, b]; b must be declared. Hoeffding (1963)."""

    name: ClassVar[str] = "hoeffding"
    preference: ClassVar[int] = 6

    def lower(self, sample: TrajectoryValues, *, delta: float, seed: int) -> float:
        """The lower bound on the mean."""
        values = sample.values
        return float(values.mean() - ceiling(sample, self.name) * np.sqrt(np.log(1 / delta) / (2 * len(values))))
