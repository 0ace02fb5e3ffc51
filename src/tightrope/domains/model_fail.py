"""ModelFail (Thomas and Brunskill 2016): no state is ever seen, so every model of what is logged is wrong.

The first action leads up or down; whatever is done next, up earns 1 and down costs 1, and the episode ends. To the
logger both steps look alike. The two policies mirror each other.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.small import SmallProblem

UP = 0.88  # how often the behaviour policy goes up


def model_fail() -> SmallProblem:
    """Three states that are logged as one."""
    transition, rewards = np.zeros((3, 2, 4)), np.zeros((3, 2, 4))
    transition[0, 0, 1] = transition[0, 1, 2] = 1.0
    transition[1:, :, 3] = 1.0
    rewards[1], rewards[2] = 1.0, -1.0
    return SmallProblem(
        "model-fail",
        "two steps that look alike, the first decides: every model of what is logged is wrong",
        FiniteMDP(transition, rewards, np.array([1.0, 0.0, 0.0]), horizon=2),
        TabularPolicy([[UP, 1 - UP]]),
        TabularPolicy([[1 - UP, UP]]),
        max_ratio=(UP / (1 - UP)) ** 2,
        observe=(0, 0, 0),
    )
