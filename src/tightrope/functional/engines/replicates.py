"""What an engine gives, and what the approximate bounds work from."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.base.dataset import Array


@dataclass(frozen=True, eq=False)
class Replicates:
    """What the approximate bounds work from. NaN marks a replicate whose weights left the estimator undefined."""

    n_trajectories: int
    estimate: float
    values: Array  # (B,)
    leave_one_out: Array | None = None  # (n,)
    standard_error: float | None = None
    standard_errors: Array | None = None  # (B,): of each replicate, for the studentized bootstrap

    @property
    def n_undefined(self) -> int:
        """How many replicates drew only episodes of weight zero at some step."""
        return int(np.isnan(self.values).sum())

    def reflected(self) -> Replicates:
        """The replicates of minus the value: its lower bound is minus the upper bound."""
        flipped = None if self.leave_one_out is None else -self.leave_one_out
        return replace(self, estimate=-self.estimate, values=-self.values, leave_one_out=flipped)
