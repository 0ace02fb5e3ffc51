"""ModelWin (Thomas and Brunskill 2016): a small process that a model learns at once.

From the first state each action leads to one of two others, by chance: one pays 1, one costs 1, and from both the
next step leads back. Twenty steps, so ten decisions that matter; the two policies mirror each other.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.overlap import largest_ratio
from tightrope.domains.small import SmallProblem

HORIZON, WORSE = 20, 0.73  # WORSE: how often the behaviour policy takes the worse action


def model_win() -> SmallProblem:
    """Three states, all of them logged."""
    transition = np.zeros((3, 2, 4))
    transition[0, 0, 1:3], transition[0, 1, 1:3] = (0.4, 0.6), (0.6, 0.4)
    transition[1:, :, 0] = 1.0
    rewards = np.zeros((3, 2, 4))
    rewards[0, :, 1], rewards[0, :, 2] = 1.0, -1.0
    mdp = FiniteMDP(transition, rewards, np.array([1.0, 0.0, 0.0]), HORIZON)
    behavior = TabularPolicy([[WORSE, 1 - WORSE], [0.5, 0.5], [0.5, 0.5]])
    candidate = TabularPolicy([[1 - WORSE, WORSE], [0.5, 0.5], [0.5, 0.5]])
    return SmallProblem(
        "model-win",
        "three states, twenty steps: a model knows the process at once, ratios multiply over ten decisions",
        mdp,
        behavior,
        candidate,
        max_ratio=largest_ratio(mdp, behavior, candidate),
    )
