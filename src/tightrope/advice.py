"""Which bound to believe on this data, and why. Rules on measured quantities, never on the bounds' own values.

Choosing the tightest of many bounds would void its level; the rules look at overlap, tails, skew and standard errors.
The order of methods and the threshold for skew come from the error rates in docs/coverage.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from statistics import NormalDist

import numpy as np

from tightrope.dataset import Array
from tightrope.records import Bound, Overlap, Side

# Of the approximate bounds, by measured error rate where the data are skewed to the unsafe side.
PREFERENCE = ("studentized", "bca", "percentile", "t", "basic")
BREAKS_BOOTSTRAP = ("low-overlap", "one-trajectory", "heavy-tail", "infinite-variance", "mean-ratio", "undefined")
BREAKS_EVERYTHING = ("mean-ratio",)
EXCESS = 0.2  # of the nominal error rate: how much more is worth a warning
EXCESS_SECOND_ORDER = 0.4  # likewise for methods that correct for skew themselves, which they do only in part


def skew_warning(influence: Array, side: Side, confidence: float, *, second_order: bool) -> list[str]:
    """Whether rare trajectories pull towards the unsafe side, which no resampling of the others reveals.

    The first Edgeworth term of a one-sided interval's error, φ(z)(2z² + 1)/6 · skewness/√n (Hall 1992, section 2.6),
    with the influence values' skewness; a sample's skewness understates the true one, so the real excess is larger.
    """
    spread = float(np.sqrt(np.square(influence).mean()))
    if spread == 0 or not np.isfinite(spread):
        return []
    skew = float(np.mean((influence / spread) ** 3))
    toward = -skew if side == "lower" else skew
    normal = NormalDist()
    z = normal.inv_cdf(confidence)
    excess = normal.pdf(z) * (2 * z * z + 1) / 6 * toward / np.sqrt(len(influence))
    if excess <= (EXCESS_SECOND_ORDER if second_order else EXCESS) * (1 - confidence):
        return []
    where = "low" if side == "lower" else "high"
    return [
        f"skew: a few trajectories pull the estimate towards {where} values (skewness {skew:.1f} at n = "
        f"{len(influence)}); "
        f"bounds from resampling then err more often than the nominal {1 - confidence:.0%}"
    ]


def advise(bounds: Sequence[Bound], found: Overlap, side: Side) -> tuple[str, int | None]:
    """A line of advice and which bound of this side it points to; None when this data cannot answer."""
    n, effective = bounds[0].n_trajectories, found.effective_sample_size[-1]
    mine = [(i, bound) for i, bound in enumerate(bounds) if bound.side == side]
    exact = sorted(
        (i for i, bound in mine if bound.guarantee == "exact" and not _has(bound, ("vacuous",))),
        key=lambda i: (bounds[i].method != "betting", bounds[i].standard_error or np.inf),
    )
    approximate = [i for i, bound in mine if bound.guarantee == "approximate"]
    broken = sorted({code for i in approximate for code in _codes(bounds[i]) if code in BREAKS_BOOTSTRAP})
    if any(_has(bound, BREAKS_EVERYTHING) for _, bound in mine):
        return (
            "This data cannot answer: the importance ratios do not average to 1, so the logged probabilities "
            "are wrong or "
            "the trajectories that matter are missing.",
            None,
        )
    sound = [
        i
        for i in approximate
        if np.isfinite(bounds[i].value) and not _has(bounds[i], (*BREAKS_BOOTSTRAP, "skew", "bca-degenerate"))
    ]
    if sound:
        best = min(
            sound, key=lambda i: (bounds[i].standard_error or np.inf, PREFERENCE.index(_known(bounds[i].method)))
        )
        also = f" If it must hold without approximation: {_name(bounds[exact[0]])}." if exact else ""
        return (
            f"Believe {_name(bounds[best])}: {n} trajectories are worth {effective:.0f}, nothing points to the "
            "unsafe side, "
            f"and of the sound ones its standard error is the smallest.{also}",
            best,
        )
    why = f"the bootstrap is not to be trusted here ({', '.join(broken or ['skew'])})"
    if exact:
        return f"Believe {_name(bounds[exact[0]])}, the only kind that holds at any n: {why}.", exact[0]
    ways = "more logs, or logs of a policy closer to the candidate"
    if not any(bound.guarantee == "exact" for _, bound in mine):
        ways = f"a declared reward_range for an exact bound, {ways}"
    return f"This data cannot answer: {why}, and no exact bound says anything. What would help: {ways}.", None


def _codes(bound: Bound) -> set[str]:
    return {warning.split(":")[0] for warning in bound.warnings}


def _has(bound: Bound, codes: Sequence[str]) -> bool:
    return not _codes(bound).isdisjoint(codes)


def _known(method: str) -> str:
    return method if method in PREFERENCE else PREFERENCE[-1]


def _name(bound: Bound) -> str:
    sign = "≥" if bound.side == "lower" else "≤"
    said = f"value {sign} {bound.value:.4g} at {bound.confidence:.0%}, {bound.guarantee}"
    return f"{bound.estimator} with {bound.method} ({said})"
