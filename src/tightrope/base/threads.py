"""Our own threads: parts of one job side by side, each with BLAS held to one thread; or the workers of a cluster."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar, copy_context
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np

from tightrope.base.blas import one_blas_thread
from tightrope.base.errors import CannotSendError

Item = TypeVar("Item")
Result = TypeVar("Result")

AHEAD = 2  # parts for each thread that may be begun before the first of them is taken
TOGETHER = 16  # parts of a pass that go to a worker at once
_allowed: ContextVar[int | None] = ContextVar("allowed", default=None)


@runtime_checkable
class Workers(Protocol):
    """Somebody else who takes parts of a job: an engine."""

    @property
    def parts(self) -> int:
        """How many run side by side."""
        ...

    def map(self, call: Any, ranges: Any) -> Iterator[Any]:
        """What the call returns for each, in their order."""
        ...


_workers: ContextVar[Workers | None] = ContextVar("workers", default=None)


def cores() -> int:
    """How many cores this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # only Linux says which
        return os.cpu_count() or 1


@contextmanager
def _setting(variable: ContextVar[Item], value: Item) -> Iterator[None]:
    """The variable has this value in what runs inside."""
    before = variable.set(value)
    try:
        yield
    finally:
        variable.reset(before)


def threads(count: int | None) -> AbstractContextManager[None]:
    """At most so many threads in what runs inside; None: one for each core."""
    return _setting(_allowed, count)


def passes_by(workers: Workers | None) -> AbstractContextManager[None]:
    """Passes over all episodes are made by these workers in what runs inside; None: by threads."""
    return _setting(_workers, workers)


def passed(call: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
    """What ``side_by_side`` gives, by the workers of a cluster where some were named and the call can travel."""
    workers = _workers.get()
    if workers is None:
        return side_by_side(call, items)
    known = list(items)
    some = [known[first : first + TOGETHER] for first in range(0, len(known), TOGETHER)]
    try:
        return chain.from_iterable(workers.map(_Several(call, dict(np.geterr())), some))
    except CannotSendError:
        return side_by_side(call, known)


@dataclass(frozen=True)
class _Several:
    """A call on several items, with NumPy's error settings as they were where it was begun."""

    call: Callable[[Any], Any]
    errors: dict[str, Any]

    @one_blas_thread
    def __call__(self, items: Iterable[Any]) -> list[Any]:
        with np.errstate(**self.errors):
            return [self.call(item) for item in items]


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
