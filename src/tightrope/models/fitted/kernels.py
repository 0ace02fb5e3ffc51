"""Compiled: eight rows of sums side by side, with all their matrices in the cache.

Arrays end in a lane axis; a matrix (p, p) lies row by row in (p · p, lanes). Matrices are taken apart as LDLᵀ, which
needs no roots. A lane without a fit divides by 0 on its way, and its pivots show it at the end.
"""

from __future__ import annotations

import numpy as np

from tightrope.base.compiled import compiled
from tightrope.base.dataset import Array, IntArray
from tightrope.models.tabular.blocks import LANES
from tightrope.models.tabular.rows import load, splat, store


@compiled
def factor(sums: Array, first: int, p: int, matrix: Array, pivots: Array) -> None:
    """L, above the diagonal, of a matrix whose upper triangle begins at column ``first``, by rows; D are the pivots."""
    place = first
    for i in range(p):
        for j in range(i, p):
            store(matrix, i * p + j, load(sums, place))
            place += 1
    for k in range(p):
        pivot = load(matrix, k * p + k)
        store(pivots, k, pivot)
        for j in range(k + 1, p):
            share = load(matrix, k * p + j) / pivot
            for i in range(j, p):
                store(matrix, j * p + i, load(matrix, j * p + i) - share * load(matrix, k * p + i))
        for j in range(k + 1, p):
            store(matrix, k * p + j, load(matrix, k * p + j) / pivot)


@compiled
def solve(matrix: Array, pivots: Array, p: int, q: int, right: Array) -> None:
    """(LDLᵀ)⁻¹R in the place of R (p, q)."""
    for k in range(p):
        for i in range(k + 1, p):
            share = load(matrix, k * p + i)
            for column in range(q):
                store(right, i * q + column, load(right, i * q + column) - share * load(right, k * q + column))
    for k in range(p - 1, -1, -1):
        for column in range(q):
            store(right, k * q + column, load(right, k * q + column) / load(pivots, k))
    for k in range(p - 1, -1, -1):
        for i in range(k):
            share = load(matrix, i * p + k)
            for column in range(q):
                store(right, i * q + column, load(right, i * q + column) - share * load(right, k * q + column))


@compiled
def copy(source: Array, first: int, count: int, target: Array) -> None:
    """Some rows of lanes."""
    for k in range(count):
        store(target, k, load(source, first + k))


@compiled
def values(
    sums: Array,
    p: int,
    complete: bool,
    kinds: IntArray,
    discount: float,
    matrix: Array,
    pivots: Array,
    earned: Array,
    moves: Array,
    ahead: Array,
    here: Array,
    floor: float,
    result: Array,
) -> None:
    """V̂ of every lane, (lanes,); NaN where a pivot is below the floor, as a share of its matrix's mean diagonal.

    The columns of sums: 1, φ̄_0 and b (p each), the upper triangles of A and, unless ``complete``, of K, and every C.
    """
    first, triangle, count = 1 + 2 * p, p * (p + 1) // 2, kinds.max() + 1
    factor(sums, first, p, matrix, pivots)
    copy(sums, 1 + p, p, earned)
    solve(matrix, pivots, p, 1, earned)
    begin = first + triangle
    if not complete:
        factor(sums, begin, p, matrix, pivots[p:])
        begin += triangle
    for kind in range(count):
        copy(sums, begin + kind * p * p, p * p, moves[kind])
        solve(matrix, pivots if complete else pivots[p:], p, p, moves[kind])
    copy(earned, 0, p, ahead)
    for t in range(len(kinds) - 1, 0, -1):
        step = moves[kinds[t]]
        for i in range(p):
            total = load(step, i * p) * load(ahead, 0)
            for j in range(1, p):
                total = total + load(step, i * p + j) * load(ahead, j)
            store(here, i, load(earned, i) + total * splat(discount))
        ahead, here = here, ahead
    total = load(sums, 1) * load(ahead, 0)
    for i in range(1, p):
        total = total + load(sums, 1 + i) * load(ahead, i)
    store(earned, 0, total / load(sums, 0))
    for lane in range(LANES):
        result[lane] = earned[0, lane] if sums[0, lane] > 0.0 else np.nan
        for part in range(1 if complete else 2):
            scale, place = 0.0, first + part * triangle
            for i in range(p):
                scale += sums[place, lane] / p
                place += p - i
            for i in range(part * p, part * p + p):
                if not pivots[i, lane] > floor * scale:
                    result[lane] = np.nan
