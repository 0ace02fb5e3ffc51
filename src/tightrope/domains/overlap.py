"""How far two policies are apart on a finite process, exactly: the largest ratio, and what logs are worth."""

from __future__ import annotations

import numpy as np

from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP


def largest_ratio(mdp: FiniteMDP, behavior: TabularPolicy, candidate: TabularPolicy) -> float:
    """The largest cumulative importance ratio that any episode can have at any step, by backward induction.

    It is one of a whole episode: in every state some action has a ratio of at least 1.
    """
    ratios = candidate.table / behavior.table
    possible = mdp.transition_probs > 0
    ahead = np.ones(len(mdp.start_probs) + 1)
    for _ in range(mdp.horizon):
        best = np.where(possible, ahead, 0.0).max(axis=2)
        ahead[:-1] = (ratios * best).max(axis=1)
    return float(ahead[:-1][mdp.start_probs > 0].max())


def effective_share(mdp: FiniteMDP, behavior: TabularPolicy, candidate: TabularPolicy) -> float:
    """How many of the candidate's episodes one logged episode is worth at the last step: 1 / E[ρ²], by induction."""
    squares = candidate.table**2 / behavior.table
    ahead = np.ones(len(mdp.start_probs) + 1)
    for _ in range(mdp.horizon):
        ahead[:-1] = (squares * (mdp.transition_probs @ ahead)).sum(axis=1)
    return float(1.0 / (mdp.start_probs @ ahead[:-1]))
