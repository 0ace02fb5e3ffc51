"""Where logs lie: a file, a folder, a pattern, several of these, stdin, or another machine."""

from __future__ import annotations

import glob
import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote

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
    files = files_of(source)
    kinds = partition_kinds(files)
    return _joined(files, [partitioned(file, read_file(file, given), kinds) for file in files])


def files_of(source: Place | Sequence[Place]) -> list[File]:
    """All files there, in order of their names."""
    places = [source] if isinstance(source, (str, os.PathLike)) else list(source)
    return [file for place in places for file in _files(os.fspath(place))]


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
        return [_local(path, place) for path in _some(sorted(paths), f"{place}: the folder")]
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


def _local(path: str, folder: str | None = None) -> File:
    import pyarrow as pa

    return File(path, lambda: pa.OSFile(path, "rb"), () if folder is None else partition_of(path, folder))


def partition_of(path: str, folder: str) -> tuple[tuple[str, str], ...]:
    """What the folders between say of all rows of a file, as Hive and Spark name them: site=a/part-0.parquet."""
    inside = Path(os.path.relpath(path, folder)).parent.parts
    pairs = (part.partition("=") for part in inside)
    return tuple((key, unquote(value)) for key, equals, value in pairs if key and equals)


def partition_kinds(files: Sequence[File]) -> dict[str, Any]:
    """Of each such name whether its values are whole numbers or text."""
    import pyarrow as pa

    values: dict[str, list[str]] = {}
    for file in files:
        for key, value in file.partition:
            values.setdefault(key, []).append(value)
    whole = {key: all(re.fullmatch(r"-?\d{1,18}", value) for value in texts) for key, texts in values.items()}
    return {key: pa.int64() if whole[key] else pa.string() for key in values}


def partitioned(file: File, table: Any, kinds: Mapping[str, Any]) -> Any:
    """The table with a column for each folder that says something of all its rows."""
    import pyarrow as pa

    for key, value in file.partition:
        if key not in table.column_names:
            table = table.append_column(key, pa.repeat(pa.scalar(value).cast(kinds[key]), table.num_rows))
    return table


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
    return [
        File(one, lambda one=one: filesystem.open_input_file(one), partition_of(one, path))  # type: ignore[misc]
        for one in paths
    ]


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
    schema = same_kind(files, [table.schema for table in tables])
    bare = [table.replace_schema_metadata(None) for table in tables]
    return pa.concat_tables(bare, promote_options="permissive").replace_schema_metadata(schema.metadata)


def same_kind(files: Sequence[File], schemas: Sequence[Any]) -> Any:
    """The columns of all files together; refused where files are not of one kind."""
    import pyarrow as pa

    if len(schemas) == 1:
        return schemas[0]
    names = set(schemas[0].names)
    for file, schema in zip(files, schemas, strict=True):
        apart = sorted(names ^ set(schema.names))
        if apart:
            shown = ", ".join(repr(name) for name in apart[:MOST_NAMED])
            raise DataError(
                f"all files must have the same columns; {file.name} and {files[0].name} differ in {shown}. Read files "
                "of one kind at a time"
            )
    stamps = {schema.metadata[KEY] for schema in schemas if KEY in (schema.metadata or {})}
    if len(stamps) > 1:
        raise DataError(
            f"all files must tell the same horizon and discount in their metadata (key {KEY.decode()!r}); these "
            f"{len(files)} do not. Read files of one kind at a time"
        )
    try:
        joined = pa.unify_schemas([schema.remove_metadata() for schema in schemas], promote_options="permissive")
    except pa.ArrowException as error:
        raise DataError(f"the columns of all {len(files)} files must have types that go together: {error}") from error
    return joined.with_metadata({KEY: stamps.pop()}) if stamps else joined
