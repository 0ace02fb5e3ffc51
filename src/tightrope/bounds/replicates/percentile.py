"""The percentile bootstrap, the paper's Algorithm 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tightrope.base.warnings import Caution
from tightrope.bounds.base import Need, lowest, rank
from tightrope.functional.engines import Replicates


@dataclass(frozen=True)
class Percentile:
    """The ⌊δB⌋-th smallest replicate.

    Blind to bias and slow to follow skew: error δ + O(1/√n). Needs finite variance. Efron (1979); Algorithm 1 of
    Bootstrapping with Models.
    """

    name: ClassVar[str] = "percentile"
    needs: ClassVar[frozenset[Need]] = frozenset({"values"})
    second_order: ClassVar[bool] = False

    def lower(self, replicates: Replicates, *, delta: float) -> tuple[float, list[Caution]]:
        """The lower bound."""
        return lowest(replicates.values, rank(delta, len(replicates.values))), []
