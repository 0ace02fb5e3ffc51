"""Random small processes and models of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.domains import FiniteMDP


def random_rows(rng: np.random.Generator, *shape: int, concentration: float = 1.0) -> Any:
    return rng.dirichlet(np.full(shape[-1], concentration), size=shape[:-1])


def random_policy(rng: np.random.Generator, horizon: int, n_states: int, n_actions: int) -> Any:
    return 0.1 / n_actions + 0.9 * random_rows(rng, horizon, n_states, n_actions)


def random_mdp(
    rng: np.random.Generator,
    *,
    n_states: int = 3,
    n_actions: int = 2,
    horizon: int = 4,
    discount: float = 1.0,
    ends: bool = True,
    outcome_rewards: bool = False,
    low: float = -1.0,
    high: float = 1.0,
) -> FiniteMDP:
    transition = random_rows(rng, n_states, n_actions, n_states + 1)
    if not ends:
        transition[..., -1] = 0.0
        transition /= transition.sum(axis=2, keepdims=True)
    size = (n_states, n_actions, n_states + 1 if outcome_rewards else 1)
    rewards = np.broadcast_to(rng.uniform(low, high, size), transition.shape).copy()
    return FiniteMDP(transition, rewards, random_rows(rng, 1, n_states)[0], horizon, discount)


def blurred(mdp: FiniteMDP, rng: np.random.Generator, share: float) -> FiniteMDP:
    """The process mixed with a random one that goes where it can go."""
    other = random_rows(rng, *mdp.transition_probs.shape) * (mdp.transition_probs > 0)
    other /= other.sum(axis=2, keepdims=True)
    start = random_rows(rng, 1, len(mdp.start_probs))[0]
    return FiniteMDP(
        (1 - share) * mdp.transition_probs + share * other,
        mdp.rewards,
        (1 - share) * mdp.start_probs + share * start,
        mdp.horizon,
        mdp.discount,
    )
