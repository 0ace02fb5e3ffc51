"""The problem that estimators are called on: a dataset and a candidate."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from tightrope.base.behavior import BehaviorModel, Fits
from tightrope.base.checks import is_number
from tightrope.base.clusters import Clusters
from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.folder import STEP_BYTES
from tightrope.base.policy import as_policy, resolved
from tightrope.base.policy.combined import EXAMPLES
from tightrope.base.ratios import Ratios, eval_log_probs, ratios
from tightrope.base.spelled import coded, is_text

T = TypeVar("T")


def check_dataset(dataset: Any) -> None:
    """Refuse what is no dataset."""
    if not isinstance(dataset, TrajectoryDataset):
        kind = type(dataset).__name__
        raise DataError(f"dataset must be a TrajectoryDataset, as tightrope.read(...) makes it; got type {kind}")


@dataclass(frozen=True, eq=False)
class Problem:
    """Logs and a candidate policy; what several estimators need is computed once."""

    dataset: TrajectoryDataset
    policy: Any = None  # None: the logged eval_prob column
    behavior: BehaviorModel | None = None  # how to estimate the behaviour policy; None: as logged
    max_step_ratio: float | None = None  # declared: no action's ratio can exceed it at any step, logged or not

    def __post_init__(self) -> None:
        check_dataset(self.dataset)
        if self.max_step_ratio is not None and not (
            is_number(self.max_step_ratio) and 1 <= self.max_step_ratio < np.inf
        ):
            raise DataError(
                f"max_step_ratio must be a finite number of at least 1, because ratios average to 1, or None; got "
                f"{self.max_step_ratio!r}"
            )
        if self.policy is not None:
            few = self.dataset.times_of(0, min(EXAMPLES, self.dataset.n_trajectories))
            known = resolved(as_policy(self.policy), self.dataset.states, few)
            object.__setattr__(self, "policy", known)

    def check_memory(self, what: str) -> None:
        """Refuse what keeps numbers for each step where these would not fit into memory."""
        folder, need = self.dataset.folder, STEP_BYTES * self.dataset.n_steps
        if folder is not None and need > folder.memory:
            raise DataError(
                f"{what} needs all steps in memory at once, about {need / 1e9:.2g} GB, and memory is "
                f"{folder.memory / 1e9:.2g} GB: allow more (read(memory=...), --memory), or use is, pdis, wis, pdwis, "
                "or mb, dr, wdr and tdr with a tabular, given, linear or polynomial model, whose memory does not grow "
                "with the steps"
            )

    @cached_property
    def _kept(self) -> dict[Hashable, Any]:
        return {}

    def once(self, key: Hashable, make: Callable[[], T]) -> T:
        """What ``make`` returns, computed once per key."""
        if key not in self._kept:
            self._kept[key] = make()
        kept: T = self._kept[key]
        return kept

    @property
    def clusters(self) -> Clusters | None:
        """Whose episodes they are, where that was said."""
        return self.once("clusters", lambda: Clusters.of(self.dataset))

    @cached_property
    def coded(self) -> Problem:
        """The same problem with text states and actions as numbers, for tables and counts; itself where there are none.

        Models that take states and actions for quantities, and the user's own functions, never see these numbers.
        """
        if not is_text(self.dataset.states) and not is_text(self.dataset.actions):
            return self
        dataset, policy = coded(self.dataset, self.policy)
        return replace(self, dataset=dataset, policy=policy)

    @cached_property
    def ratios(self) -> Ratios:
        """Importance ratios of the candidate; an estimated behaviour policy is fitted to all logs."""
        return ratios(self.dataset if self.behavior is None else self._estimated, self.policy)

    @cached_property
    def eval_log_probs(self) -> Array:
        """The candidate's log-probabilities of the logged actions, (N,)."""
        return eval_log_probs(self.dataset, self.policy)

    @cached_property
    def fits(self) -> Fits:
        """The behaviour policy, to be fitted under any weights."""
        assert self.behavior is not None
        self.check_memory("an estimate of the behaviour policy")
        return Fits(self.behavior.prepare(self.dataset))

    @cached_property
    def _estimated(self) -> TrajectoryDataset:
        log_probs = self.fits.behavior.log_probs(self.fits(np.ones(self.dataset.n_trajectories)))
        never = np.flatnonzero(~np.isfinite(log_probs))
        if len(never):
            assert self.behavior is not None
            raise DataError(
                f"the {self.behavior.name} behaviour policy fitted to the logs gives the action logged at "
                f"{self.dataset.where(int(never[0]))} probability {np.exp(log_probs[never[0]]):g}, though it was "
                'taken; use a smoother estimate, such as behavior="logistic"'
            )
        return replace(self.dataset, behavior_log_probs=log_probs, behavior=None)
