"""ONNX files: states in, a row of probabilities, log-probabilities or logits per state out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tightrope.adapters.outputs import LabelledPolicy, Output, Times, as_logits, labelled
from tightrope.base.errors import PolicyError
from tightrope.base.extras import load_extra
from tightrope.base.policy.base import Anything, Array

KINDS: dict[str, Output] = {  # what an output's name says about it; the last is what skl2onnx writes
    "probabilities": "probabilities",
    "probs": "probabilities",
    "log_probabilities": "log_probabilities",
    "log_probs": "log_probabilities",
    "logits": "logits",
    "output_probability": "probabilities",
}
LABELS = ("label", "output_label")
TYPES: dict[str, Any] = {"tensor(float)": np.float32, "tensor(double)": np.float64, "tensor(int64)": np.int64}


def onnx_policy(path: str | Path, *, output: str | None = None) -> LabelledPolicy:
    """The policy in the ONNX file ``path`` with one input (N, d) and an output (N, actions), run on the CPU.

    The name of the output says what it holds ("probabilities", "probs", "log_probs", "logits"), or ``output`` does: a
    kind ("logits"), or "name:kind". Columns are actions 0..k-1; classifiers with a ZipMap bring their own labels.
    """
    runtime = load_extra("onnxruntime", "onnx", f"policy {path}")
    try:
        session = runtime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors have no parent of their own
        raise PolicyError(f"policy {path} cannot be loaded as an ONNX file: {error}") from error
    width, dtype = _check_input(path, session)
    name, kind = _choose(path, session, output)
    wanted = [name, *(one.name for one in session.get_outputs() if one.name in LABELS and one.name != name)]

    def ask(states: Anything) -> tuple[Array, list[Any]]:
        rows = states.reshape(len(states), -1)
        if rows.shape[1] != width:
            raise PolicyError(
                f"states must have {width} numbers each for policy {path}; the logs hold {rows.shape[1]} (shape "
                f"{states.shape})"
            )
        given, *chosen = session.run(wanted, {session.get_inputs()[0].name: rows.astype(dtype)})
        table, labels = _table(path, session, given)
        if chosen and isinstance(given, np.ndarray) and (table.argmax(axis=1) != chosen[0]).any():
            raise PolicyError(
                f"policy {path}: its {wanted[1]} is not the number of the largest of its {name}: the columns have "
                "other labels than 0, 1, 2, ... Export it with a ZipMap, which names them"
            )
        return table, labels

    _, labels = ask(np.zeros((1, width)))

    def scores(states: Anything, t: Times) -> Array:
        return as_logits(kind, ask(states)[0])

    return labelled(scores, labels)


def _check_input(path: str | Path, session: Any) -> tuple[int, Any]:
    """The width and type of the states; refuses what is not (N, d) with any N."""
    inputs = session.get_inputs()
    if len(inputs) == 1 and inputs[0].type in TYPES and len(inputs[0].shape) == 2:
        count, width = inputs[0].shape
        if isinstance(width, int) and not isinstance(count, int):
            return width, TYPES[inputs[0].type]
    raise PolicyError(
        f"policy {path} must take one input of shape (N, d), with N left open (dynamic_axes in torch.onnx.export); "
        f"it takes {_listed(inputs)}"
    )


def _choose(path: str | Path, session: Any, declared: str | None) -> tuple[str, Output]:
    """Which output to take, and what it holds."""
    outputs = session.get_outputs()
    if declared is None:
        named = [one.name for one in outputs if one.name.lower() in KINDS]
        if len(named) == 1:
            return named[0], KINDS[named[0].lower()]
        problem = "several of them" if named else "none of them"
        raise PolicyError(
            f"policy {path} gives {_listed(outputs)}; {problem} is named {', '.join(KINDS)}. Say which one it is and "
            'what it holds: output="name:logits", --onnx-output name:logits'
        )
    name, _, kind = declared.rpartition(":")
    if kind not in KINDS:
        raise PolicyError(f"the ONNX output must be a kind ({', '.join(KINDS)}) or name:kind; got {declared!r}")
    names = [one.name for one in outputs if one.name == name or (not name and one.name not in LABELS)]
    if len(names) != 1:
        raise PolicyError(f"the ONNX output must name one of {_listed(outputs)} of policy {path}; got {declared!r}")
    return names[0], KINDS[kind]


def _table(path: str | Path, session: Any, given: Any) -> tuple[Array, list[Any]]:
    """Numbers (N, k) and the labels of their columns."""
    if isinstance(given, list) and given and isinstance(given[0], dict):  # what a ZipMap makes
        labels = list(given[0])
        return np.array([[row[label] for label in labels] for row in given], dtype=np.float64), labels
    if isinstance(given, np.ndarray) and given.ndim == 2 and given.dtype.kind == "f":
        return given.astype(np.float64), list(range(given.shape[1]))
    raise PolicyError(
        f"policy {path} must give floats of shape (N, actions); it gives {_listed(session.get_outputs())}"
    )


def _listed(parts: Any) -> str:
    return ", ".join(f"{one.name}: {one.type}{list(one.shape)}" for one in parts)
