"""Cliff walking (Sutton and Barto, Example 6.6; Gymnasium's CliffWalking): deterministic moves, costly falls.

Four rows of twelve cells; each step costs 1, the cliff in the last row costs 100 and sends the walker back to the
start, the goal in the corner ends the episode. Both policies follow the edge and stray at random, the behaviour policy
more. A tabular model fitted to its own data explains deterministic moves without residue: what it says of pairs it
never saw is all that is left to be wrong, and no correction acts on it.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP

ROWS, COLUMNS, HORIZON = 4, 12, 60
MOVES = ((-1, 0), (0, 1), (1, 0), (0, -1))  # up, right, down, left
START, GOAL = 36, 47


def cliff_walking() -> FiniteMDP:
    """The process; 48 cells, of which the goal is the end."""
    cells = ROWS * COLUMNS
    transition = np.zeros((cells, len(MOVES), cells + 1))
    rewards = np.full((cells, len(MOVES), cells + 1), -1.0)
    for cell in range(cells):
        row, column = divmod(cell, COLUMNS)
        for action, (down, right) in enumerate(MOVES):
            after = int(np.clip(row + down, 0, ROWS - 1)) * COLUMNS + int(np.clip(column + right, 0, COLUMNS - 1))
            if START < after < GOAL:
                transition[cell, action, START] = 1.0
                rewards[cell, action, START] = -100.0
            else:
                transition[cell, action, cells if after == GOAL else after] = 1.0
    return FiniteMDP(transition, rewards, np.eye(cells)[START], HORIZON)


def along_the_edge(stray: float) -> TabularPolicy:
    """Up, right along the edge, down into the goal; with probability ``stray`` any of the four moves."""
    best = np.full(ROWS * COLUMNS, 1)
    best[START] = 0
    best[COLUMNS - 1 :: COLUMNS] = 2
    table: Array = np.eye(len(MOVES))[best]
    return TabularPolicy((1 - stray) * table + stray / len(MOVES))
