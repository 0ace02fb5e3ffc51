"""The same columns as every kind of table, with every type that holds their values exactly."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from decimal import Decimal
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet

from tests.fuzz.questions import Rng

Columns = dict[str, Any]  # names to arrays, (rows,) or (rows, width)

TYPES = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]
TYPES += [np.float16, np.float32, np.float64, np.bool_]


def retyped(rng: Rng, values: np.ndarray, kinds: str) -> np.ndarray:
    """The same numbers in another type that holds them all, of the kinds allowed: "b", "i", "u", "f"."""
    types: list[Any] = [values.dtype]
    for other in TYPES if values.dtype.kind in "iufb" else []:
        if np.dtype(other).kind not in kinds:
            continue
        with np.errstate(all="ignore"):
            cast = values.astype(other)
            if np.array_equal(cast.astype(values.dtype), values) and np.array_equal(cast, values):
                types.append(other)
    return values.astype(types[int(rng.integers(len(types)))])


def relaid(rng: Rng, values: np.ndarray) -> Any:
    """The same array laid out otherwise in memory."""
    kind = int(rng.integers(8))
    if kind == 0:
        return np.repeat(values, 2, axis=0)[::2]
    if kind == 1:
        return np.asfortranarray(values)
    if kind == 2:
        fixed = values.copy()
        fixed.flags.writeable = False
        return fixed
    if kind == 3:
        return values[::-1].copy()[::-1]
    if kind == 4 and values.dtype.kind in "iufb":
        return np.ma.array(values)  # with nothing masked
    if kind == 6:
        return values.astype(values.dtype.newbyteorder("S"))
    if kind == 5 and values.ndim == 1:
        made = np.empty(len(values), dtype=object)
        made[:] = values.tolist()
        return made
    return values


def as_table(rng: Rng, kind: str, columns: Columns, folder: Path) -> Any:
    """The columns as a table of some library, or a file."""
    return TABLES[kind](rng, columns, folder)


def _arrow(columns: Columns) -> pa.Table:
    arrays = {}
    for name, values in columns.items():
        array = np.ascontiguousarray(values)
        if array.ndim == 2:
            arrays[name] = pa.array(array.tolist(), pa.list_(pa.from_numpy_dtype(array.dtype)))
        else:
            arrays[name] = pa.array(array)
    return pa.table(arrays)


def _with_decimals(rng: Rng, table: pa.Table) -> pa.Table:
    """Sometimes floats as decimals, as databases export them."""
    for name in table.column_names if rng.random() < 0.2 else []:
        if table[name].type == pa.float64():
            values = table[name].to_numpy()
            if (np.isfinite(values) & ((values == 0) | (abs(np.log10(abs(values) + (values == 0))) < 5))).all():
                made = pa.array([Decimal(repr(value)) for value in values.tolist()])
                table = table.set_column(table.column_names.index(name), name, made)
    return table


def _mapping(rng: Rng, columns: Columns, folder: Path) -> Any:
    return {name: relaid(rng, values) for name, values in columns.items()}


def _lists(rng: Rng, columns: Columns, folder: Path) -> Any:
    form = [list, tuple][int(rng.integers(2))]
    return {name: form(values.tolist()) for name, values in columns.items()}


def _series(rng: Rng, columns: Columns, folder: Path) -> Any:
    """A mapping of other libraries' columns."""
    wrap = [pd.Series, pl.Series, pa.array][int(rng.integers(3))]
    return {name: wrap(values) if values.ndim == 1 else values for name, values in columns.items()}


def _pandas(rng: Rng, columns: Columns, folder: Path) -> Any:
    frame = pd.DataFrame({n: list(v) if v.ndim == 2 else np.ascontiguousarray(v) for n, v in columns.items()})
    kind = int(rng.integers(5))
    if kind == 0:
        frame = frame.convert_dtypes()  # pandas' nullable types
    elif kind == 1:
        for name in frame.columns:
            if columns[name].dtype.kind in "iuUb" and columns[name].ndim == 1:
                frame[name] = frame[name].astype("category")
    elif kind == 2:
        frame.index = pd.Index(rng.integers(0, 3, size=len(frame)), name="episode_number")
    elif kind == 3:
        frame = frame.convert_dtypes(dtype_backend="pyarrow")
    return frame


