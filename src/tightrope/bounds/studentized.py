"""The studentized (bootstrap-t) interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.bounds.base import Need, highest, lowest, rank
from tightrope.engines import Replicates


@dataclass(frozen=True)
class Studentized:
    """θ̂ − q·se, with q the ⌊δB⌋-th largest of (θ*_b − θ̂)/se*_b and standard errors by the infinitesimal jackknife.

    Second-order accurate: error δ + O(1/n) for smooth statistics. Wild where a replicate's own standard error is near
    zero. Hall (1988).
    """

    name: ClassVar[str] = "studentized"
    needs: ClassVar[frozenset[Need]] = frozenset({"values", "standard_errors"})
    second_order: ClassVar[bool] = True

    def lower(self, replicates: Replicates, *, delta: float) -> tuple[float, list[str]]:
        """The lower bound."""
        assert replicates.standard_errors is not None
        assert replicates.standard_error is not None
        position = rank(delta, len(replicates.values))
        # All values alike up to rounding: there is no scale to studentize by.
        if replicates.standard_error <= 1e-14 * max(1.0, abs(replicates.estimate)):
            defined = np.isfinite(lowest(replicates.values, position))
            return replicates.estimate if defined else -np.inf, [
                "no-spread: all trajectories have the same influence, so the bootstrap sees no uncertainty"
            ]
        errors = np.where(replicates.standard_errors > 0, replicates.standard_errors, np.nan)
        pivots = (replicates.values - replicates.estimate) / errors
        return replicates.estimate - highest(pivots, position) * replicates.standard_error, []
