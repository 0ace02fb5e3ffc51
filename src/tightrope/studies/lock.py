"""One run at a time in a folder of results, from before its configuration is read until its tables are written.

The lock is the operating system's, on a file that stays: a process that ends lets go of it, however it ends, so what a
killed run leaves behind stops nobody.
"""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType
from typing import Self

from tightrope.base.errors import StudyError
from tightrope.io.locks import acquire

LOCK = "lock"


class FolderLock:
    """A lock that one process holds; a second process gets an error at once."""

    def __init__(self, folder: Path):
        self.path = folder / LOCK

    def __enter__(self) -> Self:
        try:
            self._file = open(self.path, "ab")
        except OSError as error:
            raise StudyError(f"{self.path} cannot be written, so nothing was run: {error}") from error
        try:
            acquire(self._file)
        except BlockingIOError as error:
            self._file.close()
            raise StudyError(f"another run is writing to {self.path.parent}; wait for it, or end it") from error
        except OSError as error:
            self._file.close()
            raise StudyError(
                f"{self.path} cannot be locked ({error}), so two runs could mix their results there; give a folder on "
                "another disk"
            ) from error
        return self

    def check(self) -> None:
        """Refuse to go on if the folder was deleted in the meantime, and perhaps made again for another run."""
        try:
            same = os.path.samestat(os.fstat(self._file.fileno()), os.stat(self.path))
        except OSError:
            same = False
        if not same:
            raise StudyError(f"{self.path.parent} was deleted while the study ran; its results were not written")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
