"""The graph of the Caltech benchmark (Voloshin, Le, Jiang and Yue 2021): sixteen decisions along two rows.

Each step leads on to the next column: action 0 to the upper row, action 1 to the lower one, and in one case of four to
the other. The upper row pays 1, the lower one costs 1; the last column does so once more on the way out.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.overlap import largest_ratio
from tightrope.domains.small import SmallProblem

STEPS, SLIP, DISCOUNT = 16, 0.25, 0.98
SEEN_AS_ONE = 3  # columns that look alike where the state is hidden


def graph() -> SmallProblem:
    """A start, fifteen columns of two states, and the end; the state tells the time."""
    states = 2 * STEPS - 1
    transition, rewards = np.zeros((states, 2, states + 1)), np.zeros((states, 2, states + 1))
    for state in range(states):
        column = (state + 1) // 2
        if column == STEPS - 1:
            transition[state, :, states] = 1.0
            rewards[state, :, states] = 1.0 if state % 2 else -1.0
            continue
        upper, lower = 2 * column + 1, 2 * column + 2
        transition[state, 0, [upper, lower]] = 1 - SLIP, SLIP
        transition[state, 1, [upper, lower]] = SLIP, 1 - SLIP
        rewards[state, :, upper], rewards[state, :, lower] = 1.0, -1.0
    mdp = FiniteMDP(transition, rewards, np.eye(states)[0], STEPS, DISCOUNT)
    behavior, candidate = (TabularPolicy(np.tile([up, 1 - up], (states, 1))) for up in (0.6, 0.8))
    return SmallProblem(
        "graph",
        "sixteen decisions along two rows: the state tells the time, so each is met once an episode",
        mdp,
        behavior,
        candidate,
        max_ratio=largest_ratio(mdp, behavior, candidate),
    )


def graph_hidden() -> SmallProblem:
    """The same with neither the row nor the exact column logged."""
    whole = graph()
    seen = tuple(max(0, (state + 1) // 2 - 1) // SEEN_AS_ONE for state in range(len(whole.mdp.start_probs)))
    behavior, candidate = (TabularPolicy(one.table[: max(seen) + 1]) for one in (whole.behavior, whole.candidate))
    return replace(
        whole,
        name="graph-hidden",
        about="the graph, but three columns and both rows are logged as one state",
        behavior=behavior,
        candidate=candidate,
        observe=seen,
    )
