"""The frozen lake of four by four cells (Gymnasium's FrozenLake-v1, slippery): one reward, far away, and holes.

A move goes where it is meant to in one case of three, and else to one of the two sides. Holes and the goal end the
episode, the goal pays 1. Both policies follow the safest way and stray at random, the behaviour policy more.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.overlap import largest_ratio
from tightrope.domains.small import SmallProblem

MAP = ("SFFF", "FHFH", "FFFH", "HFFG")
MOVES = ((0, -1), (1, 0), (0, 1), (-1, 0))  # left, down, right, up: Gymnasium's order
SAFEST = (0, 3, 3, 3, 0, 0, 0, 0, 3, 1, 0, 0, 0, 2, 1, 0)  # by value iteration; never used in holes and at the goal
HORIZON = 100
STRAY, CANDIDATE_STRAY = 0.4, 0.3  # how often a move is drawn at random


def lake() -> SmallProblem:
    """Sixteen cells, of which five end the episode."""
    side = len(MAP)
    cells = side * side
    transition, rewards = np.zeros((cells, 4, cells + 1)), np.zeros((cells, 4, cells + 1))
    for cell in range(cells):
        if _kind(cell) in "HG":  # nobody acts there
            transition[cell, :, cells] = 1.0
            continue
        row, column = divmod(cell, side)
        for action in range(4):
            for turn in (-1, 0, 1):
                down, right = MOVES[(action + turn) % 4]
                after = int(np.clip(row + down, 0, side - 1)) * side + int(np.clip(column + right, 0, side - 1))
                transition[cell, action, cells if _kind(after) in "HG" else after] += 1 / 3
                if _kind(after) == "G":  # no hole is next to the one cell that leads here, so the end is the goal
                    rewards[cell, action, cells] = 1.0
    mdp = FiniteMDP(transition, rewards, np.eye(cells)[0], HORIZON)
    behavior, candidate = _straying(STRAY), _straying(CANDIDATE_STRAY)
    return SmallProblem(
        "lake",
        "cross a slippery lake of 4 × 4 cells without falling into a hole: one reward, far away",
        mdp,
        behavior,
        candidate,
        max_ratio=largest_ratio(mdp, behavior, candidate),
    )


def _kind(cell: int) -> str:
    return MAP[cell // len(MAP)][cell % len(MAP)]


def _straying(share: float) -> TabularPolicy:
    best: Array = np.eye(4)[list(SAFEST)]
    return TabularPolicy((1 - share) * best + share / 4)