def _polars(rng: Rng, columns: Columns, folder: Path) -> Any:
    frame = pl.DataFrame(
        {n: pl.Series(n, v.tolist() if v.ndim == 2 or v.dtype == np.float16 else v) for n, v in columns.items()}
    )
    if rng.random() < 0.4:
        text = [name for name in frame.columns if frame[name].dtype == pl.String]
        frame = frame.with_columns([pl.col(name).cast(pl.Categorical) for name in text])
    return frame


def _pyarrow(rng: Rng, columns: Columns, folder: Path) -> Any:
    table = _with_decimals(rng, _arrow(columns))
    kind = int(rng.integers(5))
    if kind == 0:  # in pieces, one of them empty
        cuts = np.sort(rng.integers(0, table.num_rows + 1, size=3))
        edges = [0, *cuts.tolist(), table.num_rows]
        return pa.concat_tables([table.slice(a, b - a) for a, b in pairwise(edges)])
    if kind == 1:
        plain = [n for n in table.column_names if not pa.types.is_list(table[n].type)]
        for name in plain:
            if pa.types.is_string(table[name].type) or pa.types.is_integer(table[name].type):
                table = table.set_column(table.column_names.index(name), name, table[name].dictionary_encode())
        return table
    if kind == 2:
        return table.combine_chunks().to_batches()[0]
    if kind == 3:
        return pa.RecordBatchReader.from_batches(table.schema, table.to_batches(max_chunksize=3))
    for name in table.column_names:
        if pa.types.is_string(table[name].type):
            table = table.set_column(table.column_names.index(name), name, table[name].cast(pa.large_string()))
    return table


def _parquet(rng: Rng, columns: Columns, folder: Path) -> Any:
    path = folder / f"logs.{rng.choice(['parquet', 'pq', 'PARQUET'])}"
    pa.parquet.write_table(
        _with_decimals(rng, _arrow(columns)),
        path,
        use_dictionary=bool(rng.random() < 0.5),
        row_group_size=int(rng.integers(1, 50)),
        compression=str(rng.choice(["none", "snappy", "zstd"])),
        data_page_version=str(rng.choice(["1.0", "2.0"])),
        write_page_checksum=bool(rng.random() < 0.5),
    )
    return str(path) if rng.random() < 0.5 else path


def _feather(rng: Rng, columns: Columns, folder: Path) -> Any:
    path = folder / "logs.feather"
    packing = str(rng.choice(["uncompressed", "lz4", "zstd"]))
    pa.feather.write_feather(_with_decimals(rng, _arrow(columns)), str(path), compression=packing)
    return path


def _csv(rng: Rng, columns: Columns, folder: Path) -> Any:
    """Only scalars: the caller gives vectors as one column for each component."""
    path = folder / "logs.csv"
    kind = int(rng.integers(4))
    frame = pd.DataFrame(columns)
    if kind == 0:
        pa.csv.write_csv(_arrow(columns), path)
    elif kind == 1:
        frame.to_csv(path, index=False)
    elif kind == 2:
        text = io.StringIO()
        frame.to_csv(text, index=False, lineterminator="\r\n", quoting=1)
        path.write_text("\ufeff" + text.getvalue(), encoding="utf-8", newline="")
    else:
        pl.from_pandas(frame.astype({n: np.float32 for n in frame.columns if frame[n].dtype == np.float16})).write_csv(
            path, float_precision=None
        )
    if rng.random() < 0.2:
        packed = folder / "logs.csv.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        return packed
    return path


TABLES: dict[str, Callable[[Rng, Columns, Path], Any]] = {
    "mapping": _mapping,
    "lists": _lists,
    "series": _series,
    "pandas": _pandas,
    "polars": _polars,
    "pyarrow": _pyarrow,
    "parquet": _parquet,
    "feather": _feather,
    "csv": _csv,
}
