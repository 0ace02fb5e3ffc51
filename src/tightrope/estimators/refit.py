"""DR and WDR with a model per resample: every weight row has control variates of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tightrope.dataset import Array
from tightrope.models import PreparedModel
from tightrope.statistic import SumStatistic, weight_rows


@dataclass(frozen=True, eq=False)
class RefitStatistic:
    """Fit under the weights, build the statistic with those values, evaluate it under the same weights."""

    model: PreparedModel
    with_values: Callable[[tuple[Array, Array]], SumStatistic]

    @property
    def n_trajectories(self) -> int:
        """How many weights it takes."""
        return self.model.n_trajectories

    def __call__(self, weights: npt.ArrayLike) -> Array:
        """(..., n) weights to (...,) values."""
        rows = weight_rows(weights, self.n_trajectories)
        flat = rows.reshape(-1, self.n_trajectories)
        values = [
            float(self.with_values(self.model.control_variates(row))(row)) if row.any() else np.nan for row in flat
        ]
        return np.array(values).reshape(rows.shape[:-1])

    @cached_property
    def estimate(self) -> float:
        """The point estimate: all weights one."""
        return float(self(np.ones(self.n_trajectories)))

    def influence(self) -> Array:
        """By leaving each trajectory out, refit included."""
        others = self.leave_one_out()
        influence: Array = (self.n_trajectories - 1) * (others.mean() - others)
        return influence

    def leave_one_out(self) -> Array:
        """The value without each trajectory in turn, (n,): n more fits."""
        n = self.n_trajectories
        return np.array([float(self(np.where(np.arange(n) == i, 0.0, 1.0))) for i in range(n)])
