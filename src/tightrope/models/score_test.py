"""Do the residuals of a regression still depend on something? The score test, with White's covariance."""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array

STEPS_PER_FEATURE = 10  # below which it says nothing


def score_test(own: Array, more: Array, residual: Array, spread: Array | None = None) -> float | None:
    """The p-value of residuals (N,) against features ``more`` (N, m) that the regression's ``own`` (N, p) do not hold.

    Z⊥ = Z − Φ(ΦᵀWΦ)⁻¹ΦᵀWZ, with W the residuals' variance where the fit weighs by it (a logistic one: p(1 − p)); then
    sᵀV⁻¹s with s = ΣZ⊥r and V = ΣZ⊥Z⊥ᵀr² is about chi-square. Noise of unequal size does not mislead it. None where
    nothing is new or the steps are too few.
    """
    from scipy.special import chdtrc

    root = np.ones((len(own), 1)) if spread is None else np.sqrt(spread)[:, None]
    own, more = own / _size(own), more / _size(more)
    more = more - own @ np.linalg.lstsq(root * own, root * more, rcond=None)[0]
    more = more[:, np.sqrt(np.square(more).mean(axis=0)) > 1e-6]
    if not more.shape[1] or len(own) < STEPS_PER_FEATURE * (own.shape[1] + more.shape[1]):
        return None
    scores = more * residual[:, None]
    total = scores.sum(axis=0)
    solved, _, rank, _ = np.linalg.lstsq(scores.T @ scores, total, rcond=None)
    return float(chdtrc(rank, float(total @ solved)))  # a column that repeats another one is not a degree of freedom


def second_order(values: Array) -> Array:
    """Columns, and all products of two of them, centred."""
    rows, columns = np.triu_indices(values.shape[1])
    centred = values - values.mean(axis=0)
    result: Array = np.hstack([values, centred[:, rows] * centred[:, columns]])
    return result


def _size(values: Array) -> Array:
    scale = np.sqrt(np.square(values).mean(axis=0))
    return np.where(scale > 0, scale, 1.0)
