"""Student's t bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.warnings import Caution, caution
from tightrope.bounds.base import BootstrapBound, Need
from tightrope.functional.engines import Replicates


@dataclass(frozen=True)
class StudentT(BootstrapBound):
    """θ̂ − t_{1−δ, n−1} · se, with the jackknife's standard error (for a mean: s/√n).

    Right for normal values; under skew its error is of the order of skewness/√n. The quantile is one-sided because the
    bound is: a two-sided interval uses δ/2 on each side.
    """

    name: ClassVar[str] = "t"
    needs: ClassVar[frozenset[Need]] = frozenset({"leave_one_out"})
    preference: ClassVar[int] = 4

    def lower(self, replicates: Replicates, *, delta: float) -> tuple[float, list[Caution]]:
        """The lower bound."""
        from scipy.special import stdtrit

        others = replicates.leave_one_out
        assert others is not None
        n = len(others)
        if np.isnan(others).any():
            return -np.inf, [caution("one-episode", "without one episode, or cluster, the estimate is undefined")]
        error = np.sqrt((n - 1) / n * np.square(others - others.mean()).sum())
        return float(replicates.estimate - stdtrit(n - 1, 1 - delta) * error), []
