"""One file to a pyarrow table: its name says what it is, and its first bytes must agree."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tightrope.base.errors import DataError
from tightrope.io.aliases import ColumnMap
from tightrope.io.csv_files import read_csv

SUFFIXES = {
    ".parquet": "Parquet",
    ".pq": "Parquet",
    ".csv": "CSV",
    ".tsv": "TSV",
    ".jsonl": "JSON lines",
    ".ndjson": "JSON lines",
    ".feather": "Arrow",
    ".arrow": "Arrow",
}
TEXTS = ("CSV", "TSV", "JSON lines")
PACKED = {".gz": "gzip", ".bz2": "bz2", ".zst": "zstd"}  # around a file of text

_MAGIC = {b"\x1f\x8b": "gzip", b"BZh": "bz2", b"\x28\xb5\x2f\xfd": "zstd"}


@dataclass(frozen=True)
class File:
    """A file that can be opened again and again."""

    name: str
    open: Callable[[], Any]  # its bytes, from the start, as they lie there
    partition: tuple[tuple[str, str], ...] = ()  # what the folders above it say of all its rows: site=a


def is_parquet(file: File) -> bool:
    """Whether the name says so."""
    return _kind(file.name) == ("Parquet", None)


@contextmanager
def opened_parquet(file: File) -> Iterator[Any]:
    """A Parquet file to read from, row group by row group."""
    import pyarrow as pa
    import pyarrow.parquet

    try:
        with file.open() as stream:
            _check_head(file.name, "Parquet", stream.read(4096))
        with pyarrow.parquet.ParquetFile(file.open(), page_checksum_verification=True) as parquet:
            yield parquet
    except (pa.ArrowException, OSError) as error:
        raise DataError(f"{file.name} cannot be read as Parquet, which is what its name says: {error}") from error


def names_a_file(name: str) -> bool:
    """Whether the name says that it is a file of a known kind."""
    return _kind(name)[0] is not None


def read_file(file: File, given: ColumnMap) -> Any:
    """A pyarrow table of the file."""
    import pyarrow as pa

    kind, packing = _kind(file.name)
    if kind is None:
        known = f"{', '.join(SUFFIXES)} (.csv, .tsv and .jsonl also with {', '.join(PACKED)} after it)"
        raise DataError(f"{file.name}: the name must end in {known} to say what the file is")
    try:
        opened = _unpacked(file, packing)
        with opened() as stream:
            _check_head(file.name, kind, stream.read(4096))
        table = _READERS[kind](opened, file.name, given)
        str(table.column_names)  # names that are not text fail here
    except (pa.ArrowException, OSError, EOFError, ValueError, KeyError, OverflowError) as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{file.name} cannot be read as {kind}, which is what its name says: {error}") from error
    return table


def sniffed(content: bytes, name: str) -> File:
    """Bytes without a name, as a file that is named after what they look like."""
    packing = next((name for head, name in _MAGIC.items() if content.startswith(head)), None)
    if packing is not None:
        try:
            content = _content(content, packing)
        except (OSError, ValueError) as error:
            raise DataError(f"{name} begins like a file packed by {packing}, but it is broken: {error}") from error
    first = content.lstrip(b"\xef\xbb\xbf \t\r\n").split(b"\n", 1)[0]
    for suffix, looks in (
        (".parquet", content.startswith(b"PAR1")),
        (".arrow", content.startswith((b"ARROW1", b"\xff\xff\xff\xff"))),
        (".jsonl", first.startswith(b"{")),
        (".tsv", b"\t" in first and b"," not in first),
    ):
        if looks:
            return File(f"{name}{suffix}", lambda: _buffer(content))
    return File(f"{name}.csv", lambda: _buffer(content))


def _kind(name: str) -> tuple[str | None, str | None]:
    """What a file is by its name, and how it is packed."""
    lower = name.lower()
    packing = next((suffix for suffix in PACKED if lower.endswith(suffix)), None)
    inner = lower.removesuffix(packing) if packing else lower
    kind = next((kind for suffix, kind in SUFFIXES.items() if inner.endswith(suffix)), None)
    return (kind, PACKED.get(packing or "")) if not packing or kind in TEXTS else (None, None)


def _unpacked(file: File, packing: str | None) -> Callable[[], Any]:
    if packing is None:
        return file.open
    with file.open() as stream:
        content = _content(stream.read(), packing)  # once, because it is read twice
    return lambda: _buffer(content)


def _content(packed: bytes, packing: str) -> bytes:
    """What was packed; raises where it was cut off."""
    import pyarrow as pa

    with pa.CompressedInputStream(_buffer(packed), packing) as stream:
        return bytes(stream.read())


def _buffer(content: bytes) -> Any:
    import pyarrow as pa

    return pa.BufferReader(content)


def _check_head(name: str, kind: str, head: bytes) -> None:
    if not head:
        raise DataError(f"{name} is empty")
    looks = "Parquet" if head.startswith(b"PAR1") else "Arrow" if head.startswith(b"ARROW1") else ""
    if looks and looks != kind:
        suffix = next(suffix for suffix, one in SUFFIXES.items() if one == looks)
        article = "an" if looks == "Arrow" else "a"
        raise DataError(
            f"{name} is {article} {looks} file, not the {kind} file its name says; rename it to end in {suffix}"
        )
    if kind in TEXTS and b"\0" in head:
        raise DataError(f"{name} is not the {kind} file its name says: it is not UTF-8 text; save it as UTF-8 {kind}")
    if kind == "Parquet" and not looks:
        raise DataError(
            f"{name} is not the Parquet file its name says; if it is CSV, rename it to end in .csv, otherwise write it "
            "again"
        )


def _parquet(opened: Callable[[], Any], name: str, given: ColumnMap) -> Any:
    import pyarrow.parquet

    with pyarrow.parquet.ParquetFile(opened(), page_checksum_verification=True) as file:
        return file.read()


def _arrow(opened: Callable[[], Any], name: str, given: ColumnMap) -> Any:
    import pyarrow as pa

    with opened() as stream:
        head = stream.read(6)
    reader = pa.ipc.open_file(opened()) if head == b"ARROW1" else pa.ipc.open_stream(opened())
    table = reader.read_all()
    table.validate(full=True)  # a broken one would end the process later
    return table


def _json(opened: Callable[[], Any], name: str, given: ColumnMap) -> Any:
    import pyarrow.json

    return pyarrow.json.read_json(opened())


_READERS: dict[str, Callable[[Callable[[], Any], str, ColumnMap], Any]] = {
    "Parquet": _parquet,
    "CSV": lambda opened, name, given: read_csv(opened, name, given),
    "TSV": lambda opened, name, given: read_csv(opened, name, given, delimiter="\t"),
    "JSON lines": _json,
    "Arrow": _arrow,
}
