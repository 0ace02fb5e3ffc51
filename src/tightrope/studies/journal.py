"""The finished trials, safe on disk: one line each, with a checksum, written to the disk at once.

A line is the CRC-32 of the text, a space, and the text. Whatever a kill leaves half written is cut off on opening; a
line that does not check is left out, and its trial is run again.
"""

from __future__ import annotations

import json
import os
import zlib
from contextlib import suppress
from dataclasses import astuple
from pathlib import Path
from types import TracebackType
from typing import Self

from tightrope.base.errors import StudyError
from tightrope.studies.trial import Outcome, Row, Trial


class Journal:
    """Open for appending, by one process at a time: whoever opens it holds the folder's lock."""

    def __init__(self, path: Path):
        self.path = path
        try:
            self._file = open(path, "a+b")  # noqa: SIM115 - closed by __exit__
        except OSError as error:
            raise StudyError(f"{path} cannot be written: {error}") from error
        self.done: dict[Trial, Outcome] = {}
        self.damaged = 0  # lines that did not check, a torn last one among them
        self._read()

    def append(self, trial: Trial, outcome: Outcome) -> None:
        """Append a trial; it is safe on disk when this returns."""
        text = json.dumps([*trial, outcome.cpu_seconds, [astuple(row) for row in outcome.rows]])
        line = text.encode()
        try:
            self._file.write(b"%08x %s\n" % (zlib.crc32(line), line))
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            raise StudyError(
                f"{self.path} can no longer be written: {error}. {len(self.done)} trials are safe; make room and give "
                "the same command again"
            ) from error
        self.done[trial] = outcome

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with suppress(OSError):  # what could not be flushed was reported by append
            self._file.close()

    def _read(self) -> None:
        self._file.seek(0)
        content = self._file.read()
        whole, _, torn = content.rpartition(b"\n")
        for line in whole.split(b"\n") if whole else []:
            record = _parse(line)
            if record is None:
                self.damaged += 1
            else:
                self.done[record[0]] = record[1]
        if torn:
            self.damaged += 1
            self._file.truncate(len(content) - len(torn))


def _parse(line: bytes) -> tuple[Trial, Outcome] | None:
    check, _, text = line.partition(b" ")
    if check != b"%08x" % zlib.crc32(text):
        return None
    n, number, cpu_seconds, rows = json.loads(text)
    return Trial(n, number), Outcome(tuple(Row(*row) for row in rows), cpu_seconds)
