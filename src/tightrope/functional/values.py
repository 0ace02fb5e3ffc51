"""Values of independent episodes, which exact bounds need: concentration inequalities are no functions of weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tightrope.base.dataset import Array, IntArray
from tightrope.base.folder import Scratch, parts


class SequentialValues(Protocol):
    """Values X of episodes, each fixed by the episode and by what was learned from earlier ones.

    V = origin + sign · E[X given the earlier ones], and X ≥ −C surely, with C ≥ 0 the length of a tether that whoever
    asks may choose anew for each block of episodes, from earlier blocks alone.
    """

    @property
    def origin(self) -> float:
        """The value that X = 0 stands for."""
        ...

    @property
    def sign(self) -> float:
        """+1: a lower bound on E[X] is a lower bound on V; −1: an upper one."""
        ...

    @property
    def values(self) -> Array:
        """One value per episode, (n,), for the estimate and its standard error alone."""
        ...

    @property
    def estimate(self) -> float:
        """Their mean, mapped back to the value's scale."""
        ...

    @property
    def scratch(self) -> Scratch:
        """Room for more numbers of each episode."""
        ...

    def unit(self, past: IntArray) -> float:
        """What the lengths of tethers are multiples of, from these episodes; 0: no tether makes a difference."""
        ...

    def along(self, order: IntArray, edges: Sequence[int], tethers: Array) -> Array:
        """X of the episodes in this order under each tether, (n, tethers).

        Those from edges[b] to edges[b + 1] are told by what was learned from those before edges[b] alone; edges begin
        with 0 and end with n.
        """
        ...


@dataclass(frozen=True, eq=False)
class TrajectoryValues:
    """Independent values X ≥ 0, one per episode, with V = origin + sign · E[X]; nothing is learned on the way."""

    values: Array  # (n,), all ≥ 0
    origin: float
    sign: float
    ceiling: float | None  # the largest value X can take, where max_ratio was declared
    missing: str = ""  # why there is no ceiling
    episodes: IntArray | None = None  # whose values they are, where something was learned from the others; None: all
    scratch: Scratch = field(default_factory=Scratch)  # room for more numbers of each episode

    @property
    def estimate(self) -> float:
        """The mean, mapped back to the value's scale."""
        return self.origin + self.sign * float(self.values.mean())

    def unit(self, past: IntArray) -> float:
        """Values ≥ 0 need no tether."""
        return 0.0

    def along(self, order: IntArray, edges: Sequence[int], tethers: Array) -> Array:
        """The values in this order."""
        table: Array = self.scratch.empty((len(order), len(tethers)))
        for part in parts(len(order)):
            table[part] = self.values[order[part], None]
        return table
