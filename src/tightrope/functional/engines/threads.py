"""Threads as an engine, and how far they have come."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from tightrope.base.cluster import Sums
from tightrope.base.threads import side_by_side
from tightrope.functional.engines.base import tree_sum

Result = TypeVar("Result")
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Threads:
    """The engine of one machine."""

    parts: int  # threads

    def add(self, call: Callable[[range], Sums], ranges: Sequence[range]) -> Sums:
        """The sum over all ranges."""
        return tree_sum(self.map(call, ranges))

    def map(self, call: Callable[[range], Result], ranges: Sequence[range]) -> Iterator[Result]:
        """The results in order."""
        return side_by_side(call, ranges, self.parts)


class Meter:
    """Adds up what the threads have done, and reports the share."""

    def __init__(self, whole: float, progress: Progress | None) -> None:
        self.whole, self.progress, self.done, self._lock = whole, progress, 0.0, Lock()

    def __reduce__(self) -> tuple[type[Meter], tuple[float, None]]:
        return Meter, (self.whole, None)  # another process has nobody to tell

    def add(self, amount: float) -> None:
        """So much more is done."""
        if self.progress is None:
            return
        with self._lock:
            self.done += amount
            self.progress(min(1.0, self.done / self.whole))
