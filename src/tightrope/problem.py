"""The question put to the logs: this dataset, that candidate. Estimators are called on it."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from tightrope.dataset import TrajectoryDataset
from tightrope.errors import DataError
from tightrope.policy import as_policy, resolved
from tightrope.ratios import Ratios, ratios

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Problem:
    """Logs and a candidate policy; what several estimators need of both is computed once."""

    dataset: TrajectoryDataset
    policy: Any = None  # None: the logged eval_prob column

    def __post_init__(self) -> None:
        if not isinstance(self.dataset, TrajectoryDataset):
            raise DataError(f"dataset is a {type(self.dataset).__name__}; read it first: tightrope.read(...)")
        if self.policy is not None:
            known = resolved(as_policy(self.policy), self.dataset.states, self.dataset.times)
            object.__setattr__(self, "policy", known)

    @cached_property
    def _kept(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returns, made once for all that ask with the same key."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    @cached_property
    def ratios(self) -> Ratios:
        """Importance ratios of the candidate over the logs."""
        return ratios(self.dataset, self.policy)
