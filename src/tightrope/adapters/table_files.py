"""Tables of probabilities in files: NumPy arrays, or rows of state, action and prob in CSV or Parquet."""

from __future__ import annotations

import math
import os
import re
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.base.checks import numbers
from tightrope.base.dataset import Array
from tightrope.base.errors import PolicyError, TightropeError
from tightrope.base.policy import TabularPolicy
from tightrope.io.tables import to_table

TABLES = (".npz", ".npy", ".csv", ".parquet", ".pq")
LARGEST = 200_000_000  # numbers in a table made of rows

_MEMBER = re.compile(r"(.*\.npz):(.*)", re.IGNORECASE | re.DOTALL)  # file.npz:array


def is_table(spec: str) -> bool:
    """Whether the text names a table of probabilities."""
    return spec.lower().endswith(TABLES) or _MEMBER.fullmatch(spec) is not None


def load_table(spec: str) -> TabularPolicy:
    """The policy of a table of shape (states, actions) or (times, states, actions); rows may name any states."""
    member = _MEMBER.fullmatch(spec)
    path = Path(member[1] if member else spec)
    if path.suffix.lower() in (".npz", ".npy"):
        return TabularPolicy(_numpy(path, member[2] if member else ""))
    try:
        table = to_table(path)
    except TightropeError as error:
        raise PolicyError(f"policy: {error}") from error
    return _from_rows(path, table)


def _from_rows(path: Path, table: Any) -> TabularPolicy:
    keys = [name for name in ("t", "state", "action") if name in table.column_names]
    if keys[-2:] != ["state", "action"] or "prob" not in table.column_names:
        raise PolicyError(
            f"policy {path} must have the columns state, action, prob (and t, if it changes with time); it has "
            f"{', '.join(table.column_names)}"
        )
    index = [table[name].to_numpy() for name in keys]
    if any(part.dtype.kind not in "iu" or part.min() < 0 for part in index):
        raise PolicyError(f"policy {path}: {', '.join(keys)} must be whole numbers from 0")
    probs = table["prob"].to_numpy()
    if probs.dtype.kind not in "iuf":
        raise PolicyError(f"policy {path}: column 'prob' must hold numbers; it holds {probs[0]!r}")
    states, index[-2] = np.unique(index[-2], return_inverse=True)
    shape = [int(part.max()) + 1 for part in index]
    if math.prod(shape) > LARGEST:
        sizes = ", ".join(f"{size} of {name}" for name, size in zip(keys, shape, strict=True))
        raise PolicyError(
            f"policy {path} must number actions and times from 0 without gaps; a table of {sizes} is too large"
        )
    result = np.zeros(shape)
    np.add.at(result, tuple(index), probs)  # a pair given twice makes its row sum to more than one, which is refused
    return TabularPolicy(result, states)


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
