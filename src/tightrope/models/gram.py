"""Weighted least squares from sums per episode, for many rows of weights at once.

With Z = [X, Y], the sums ZᵀZ of each episode hold all that a fit needs: weights @ sums, then B = (XᵀX)⁻¹XᵀY and the
residual covariance (YᵀY − BᵀXᵀY) / count (maximum likelihood). Features and targets are centred and scaled first,
since products of sums lose digits otherwise.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.folder import parts

RIDGE = 1e-13  # share of each scaled feature's variance: far below any error of estimation
UNITS_FROM = 4096  # steps from which the features' means and sizes are taken; they need not be exact
CHUNK_STEPS = 4096
PIVOT = 1e-9  # a scaled feature is redundant if less than this share of it is not explained by the earlier ones


StepFeatures = Callable[[Any], Array]  # the features of some steps, given by a slice or their numbers: (k, p)


class Fit(NamedTuple):
    """Coefficients under each row of weights; 0 where there is no fit."""

    coefficients: Array  # (rows, p, q)
    covariance: Array  # (rows, q, q)
    fitted: BoolArray  # (rows,)


@dataclass(frozen=True, eq=False)
class Gram:
    """Sums of one regression, p features to q targets."""

    sums: Array  # (n, 1 + columns): the count, then the upper triangle of ZᵀZ by rows
    place: IntArray  # (p+q, p+q): where in the columns each entry of ZᵀZ stands
    feature_center: Array  # (p,)
    feature_scale: Array  # (p,)
    target_center: Array  # (q,)
    target_scale: Array  # (q,)
    intercept: int | None  # which feature is constant

    @classmethod
    def of(
        cls,
        data: TrajectoryDataset,
        features: StepFeatures,
        targets: Array,
        known: BoolArray,
        names: list[str],
        *,
        centred: bool = True,
    ) -> Gram:
        """Sum up p features and (N, q) targets of all steps, leaving out those that are not known."""
        count = int(np.count_nonzero(known))
        if count < len(names):
            raise DataError(
                f"{count} transitions cannot determine {len(names)} features ({', '.join(names)}); log more "
                "episodes, give final_states, or use fewer features"
            )
        steps = every(known, max(1, count // UNITS_FROM))
        sample = features(steps)
        _check_finite(sample, data, steps)
        intercept = _constant(sample) if centred else None
        units = [_units(part, intercept is not None) for part in (sample, targets[steps])]
        (x_center, x_scale), (y_center, y_scale) = units
        if intercept is not None:
            x_center[intercept], x_scale[intercept] = 0.0, sample[0, intercept]
        place, shrink = _places(sample.shape[1] + targets.shape[1]), 1.0 / np.append(x_scale, y_scale)
        sums = data.scratch.empty((2 + int(place.max()), data.n_trajectories)).T  # column by column
        for start, stop in _chunks(data.offsets):
            chunk = data.steps(start, stop)
            x, y, used = features(chunk), targets[chunk], known[chunk]
            _check_finite(x, data, np.arange(chunk.start, chunk.stop))
            if intercept is not None and (x[used, intercept] != x_scale[intercept]).any():
                return cls.of(data, features, targets, known, names, centred=False)  # constant in the sample only
            both = np.hstack([x - x_center, y - y_center])
            both *= shrink
            if not used.all():
                both *= used[:, None]
            sums[start:stop] = _sums(both, used, data.offsets[start : stop + 1] - chunk.start)
        gram = cls(sums, place, x_center, x_scale, y_center, y_scale, intercept)
        gram._check(names)
        return gram

    def fit(self, weights: Array) -> Fit:
        """The regression under each row of weights, (rows, n)."""
        scaled, products, inner, fitted = self._normal(weights)
        solved = np.linalg.solve(scaled, products)
        solved[~fitted] = 0.0
        covariance = inner - solved.transpose(0, 2, 1) @ products
        covariance = (covariance + covariance.transpose(0, 2, 1)) / 2
        covariance *= self.target_scale[:, None] * self.target_scale
        coefficients = solved * (self.target_scale / self.feature_scale[:, None])
        if self.intercept is not None:
            shift = self.target_center - np.einsum("p,rpq->rq", self.feature_center, coefficients)
            coefficients[:, self.intercept] += shift / self.feature_scale[self.intercept]
            coefficients[~fitted] = 0.0
        return Fit(coefficients, covariance, fitted)

    def _normal(self, weights: Array) -> tuple[Array, Array, Array, BoolArray]:
        """Mean XᵀX (ridged; the identity where there is no fit), XᵀY and YᵀY of each row; whether there is a fit."""
        p = len(self.feature_scale)
        total = weights @ self.sums
        count = total[:, :1]
        fitted = count[:, 0] > 0
        mean = np.divide(total[:, 1:], count, out=np.zeros_like(total[:, 1:]), where=count > 0)
        full = mean[:, self.place]
        scaled = full[:, :p, :p]
        diagonal = np.arange(p)
        scaled[:, diagonal, diagonal] *= 1.0 + RIDGE
        fitted &= (self._pivots(scaled) > PIVOT).all(axis=1)
        scaled[~fitted] = np.eye(p)
        return scaled, full[:, :p, p:], full[:, p:, p:], fitted

    @staticmethod
    def _pivots(scaled: Array) -> Array:
        """How much of each feature the earlier ones do not explain, (rows, p), as a share of its variance."""
        return clamped_cholesky(scaled, floor=np.full(scaled.shape[1], PIVOT))[1]

    def _check(self, names: list[str]) -> None:
        *_, fitted = self._normal(np.ones((1, len(self.sums))))
        if fitted[0]:
            return
        mean = (self.sums.sum(axis=0)[1:] / self.sums[:, 0].sum())[self.place]
        p = len(self.feature_scale)
        worst = int(np.argmax(self._pivots(mean[None, :p, :p])[0] <= PIVOT))
        raise DataError(
            f"the regression is singular: {names[worst]!r} is constant or a combination of the features before it "
            f"({', '.join(names[:worst])}) in every logged transition; leave it out, or log data in which it varies"
        )


def every(known: BoolArray, stride: int, most: int | None = None) -> IntArray:
    """Which steps are known, every so many of them, from the first on and no more than ``most``."""
    steps, count = np.zeros(0, dtype=np.int64), 0
    for part in parts(len(known)):
        here = np.flatnonzero(known[part]) + part.start
        steps = np.append(steps, here[-count % stride :: stride])[:most]
        count += len(here)
        if len(steps) == most:
            break
    return steps


def clamped_cholesky(matrices: Array, floor: Array) -> tuple[Array, Array]:
    """Lower factors of (rows, d, d) matrices and their pivots (rows, d); a pivot not above its floor counts as 0.

    Unlike a root from eigenvectors it changes smoothly with the matrix, as noise that is frozen across rows needs.
    """
    rows, d = matrices.shape[:2]
    factor, pivots = np.zeros((rows, d, d)), np.zeros((rows, d))
    for j in range(d):
        column = matrices[:, j:, j] - (factor[:, j:, :j] @ factor[:, j, :j, None])[..., 0]
        pivots[:, j] = column[:, 0]
        sound = column[:, 0] > floor[j]
        root = np.sqrt(np.where(sound, column[:, 0], 1.0))
        factor[:, j:, j] = np.where(sound[:, None], column / root[:, None], 0.0)
    return factor, pivots


def _constant(features: Array) -> int | None:
    """The first feature that is the same number, not 0, in all rows."""
    same = np.flatnonzero((features == features[0]).all(axis=0) & (features[0] != 0))
    return int(same[0]) if len(same) else None


def _check_finite(features: Array, data: TrajectoryDataset, steps: IntArray) -> None:
    if not np.isfinite(features).all():
        row = int(np.argmin(np.isfinite(features).all(axis=1)))
        raise DataError(f"features must be finite numbers; got {features[row]} at {data.where(int(steps[row]))}")


def _places(width: int) -> IntArray:
    """The position of each entry of a symmetric matrix in its upper triangle, read by rows."""
    rows, columns = np.triu_indices(width)
    place = np.zeros((width, width), dtype=np.int64)
    place[rows, columns] = place[columns, rows] = np.arange(len(rows))
    return place


def _chunks(offsets: IntArray) -> list[tuple[int, int]]:
    """Ranges of episodes of about CHUNK_STEPS steps."""
    ends = np.unique(np.searchsorted(offsets, np.arange(CHUNK_STEPS, offsets[-1] + CHUNK_STEPS, CHUNK_STEPS)))
    ends = np.minimum(ends, len(offsets) - 1)
    return list(zip([0, *ends[:-1].tolist()], ends.tolist(), strict=True))


def _sums(both: Array, used: BoolArray, offsets: IntArray) -> Array:
    """Counts and upper triangles of ZᵀZ of some episodes."""
    width = both.shape[1]
    products = np.empty((len(offsets) - 1, width, width))
    for i, (start, stop) in enumerate(itertools.pairwise(offsets.tolist())):
        part = both[start:stop]
        np.matmul(part.T, part, out=products[i])
    upper = np.flatnonzero(np.triu(np.ones((width, width))))
    counts = np.add.reduceat(used.astype(np.float64), offsets[:-1])
    return np.column_stack([counts, products.reshape(len(products), -1)[:, upper]])


def _units(values: Array, centred: bool) -> tuple[Array, Array]:
    """The centre and the scale of each column, so that its mean square becomes one."""
    center = values.mean(axis=0) if centred else np.zeros(values.shape[1])
    scale = np.sqrt(np.square(values - center).mean(axis=0))
    return center, np.where(scale > 1e-150, scale, 1.0)
