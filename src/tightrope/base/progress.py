"""How far long work has come, told to whoever watches: work that is deep inside a call need not know who does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Watcher = Callable[[str, float], None]  # what is done, and the share of it

_watcher: ContextVar[Watcher | None] = ContextVar("watcher", default=None)
_share: ContextVar[tuple[float, float]] = ContextVar("share", default=(0.0, 1.0))  # where a part begins, and its size


@contextmanager
def watched(watcher: Watcher) -> Iterator[None]:
    """Tell this watcher of what is done inside."""
    before = _watcher.set(watcher)
    try:
        yield
    finally:
        _watcher.reset(before)


@contextmanager
def part(place: int, count: int) -> Iterator[None]:
    """What is done inside is one of so many parts."""
    first, size = _share.get()
    before = _share.set((first + size * place / count, size / count))
    try:
        yield
    finally:
        _share.reset(before)


def tell(what: str, share: float) -> None:
    """So much of it is done."""
    watcher = _watcher.get()
    if watcher is not None:
        first, size = _share.get()
        watcher(what, first + size * share)
