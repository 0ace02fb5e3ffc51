"""Our own threads: parts of one job side by side, each with BLAS held to one thread."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from contextvars import ContextVar, copy_context
from itertools import chain, islice
from typing import TypeVar

from tightrope.base.blas import one_blas_thread

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2  # parts for each thread that may be begun before the first of them is taken
_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says which
        return os.cpu_count() or 1


@contextmanager
def threads(count: int | None) -> Iterator[None]:
    """At most so many threads in what runs inside; None: one for each core."""
    before = _allowed.set(count)
    try:
        yield
    finally:
        _allowed.reset(before)


def side_by_side(call: Callable[[Item], Result], items: Iterable[Item], jobs: int | None = None) -> Iterator[Result]:
    """The results in the order of the items, from at most so many threads; the first error ends it.

    A few items ahead are begun, no more: neither they nor their results pile up. Threads take NumPy's error settings
    along, which belong to the thread that set them.
    """
    count, waiting = jobs or _allowed.get() or cores(), iter(items)
    few = list(islice(waiting, 2))
    if count == 1 or len(few) < 2:
        yield from map(call, chain(few, waiting))
        return

    @one_blas_thread
    def alone(item: Item) -> Result:
        _allowed.set(1)
        return call(item)

    with ThreadPoolExecutor(count) as pool:
        running: deque[Future[Result]] = deque()
        try:
            for item in chain(few, waiting):
                running.append(pool.submit(copy_context().run, alone, item))
                if len(running) > AHEAD * count:
                    yield running.popleft().result()
            while running:
                yield running.popleft().result()
        finally:
            for future in running:
                future.cancel()
