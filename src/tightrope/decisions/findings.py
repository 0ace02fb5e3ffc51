"""What a comparison rests on, whichever way it was computed: one entry for each candidate that can be judged."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.records import Bound
from tightrope.decisions.contenders import Baseline


class Pair(NamedTuple):
    """The value of one candidate less that of another, by their places."""

    first: int
    second: int
    estimate: float
    lower: float


@dataclass(frozen=True)
class Findings:
    """Bounds that hold together, and what follows for each candidate."""

    values: list[Bound]  # lower bounds, all of them together
    gains: list[Bound]  # over the baseline, likewise
    better: list[bool]  # surely better than the baseline, all of them together
    tops: list[float]  # upper bounds on the gains, each at the level on its own
    differences: list[Pair]  # between candidates, all ordered pairs together
    how: str


def gain_range(data: TrajectoryDataset, baseline: Baseline) -> tuple[float, float]:
    """What was declared possible for a gain over this baseline."""
    low, high = data.value_range or (-np.inf, np.inf)
    if baseline.number is not None:
        return low - baseline.number, high - baseline.number
    return low - high, high - low
