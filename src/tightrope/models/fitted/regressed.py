"""Fitted Q evaluation with somebody's regressor: for every row of weights a fit for each time, backwards."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.models.fitted.steps import Choices, Steps
from tightrope.models.learner import Learner


@dataclass(frozen=True, eq=False)
class RegressedQ:
    """q̂_t as fitted copies of a regressor."""

    steps: Steps
    learner: Learner

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.steps.data.n_trajectories

    def values(self, weights: Array) -> Array:
        """V̂ under each row of weights, (rows,); NaN where there is nothing to fit."""
        return np.array([self._value(row) for row in np.asarray(weights, dtype=np.float64)])

    def _value(self, weights: Array) -> float:
        last = deque(self._backwards(weights), maxlen=1)  # regressors can be large
        if not last:
            return float("nan")
        starts = self._state_values(last[0][1], self._choices(self.steps.starts, 0), self.n_trajectories)
        return float(weights @ starts / weights.sum())

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every wanted step under weights (n,); else NaN."""
        data = self.steps.data
        q_values, state_values = np.full(data.n_steps, np.nan), np.full(data.n_steps, np.nan)
        inside = np.ones(data.n_steps, bool) if wanted is None else np.repeat(wanted, data.lengths)
        for t, fitted in self._backwards(np.asarray(weights, dtype=np.float64)):
            places = np.flatnonzero(inside & (data.times == t))
            if len(places):
                q_values[places] = self.learner.predict(fitted, self._taken[places], 1)[:, 0]
                state_values[places] = self._state_values(fitted, self._choices(places, t), len(places))
        return q_values, state_values

    def _backwards(self, weights: Array) -> Iterator[tuple[int, Any]]:
        """(t, q̂_t) from the last time to the first; nothing where there is no step to fit to.

        At the last time every step teaches its reward. At the others those alone of which it is known what follows.
        """
        data, steps = self.steps.data, np.repeat(weights, self.steps.data.lengths)
        known = steps * self.steps.known
        if not steps.any() or (data.horizon > 1 and not known.any()):
            return
        fitted = self.learner.learn(self._taken, data.rewards[:, None], steps)
        yield data.horizon - 1, fitted
        for t in reversed(range(data.horizon - 1)):
            places, choices = self._nexts[int(self.steps.kinds[t + 1])]
            targets = data.rewards.copy()
            if len(places):
                targets[places] += data.discount * self._state_values(fitted, choices, len(places))
            fitted = self.learner.learn(self._taken, targets[:, None], known)
            yield t, fitted

    def _state_values(self, fitted: Any, choices: Choices, count: int) -> Array:
        return choices.mean(self.learner.predict(fitted, choices.inputs, 1)[:, 0], count)

    def _choices(self, places: IntArray, t: int) -> Choices:
        return self.steps.basis.choices(places, np.full(len(places), t))

    @cached_property
    def _taken(self) -> Array:
        """The features of every step, (N, p)."""
        return self.steps.basis.taken(np.arange(self.steps.data.n_steps))

    @cached_property
    def _nexts(self) -> list[tuple[IntArray, Choices]]:
        """For each kind of time the steps after which something follows, and what the candidate would do there."""
        places, times = np.flatnonzero(self.steps.following >= 0), self.steps.typical_times
        if not len(places):
            return [(places, Choices(places, np.zeros(0), np.zeros((0, self.steps.width)))) for _ in times]
        return [(places, self._choices(self.steps.following[places], t)) for t in times]
