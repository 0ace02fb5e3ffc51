"""DR and WDR with a model per resample: every weight row has control variates of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tightrope.dataset import Array
from tightrope.models import PreparedModel
from tightrope.statistic import Statistic


@dataclass(frozen=True, eq=False)
class Refitted:
    """Fit under the weights, build the statistic with those values, evaluate it under the same weights."""

    model: PreparedModel
    with_values: Callable[[tuple[Array, Array]], Statistic]

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.model.n_trajectories

    def values(self, weights: Array) -> Array:
        """The corrected estimate under each row of weights, (rows,)."""
        return np.array(
            [float(self.with_values(self.model.control_variates(row))(row)) if row.any() else np.nan for row in weights]
        )
