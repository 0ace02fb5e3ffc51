"""Anything tabular to a pyarrow table: files, pandas, polars, pyarrow and DuckDB tables, a mapping of arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from tightrope.base.errors import DataError
from tightrope.io.aliases import ColumnMap
from tightrope.io.files import File
from tightrope.io.places import are_places, partition_of, read_places


class KnownSource(NamedTuple):
    """The columns of a source that some tool made, and what the source itself tells."""

    columns: Mapping[str, Any]
    notes: tuple[str, ...] = ()  # what the source is
    one_step: bool | None = None  # known to be so


def to_table(source: Any) -> Any:
    """A pyarrow table with at least one row."""
    table, broken = to_parts(source)
    for why in broken.values():
        raise DataError(why)
    return table


def to_parts(source: Any, given: ColumnMap | None = None) -> tuple[Any, dict[str, str]]:
    """A pyarrow table with at least one row, and why each column left out of it does not convert."""
    import pyarrow as pa

    broken: dict[str, str] = {}
    source = _collected(source)
    if are_places(source):
        table, label = read_places(source, given or {}), str(source)
    elif isinstance(source, pa.Table):
        table, label = source, "the table"
    elif isinstance(source, Mapping):
        (table, broken), label = _from_columns(source), "the mapping"
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "columns"):
        (table, broken), label = _from_frame(source), "the frame"
    else:
        raise _unknown(source)
    if table.num_rows == 0 and not broken:
        raise DataError(f"{label} is empty: it holds no rows")
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    if twice:
        raise DataError(f"{label} must have each column once; it has more than one named {', '.join(sorted(twice))}")
    return table, broken


def _collected(source: Any) -> Any:
    """What is still to be computed, computed: a LazyFrame of polars, a relation of DuckDB, a dataset of pyarrow."""
    if hasattr(source, "collect") and hasattr(source, "collect_schema"):
        return source.collect()
    if hasattr(source, "to_arrow_table"):
        return source.to_arrow_table()
    if hasattr(source, "to_table") and hasattr(source, "scanner"):
        return source.to_table()
    return source


def dataset_files(source: Any) -> list[File] | None:
    """The files of a pyarrow dataset of Parquet; None for all else."""
    if not (hasattr(source, "scanner") and hasattr(source, "files")):
        return None
    from pyarrow import fs

    filesystem, local = source.filesystem, isinstance(source.filesystem, fs.LocalFileSystem)
    folder = os.path.commonpath([os.path.dirname(path) for path in source.files]) if source.files else ""
    while local and "=" in os.path.basename(folder):  # a folder that all files share may say something of them too
        folder = os.path.dirname(folder)
    return [
        File(path, lambda path=path: filesystem.open_input_file(path), partition_of(path, folder))  # type: ignore[misc]
        for path in source.files
    ]


def _unknown(source: Any) -> DataError:
    return DataError(
        "source must be a path to a file (Parquet, CSV, TSV, JSON lines, Arrow), a folder or a list of them, a pandas, "
        "polars, pyarrow or DuckDB table, a mapping of column names to arrays, a Minari dataset, d3rlpy episodes or a "
        f"Stable-Baselines3 rollout buffer; got type {type(source).__name__}"
    )


def _from_columns(columns: Mapping[Any, Any]) -> tuple[Any, dict[str, str]]:
    import pyarrow as pa

    arrays: dict[str, Any] = {}
    broken: dict[str, str] = {}
    for name, values in columns.items():
        if values is None:
            continue
        try:
            arrays[str(name)] = _to_array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            broken[str(name)] = f"column {str(name)!r} {_why(values, error)}"
    lengths = {name: len(array) for name, array in arrays.items()}
    usual = max(lengths.values(), key=list(lengths.values()).count, default=0)
    for name, length in lengths.items():  # settings and tables beside the steps are common in dictionaries
        if length != usual:
            broken[name] = f"columns differ in length: {name!r} has {length} rows, most have {usual}"
            del arrays[name]
    return pa.table(arrays), broken


def _to_array(values: Any) -> Any:
    import pyarrow as pa

    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return values
    if _has_masked_rows(values):
        return pa.array([row.tolist() if isinstance(row, np.ma.MaskedArray) else row for row in values])
    given = values if isinstance(values, np.ma.MaskedArray) else _whole(values, np.asarray(values))
    if not isinstance(given, np.ma.MaskedArray):
        given = given.astype(given.dtype.newbyteorder("="), copy=False)
    if given.ndim == 2 and given.shape[1] and given.dtype.kind in "iufb":
        return pa.FixedSizeListArray.from_arrays(pa.array(given.ravel()), given.shape[1])
    if given.ndim != 1:
        raise DataError(
            f"must have shape (rows,) or (rows, components); got shape {given.shape}. Flatten it, or leave it out: "
            'columns={"state": None}'
        )
    return pa.array(given.tolist() if given.dtype.kind == "O" else given)


def _whole(values: Any, given: Any) -> Any:
    """Python's whole numbers as 64-bit ones: of some beyond 63 bits NumPy makes doubles, which merges them."""
    if given.ndim != 1 or given.dtype.kind not in "fO" or not given.size:
        return given
    if not all(isinstance(value, (int, np.integer)) and not isinstance(value, bool) for value in values):
        return given
    for kind in (np.int64, np.uint64):
        if np.iinfo(kind).min <= min(values) and max(values) <= np.iinfo(kind).max:
            return np.array(list(values), dtype=kind)
    largest = max(values, key=abs)
    raise DataError(f"must hold whole numbers of at most 64 bits; got {largest}. Give them as text")


def _has_masked_rows(values: Any) -> bool:
    """Whether rows are masked arrays of their own, whose masks a conversion as a whole would lose."""
    in_rows = isinstance(values, (list, tuple)) or str(getattr(values, "dtype", "")) == "object"
    return in_rows and getattr(values, "ndim", 1) > 0 and any(isinstance(row, np.ma.MaskedArray) for row in values)


def _from_frame(frame: Any) -> tuple[Any, dict[str, str]]:
    import pyarrow as pa

    if any(isinstance(name, str) and "\0" in name for name in getattr(frame, "columns", ())):
        raise DataError(
            "the names of columns must not hold a null character, because polars then ends the process; rename the "
            "column"
        )
    try:
        if not (hasattr(frame, "iloc") and any(_has_masked_rows(frame[name]) for name in frame.columns)):
            return pa.table(frame), {}
        columns = {name: frame[name].to_numpy() for name in frame.columns}
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        # Find the columns that do not convert, so that an error can name them.
        try:
            columns = {name: frame[name].to_numpy() for name in frame.columns}
        except (AttributeError, KeyError, TypeError):
            raise _unknown(frame) from None
    return _from_columns(columns)


def _why(values: Any, error: Exception) -> str:
    """What is wrong with a column that does not convert."""
    if isinstance(error, DataError):
        return str(error)
    names = [type(value).__name__ for value in values]
    row = next((i for i, name in enumerate(names) if name != names[0]), 0)
    if row == 0:
        return f"does not convert to numbers or text: {error}"
    return (
        f"holds mixed types: {values[0]!r} ({names[0]}) in row 0 and {values[row]!r} ({names[row]}) in row {row}; use "
        "one type for all rows"
    )
