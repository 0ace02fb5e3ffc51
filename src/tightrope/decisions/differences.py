"""The value of one policy less that of another, from the same episodes, for bounds that learn on the way."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tightrope.base.dataset import Array, IntArray
from tightrope.base.folder import Scratch
from tightrope.functional.values import SequentialValues


@dataclass(frozen=True, eq=False)
class DifferenceValues:
    """X + Y, where V₁ = o₁ + E[X] is counted from the floor and V₂ = o₂ − E[Y] from the ceiling: ``SequentialValues``.

    V₁ − V₂ = (o₁ − o₂) + E[X + Y given the earlier episodes]. Each part gets half of the tether: X ≥ −C/2 and
    Y ≥ −C/2, so X + Y ≥ −C. Both are told by the same earlier episodes, so whatever bounds the mean of such values
    bounds the difference, and what the two policies share cancels.
    """

    of: SequentialValues  # counted from the floor
    less: SequentialValues  # counted from the ceiling

    @property
    def origin(self) -> float:
        """The lowest that the difference can be."""
        return self.of.origin - self.less.origin

    @property
    def sign(self) -> float:
        """A lower bound on E[X + Y] is one on the difference."""
        return 1.0

    @property
    def values(self) -> Array:
        """For the estimate and its standard error."""
        return self.of.values + self.less.values

    @property
    def estimate(self) -> float:
        """The mean, mapped back."""
        return self.origin + float(self.values.mean())

    @property
    def scratch(self) -> Scratch:
        """As both have it."""
        return self.of.scratch

    def unit(self, past: IntArray) -> float:
        """What both have."""
        return self.of.unit(past) + self.less.unit(past)

    def along(self, order: IntArray, edges: Sequence[int], tethers: Array) -> Array:
        """Both, in this order, each on half of the tether."""
        return self.of.along(order, edges, tethers / 2) + self.less.along(order, edges, tethers / 2)
