"""Hold BLAS to one thread during our matrix products.

Our products are of tiles that fit into a cache. A BLAS that spreads each of them over all cores gains little on a
quiet machine, and waits for the slowest core on a busy one: several times slower beside one other process. One thread
also gives the same bits whatever the number of cores.
"""

from __future__ import annotations

from contextlib import ContextDecorator
from functools import cache
from threading import Lock, local
from types import TracebackType
from typing import Any

Debt = tuple[Any, int]  # a library, and how many threads it had


class _Held(local):
    """The state of one thread."""

    def __init__(self) -> None:
        self.depth = 0
        self.debts: list[Debt] = []


class _OneBlasThread(ContextDecorator):
    """A context that may be entered many times and by many threads.

    For most libraries the number is one for the process: the first thread inside lowers it, the last one to leave
    raises it again. If each restored what it saw on entry, two at a time could leave it at one for ever. Libraries that
    keep a number per thread (those on OpenMP, MKL) get back from each thread what that thread took.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._inside = 0
        self._shared: list[Debt] = []
        self._held = _Held()

    def __enter__(self) -> None:
        self._held.depth += 1
        if self._held.depth > 1:
            return
        with self._lock:
            self._inside += 1
            for library in _libraries():
                number = library.num_threads or 1
                if number > 1:
                    (self._shared if _is_shared(library) else self._held.debts).append((library, number))
                    _set(library, 1)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.depth -= 1
        if self._held.depth:
            return
        with self._lock:
            self._inside -= 1
            for debts in (self._held.debts, [] if self._inside else self._shared):
                while debts:
                    _set(*debts.pop())


one_blas_thread = _OneBlasThread()  # a decorator, or for ``with``


@cache
def _libraries() -> list[Any]:
    """The BLAS libraries that are loaded, NumPy's among them; finding them takes a while, setting them does not."""
    from threadpoolctl import ThreadpoolController

    return list(ThreadpoolController().select(user_api="blas").lib_controllers)


def _is_shared(library: Any) -> bool:
    """Whether the number of threads is one for the process."""
    return bool(library.internal_api == "openblas" and library.threading_layer != "openmp")


def _set(library: Any, number: int) -> None:
    """Set it, whichever thread set it before: threadpoolctl from 3.8 on would otherwise obey only that thread."""
    release = getattr(library, "clear_controlling_thread", lambda force: None)
    release(force=True)
    library.set_num_threads(number)
    release(force=True)
