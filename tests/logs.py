"""Small logs to break in tests: three episodes of three steps, a table policy over two states and two actions."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tightrope
from tightrope import DataError, TightropeError
from tightrope.domains import small

POLICY = np.array([[0.7, 0.3], [0.4, 0.6]])


def columns(**changes: Any) -> dict[str, Any]:
    """Valid columns, with some replaced; None leaves a column out."""
    made: dict[str, Any] = {
        "episode": np.repeat([10, 11, 12], 3),
        "t": np.tile([0, 1, 2], 3),
        "state": np.array([0, 1, 0, 1, 1, 0, 0, 0, 1]),
        "action": np.array([0, 1, 1, 1, 0, 0, 1, 0, 1]),
        "reward": np.array([0.0, 1.0, 0.5, -1.0, 0.0, 2.0, 0.25, 0.0, 1.0]),
        "behavior_prob": np.array([0.5, 0.5, 0.25, 0.75, 0.5, 0.5, 0.5, 1.0, 0.5]),
    }
    made |= changes
    return {name: values for name, values in made.items() if values is not None}


def put(name: str, row: int, value: Any) -> dict[str, Any]:
    """Valid columns with one value replaced; rows 3, 4, 5 are episode 11."""
    values = columns()[name].astype(np.asarray(value).dtype if isinstance(value, float) else None)
    values[row] = value
    return columns(**{name: values})


def dataset(**changes: Any) -> tightrope.TrajectoryDataset:
    """The valid logs as a dataset."""
    return tightrope.read(columns(), **changes)


def assert_same(left: tightrope.TrajectoryDataset, right: tightrope.TrajectoryDataset) -> None:
    """Every field alike, to the bit, but for where it was read."""
    for name in (vars(left).keys() & left.__dataclass_fields__.keys()) - {"reading", "arrival"}:
        one, other = getattr(left, name), getattr(right, name)
        if isinstance(one, np.ndarray):
            assert one.dtype.kind == other.dtype.kind, name
            np.testing.assert_array_equal(one, other, err_msg=name)
        else:
            assert one == other, name


def refused(source: Any, message: str, **options: Any) -> None:
    """Reading fails as it should: with our own error and this message."""
    with pytest.raises(DataError, match=message) as caught:
        tightrope.read(source, **options)
    assert isinstance(caught.value, TightropeError)


def as_source(kind: str, values: dict[str, Any], folder: Path) -> Any:
    """The same columns in another form."""
    if kind in ("mapping", "lists"):
        return values if kind == "mapping" else {name: np.asarray(column).tolist() for name, column in values.items()}
    table = pa.table(values)
    if kind in ("parquet", "pq", "csv"):
        path = folder / f"logs.{kind}"
        (pa.csv.write_csv if kind == "csv" else pa.parquet.write_table)(table, path)
        return path
    return {
        "pandas": table.to_pandas,
        "polars": lambda: pl.from_arrow(table),
        "pyarrow": lambda: table,
        "batch": lambda: table.to_batches()[0],
    }[kind]()


def written_bonus(folder: Path, n: int) -> Path:
    """Logs of the domain "bonus" as a file, with the candidate's probabilities."""
    problem = small("bonus")
    data = problem.mdp.simulate(problem.behavior, n, rng=np.random.default_rng(3), candidate=problem.candidate)
    tightrope.write(data, folder / "logs.parquet")
    return folder / "logs.parquet"


def corrupt(path: Path, flips: list[tuple[float, int]], keep: float) -> None:
    """Set bytes at shares of the file's length to other values, and cut the file off."""
    content = bytearray(path.read_bytes())
    for place, value in flips:
        content[int(place * (len(content) - 1))] = value
    path.write_bytes(content[: int(len(content) * keep)])
