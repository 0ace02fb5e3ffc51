"""Linear ratios of visits, as regressions: here with one feature for each state, by which all laws can be asked for."""

from __future__ import annotations

import numpy as np

from tests.field import Entry, Question


def one_hot(states: np.ndarray) -> np.ndarray:
    """A feature for each of eight states: more than any of the processes has."""
    return np.eye(8)[states]


def slow(question: Question) -> float:
    """Each time the least-squares regression of w_t ρ_t on the features of the next state, by lstsq."""
    now = [(w, e, 1.0) for w, e in zip(question.weights, question.episodes, strict=True)]
    value = 0.0
    for t in range(question.horizon):
        rows = np.array([np.sqrt(w) * one_hot(e.states[t]) for w, e, _ in now])
        targets = np.array([np.sqrt(w) * target for w, _, target in now])
        coefficients = np.linalg.lstsq(rows, targets, rcond=None)[0]
        following = []
        for w, e, _ in now:
            moved = float(one_hot(e.states[t]) @ coefficients) * e.candidate[t] / e.behavior[t]
            value += w * question.discount**t * moved * e.rewards[t]
            if len(e.states) > t + 1:
                following.append((w, e, moved))
        now = following
        if not now:
            break
    return value / sum(question.weights)


# Both start in state 0: w_0(0) = 1, and the mean of ρ_0 r_0 is (2 · 1 + 1/2 · 6) / 2 = 5/2. Only the first goes on:
# w_1(1) = 1 · 2, and the mean of w_1 ρ_1 r_1 is (2 · 1/2 · 4 + 0) / 2 = 2. The value is 5/2 + 1/2 · 2 = 7/2.
GOLDEN = 3.5

ENTRY = Entry(
    slow,
    GOLDEN,
    settings={"features": one_hot},
    exempt={"shift": "the ratios of the visits to a state do not average to exactly one"},
)
