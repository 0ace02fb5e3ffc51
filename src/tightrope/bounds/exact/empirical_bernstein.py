"""Maurer and Pontil's empirical Bernstein bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array
from tightrope.bounds.base import ExactBound, ceiling
from tightrope.functional.values import TrajectoryValues


@dataclass(frozen=True)
class EmpiricalBernstein(ExactBound):
    """mean − √(2 s² ln(2/δ) / n) − 7 b ln(2/δ) / 3(n−1) for values in [0, b]; b must be declared.

    Adapts to the variance s². Maurer and Pontil (2009), Theorem 4; the 2 in the logarithm pays for the variance's own
    bound, so it stays in the one-sided form.
    """

    name: ClassVar[str] = "empirical-bernstein"
    preference: ClassVar[int] = 5

    def lower(self, sample: TrajectoryValues, *, delta: float, seed: int) -> float:
        """The lower bound on the mean."""
        return float(bernstein(sample.values, ceiling(sample, self.name), delta, len(sample.values)))


def bernstein(values: Array, top: float | Array, delta: float, n: int) -> Array:
    """The bound for n values of which each row (..., k) is a sample: all of them, or a first look at them."""
    if n < 2 or values.shape[-1] < 2:
        return np.full(values.shape[:-1], -np.inf)
    log = np.log(2 / delta)
    spread = np.sqrt(2 * values.var(axis=-1, ddof=1) * log / n)
    return np.asarray(values.mean(axis=-1) - spread - 7 * top * log / (3 * (n - 1)))
