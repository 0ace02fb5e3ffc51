"""Linear fitted Q evaluation from sums per episode, for many rows of weights at once.

    β_t = A⁻¹ b + γ K⁻¹ C_{t+1} β_{t+1},   β_{L−1} = A⁻¹ b,   V̂ = Σ_i w_i φ̄_0(S_0)ᵀβ_0 / Σ_i w_i

with A = Σφφᵀ and b = Σφr over all steps, K = Σφφᵀ and C_t = Σφφ̄_t(S')ᵀ over those of which it is known what follows
(φ̄ = 0 after an end). All of them are sums over episodes: a refit is one product of the weights with them, and then
small solves. Features are first turned into an orthonormal basis of all logs, so that the solves keep their digits.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.errors import DataError
from tightrope.models.fitted.steps import Steps
from tightrope.models.gram import PIVOT, clamped_cholesky
from tightrope.models.tabular.blocks import LANES, blocks, lanes

BLOCK_BYTES = 16 << 20  # what the matrices of the rows that are solved together may take


class Entries(NamedTuple):
    """Which entries of a p × p matrix are kept as columns: the others are 0 in every episode."""

    rows: IntArray
    columns: IntArray
    symmetric: bool  # whether those below the diagonal mirror the ones above

    @classmethod
    def of(cls, pattern: BoolArray, *, symmetric: bool) -> Entries:
        """Those that the pattern marks."""
        rows, columns = np.nonzero(np.triu(pattern) if symmetric else pattern)
        return cls(rows, columns, symmetric)

    def pick(self, matrices: Array) -> Array:
        """(k, p, p) to (k, columns)."""
        return matrices[:, self.rows, self.columns]

    def fill(self, columns: Array, width: int) -> Array:
        """(k, columns) to (k, p, p)."""
        result = np.zeros((len(columns), width, width))
        result[:, self.rows, self.columns] = columns
        if self.symmetric:
            result[:, self.columns, self.rows] = columns
        return result

    def slopes(self, matrices: Array) -> Array:
        """Derivatives by every entry, (k, p, p), as those by the columns, (k, columns)."""
        result = self.pick(matrices)
        if self.symmetric:
            apart = self.rows != self.columns
            result[:, apart] += matrices[:, self.columns[apart], self.rows[apart]]
        return result


@dataclass(frozen=True, eq=False)
class QSums:
    """What every episode adds to the sums: 1, φ̄_0(S_0), b, then the entries of A, of K and of every C."""

    sums: Array  # (n, columns)
    width: int
    rewarded: Entries  # A
    led: Entries | None  # K; None where it is A
    moves: tuple[Entries, ...]  # C, one for each kind of time
    kinds: IntArray  # (horizon,): which of them a time has
    transform: Array | None  # (p, p): the features times this are those that are summed; None: as they are

    @classmethod
    def of(cls, steps: Steps, transform: Array | None) -> QSums:
        """One pass over the logs; where most entries may be 0, one before it to see which are not."""
        p, times = steps.width, steps.typical_times
        marks = np.full((1 + len(times), p, p), transform is not None)
        for _, _, taken, _, nexts in _features(steps, transform, times) if transform is None else ():
            some = [(each != 0).astype(np.float64) for each in (taken, *nexts)]
            marks |= np.array([some[0].T @ other > 0 for other in some])
        rewarded = Entries.of(marks[0], symmetric=True)
        moves = tuple(Entries.of(mark, symmetric=False) for mark in marks[1:])
        led = None if steps.known.all() else rewarded
        parts = []
        for start, stop, taken, known, nexts in _features(steps, transform, times):
            edges = steps.data.offsets[start : stop + 1] - steps.data.offsets[start]
            rewards = steps.data.rewards[steps.data.steps(start, stop)]
            first = turned(steps.expected(steps.starts[start:stop], np.zeros(stop - start, dtype=np.int64)), transform)
            columns = [np.ones((stop - start, 1)), first, np.add.reduceat(taken * rewards[:, None], edges[:-1])]
            columns.append(rewarded.pick(_products(taken, taken, edges)))
            if led is not None:
                columns.append(led.pick(_products(taken * known[:, None], taken, edges)))
            columns += [each.pick(_products(taken, n, edges)) for each, n in zip(moves, nexts, strict=True)]
            parts.append(np.hstack(columns))
        return cls(np.concatenate(parts), p, rewarded, led, moves, steps.kinds, transform)

    @cached_property
    def places(self) -> list[slice]:
        """Where in the columns each part stands: 1, φ̄_0, b, A, K (empty where it is A), and every C."""
        sizes = [1, self.width, self.width, len(self.rewarded.rows), 0 if self.led is None else len(self.led.rows)]
        edges = np.cumsum([0, *sizes, *(len(each.rows) for each in self.moves)])
        return [slice(*edge) for edge in itertools.pairwise(edges.tolist())]

    def blocks(self, weights: Array) -> Iterator[tuple[slice, Array]]:
        """(rows, their sums), few enough that their matrices fit."""
        each = 8 * (self.sums.shape[1] + self.width**2 * (3 + len(self.moves)))
        size = max(1, BLOCK_BYTES // each)
        for first in range(0, len(weights), size):
            rows = slice(first, min(first + size, len(weights)))
            yield rows, weights[rows] @ self.sums

    def values(self, sums: Array, discount: float) -> Array:
        """V̂ of each row of sums, (rows,), where every entry is kept; NaN where there is no fit."""
        from tightrope.models.fitted import kernels  # compiles

        p, result, some = self.width, np.empty(len(sums)), np.empty(LANES)
        room = [lanes(count) for count in (p * p, 2 * p, p)]
        room.append(lanes(len(self.moves) * p * p).reshape(len(self.moves), p * p, LANES))
        room += [lanes(p), lanes(p)]
        for rows, block in blocks(sums):
            kernels.values(block, p, self.led is None, self.kinds, discount, *room, PIVOT, some)
            result[rows] = some[: rows.stop - rows.start]
        return result

    def gradient(self, parts: list[Array]) -> Array:
        """Derivatives by every column, (rows, columns), from those by each part, matrices in full."""
        entries = [self.rewarded, self.led, *self.moves]
        picked = [each.slopes(part) for each, part in zip(entries, parts[3:], strict=True) if each is not None]
        return np.hstack([*parts[:3], *picked])


def _features(
    steps: Steps, transform: Array | None, times: list[int]
) -> Iterator[tuple[int, int, Array, BoolArray, list[Array]]]:
    """(start, stop, φ, whether it is known what follows, φ̄ of what follows at each of the times) of some episodes."""
    for start, stop in steps.chunks(2 + len(times)):
        chunk = np.arange(*steps.data.steps(start, stop).indices(steps.data.n_steps))
        places = steps.following[chunk]
        nexts = [turned(steps.expected(places, np.full(len(places), t)), transform) for t in times]
        yield start, stop, turned(steps.basis.taken(chunk), transform), steps.known[chunk], nexts


def turned(features: Array, transform: Array | None) -> Array:
    """The features that are summed."""
    return features if transform is None else features @ transform


def _products(left: Array, right: Array, edges: IntArray) -> Array:
    """LᵀR of every episode, (k, p, p)."""
    result = np.empty((len(edges) - 1, left.shape[1], right.shape[1]))
    for i, (start, stop) in enumerate(itertools.pairwise(edges.tolist())):
        np.matmul(left[start:stop].T, right[start:stop], out=result[i])
    return result


def orthonormal(steps: Steps) -> Array:
    """The (p, p) matrix that turns the features into ones whose mean square is the unit matrix in all logs."""
    p, names = steps.width, steps.basis.names
    triangle, squares = np.zeros((0, p)), np.zeros(p)
    for start, stop in steps.chunks():
        taken = steps.basis.taken(np.arange(*steps.data.steps(start, stop).indices(steps.data.n_steps)))
        squares += np.square(taken).sum(axis=0)
        triangle = np.asarray(np.linalg.qr(np.vstack([triangle, taken]), mode="r"))
    if len(triangle) < p:
        raise DataError(
            f"{steps.data.n_steps} steps cannot determine {p} features ({', '.join(names)}); log more episodes, or use "
            "fewer features"
        )
    weak = np.square(np.diag(triangle)) <= PIVOT * squares
    if weak.any():
        worst = int(np.argmax(weak))
        raise DataError(
            f"fitted-q is singular: {names[worst]!r} is constant or a combination of the features before it "
            f"({', '.join(names[:worst])}) at every logged step; leave it out, or log data in which it varies"
        )
    result: Array = np.linalg.inv(triangle) * np.sqrt(steps.data.n_steps)
    return result


def determined(matrices: Array) -> BoolArray:
    """Whether each of the (rows, p, p) matrices can be inverted with digits left."""
    p = matrices.shape[1]
    scale = np.trace(matrices, axis1=1, axis2=2) / p
    shrunk = np.divide(matrices, scale[:, None, None], out=np.zeros_like(matrices), where=scale[:, None, None] > 0)
    return np.asarray((clamped_cholesky(shrunk, floor=np.full(p, PIVOT))[1] > PIVOT).all(axis=1))
