"""One decision among many: which of fifty items to show to a visitor of one of eight kinds, clicked or not.

Tastes and items are points in the plane, drawn once; near ones are clicked more often. The shop knows the tastes
roughly and tries everything now and then, the candidate knows them well.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.overlap import largest_ratio
from tightrope.domains.small import SmallProblem

KINDS, ITEMS = 8, 50


def catalogue() -> SmallProblem:
    """Eight kinds of visitors, fifty items, one step."""
    rng = np.random.default_rng([*b"catalogue"])
    tastes, items = rng.normal(size=(KINDS, 2)), rng.normal(size=(ITEMS, 2))
    fit = (tastes @ items.T).round(3)
    rough = (fit + rng.normal(size=fit.shape)).round(3)
    clicked = 1 / (1 + np.exp(2.5 - fit))
    transition, rewards = np.zeros((KINDS, ITEMS, KINDS + 1)), np.zeros((KINDS, ITEMS, KINDS + 1))
    # The reward of a step belongs to where it leads: the end stands for a click, the first state for none.
    transition[..., KINDS], transition[..., 0] = clicked, 1 - clicked
    rewards[..., KINDS] = 1.0
    mdp = FiniteMDP(transition, rewards, np.arange(KINDS, 0, -1) / (KINDS * (KINDS + 1) / 2), horizon=1)
    behavior, candidate = _liking(rough, 0.5, 0.2), _liking(fit, 2.0, 0.05)
    return SmallProblem(
        "catalogue",
        "show one of fifty items to a visitor: one decision, many actions, each seen a few times",
        mdp,
        behavior,
        candidate,
        max_ratio=largest_ratio(mdp, behavior, candidate),
    )


def _liking(scores: Array, strength: float, stray: float) -> TabularPolicy:
    """The better the score the more often, and with probability ``stray`` anything."""
    liked = np.exp(strength * scores)
    return TabularPolicy((1 - stray) * liked / liked.sum(axis=1, keepdims=True) + stray / ITEMS)
