"""Value functions that the user gives: nothing is fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tightrope.base.arrays import steps_of
from tightrope.base.checks import lent, numbers, read_only
from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.errors import DataError, PolicyError
from tightrope.base.policy import DiscretePolicy
from tightrope.base.problem import Problem
from tightrope.models.tabular.model import numbered


@dataclass(frozen=True, eq=False)
class GivenValues:
    """q̂ as a table (states, actions) or (times, states, actions), from a simulator or another data set."""

    name: ClassVar[str] = "given"

    q_values: Array  # (states, actions) or (times, states, actions)

    def __init__(self, q_values: npt.ArrayLike):
        table = numbers("q_values", q_values, DataError)
        if table.ndim not in (2, 3) or not np.isfinite(table).all():
            raise DataError(
                "q_values must be finite numbers of shape (states, actions) or (times, states, actions); got shape "
                f"{table.shape}"
            )
        object.__setattr__(self, "q_values", read_only(table.copy()))

    def prepare(self, problem: Problem, *, anchor: str) -> PreparedGiven:
        """Look the logged steps up once."""
        data, policy = problem.dataset, problem.policy
        if not isinstance(policy, DiscretePolicy):
            raise PolicyError(
                "q_values need a policy with probs(states, t), because v̂ is their average over its actions"
            )
        states, actions, times = numbered("state", data.states), numbered("action", data.actions), data.times
        table = self.q_values
        if table.ndim == 2:
            table = np.broadcast_to(table, (data.horizon, *table.shape))
        if len(table) < data.horizon or states.max() >= table.shape[1] or actions.max() >= table.shape[2]:
            raise DataError(
                f"q_values must cover horizon {data.horizon}, states up to {states.max()} and actions up to "
                f"{actions.max()}, as the logs have them; got shape {self.q_values.shape}"
            )
        values = np.empty(data.n_steps)
        for start, stop in data.chunks():
            steps = data.steps(start, stop)
            rows, probs = table[times[steps], states[steps]], policy.probs(lent(states[steps]), lent(times[steps]))
            if probs.shape != rows.shape:
                raise DataError(
                    f"q_values must have as many actions as the policy, {probs.shape[1]}; got {rows.shape[1]}"
                )
            values[steps] = np.einsum("na,na->n", probs, rows)
        starts = values[data.offsets[:-1]]
        return PreparedGiven(table[times, states, actions], values, starts, table, times, states, data.offsets)


@dataclass(frozen=True, eq=False)
class PreparedGiven:
    """Values that do not depend on the weights."""

    q_values: Array  # (N,)
    state_values: Array  # (N,)
    start_values: Array  # (n,)
    table: Array  # (times, states, actions)
    times: IntArray  # (N,)
    states: IntArray  # (N,)
    offsets: IntArray  # (n+1,)

    @property
    def n_trajectories(self) -> int:
        """How many weights a row has."""
        return len(self.start_values)

    def values(self, weights: Array) -> Array:
        """The average v̂_0 of the weighted starts, (rows,)."""
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Array = (weights * self.start_values).sum(axis=1) / weights.sum(
                axis=1
            )  # not @: equal rows must give equal bits
        return result

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """As given."""
        return self.q_values, self.state_values

    def action_values(self, weights: Array, wanted: Sequence[IntArray]) -> list[Array]:
        """As given, of every action."""
        parts = [steps_of(self.offsets, episodes) for episodes in wanted]
        return [self.table[self.times[steps], self.states[steps]] for steps in parts]

    def influences(self, weights: Array) -> Array:
        """(v̂_0(S_0) − V̂) / Σw."""
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes: Array = (self.start_values - self.values(weights)[:, None]) / weights.sum(axis=1, keepdims=True)
        return slopes
