"""Tables of probabilities: NumPy arrays and lists, or rows of state, action and prob in files and frames."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.adapters.outputs import labelled
from tightrope.base.checks import numbers
from tightrope.base.dataset import Array
from tightrope.base.errors import PolicyError, TightropeError
from tightrope.base.policy import Policy, TabularPolicy
from tightrope.io.files import PACKED, SUFFIXES
from tightrope.io.tables import to_table

ARRAYS = (".npz", ".npy")
TABLES = (
    *ARRAYS,
    *SUFFIXES,
    *(f"{text}{packed}" for text in (".csv", ".tsv", ".jsonl", ".ndjson") for packed in PACKED),
)
FRAMES = ("__arrow_c_stream__", "collect_schema", "to_arrow_table")  # of tables, lazy ones and DuckDB's relations
LARGEST = 200_000_000  # numbers in a table made of rows

_MEMBER = re.compile(r"(.*\.npz):(.*)", re.IGNORECASE | re.DOTALL)  # file.npz:array


def is_table(spec: str) -> bool:
    """Whether the text names a table of probabilities."""
    return spec.lower().endswith(TABLES) or _MEMBER.fullmatch(spec) is not None


def load_table(spec: str) -> Policy:
    """The policy of a table of shape (states, actions) or (times, states, actions); rows may name both."""
    member = _MEMBER.fullmatch(spec)
    path = Path(member[1] if member else spec)
    if path.suffix.lower() in ARRAYS:
        return TabularPolicy(_numpy(path, member[2] if member else ""))
    return _from_rows(f"policy {path}", _rows(path))


def from_rows(source: Any) -> Policy | None:
    """A pandas, polars, pyarrow or DuckDB table with columns state, action and prob, or a mapping of these names."""
    known = isinstance(source, Mapping) or any(hasattr(source, sign) for sign in FRAMES)
    if not known and not (hasattr(source, "columns") and hasattr(source, "to_numpy")):
        return None
    return _from_rows("the policy's table", _rows(source))


def from_nested(source: Any) -> Policy | None:
    """Lists of probabilities, as an array of the same shape would be."""
    return TabularPolicy(source) if isinstance(source, (list, tuple)) else None


def _rows(source: Any) -> Any:
    try:
        return to_table(source)
    except TightropeError as error:
        raise PolicyError(f"policy: {error}") from error


def _from_rows(name: str, table: Any) -> Policy:
    """The policy of a table with a row for each probability; whatever has no row has probability 0."""
    lacking = [column for column in ("state", "action", "prob") if column not in table.column_names]
    if lacking:
        raise PolicyError(
            f"{name} must have the columns state, action, prob (and t, if it changes with time); it lacks "
            f"{', '.join(lacking)} and has {', '.join(table.column_names)}"
        )
    keys = [column for column in ("t", "state", "action") if column in table.column_names]
    index = [_key(name, column, table[column]) for column in keys]
    probs = table["prob"].to_numpy()
    if probs.dtype.kind not in "iuf":
        raise PolicyError(f"{name}: column 'prob' must hold numbers; it holds {probs.tolist()[0]!r}")
    states, index[-2] = np.unique(index[-2], return_inverse=True)
    labels, numbered = None, index[-1]
    if index[-1].dtype.kind == "U":
        labels, numbered = np.unique(index[-1], return_inverse=True)
    policy = TabularPolicy(_filled(name, keys, [*index[:-1], numbered], probs), states)
    return policy if labels is None else labelled(_logs(policy), labels)


def _key(name: str, column: str, values: Any) -> Any:
    """A column that says which probability a row is about."""
    keys = values.to_numpy()
    if keys.dtype.kind == "O" and column != "t" and all(isinstance(one, str) for one in keys):
        return keys.astype(str)
    if keys.dtype.kind not in "iu" or keys.min() < 0:
        kind = "whole numbers from 0" if column == "t" else "whole numbers from 0, or text"
        raise PolicyError(f"{name}: column {column!r} must hold {kind}; it holds {keys.tolist()[0]!r}")
    return keys


def _logs(table: TabularPolicy) -> Callable[[Any, Any], Array]:
    def scores(states: Any, t: Any) -> Array:
        with np.errstate(divide="ignore"):
            return np.log(table.probs(states, t))

    return scores


def _filled(name: str, keys: list[str], index: list[Any], probs: Any) -> Array:
    shape = [int(part.max()) + 1 for part in index]
    if math.prod(shape) > LARGEST:
        sizes = ", ".join(f"{size} of {name}" for name, size in zip(keys, shape, strict=True))
        raise PolicyError(f"{name} must number actions and times from 0 without gaps; a table of {sizes} is too large")
    result = np.zeros(shape)
    np.add.at(result, tuple(index), probs)  # a pair given twice makes its row sum to more than one, which is refused
    return result


def _numpy(path: Path, array: str) -> Array:
    if not os.path.isfile(path):
        raise PolicyError(f"policy {path}: {'a folder, not a file' if os.path.isdir(path) else 'no such file'}")
    try:
        with path.open("rb") as file:
            loaded = np.load(file, allow_pickle=False)
            if isinstance(loaded, np.ndarray):
                return numbers(f"policy {path}", loaded)
            name = _member(path, list(loaded.keys()), array)
            return numbers(f"policy {path}:{name}", loaded[name])
    except TightropeError:
        raise
    except Exception as error:  # whatever a cut or corrupted file makes NumPy and zipfile raise
        raise PolicyError(
            f"policy {path} cannot be read as a NumPy file of numbers: {type(error).__name__}: {error}"
        ) from error


def _member(path: Path, names: list[str], wanted: str) -> str:
    """The name of the array to read from an archive."""
    if not names:
        raise PolicyError(f"policy {path} holds no arrays")
    name = wanted or ("probs" if "probs" in names else names[0])
    if name not in names or (len(names) > 1 and not wanted and name != "probs"):
        raise PolicyError(f"policy {path} holds {', '.join(names)}; choose one, such as {path}:{names[0]}")
    return name
