"""The shares x ≥ 0, Σ x = 1, that make xᵀQx least, by an exact method of active sets."""

from __future__ import annotations

import numpy as np

from tightrope.base.dataset import Array

TOLERANCE = 1e-13  # of the largest entry: differences below it are rounding
ROUNDS = 1000  # far more than there are; a guard against rounding that goes in circles


def nearest_to_zero(matrix: Array) -> Array:
    """argmin of xᵀQx over shares x (J,), for a symmetric Q (J, J) without negative eigenvalues.

    Seen as the point of a polytope that is nearest to 0, with Q the products of its corners: Wolfe (1976), "Finding the
    nearest point in a polytope". It starts at the last corner and leaves it for something better only, so that the
    last one wins where all are alike.
    """
    size = float(np.diag(matrix).max())
    count = len(matrix)
    shares, used = np.zeros(count), [count - 1]
    shares[-1] = 1.0
    if not size > 0:
        return shares
    scaled = matrix / size
    for _ in range(ROUNDS):
        slopes = scaled @ shares
        best = int(np.argmin(slopes))
        if slopes[best] > shares @ slopes - TOLERANCE or best in used:
            break
        used.append(best)
        shares = _within(scaled, shares, used)
    return shares


def _within(matrix: Array, shares: Array, used: list[int]) -> Array:
    """The least over the plane through the used corners, dropping those whose share falls to 0 on the way there."""
    while True:
        target = np.zeros_like(shares)
        target[used] = _on_plane(matrix[np.ix_(used, used)])
        falling = [corner for corner in used if target[corner] <= 0]
        if not falling:
            return target
        steps = [
            shares[corner] / (shares[corner] - target[corner]) if shares[corner] > 0 else 0.0 for corner in falling
        ]
        step = min(steps)
        shares = np.maximum(shares + step * (target - shares), 0.0)
        gone = falling[int(np.argmin(steps))]
        shares[gone] = 0.0
        used.remove(gone)


def _on_plane(matrix: Array) -> Array:
    """Weights of sum one, of any sign, that make xᵀQx least."""
    k = len(matrix)
    system = np.zeros((k + 1, k + 1))
    system[:k, :k] = matrix
    system[:k, k] = system[k, :k] = 1.0
    right = np.zeros(k + 1)
    right[k] = 1.0
    try:
        return np.asarray(np.linalg.solve(system, right)[:k])
    except np.linalg.LinAlgError:
        return np.asarray(np.linalg.lstsq(system, right, rcond=None)[0][:k])
