"""Which bound to believe on this data, and why."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tightrope.dataset import Array
from tightrope.records import Bound, Overlap, Side


def skew_warning(influence: Array, side: Side) -> list[str]:
    """Whether rare trajectories pull towards the unsafe side, which no resampling of the seen ones reveals."""
    spread = float(np.sqrt(np.square(influence).mean()))
    if spread == 0 or not np.isfinite(spread):
        return []
    skew = float(np.mean((influence / spread) ** 3))
    toward = -skew if side == "lower" else skew
    if toward > 0.5:
        return [f"skew: {toward}"]
    return []


def advise(bounds: Sequence[Bound], found: Overlap) -> tuple[str, int | None]:
    """One line of advice and the bound it points to."""
    return "", None
