"""Processes drawn at random, for claims that must hold on problems that nobody has looked at."""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.small import SmallProblem

REWARDS = ("costs", "gains", "either sign", "rare losses", "rare gains")


def random_problem(seed: int) -> SmallProblem:
    """A process of 2 to 9 states, 2 to 4 actions and 1 to 20 steps, and two policies that are more or less alike."""
    rng = np.random.default_rng([*b"random problem", seed])
    states, actions, horizon = int(rng.integers(2, 10)), int(rng.integers(2, 5)), int(rng.integers(1, 21))
    transition = _transitions(rng, states, actions)
    kind = str(rng.choice(REWARDS))
    behavior = 0.95 * rng.dirichlet(np.full(actions, 3.0), states) + 0.05 / actions
    other = rng.dirichlet(np.full(actions, rng.choice([0.5, 1.0, 3.0])), states)
    apart = rng.choice([0.3, 0.6, 1.0])
    candidate = (1 - apart) * behavior + apart * other
    return SmallProblem(
        f"random-{seed}",
        f"drawn at random: {states} states, {actions} actions, {horizon} steps, rewards: {kind}",
        FiniteMDP(
            transition,
            _rewards(rng, kind, transition),
            rng.dirichlet(np.ones(states)),
            horizon,
            discount=float(rng.choice([1.0, 0.95])),
        ),
        TabularPolicy(behavior),
        TabularPolicy(candidate),
        max_ratio=float((candidate / behavior).max()) ** horizon,
    )


def _transitions(rng: np.random.Generator, states: int, actions: int) -> Array:
    """From each pair to at most four states, and now and then to the end."""
    transition = np.zeros((states, actions, states + 1))
    for state in range(states):
        for action in range(actions):
            reached = rng.choice(states, int(rng.integers(1, min(4, states) + 1)), replace=False)
            end = rng.choice([0.0, 0.05, 0.2]) * rng.random()
            transition[state, action, reached] = (1 - end) * rng.dirichlet(np.ones(len(reached)))
            transition[state, action, states] = end
    return transition


def _rewards(rng: np.random.Generator, kind: str, transition: Array) -> Array:
    shape = transition.shape
    if kind == "costs":
        return -rng.gamma(1.0, 1.0, shape)
    if kind == "gains":
        return rng.gamma(0.5, 1.0, shape)
    if kind == "either sign":
        return rng.normal(0.0, 1.0, shape)
    often = 0.5 * rng.random(shape) if kind == "rare losses" else np.zeros(shape)
    size = rng.gamma(2.0, 3.0, shape) * (-1.0 if kind == "rare losses" else 1.0)
    rare = np.where(rng.random(shape) < 0.1, size, often)
    return rare if np.ptp(rare[transition > 0]) > 0 else _rewards(rng, kind, transition)  # none at all: drawn again
