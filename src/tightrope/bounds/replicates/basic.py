"""The basic (reverse percentile) bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tightrope.base.warnings import Caution
from tightrope.bounds.base import Need, highest, rank
from tightrope.functional.engines import Replicates


@dataclass(frozen=True)
class Basic:
    """2θ̂ minus the ⌊δB⌋-th largest replicate.

    Corrects a shift of the replicates against the estimate; worse than percentile under skew. Davison and Hinkley
    (1997), section 5.2.
    """

    name: ClassVar[str] = "basic"
    needs: ClassVar[frozenset[Need]] = frozenset({"values"})
    second_order: ClassVar[bool] = False

    def lower(self, replicates: Replicates, *, delta: float) -> tuple[float, list[Caution]]:
        """The lower bound."""
        position = rank(delta, len(replicates.values))
        return 2 * replicates.estimate - highest(replicates.values, position), []
