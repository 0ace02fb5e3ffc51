"""Compilation by numba, cached on disk between runs where possible.

Where nothing can be written (a read-only home and package folder), functions are compiled in every process. A cache
that cannot be read (cut short by a full disk or a kill, or from another version) is replaced.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

from numba import njit
from numba.core.caching import FunctionCache


class _ForgivingCache(FunctionCache):  # type: ignore[misc]  # numba has no types
    """numba's own cache, except that a problem with its files costs only a compilation."""

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # whatever unpickling half a file raises
            with suppress(Exception):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with suppress(Exception):  # no room, no right to write
            super().save_overload(sig, data)


def compiled(function: Callable[..., Any] | None = None, **options: Any) -> Any:
    """The function compiled on its first call, from the cache if there is one; ``options`` are numba's.

    It holds no lock of Python's while it runs, so that threads run beside each other.
    """
    if function is None:
        return partial(compiled, **options)
    dispatcher = njit(nogil=True, **options)(function)
    with suppress(RuntimeError, OSError):  # there is no place for a cache
        dispatcher._cache = _ForgivingCache(dispatcher.py_func)
    return dispatcher
