"""A chain of long horizon: two hundred decisions on five links, so that ratios carry no information at all.

The chain is Strens' (2000): "on" leads to the next link and pays 10 on the last one, where it stays; "back" pays 2
and leads to the first link. One move in five is the other one. What the logs know well are the five links; the two
policies visit all of them. Liu, Li, Tang and Zhou (2018) call what happens to the ratios the curse of horizon.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.overlap import largest_ratio
from tightrope.domains.small import SmallProblem

LINKS, HORIZON, SLIP = 5, 200, 0.2


def chain() -> SmallProblem:
    """Five links, two actions; the episode goes on until the horizon."""
    transition, rewards = np.zeros((LINKS, 2, LINKS + 1)), np.zeros((LINKS, 2, LINKS + 1))
    for link in range(LINKS):
        following = min(link + 1, LINKS - 1)
        for action, on in enumerate((1 - SLIP, SLIP)):
            transition[link, action, following] = on
            transition[link, action, 0] = 1 - on
        rewards[link, :, following] = 10.0 if link == LINKS - 1 else 0.0
        rewards[link, :, 0] = 2.0
    mdp = FiniteMDP(transition, rewards, np.eye(LINKS)[0], HORIZON)
    behavior, candidate = (TabularPolicy(np.tile([on, 1 - on], (LINKS, 1))) for on in (0.6, 0.8))
    return SmallProblem(
        "chain",
        "two hundred decisions on five links: ratios say nothing, the links are known well",
        mdp,
        behavior,
        candidate,
        max_ratio=largest_ratio(mdp, behavior, candidate),
    )
