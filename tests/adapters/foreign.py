"""Logs for other libraries' policies: shapes and values that their tests share."""

from __future__ import annotations

from typing import Any

import numpy as np

import tightrope


def logs(states: Any, actions: Any, **options: Any) -> tightrope.TrajectoryDataset:
    """One episode per four rows; a behaviour probability of one half everywhere; rewards 0, 1, 2, ..."""
    n = len(states)
    source = {
        "episode": np.arange(n) // 4,
        "t": np.arange(n) % 4,
        "reward": np.arange(n, dtype=float),
        "behavior_prob": np.full(n, 0.5),
        "terminated": np.arange(n) % 4 == 3,
    }
    for name, values in (("obs", np.asarray(states)), ("action", np.asarray(actions))):
        if values.ndim == 2:
            source |= {f"{name}_{k}": column for k, column in enumerate(values.T)}
        else:
            source["state" if name == "obs" else name] = values
    return tightrope.read(source, **options)


def inverse(probs: Any, uniform: float) -> int:
    """The first index at which the cumulative probability passes the uniform, one row at a time."""
    total = 0.0
    for index, chance in enumerate(probs):
        total += float(chance)
        if uniform < total:
            return index
    return len(probs) - 1
