"""Where logs lie: a file, a folder, a pattern, several of these, stdin, or another machine."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tightrope.base.errors import DataError
from tightrope.io.aliases import ColumnMap
from tightrope.io.declared import KEY
from tightrope.io.files import SUFFIXES, File, names_a_file, read_file, sniffed

STDIN = "-"
MOST_NAMED = 6  # columns in a message

_REMOTE = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)  # s3://bucket/logs.parquet
_PATTERN = re.compile(r"[*?\[]")

Place = str | os.PathLike[str]


def are_places(source: Any) -> bool:
    """Whether the source says where logs lie, once or several times."""
    if isinstance(source, (list, tuple)):
        return bool(source) and all(isinstance(one, (str, os.PathLike)) for one in source)
    return isinstance(source, (str, os.PathLike))


def read_places(source: Place | Sequence[Place], given: ColumnMap) -> Any:
    """One pyarrow table of all files there."""
    places = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    files = [file for place in places for file in _files(os.fspath(place))]
    return _joined(files, [read_file(file, given) for file in files])


def is_local_file(place: Place) -> bool:
    """Whether it is one file on this machine."""
    return not _REMOTE.match(os.fspath(place)) and os.path.isfile(place)


def _files(place: str) -> list[File]:
    """The files of one place, in order of their names."""
    if place == STDIN:
        return [sniffed(sys.stdin.buffer.read(), "stdin")]
    if _REMOTE.match(place):
        return _remote(place)
    if os.path.isfile(place):
        return [_local(place)]
    if os.path.isdir(place):
        paths = [str(path) for path in Path(place).rglob("*") if path.is_file() and _counts(path.relative_to(place))]
        return [_local(path) for path in _some(sorted(paths), f"{place}: the folder")]
    if _PATTERN.search(place):
        paths = [path for path in glob.glob(place, recursive=True) if os.path.isfile(path)]
        return [_local(path) for path in _some(sorted(paths), f"{place}: the pattern")]
    raise DataError(f"{place}: no such file")


def _counts(path: Path) -> bool:
    """Whether a file of a folder is one of the logs: of a known kind, and not hidden as _SUCCESS or .crc files are."""
    return names_a_file(path.name) and not any(part.startswith((".", "_")) for part in path.parts)


def _some(paths: list[str], what: str) -> list[str]:
    if not paths:
        raise DataError(f"{what} must lead to a file that ends in {', '.join(SUFFIXES)}; it leads to none")
    return paths


def _local(path: str) -> File:
    import pyarrow as pa

    return File(path, lambda: pa.OSFile(path, "rb"))


def _remote(place: str) -> list[File]:
    """The files behind an address, by pyarrow's own filesystems or, for other schemes, by those of fsspec."""
    from pyarrow import ArrowException, fs

    filesystem, path = _filesystem(place)
    try:
        info = filesystem.get_file_info(path)
        if info.type == fs.FileType.Directory:
            inside = filesystem.get_file_info(fs.FileSelector(path, recursive=True))
            names = [one.path for one in inside if one.is_file and _counts(Path(os.path.relpath(one.path, path)))]
            paths = _some(sorted(names), f"{place}: the folder")
        elif info.is_file:
            paths = [path]
        else:
            raise DataError(f"{place}: no such file. (A pattern such as *.parquet works for local files only)")
    except (ArrowException, OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{place} cannot be reached: {error}") from error
    return [File(one, lambda one=one: filesystem.open_input_file(one)) for one in paths]  # type: ignore[misc]


def _filesystem(place: str) -> tuple[Any, str]:
    from pyarrow import ArrowException, fs

    scheme = place.partition("://")[0]
    try:
        filesystem, path = fs.FileSystem.from_uri(place)
        return filesystem, str(path)
    except OSError as error:
        raise DataError(f"{place} cannot be reached: {error}") from error
    except (ArrowException, ValueError) as error:  # a scheme that pyarrow does not know, or was built without
        ours = error
    try:
        import fsspec

        other, path = fsspec.core.url_to_fs(place)
    except ImportError as error:
        raise DataError(
            f"{place} needs a filesystem for {scheme}://, which is not installed ({error}): pip install fsspec and the "
            f"package it names for {scheme}; or copy the file here first"
        ) from error
    except (ValueError, OSError) as error:
        raise DataError(
            f"{place} must begin with a known scheme, such as s3://, gs:// or abfs://, and be a whole address; pyarrow "
            f"says: {ours}; fsspec says: {error}"
        ) from error
    return fs.PyFileSystem(fs.FSSpecHandler(other)), str(path)


def _joined(files: Sequence[File], tables: Sequence[Any]) -> Any:
    """The rows of all files; each must have the columns of the first, of types that go together."""
    import pyarrow as pa

    if len(tables) == 1:
        return tables[0]
    names = set(tables[0].column_names)
    for file, table in zip(files, tables, strict=True):
        apart = sorted(names ^ set(table.column_names))
        if apart:
            shown = ", ".join(repr(name) for name in apart[:MOST_NAMED])
            raise DataError(
                f"all files must have the same columns; {file.name} and {files[0].name} differ in {shown}. Read files "
                "of one kind at a time"
            )
    stamps = {table.schema.metadata[KEY] for table in tables if KEY in (table.schema.metadata or {})}
    if len(stamps) > 1:
        raise DataError(
            f"all files must tell the same horizon and discount in their metadata (key {KEY.decode()!r}); these "
            f"{len(files)} do not. Read files of one kind at a time"
        )
    bare = [table.replace_schema_metadata(None) for table in tables]
    try:
        joined = pa.concat_tables(bare, promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(f"the columns of all {len(files)} files must have types that go together: {error}") from error
    return joined.replace_schema_metadata({KEY: stamps.pop()}) if stamps else joined
