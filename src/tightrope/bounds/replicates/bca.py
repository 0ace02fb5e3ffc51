"""The bias-corrected and accelerated bootstrap."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.warnings import Caution, caution
from tightrope.bounds.base import BootstrapBound, Need, lowest, rank
from tightrope.functional.engines import Replicates
from tightrope.functional.resampling import MOST_RESAMPLES

_NORMAL = NormalDist()
TIE = 1e-5  # of the replicates' spread


@dataclass(frozen=True)
class BCa(BootstrapBound):
    """The percentile at the level Φ(z0 + (z0 + z_δ) / (1 − a (z0 + z_δ))).

    z0 comes from the share of replicates below the estimate (ties count half), a from the skew of the estimator's own
    jackknife. Second-order accurate for smooth statistics. The adjusted level can lie far below δ, where few replicates
    are. Efron (1987).
    """

    name: ClassVar[str] = "bca"
    needs: ClassVar[frozenset[Need]] = frozenset({"values", "leave_one_out"})
    second_order: ClassVar[bool] = True
    preference: ClassVar[int] = 2

    def lower(self, replicates: Replicates, *, delta: float) -> tuple[float, list[Caution]]:
        """The lower bound."""
        values, warnings = replicates.values, list[Caution]()
        size = len(values)
        if replicates.n_undefined >= rank(delta, size):  # the bias correction must not lift the level above them
            return -np.inf, warnings
        bias = _bias(replicates, warnings)
        skew = _acceleration(replicates.leave_one_out, warnings)
        moved = bias + _NORMAL.inv_cdf(delta)
        room = 1 - skew * moved
        if room <= 0:
            text = f"acceleration {skew:.2f} leaves no valid level; the lowest replicate is used"
            warnings.append(caution("bca-degenerate", text, acceleration=skew))
            level = 0.0
        else:
            level = _NORMAL.cdf(bias + moved / room)
        position = int(np.floor(level * size + 1e-9))
        if position < 1:
            enough = min(np.ceil(10 / max(level, 1e-7)), MOST_RESAMPLES)
            text = (
                f"BCa asks for the {level:.2g} quantile, which {size} replicates do not reach; the lowest one is "
                f"used. Raise n_resamples to {enough:.0f}"
            )
            warnings.append(caution("few-resamples", text, level=level, n_resamples=size, enough=enough))
        return lowest(values, max(position, 1)), warnings


def _bias(replicates: Replicates, warnings: list[Caution]) -> float:
    """z0, from the mid-rank of the estimate among the replicates (undefined ones are below it).

    Replicates and estimate are rounded differently, so a tie is a difference that is nothing beside their spread.
    """
    size = len(replicates.values)
    off = np.where(np.isnan(replicates.values), -np.inf, replicates.values - replicates.estimate)
    tie = TIE * np.std(off[np.isfinite(off)]) if np.isfinite(off).any() else 0.0
    share = ((off < -tie).sum() + 0.5 * (np.abs(off) <= tie).sum()) / size
    clipped = float(np.clip(share, 1 / (size + 1), size / (size + 1)))
    if clipped != share:
        text = "all replicates lie on one side of the estimate; the bias correction was clipped"
        warnings.append(caution("bca-clipped", text))
    return _NORMAL.inv_cdf(clipped)


def _acceleration(leave_one_out: Array | None, warnings: list[Caution]) -> float:
    """Σ d³ / 6 (Σ d²)^1.5 over the jackknife's deviations."""
    assert leave_one_out is not None
    if np.isnan(leave_one_out).any():
        text = "without one episode, or cluster, the estimate is undefined; no acceleration"
        warnings.append(caution("one-episode", text))
        return 0.0
    off = leave_one_out.mean() - leave_one_out
    largest = np.abs(off).max()
    if largest <= 1e-13 * float(np.abs(leave_one_out).max()):  # all alike up to rounding: 0/0
        return 0.0
    off = off / largest
    return float(np.sum(off**3) / (6 * np.sum(off**2) ** 1.5))
