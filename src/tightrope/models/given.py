"""Value functions that the user gives: nothing is fitted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from tightrope.base import folder
from tightrope.base.arrays import pieces, times_of
from tightrope.base.checks import lent, numbers, read_only
from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError, PolicyError
from tightrope.base.policy import DiscretePolicy
from tightrope.base.problem import Problem
from tightrope.models.tabular.model import check_numbered


@dataclass(frozen=True, eq=False)
class GivenValues:
    """q̂ as a table (states, actions) or (times, states, actions), from a simulator or another data set."""

    name: ClassVar[str] = "given"
    in_pieces: ClassVar[bool] = True

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
        check_numbered("state", data.states)
        check_numbered("action", data.actions)
        assert data.states is not None
        assert data.actions is not None
        most = int(data.states.max()), int(data.actions.max())
        table = self.q_values
        if table.ndim == 2:
            table = np.broadcast_to(table, (data.horizon, *table.shape))
        if len(table) < data.horizon or most[0] >= table.shape[1] or most[1] >= table.shape[2]:
            raise DataError(
                f"q_values must cover horizon {data.horizon}, states up to {most[0]} and actions up to {most[1]}, as "
                f"the logs have them; got shape {self.q_values.shape}"
            )
        q_values, values = data.scratch.empty(data.n_steps), data.scratch.empty(data.n_steps)
        for start, stop in data.chunks():
            steps, times = data.steps(start, stop), data.times_of(start, stop)
            states = data.states[steps].astype(np.int64)
            rows, probs = table[times, states], policy.probs(lent(states), lent(times))
            if probs.shape != rows.shape:
                raise DataError(
                    f"q_values must have as many actions as the policy, {probs.shape[1]}; got {rows.shape[1]}"
                )
            values[steps] = np.einsum("na,na->n", probs, rows)
            q_values[steps] = rows[np.arange(len(rows)), data.actions[steps].astype(np.int64)]
        return PreparedGiven(q_values, values, values[data.offsets[:-1]], table, data)


@dataclass(frozen=True, eq=False)
class PreparedGiven:
    """Values that do not depend on the weights."""

    q_values: Array  # (N,)
    state_values: Array  # (N,)
    start_values: Array  # (n,)
    table: Array  # (times, states, actions)
    data: TrajectoryDataset

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

    def action_values(self, weights: Array, wanted: Sequence[IntArray]) -> Iterator[tuple[int, slice, Array]]:
        """As given, of every action."""
        data = self.data
        assert data.states is not None
        for row, episodes in enumerate(wanted):
            for some in pieces(data.offsets, episodes, folder.PART):
                times, states = times_of(data.offsets, episodes[some]), data.states[data.steps_of(episodes[some])]
                yield row, some, self.table[times, states.astype(np.int64)]

    def influences(self, weights: Array) -> Array:
        """(v̂_0(S_0) − V̂) / Σw."""
        with np.errstate(invalid="ignore", divide="ignore"):
            slopes: Array = (self.start_values - self.values(weights)[:, None]) / weights.sum(axis=1, keepdims=True)
        return slopes
