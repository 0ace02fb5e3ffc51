"""Anything tabular to a pyarrow table: Parquet and CSV files, pandas, polars, pyarrow, a mapping of arrays."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.errors import DataError

SUFFIXES = {".parquet": "Parquet", ".pq": "Parquet", ".csv": "CSV"}


def to_table(source: Any) -> Any:
    """A pyarrow table with at least one row."""
    import pyarrow as pa

    if isinstance(source, (str, os.PathLike)):
        table, label = _read_file(Path(source)), str(source)
    elif isinstance(source, pa.Table):
        table, label = source, "the table"
    elif isinstance(source, Mapping):
        table, label = _from_columns(source), "the mapping"
    elif hasattr(source, "__arrow_c_stream__") or hasattr(source, "columns"):
        table, label = _from_frame(source), "the frame"
    else:
        raise DataError(
            f"source is a {type(source).__name__}; give a path to a Parquet or CSV file, a pandas, polars or "
            "pyarrow table, "
            "or a mapping of column names to arrays"
        )
    if table.num_rows == 0:
        raise DataError(f"{label} is empty: it holds no rows")
    twice = {name for name in table.column_names if table.column_names.count(name) > 1}
    if twice:
        raise DataError(f"{label} has more than one column named {', '.join(sorted(twice))}")
    return table


def _read_file(path: Path) -> Any:
    import pyarrow as pa

    kind = SUFFIXES.get(path.suffix.lower())
    if not path.is_file():
        raise DataError(f"{path}: {'a folder, not a file' if path.is_dir() else 'no such file'}")
    if kind is None:
        raise DataError(f"{path}: the name must end in {', '.join(SUFFIXES)} to say what the file is")
    if path.stat().st_size == 0:
        raise DataError(f"{path} is empty")
    try:
        if kind == "Parquet":
            import pyarrow.parquet

            return pyarrow.parquet.read_table(path)
        import pyarrow.csv

        return pyarrow.csv.read_csv(path)
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as {kind}, which its name says it is: {error}") from error


def _from_columns(columns: Mapping[str, Any]) -> Any:
    import pyarrow as pa

    arrays = {}
    for name, values in columns.items():
        given = values if isinstance(values, (pa.Array, pa.ChunkedArray)) else np.asarray(values)
        if isinstance(given, np.ndarray) and given.dtype.kind == "O":
            given = list(given)
        if isinstance(given, np.ndarray) and given.ndim != 1:
            raise DataError(
                f"column {name!r} has shape {given.shape}; give one column per component ({name}_0, {name}_1, ...)"
            )
        try:
            arrays[name] = pa.array(given) if not isinstance(given, (pa.Array, pa.ChunkedArray)) else given
        except (pa.ArrowException, TypeError) as error:
            raise DataError(_mixed(name, list(given))) from error
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(f"columns differ in length: {lengths}")
    return pa.table(arrays)


def _from_frame(frame: Any) -> Any:
    import pyarrow as pa

    try:
        return pa.table(frame)
    except (pa.ArrowException, TypeError, ValueError):
        # Find the column that does not convert, so that the error can name it.
        return _from_columns({str(name): frame[name].to_numpy() for name in frame.columns})


def _mixed(name: str, values: list[Any]) -> str:
    first = type(values[0]).__name__
    row = next((i for i, value in enumerate(values) if type(value).__name__ != first), 0)
    other = type(values[row]).__name__
    return (
        f"column {name!r} holds mixed types: {values[0]!r} ({first}) in row 0 and {values[row]!r} ({other}) in "
        f"row {row}; "
        "use one type for all rows"
    )
