"""Modules of torch that return a distribution, or a row of numbers per state."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from tightrope.adapters.functions import StatePolicy, of_states, required
from tightrope.adapters.outputs import Output, Times
from tightrope.base.errors import PolicyError
from tightrope.base.policy import Policy
from tightrope.base.policy.base import Anything


def from_module(module: Any) -> Policy | None:
    """A torch module as a policy; None for anything else. This does not import torch."""
    torch = sys.modules.get("torch")
    return torch_policy(module) if torch is not None and isinstance(module, torch.nn.Module) else None


def torch_policy(module: Any, output: Output | None = None) -> StatePolicy:
    """A module of (states) or (states, t): float states as float32 tensors, numbered ones as int64, on its device.

    It runs in evaluation mode and without gradients, and its mode is restored afterwards. It may return the same as
    the function of a ``StatePolicy``; ``output="logits"`` declares logits.
    """
    import torch

    names = required(module.forward)
    if names is None:
        raise PolicyError(f"forward of {type(module).__name__} must take (states) or (states, t); it takes *args")
    ask = of_states(module, names)

    def function(states: Anything, t: Times) -> Any:
        where = next((value.device for value in module.parameters()), torch.device("cpu"))
        kind = torch.float32 if states.dtype.kind == "f" else torch.int64
        rows = torch.tensor(np.ascontiguousarray(states)).to(where, kind)  # a copy: tensors write to what they share
        with evaluating(module), torch.no_grad():
            return ask(rows, torch.tensor(t).to(where))

    return StatePolicy(function, output)


@contextmanager
def evaluating(module: Any) -> Iterator[None]:
    """The module in evaluation mode (no dropout, frozen batch statistics), put back afterwards."""
    modes = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode
