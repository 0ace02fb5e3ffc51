"""Four situations that need different answers, each with an exactly known value.

A good model and poor overlap; a wrong model and good overlap; a deterministic candidate; and logs that cannot answer.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tightrope.base.policy import TabularPolicy
from tightrope.domains.finite import FiniteMDP
from tightrope.domains.small import SmallProblem


def _river(horizon: int) -> FiniteMDP:
    """Six places on a river: swimming up mostly works and pays at the source, drifting pays a little at the mouth."""
    places = 6
    transition = np.zeros((places, 2, places + 1))
    rewards = np.zeros((places, 2, places + 1))
    for place in range(places):
        up, down = min(place + 1, places - 1), max(place - 1, 0)
        transition[place, 0, down] = 1.0
        transition[place, 1, up] += 0.6
        transition[place, 1, place] += 0.3
        transition[place, 1, down] += 0.1
    rewards[0, 0], rewards[places - 1, 1] = 0.05, 1.0
    return FiniteMDP(transition, rewards, np.eye(places)[1], horizon)


def _poor_overlap() -> SmallProblem:
    candidate = np.tile([0.1, 0.9], (6, 1))
    return SmallProblem(
        "good model, poor overlap",
        "forty decisions, a candidate far from the logs, six states that the logs cover well",
        _river(40),
        TabularPolicy(np.tile([0.5, 0.5], (6, 1))),
        TabularPolicy(candidate),
        max_ratio=1.8**40,
        needs="mb",
    )


def _wrong_model() -> SmallProblem:
    """Which way was taken is hidden, and the reward depends on it: to a model of what is seen, all states are one."""
    transition = np.zeros((3, 2, 4))
    rewards = np.zeros((3, 2, 4))
    transition[0, 0, 1] = transition[0, 1, 2] = 1.0
    transition[1, :, 3] = transition[2, :, 3] = 1.0
    rewards[1], rewards[2] = 1.0, -1.0
    return SmallProblem(
        "wrong model, good overlap",
        "two decisions; what the first one led to is not logged",
        FiniteMDP(transition, rewards, np.array([1.0, 0.0, 0.0]), horizon=2),
        TabularPolicy([[0.6, 0.4]]),
        TabularPolicy([[0.4, 0.6]]),
        max_ratio=2.25,
        observe=(0, 0, 0),
        needs="wdr, pdwis or exact",
    )


def _deterministic() -> SmallProblem:
    return SmallProblem(
        "deterministic candidate",
        "always up the river: after twenty decisions no logged episode agrees with it",
        _river(20),
        TabularPolicy(np.tile([0.5, 0.5], (6, 1))),
        TabularPolicy(np.tile([0.0, 1.0], (6, 1))),
        max_ratio=2.0**20,
        needs="mb",
    )


def _no_answer() -> SmallProblem:
    return SmallProblem(
        "no answer possible",
        "the logs hold one action per state, the candidate mostly takes the other",
        _river(10),
        TabularPolicy(np.tile([1.0, 0.0], (6, 1))),
        TabularPolicy(np.tile([0.2, 0.8], (6, 1))),
        max_ratio=1.0,
        needs="none",
    )


SITUATIONS: tuple[Callable[[], SmallProblem], ...] = (_poor_overlap, _wrong_model, _deterministic, _no_answer)


def situations() -> list[SmallProblem]:
    """All four situations."""
    return [make() for make in SITUATIONS]
