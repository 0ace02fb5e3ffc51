"""``--policy``: a table of probabilities, ``module:object``, an ONNX file, or a file that holds a model.

Importing a module and loading a pickled model run their code: it is done only for what the user names as the policy.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.content import files_digest, imported_digest
from tightrope.dataset import Array
from tightrope.errors import PolicyError, TightropeError
from tightrope.policies.onnx_files import onnx_policy
from tightrope.policies.pickled import ARCHIVES, PICKLES, load_pickled, runs_code
from tightrope.policies.soften import softened
from tightrope.policy import Policy, TabularPolicy, as_policy
from tightrope.readers.tables import to_table

TABLES = (".npz", ".npy", ".csv", ".parquet", ".pq")
FILES = (*TABLES, ".onnx", *ARCHIVES, *PICKLES)


def load_policy(
    spec: str,
    *,
    epsilon: float | None = None,
    sigma: Sequence[float] | float | None = None,
    policy_class: str | None = None,
    onnx_output: str | None = None,
) -> Policy:
    """The policy that a file or ``module:object`` names, with noise if ``epsilon`` or ``sigma`` is given.

    ``.zip`` (Stable-Baselines3; ``policy_class`` names its class where it cannot be told), ``.pkl`` and ``.joblib`` run
    code in the file: name only files whose maker you trust. ``onnx_output`` says what an ONNX file's output holds.
    """
    found = _find(spec, policy_class, onnx_output)
    return as_policy(found) if epsilon is None and sigma is None else softened(found, epsilon=epsilon, sigma=sigma)


def named_digest(spec: str) -> str:
    """A hash of what the words name now: the file's bytes, or the module's source with what it imports from its folder.

    What a module reads while it is imported is not in its source, only in what the policy then does.
    """
    if is_table(spec) or spec.lower().endswith(FILES):
        return files_digest([Path(spec.partition(":")[0] if ".npz:" in spec.lower() else spec)])
    load_object(spec)
    return imported_digest(spec.partition(":")[0])


def from_name(spec: Any) -> Policy | None:
    """A path, or ``module:object`` as text, where a policy is expected."""
    return load_policy(str(spec)) if isinstance(spec, (str, Path)) else None


def _find(spec: str, policy_class: str | None, onnx_output: str | None) -> Any:
    if is_table(spec):
        return TabularPolicy(_table(spec))
    if spec.lower().endswith(".onnx"):
        return onnx_policy(spec, output=onnx_output)
    if runs_code(spec):
        return load_pickled(Path(spec), policy_class)
    if ":" in spec:
        return load_object(spec)
    raise PolicyError(
        f"policy is {spec!r}; give a file ({', '.join(FILES)}, file.npz:array) or module:object. A column of the logs "
        "is read with them: read(..., eval_column=...), then policy=None"
    )


def is_column(spec: str) -> bool:
    """Whether the words can only name a column of the logs."""
    return not (":" in spec or spec.lower().endswith(FILES))


def is_table(spec: str) -> bool:
    """Whether the words name a table of probabilities."""
    return spec.lower().endswith(TABLES) or ".npz:" in spec.lower()


def load_object(spec: str) -> Any:
    """What ``module:object`` names, looked for here first; importing a module runs its code."""
    module, _, name = spec.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        return getattr(importlib.import_module(module), name)
    except ImportError as error:
        raise PolicyError(f"{spec!r}: module {module!r} cannot be imported from here: {error}") from error
    except AttributeError as error:
        raise PolicyError(f"{spec!r}: module {module!r} has no {name!r}") from error
    finally:
        sys.path.pop(0)


def _table(spec: str) -> Array:
    """Probabilities (states, actions) or (times, states, actions)."""
    if ".npz" in spec.lower() or spec.lower().endswith(".npy"):
        file, _, array = spec.partition(":")
        return _numpy(Path(file), array)
    path = Path(spec)
    try:
        table = to_table(path)
    except TightropeError as error:
        raise PolicyError(f"policy: {error}") from error
    keys = [name for name in ("t", "state", "action") if name in table.column_names]
    if keys[-2:] != ["state", "action"] or "prob" not in table.column_names:
        raise PolicyError(
            f"policy {path}: columns state, action, prob (and t, if it changes with time) expected; it has "
            f"{', '.join(table.column_names)}"
        )
    index = [table[name].to_numpy() for name in keys]
    if any(part.dtype.kind not in "iu" or part.min() < 0 for part in index):
        raise PolicyError(f"policy {path}: {', '.join(keys)} must be whole numbers from 0")
    probs = table["prob"].to_numpy()
    if probs.dtype.kind not in "iuf":
        raise PolicyError(f"policy {path}: column 'prob' must hold numbers; it holds {probs[0]!r}")
    result = np.zeros([int(part.max()) + 1 for part in index])
    np.add.at(result, tuple(index), probs)  # a pair given twice makes its row sum to more than one, which is refused
    return result


def _numpy(path: Path, array: str) -> Array:
    try:
        loaded = np.load(path, allow_pickle=False)
        if path.suffix == ".npy":
            return np.asarray(loaded, dtype=np.float64)
        names = list(loaded.keys())
        name = array or ("probs" if "probs" in names else names[0])
        if name not in names or (len(names) > 1 and not array and name != "probs"):
            raise PolicyError(f"policy {path} holds {', '.join(names)}; name one of them: {path}:{names[0]}")
        return np.asarray(loaded[name], dtype=np.float64)
    except FileNotFoundError as error:
        raise PolicyError(f"policy {path}: no such file") from error
    except (OSError, EOFError, ValueError, IndexError) as error:
        if isinstance(error, TightropeError):
            raise
        raise PolicyError(f"policy {path} cannot be read as a NumPy file of numbers: {error}") from error
