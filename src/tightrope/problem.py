"""The question put to the logs: this dataset, that candidate. Estimators are called on it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from tightrope.dataset import TrajectoryDataset
from tightrope.ratios import Ratios, ratios


@dataclass(frozen=True, eq=False)
class Problem:
    """Logs and a candidate policy; what several estimators need of both is computed once."""

    dataset: TrajectoryDataset
    policy: Any = None  # None: the logged eval_prob column

    @cached_property
    def ratios(self) -> Ratios:
        """Importance ratios of the candidate over the logs."""
        return ratios(self.dataset, self.policy)
