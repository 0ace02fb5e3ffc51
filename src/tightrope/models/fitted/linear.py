"""Linear fitted Q evaluation, prepared: values, control variates and derivatives under any weights."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.models.fitted.steps import Steps
from tightrope.models.fitted.sums import QSums, determined, turned


class Unseen(NamedTuple):
    """What a pair that has no weight is worth: this reward at every step, and the state stays."""

    reward: float
    loops: Array  # (kinds, p, p): the candidate's probabilities in the pair's own state


class Inverse(NamedTuple):
    """Inverses of normal matrices under some rows of weights."""

    matrices: Array  # (rows, p, p), or (rows, p) where they are diagonal
    missing: BoolArray  # (rows, p): pairs without any weight; their row of the inverse is 0
    fitted: BoolArray  # (rows,)

    def __matmul__(self, right: Array) -> Array:
        """The inverses times (rows, p, q)."""
        product: Array = self.matrices[:, :, None] * right if self.matrices.ndim == 2 else self.matrices @ right
        return product


class Solved(NamedTuple):
    """The regressions under some rows of weights."""

    total: Array  # (rows,): of the weights
    starts: Array  # (rows, p): mean φ̄_0(S_0)
    rewarded: Inverse  # of A
    led: Inverse  # of K
    rewards: Array  # (rows, p): A⁻¹b
    moves: list[Array]  # (rows, p, p) for each kind of time: K⁻¹C

    @property
    def fitted(self) -> BoolArray:
        """Which rows have a fit, (rows,)."""
        return (self.total > 0) & self.rewarded.fitted & self.led.fitted


@dataclass(frozen=True, eq=False)
class LinearQ:
    """Fitted Q evaluation with q̂_t = φᵀβ_t."""

    steps: Steps
    sums: QSums
    unseen: Unseen | None  # where every pair has a feature of its own

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.steps.data.n_trajectories

    def values(self, weights: Array) -> Array:
        """V̂ under each row of weights, (rows,); NaN where they do not determine the coefficients."""
        result = np.empty(len(weights))
        for rows, sums in self.sums.blocks(np.asarray(weights, dtype=np.float64)):
            if self.unseen is None:
                result[rows] = self.sums.values(sums, self.steps.data.discount)
                continue
            solved = self._solve(sums)
            *_, (_, first) = self._backwards(solved)
            result[rows] = np.where(solved.fitted, (solved.starts * first).sum(axis=1), np.nan)
        return result

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every wanted step under weights (n,); else NaN."""
        data, steps = self.steps.data, self.steps
        solved = self._solve(np.asarray(weights, dtype=np.float64)[None] @ self.sums.sums)
        q_values, state_values = np.full(data.n_steps, np.nan), np.full(data.n_steps, np.nan)
        if not solved.fitted[0]:
            return q_values, state_values
        later = np.empty((data.horizon, self.sums.width))
        for t, coefficients in self._backwards(solved):
            later[t] = coefficients[0]
        for start, stop in steps.chunks(2):
            episodes = np.arange(start, stop)
            places = data.steps_of(episodes if wanted is None else episodes[wanted[start:stop]])
            if len(places):
                there = later[data.times[places]]
                done, would = steps.basis.taken(places), steps.expected(places, data.times[places])
                q_values[places] = (turned(done, self.sums.transform) * there).sum(axis=1)
                state_values[places] = (turned(would, self.sums.transform) * there).sum(axis=1)
        return q_values, state_values

    def assigned_variates(self, weights: Array, rows: IntArray) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every step, those of episode i under row rows[i] of the weights."""
        data, steps = self.steps.data, self.steps
        later = np.empty((len(weights), data.horizon, self.sums.width))
        for some, sums in self.sums.blocks(np.asarray(weights, dtype=np.float64)):
            solved = self._solve(sums)
            for t, coefficients in self._backwards(solved):
                later[some, t] = coefficients
            later[some][~solved.fitted] = np.nan
        q_values, state_values = np.empty(data.n_steps), np.empty(data.n_steps)
        for start, stop in steps.chunks(3):
            places = data.steps_of(np.arange(start, stop))
            there = later[np.repeat(rows[start:stop], data.lengths_of(start, stop)), data.times[places]]
            done, would = steps.basis.taken(places), steps.expected(places, data.times[places])
            q_values[places] = (turned(done, self.sums.transform) * there).sum(axis=1)
            state_values[places] = (turned(would, self.sums.transform) * there).sum(axis=1)
        return q_values, state_values

    def influences(self, weights: Array) -> Array:
        """∂V̂/∂w_i under each row, (rows, n): coefficients backwards against how much each counts, forwards."""
        result = np.empty(weights.shape)
        for rows, sums in self.sums.blocks(np.asarray(weights, dtype=np.float64)):
            solved = self._solve(sums)
            slopes = self._gradient(solved) @ self.sums.sums.T
            slopes[~solved.fitted] = np.nan
            result[rows] = slopes
        return result

    def _gradient(self, solved: Solved) -> Array:
        """∂V̂ by every sum, (rows, columns)."""
        data, kinds, p = self.steps.data, self.sums.kinds, self.sums.width
        later = np.empty((len(solved.total), data.horizon, p))
        for t, coefficients in self._backwards(solved):
            later[:, t] = coefficients
        counts = np.empty_like(later)  # how much β_t counts in V̂
        counts[:, 0] = solved.starts
        for t in range(1, data.horizon):
            counts[:, t] = data.discount * (counts[:, t - 1, None] @ solved.moves[kinds[t]])[:, 0]
        with np.errstate(invalid="ignore", divide="ignore"):
            start = later[:, 0] / solved.total[:, None]
        value = (solved.starts * start).sum(axis=1, keepdims=True)
        earned = (solved.rewarded @ counts.sum(axis=1)[:, :, None])[:, :, 0]
        rewards = np.where(solved.rewarded.missing, 0.0, solved.rewards)
        by_a = -earned[:, :, None] * rewards[:, None]
        reached = np.swapaxes(solved.led @ np.swapaxes(counts[:, :-1], 1, 2), 1, 2) * data.discount
        by_k, by_c = np.zeros_like(by_a), []
        for kind, move in enumerate(solved.moves):
            there = np.flatnonzero(kinds[1:] == kind)
            use, ahead = np.swapaxes(reached[:, there], 1, 2), later[:, there + 1]
            by_c.append(use @ ahead)
            by_k -= use @ (ahead @ np.swapaxes(move, 1, 2))
        if self.sums.led is None:
            by_a += by_k
        return self.sums.gradient([-value, start, earned, by_a, by_k, *by_c])

    def _backwards(self, solved: Solved) -> Iterator[tuple[int, Array]]:
        """(t, β_t (rows, p)) from the last time to the first."""
        horizon, discount, kinds = self.steps.data.horizon, self.steps.data.discount, self.sums.kinds
        coefficients = solved.rewards
        yield horizon - 1, coefficients
        for t in reversed(range(horizon - 1)):
            ahead = (solved.moves[kinds[t + 1]] @ coefficients[:, :, None])[:, :, 0]
            coefficients = solved.rewards + discount * ahead
            yield t, coefficients

    def _solve(self, sums: Array) -> Solved:
        """The regressions of rows of sums."""
        layout, p = self.sums, self.sums.width
        total, starts, above, rewarded, led, *moves = (sums[:, place] for place in layout.places)
        with np.errstate(invalid="ignore", divide="ignore"):
            mean = starts / total
        by_reward = self._inverse(layout.rewarded.fill(rewarded, p))
        by_move = by_reward if layout.led is None else self._inverse(layout.led.fill(led, p))
        rewards = (by_reward @ above[:, :, None])[:, :, 0]
        moved = [by_move @ each.fill(part, p) for each, part in zip(layout.moves, moves, strict=True)]
        if self.unseen is not None:
            rewards[by_reward.missing] = self.unseen.reward
            for move, loops in zip(moved, self.unseen.loops, strict=True):
                rows, pairs = np.nonzero(by_move.missing)
                move[rows, pairs] = loops[pairs]
        return Solved(total[:, 0], mean, by_reward, by_move, rewards, moved)

    def _inverse(self, matrices: Array) -> Inverse:
        rows, p, _ = matrices.shape
        if self.unseen is not None:
            counts = np.diagonal(matrices, axis1=1, axis2=2)
            missing = counts == 0
            shares = np.divide(1.0, counts, out=np.zeros(counts.shape), where=~missing)
            return Inverse(shares, missing, np.ones(rows, dtype=np.bool_))
        fitted = determined(matrices)
        matrices[~fitted] = np.eye(p)
        return Inverse(np.linalg.inv(matrices).astype(np.float64), np.zeros((rows, p), dtype=np.bool_), fitted)
