"""Our own threads: parts of one job side by side, each with BLAS held to one thread."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass
from threading import Lock
from typing import TypeVar

from tightrope.base.blas import one_blas_thread
from tightrope.functional.engines.base import Sums, tree_sum

Item = TypeVar("Item")
Result = TypeVar("Result")
Progress = Callable[[float], None]


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says which
        return os.cpu_count() or 1


def side_by_side(call: Callable[[Item], Result], items: Sequence[Item], jobs: int) -> Iterator[Result]:
    """The results in the order of the items, from at most so many threads; the first error ends it.

    Threads take NumPy's error settings along, which belong to the thread that set them.
    """
    if jobs == 1 or len(items) < 2:
        yield from map(call, items)
        return

    @one_blas_thread
    def alone(item: Item) -> Result:
        return call(item)

    with ThreadPoolExecutor(min(jobs, len(items))) as pool:
        running = [pool.submit(copy_context().run, alone, item) for item in items]
        try:
            for future in running:
                yield future.result()
        finally:
            for future in running:
                future.cancel()


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
