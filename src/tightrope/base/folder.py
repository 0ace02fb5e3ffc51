"""A folder for arrays that are too large for the memory: one raw file each, mapped. It goes away with its last user."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.errors import DataError

PART = 1 << 18  # rows that are looked at together where all would not fit
STEP_BYTES = 120  # that models, and whatever looks at every action, keep for each step, about


def parts(n: int, size: int = PART) -> Iterator[slice]:
    """Consecutive rows, some at a time."""
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))


def distinct(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values that occur, rising."""
    known = np.unique(values[:0])
    for part in parts(len(values)):
        known = np.union1d(known, values[part])
    return known


class Folder:
    """Where arrays are kept as files, which the system pages in and out as it likes."""

    def __init__(self, place: str | os.PathLike[str] | None = None, memory: int = 0) -> None:
        self.memory = memory  # bytes that whoever uses these arrays may take
        try:
            self.path = Path(tempfile.mkdtemp(prefix="tightrope-", dir=place))
        except OSError as error:
            raise DataError(f"scratch must be a folder that can be written to; got {place!r}: {error}") from error
        self._numbers = count()
        weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def column(self) -> Column:
        """A new array that grows."""
        return Column(self)

    def empty(self, size: int) -> npt.NDArray[np.float64]:
        """An array (size,) of floats to be filled in."""
        path = self.new_path()
        with self.writing(), path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, 8 * size)  # a full disk is said now, not by a signal later
        return np.memmap(path, np.float64, "r+", shape=(size,))

    def new_path(self) -> Path:
        """A name that no other array has."""
        return self.path / f"{next(self._numbers)}.bin"

    @contextmanager
    def writing(self) -> Iterator[None]:
        """Say what a full disk is about, and what to do."""
        try:
            yield
        except OSError as error:
            raise DataError(
                f"logs too large for the memory are kept in {self.path}, where nothing more can be written: {error}. "
                "Give a folder with more room: read(scratch=...), --scratch"
            ) from error


class Column:
    """An array that grows by pieces; a wider type that comes later widens what is there."""

    def __init__(self, folder: Folder) -> None:
        self.folder, self.path, self.rows = folder, folder.new_path(), 0
        self.dtype: np.dtype[Any] | None = None
        self.width: tuple[int, ...] = ()

    def append(self, values: npt.NDArray[Any]) -> None:
        """Add rows at the end."""
        if self.dtype is None:
            self.dtype, self.width = values.dtype, values.shape[1:]
        if values.shape[1:] != self.width:
            raise DataError(f"all rows must have as many components; got {self.width} and {values.shape[1:]}")
        wide = np.promote_types(self.dtype, values.dtype)
        if wide != self.dtype:
            self._widen(wide)
        with self.folder.writing(), self.path.open("ab") as file:
            file.write(np.ascontiguousarray(values, dtype=self.dtype).data.cast("B"))
        self.rows += len(values)

    def array(self) -> npt.NDArray[Any]:
        """All of it, read-only."""
        assert self.dtype is not None
        return np.memmap(self.path, self.dtype, "r", shape=(self.rows, *self.width))

    def _widen(self, dtype: np.dtype[Any]) -> None:
        old, path = self.array(), self.path
        self.path, self.rows, self.dtype = self.folder.new_path(), 0, dtype
        for part in parts(len(old)):
            self.append(old[part].astype(dtype))
        path.unlink()


def mapping_of(array: Any) -> Any:
    """The file behind an array, or behind the array it is a view of; None where it lies in memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return array
        array = array.base
    return None
