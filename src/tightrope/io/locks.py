"""The operating system's lock on a file: a process that ends lets go of it, however it ends."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import IO, Any

from tightrope.base.errors import DataError

if sys.platform == "win32":
    import msvcrt

    def acquire(file: IO[Any]) -> None:
        """Take the lock on an open file; ``BlockingIOError`` where another process has it."""
        try:
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        except PermissionError as error:  # what it raises where another process has it
            raise BlockingIOError(error.errno, error.strerror) from error

else:
    import fcntl

    def acquire(file: IO[Any]) -> None:
        """Take the lock on an open file; ``BlockingIOError`` where another process has it."""
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextmanager
def lock_of(target: Path) -> Iterator[None]:
    """Be the one process that changes a file; the lock is on a hidden file beside it, which stays.

    The file itself is replaced when it is written, and a lock on it would be left on the old one.
    """
    real = Path(os.path.realpath(target))
    beside = real.with_name(f".{real.name}.lock")
    with ExitStack() as stack:
        try:
            file = stack.enter_context(open(beside, "ab"))
            acquire(file)
        except BlockingIOError as error:
            raise DataError(f"another process is changing {target}; wait for it, or end it") from error
        except OSError as error:
            raise DataError(f"{target} cannot be changed by one process alone: {error}") from error
        yield
