"""What a model leaves unexplained of the logged rewards."""

from __future__ import annotations

import numpy as np

from tightrope.base import folder
from tightrope.base.dataset import Array, TrajectoryDataset


def td_errors(data: TrajectoryDataset, q_values: Array, state_values: Array) -> Array:
    """δ = r − q̂ + γ v̂(next) of every step, (N,); nothing follows an episode's last one."""
    deltas = data.scratch.empty(data.n_steps)
    for start, stop in data.ranges(folder.PART):
        steps = data.steps(start, stop)
        following = np.append(state_values[steps][1:], 0.0)
        following[data.offsets[start + 1 : stop + 1] - 1 - steps.start] = 0.0
        deltas[steps] = data.rewards[steps] - q_values[steps] + data.discount * following
    return deltas
