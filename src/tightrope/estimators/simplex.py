"""The shares x ≥ 0, Σ x = 1, that make xᵀQx least, by an exact method of active sets, compiled."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.base.compiled import compiled

TOLERANCE = 1e-13  # of the largest entry: differences below it are rounding
NOTHING = 1e-15  # a share up to this is none
DEPENDENT = 1e-15  # of the largest entry of those used: a corner nearer to their plane adds nothing to it


@compiled
def nearest_to_zero(matrix: Any) -> Any:
    """argmin of xᵀQx over shares x (J,), for a symmetric Q (J, J) without negative eigenvalues.

    Seen as the point of a polytope that is nearest to 0, with Q the products of its corners: Wolfe (1976), "Finding the
    nearest point in a polytope". It starts at the last corner and leaves it for something better only, so that the
    last one wins where all are alike.
    """
    count, size = len(matrix), 0.0
    for j in range(count):
        size = max(size, matrix[j, j])
    shares, used = np.zeros(count), np.zeros(count, dtype=np.bool_)
    shares[count - 1], used[count - 1] = 1.0, True
    if not size > 0.0:
        return shares
    scaled, before = matrix / size, np.inf
    while True:
        level, best, least = 0.0, 0, np.inf
        for j in range(count):
            slope = 0.0
            for k in range(count):
                slope += scaled[j, k] * shares[k]
            level += shares[j] * slope
            if slope < least:
                best, least = j, slope
        if least > level - TOLERANCE or used[best] or not level < before:  # rounding must not go in circles
            return shares
        before, used[best] = level, True
        if not _descend(scaled, shares, used):
            return shares


@compiled
def _descend(matrix: Any, shares: Any, used: Any) -> Any:
    """The least over the plane through the used corners, dropping those whose share falls to 0 on the way there.

    False where the corners do not span a plane of their own: then they have nothing better.
    """
    while True:
        factor, spans = plane_factor(matrix, used)
        if not spans:
            return False
        target = plane_solution(factor, used, used.astype(np.float64))
        target /= target.sum()
        gone, step = -1, np.inf
        for corner in range(len(shares)):
            if used[corner] and target[corner] <= NOTHING:
                away = shares[corner] - target[corner]
                reach = min(shares[corner] / away, 1.0) if away > 0.0 else 0.0
                if reach < step:
                    gone, step = corner, reach
        if gone < 0:
            shares[:] = target
            return True
        for corner in range(len(shares)):
            shares[corner] = max(shares[corner] + step * (target[corner] - shares[corner]), 0.0)
        shares[gone], used[gone] = 0.0, False


@compiled
def plane_factor(matrix: Any, used: Any) -> Any:
    """The Cholesky factor of Q + s11ᵀ over the used corners (J, J), and whether these span a plane of their own.

    With z = (Q + s11ᵀ)⁻¹1, z / Σz makes xᵀQx least over weights of any sign and sum one, also where Q has no inverse.
    """
    count, size = len(matrix), 0.0
    factor = np.zeros((count, count))
    for j in range(count):
        if used[j]:
            size = max(size, matrix[j, j])
    size = size if size > 0.0 else 1.0  # a single corner without any error is a plane of its own
    for j in range(count):
        if not used[j]:
            continue
        for k in range(j + 1):
            if not used[k]:
                continue
            rest = matrix[j, k] + size
            for m in range(k):
                rest -= factor[j, m] * factor[k, m]
            if k < j:
                factor[j, k] = rest / factor[k, k]
            elif rest > DEPENDENT * size:
                factor[j, j] = np.sqrt(rest)
            else:
                return factor, False
    return factor, True


@compiled
def plane_solution(factor: Any, used: Any, right: Any) -> Any:
    """(Q + s11ᵀ)⁻¹ times the right-hand side, (J,); 0 for corners that are not used."""
    count, solved = len(factor), np.zeros(len(factor))
    for j in range(count):
        if used[j]:
            rest = right[j]
            for k in range(j):
                rest -= factor[j, k] * solved[k]
            solved[j] = rest / factor[j, j]
    for j in range(count - 1, -1, -1):
        if used[j]:
            rest = solved[j]
            for k in range(j + 1, count):
                rest -= factor[k, j] * solved[k]
            solved[j] = rest / factor[j, j]
    return solved
