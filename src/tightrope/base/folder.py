"""A folder for arrays that are too large for the memory: one raw file each, mapped. It goes away with its last user."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import count, pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.base.errors import DataError

PART = 1 << 18  # rows that are looked at together where all would not fit
WIDE = 1 << 14  # the same of rows of several numbers
FEW = 1 << 18  # distinct values up to which they are kept in memory
STEP_BYTES = 120  # that whatever looks at every step at once keeps for each, about

Anything = npt.NDArray[Any]


def parts(n: int, size: int | None = None) -> Iterator[slice]:
    """Consecutive rows, some at a time."""
    size = size or PART
    for first in range(0, n, size):
        yield slice(first, min(first + size, n))


def wide_parts(n: int) -> Iterator[slice]:
    """Fewer rows at a time, of several numbers each."""
    return parts(n, WIDE)


def summed(values: Anything, call: Callable[[Anything], Anything]) -> float:
    """The sum of what the call makes of the values, some rows at a time: no array of all of them is made."""
    return float(sum(float(call(values[part]).sum()) for part in parts(len(values))))


def overlapping(n: int) -> Iterator[slice]:
    """The same, each with the first row of the next: what neighbours must have in common can be looked at."""
    for part in parts(n):
        yield slice(part.start, min(part.stop + 1, n))


def distinct(values: Anything, scratch: Scratch | None = None) -> Anything:
    """The values that occur, rising; in a file where there are many of them and the scratch is one of files."""
    known = values[:0]
    for part in parts(len(values)):
        known = unique(np.concatenate([known, values[part]]))
        if len(known) > FEW:
            return _sorted_distinct(values, scratch or Scratch())
    return known


def ranked(values: Anything, scratch: Scratch) -> tuple[Anything, npt.NDArray[np.int64]]:
    """The values that occur, rising, and the place of each value among them, (n,)."""
    levels, place = distinct(values, scratch), scratch.empty(len(values), np.int64)
    for part in parts(len(values)):
        place[part] = np.searchsorted(levels, values[part])
    return levels, place


def unique(values: Anything) -> Anything:
    """The values that occur in an array that may be overwritten; np.unique takes many times its memory."""
    values.sort()
    return values[np.append(True, values[1:] != values[:-1])] if len(values) else values


def _sorted_distinct(values: Anything, scratch: Scratch) -> Anything:
    """The same by sorting a copy where it lies, which takes no other memory."""
    copy, count = scratch.empty(len(values), values.dtype), 0
    for part in parts(len(values)):
        copy[part] = values[part]
    copy.sort()
    for part in parts(len(values)):
        fresh = unique(copy[part])
        fresh = fresh[1:] if count and fresh[0] == copy[count - 1] else fresh
        copy[count : count + len(fresh)] = fresh
        count += len(fresh)
    return copy[:count]


class Folder:
    """Where arrays are kept as files, which the system pages in and out as it likes."""

    def __init__(self, place: str | os.PathLike[str] | None = None, memory: int = 0, *, passing: bool = True) -> None:
        self.memory = memory  # bytes that whoever uses these arrays may take
        try:
            self.path = Path(tempfile.mkdtemp(prefix="tightrope-", dir=place))
        except OSError as error:
            raise DataError(f"scratch must be a folder that can be written to; got {place!r}: {error}") from error
        self._numbers = count()
        if passing:  # else whoever has the place takes it away
            weakref.finalize(self, shutil.rmtree, self.path, ignore_errors=True)

    def column(self) -> Column:
        """A new array that grows."""
        return Column(self)

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Anything:
        """An array to be filled in; its file goes away with it."""
        path, kind = self.new_path(), np.dtype(dtype)
        self.allocate(path, kind.itemsize * int(np.prod(shape)))
        with writing(self.path):
            array = np.memmap(path, kind, "r+", shape=shape)
        weakref.finalize(array._mmap, path.unlink, missing_ok=True)  # type: ignore[attr-defined]  # views keep it too
        return array

    def allocate(self, path: Path, size: int) -> None:
        """Make a file of so many bytes; a full disk is said now, not by a signal later."""
        with writing(self.path), path.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, max(1, size))

    def new_path(self) -> Path:
        """A name that no other array has."""
        return self.path / f"{next(self._numbers)}.bin"


@contextmanager
def writing(place: Path) -> Iterator[None]:
    """Say what a full disk, or too many open files, is about, and what to do."""
    try:
        yield
    except OSError as error:
        if error.errno == errno.EMFILE:
            raise DataError(
                f"logs too large for the memory are kept in {place}, and this process may not open more files there: "
                "allow it more (ulimit -n 65536), ask for less at a time, or read the logs with more memory"
            ) from error
        raise DataError(
            f"logs too large for the memory are kept in {place}, where nothing more can be written: {error}. "
            "Give a folder with more room: read(scratch=...), --scratch"
        ) from error


@dataclass(frozen=True, eq=False)
class Scratch:
    """Room for arrays: in memory, or in files where the logs are in files. The files stay with whoever made them."""

    folder: Folder | None = None

    def empty(self, shape: int | tuple[int, ...], dtype: npt.DTypeLike = np.float64) -> Anything:
        """An array to be filled in."""
        return np.empty(shape, dtype) if self.folder is None else self.folder.empty(shape, dtype)

    def apart(self, ends: Anything, dtype: npt.DTypeLike = np.float64) -> list[Anything]:
        """Arrays that lie side by side in one: the k-th from ends[k] to ends[k + 1]."""
        whole, edges = self.empty(int(ends[-1]), dtype), [int(end) for end in ends]
        return [whole[start:stop] for start, stop in pairwise(edges)]

    def full(self, shape: int | tuple[int, ...], value: float, dtype: npt.DTypeLike = np.float64) -> Anything:
        """The same number everywhere."""
        result = self.empty(shape, dtype)
        result[...] = value
        return result

    def taken(self, values: Anything, rows: Anything) -> Anything:
        """These rows of the values, in this order."""
        result = self.empty((len(rows), *values.shape[1:]), values.dtype)
        for part in parts(len(rows)):
            result[part] = values[rows[part]]
        return result

    def copy(self, values: Anything) -> Anything:
        """The values, kept here."""
        result = self.empty(values.shape, values.dtype)
        result[...] = values
        return result

    def numbered(self, n: int) -> npt.NDArray[np.int64]:
        """0, 1, … n − 1."""
        result = self.empty(n, np.int64)
        for part in parts(n):
            result[part] = np.arange(part.start, part.stop)
        return result

    def permutation(self, n: int, rng: np.random.Generator) -> npt.NDArray[np.int64]:
        """What ``rng.permutation(n)`` draws."""
        result = self.numbered(n)
        rng.shuffle(np.asarray(result))  # a plain view of it: NumPy walks through subclasses row by row
        return result

    def __getstate__(self) -> dict[str, Any]:
        return {"folder": None}


class Column:
    """An array that grows by pieces. From a wider type on, pieces go to a new file; in the end all are put into one."""

    def __init__(self, folder: Folder) -> None:
        self.folder, self.rows = folder, 0
        self.files: list[Kept] = []

    @property
    def width(self) -> tuple[int, ...]:
        """The shape of a row."""
        return self.files[0].width

    def append(self, values: Anything) -> None:
        """Add rows at the end."""
        self.place(values)()

    def place(self, values: Anything) -> Callable[[], None]:
        """Keep room for rows at the end; what is returned writes them, in any thread and at any time."""
        width = values.shape[1:]
        if self.files and width != self.width:
            raise DataError(f"all rows must have as many components; got {self.width} and {width}")
        kind = wider(self.files[-1].dtype, values.dtype) if self.files else values.dtype
        if not self.files or kind != self.files[-1].dtype:
            self.add(0, kind, width)
        last = self.files[-1]
        self.files[-1] = last._replace(rows=last.rows + len(values))
        self.rows += len(values)

        return partial(last.write, values, last.rows)

    def add(self, rows: int, dtype: np.dtype[Any], width: tuple[int, ...]) -> None:
        """A file for the next rows."""
        self.files.append(Kept(self.folder.new_path(), rows, dtype, width))
        self.folder.allocate(self.files[-1].path, rows * self.files[-1].row_bytes)
        self.rows += rows

    def kept(self) -> Kept:
        """All of it in one file, once all rows are written."""
        if len(self.files) > 1:
            narrower, self.files, self.rows = self.files, [], 0
            self.add(0, narrower[-1].dtype, narrower[-1].width)
            for file in narrower:
                for part in parts(file.rows):
                    self.append(file.opened()[part])
                file.path.unlink()
        return self.files[0]

    def array(self) -> Anything:
        """All of it, read-only."""
        return self.kept().opened()


class Kept(NamedTuple):
    """An array in a file."""

    path: Path
    rows: int
    dtype: np.dtype[Any]
    width: tuple[int, ...]

    @property
    def row_bytes(self) -> int:
        """What a row takes."""
        return self.dtype.itemsize * int(np.prod(self.width, dtype=np.int64))

    def opened(self) -> np.memmap[Any, Any]:
        """The array, read-only."""
        return np.memmap(self.path, self.dtype, "r", shape=(self.rows, *self.width))

    def write(self, values: Anything, first: int, *, lasting: bool = False) -> None:
        """Put rows there, from one of them on; lasting: so that other machines see them."""
        content, place = as_bytes(values, self.dtype), first * self.row_bytes
        with writing(self.path.parent), self.path.open("r+b", buffering=0) as file:
            while content:
                done = os.pwrite(file.fileno(), content, place)
                content, place = content[done:], place + done
            if lasting:
                os.fsync(file)


def wider(one: np.dtype[Any], other: np.dtype[Any]) -> np.dtype[Any]:
    """A type that holds the values of both; refuses whole numbers that would become fractions."""
    both = np.promote_types(one, other)
    if both.kind == "f" and one.kind in "iu" and other.kind in "iu":
        raise DataError(
            "whole numbers of 2**63 and more must not stand beside smaller ones in logs that are too large for the "
            "memory, because no one type holds them all; number them anew, or write them as text"
        )
    return both


def as_bytes(values: Anything, dtype: np.dtype[Any]) -> memoryview:
    """What a file holds of these values; dates too, which give no buffer themselves."""
    return np.ascontiguousarray(values, dtype=dtype).reshape(-1).view(np.uint8).data


def mapping_of(array: Any) -> Any:
    """The file behind an array, or behind the array it is a view of; None where it lies in memory."""
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap) and array.filename is not None:
            return array
        array = array.base
    return None
