"""The studentized (bootstrap-t) interval."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.errors import BoundError
from tightrope.base.warnings import Caution
from tightrope.bounds.base import Need, highest, lowest, rank
from tightrope.functional.engines import Replicates

NO_SPREAD = 1e-6  # of the estimate's standard error


@dataclass(frozen=True)
class Studentized:
    """θ̂ − q·se, with q the ⌊δB⌋-th largest of (θ*_b − θ̂)/se*_b and standard errors by the infinitesimal jackknife.

    Second-order accurate: error δ + O(1/n) for smooth statistics. Wild where a replicate's own standard error is near
    zero. Hall (1988).
    """

    name: ClassVar[str] = "studentized"
    needs: ClassVar[frozenset[Need]] = frozenset({"values", "standard_errors"})
    second_order: ClassVar[bool] = True

    def lower(self, replicates: Replicates, *, delta: float) -> tuple[float, list[Caution]]:
        """The lower bound."""
        if replicates.standard_errors is None or replicates.standard_error is None:
            raise BoundError(
                "studentized needs a standard error of every replicate, which this estimator does not have (a model "
                "refitted per replicate, or one without derivatives); use percentile or bca"
            )
        position = rank(delta, len(replicates.values))
        if replicates.standard_error <= 1e-13 * abs(replicates.estimate):  # no scale to studentize by
            return min(replicates.estimate, lowest(replicates.values, position)), []
        off, tiny = replicates.values - replicates.estimate, NO_SPREAD * replicates.standard_error
        spread = replicates.standard_errors > tiny
        pivots = np.full(len(off), np.nan)
        pivots[spread] = off[spread] / replicates.standard_errors[spread]
        # A replicate without spread of its own is infinitely far off, on its side; on no side it counts as the worst.
        lone = ~spread & (np.abs(off) > tiny)
        pivots[lone] = np.copysign(np.inf, off[lone])
        return replicates.estimate - highest(pivots, position) * replicates.standard_error, []
