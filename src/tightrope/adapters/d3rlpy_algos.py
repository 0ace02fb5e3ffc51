"""Policies of d3rlpy: ``predict`` acts without noise, and actions have no probabilities."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.base.errors import PolicyError
from tightrope.base.policy import DeterministicControl, DeterministicPolicy, Policy
from tightrope.base.policy.base import Anything, in_chunks


def recognise(algo: Any) -> Policy | None:
    """The policy that d3rlpy would deploy; None for anything else."""
    kinds = type(algo).__mro__
    if not any(cls.__module__.startswith("d3rlpy.") for cls in kinds):
        return None
    name = type(algo).__name__
    if not any(cls.__name__ == "QLearningAlgoBase" for cls in kinds):
        raise PolicyError(
            f"the algorithm must be one of Q-learning; {name} of d3rlpy does not choose by the current state alone"
        )
    if getattr(algo, "impl", None) is None:
        raise PolicyError(f"the {name} must be built first: fit it, load its parameters, or call build_with_dataset")
    shape = algo.impl.observation_shape

    def ask(states: Anything) -> Anything:
        if np.prod(shape, dtype=int) != np.prod(states.shape[1:], dtype=int):
            raise PolicyError(
                f"states must have shape {tuple(shape)} per step for the {name}; the logs hold {states.shape[1:]}"
            )
        rows = states.reshape(len(states), *shape)
        return np.asarray(algo.predict(rows.astype(np.float32 if rows.dtype.kind == "f" else rows.dtype)))

    size = int(algo.impl.action_size)
    if algo.get_action_type().name == "DISCRETE":
        return DeterministicPolicy(lambda s, t: in_chunks(ask, s).reshape(len(s)).astype(np.int64), size)
    return DeterministicControl(lambda s, t: in_chunks(ask, s), size)
