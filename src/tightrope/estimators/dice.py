"""DICE: how much more often the candidate visits a state than the logs do, as a linear function of its features.

    w_t(s) = ψ(s)ᵀα_t,    E_b[w_0(S_0) ψ(S_0)] = E_b[ψ(S_0)]
    E_b[w_{t+1}(S_{t+1}) ψ(S_{t+1})] = E_b[w_t(S_t) ρ_t ψ(S_{t+1})],    V̂ = Σ_t γ^t E_b[w_t(S_t) ρ_t r_t],

ρ_t = π_e(A_t|S_t) / π_b(A_t|S_t), and E_b is the weighted mean over the logs, in which an episode that has ended counts
as 0. In words: w_{t+1} is the least-squares regression of w_t(S_t) ρ_t on the features of the next state.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_size, lent, numbers
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.problem import Problem
from tightrope.estimators.base import Estimator
from tightrope.estimators.mis import Places
from tightrope.estimators.model_based import ModelStatistic
from tightrope.estimators.step_ratios import numbered_states, step_weighted
from tightrope.models.tabular.model import is_numbered

StateFeatures = Callable[[npt.NDArray[Any]], Any]

ROWS = 16  # replicates at a time, always as many: products of other shapes would round differently
KEPT_ROWS = 8 * ROWS  # whose regressions are kept for the way back
DEPENDENT = 1e-10  # a direction of the features counts as none if it is this much smaller than the largest
WEIGHTLESS = 1e-12  # the same of its weighted square under a row of weights


@dataclass(frozen=True)
class DICE(Estimator):
    """Linear ratios of visits (distribution correction estimation), in closed form, one small system for each step.

    ``features(states)`` gets the states as logged and returns (N, p); it should include a constant. By default each
    numbered state has a feature of its own, which makes DICE equal to MIS; other states get 1 and their numbers. It is
    consistent where the true ratios of visits are linear in the features, or where the candidate's values are: it is
    also the fitted evaluation of v̂_t(s) = ψ(s)ᵀβ_t, weighed by ratios. It fails where neither is so, however many logs
    there are, and where the state hides something (Markov). With features that tell all episodes apart it is PDIS.

    The linear case, for a finite horizon, of minimax weight learning (Uehara, Huang, Jiang 2020), with one class for
    ratios and for the functions that test them. Liu et al. (2018) and DualDICE (Nachum et al. 2019) learn the ratio of
    discounted visits over all time instead.

    Where the visits of a time cannot tell features apart (one start state; fewer episodes than features), the shortest
    of all solutions is taken: all of them give the logged states the same ratio.
    """

    name: ClassVar[str] = "dice"
    trusts_states: ClassVar[bool] = True

    features: StateFeatures | None = None  # of states; None: one for each numbered state, else 1 and the state

    def __call__(self, problem: Problem) -> ModelStatistic:
        """The statistic of the candidate's value."""
        problem.check_memory(self.name)
        if self.features is None and is_numbered(problem.coded.dataset.states):
            states = numbered_states(problem, self.name, "features")
            return step_weighted(self.name, Places.of(problem.dataset, states), problem)
        return step_weighted(self.name, LinearVisits.of(problem.dataset, self._features(problem)), problem)

    def _features(self, problem: Problem) -> Array:
        """ψ of every logged state, (N, p), checked."""
        data = problem.dataset
        states = data.states
        if states is None:
            raise DataError("dice needs states, because it learns how often each is visited; the logs hold none")
        if self.features is not None:
            values = numbers("features", self.features(lent(states)), DataError)
        elif states.ndim > 2 or states.dtype.kind not in "iubf":
            raise DataError(
                f"dice takes states that are rows of numbers, or features of them; the logs hold {states.dtype} of "
                f"shape {states.shape}. Give DICE(features=...), which returns (N, p) for N states"
            )
        else:
            values = np.column_stack([np.ones(len(states)), states.reshape(len(states), -1).astype(np.float64)])
        if values.ndim != 2 or len(values) != data.n_steps or not values.shape[1]:
            raise DataError(f"features must return shape (N, p) with N={data.n_steps}; got shape {values.shape}")
        if not np.isfinite(values).all():
            step = int(np.argmin(np.isfinite(values).all(axis=1)))
            raise DataError(f"features must be finite numbers; got {values[step]} at {data.where(step)}")
        check_size("feature", values, data.where)
        return values


class Moment(NamedTuple):
    """The m episodes that take a step at one time."""

    episodes: IntArray  # (m,)
    steps: IntArray  # (m,): which logged step each takes
    staying: IntArray  # which of the m take another step
    basis: Array  # (m, k): features of the state, turned so that their mean squares are 1 and products 0
    earned: Array  # (m,): γ^t r_t

    def among(self, weights: Array) -> Array:
        """The weights of these episodes, (rows, m)."""
        return weights if len(self.episodes) == weights.shape[1] else weights[:, self.episodes]


class Solved(NamedTuple):
    """The regressions under some rows of weights, time by time, and their outcome."""

    inverses: list[Array]  # (rows, k, k): of the weighted squares of the features
    coefficients: list[Array]  # (rows, k): α_t
    values: Array  # (rows,): V̂

    def part(self, rows: slice) -> Solved:
        """Those of some rows."""
        inverses, coefficients = [each[rows] for each in self.inverses], [each[rows] for each in self.coefficients]
        return Solved(inverses, coefficients, self.values[rows])


@dataclass(frozen=True, eq=False)
class LinearVisits:
    """The logged steps by time, with features that can be solved for."""

    moments: tuple[Moment, ...]
    n_trajectories: int  # how many weights it takes
    n_steps: int

    @classmethod
    def of(cls, data: TrajectoryDataset, features: Array) -> LinearVisits:
        """Features (N, p) of all logged states, made independent at each time."""
        moments, earned = [], data.rewards * data.discounts[data.times]
        for t in range(int(data.lengths.max())):
            episodes = np.flatnonzero(data.lengths > t)
            steps = data.offsets[episodes] + t
            staying = np.flatnonzero(data.lengths[episodes] > t + 1)
            moments.append(Moment(episodes, steps, staying, _independent(features[steps]), earned[steps]))
        return cls(tuple(moments), data.n_trajectories, data.n_steps)

    def values(self, weights: Array, step_ratios: Array) -> Array:
        """V̂ under each row of weights, (rows,)."""
        return self._solved(_filled(weights), step_ratios).values[: len(weights)]

    def slopes(self, weights: Array, step_ratios: Array) -> Array:
        """∂V̂/∂w_i under each row of weights, (rows, n)."""
        result = np.empty(weights.shape)
        for first in range(0, len(weights), KEPT_ROWS):
            filled = _filled(weights[first : first + KEPT_ROWS])
            solved = self._solved(filled, step_ratios)
            parts = [slice(start, start + ROWS) for start in range(0, len(filled), ROWS)]
            slopes = [self._backwards(filled[part], solved.part(part), step_ratios)[0] for part in parts]
            result[first : first + KEPT_ROWS] = np.concatenate(slopes)[: len(weights) - first]
        return result

    def ratio_slopes(self, weights: Array, step_ratios: Array) -> Array:
        """∂V̂/∂log ratio of every step, (N,)."""
        filled = _filled(weights[None])
        return self._backwards(filled, self._solved(filled, step_ratios), step_ratios)[1]

    def mass(self, step_ratios: Array) -> float:
        """How much of the candidate arrives at the end: what it would earn if only last steps did, 1 each."""
        last = []
        for moment in self.moments:
            earned = np.ones(len(moment.episodes))
            earned[moment.staying] = 0.0
            last.append(moment._replace(earned=earned))
        ends = LinearVisits(tuple(last), self.n_trajectories, self.n_steps)
        return float(ends.values(np.ones((1, self.n_trajectories)), step_ratios)[0])

    def _solved(self, weights: Array, step_ratios: Array) -> Solved:
        """Forwards through time: sums over episodes by one product, then a small system for each row."""
        inverses, coefficients, value = [], [], np.zeros(len(weights))
        aim = _products(weights, self.moments[0].basis)
        for moment, following in zip(self.moments, (*self.moments[1:], None), strict=True):
            k = moment.basis.shape[1]
            sums = _products(moment.among(weights), _columns(moment, following, step_ratios[moment.steps]))
            squares, earned, moved = np.split(sums, [k * (k + 1) // 2, k * (k + 1) // 2 + k], axis=1)
            inverses.append(_inverse(squares, k))
            coefficients.append(_applied(inverses[-1], aim))
            value += (coefficients[-1] * earned).sum(axis=1)
            aim = _applied(moved.reshape(len(weights), -1, k), coefficients[-1])
        with np.errstate(invalid="ignore", divide="ignore"):  # no weight, no value
            return Solved(inverses, coefficients, value / weights.sum(axis=1))

    def _backwards(self, block: Array, solved: Solved, step_ratios: Array) -> tuple[Array, Array]:
        """∂V̂/∂w_i, (rows, n), and by the logarithm of each step's ratio in the first row, (N,).

        With v̂_t(s) = ψ(s)ᵀβ_t, the regression of ρ_t (r_t + γ v̂_{t+1}) on ψ, an episode's slope is v̂_0 − V̂ plus the
        sum of w_t (ρ_t (r_t + γ v̂_{t+1}) − v̂_t), divided by the weight total.
        """
        slopes, by_ratio, ahead = np.zeros(block.shape), np.zeros(self.n_steps), np.zeros((len(block), 0))
        for t, moment in reversed(list(enumerate(self.moments))):
            gain = np.tile(moment.earned, (len(block), 1))
            gain[:, moment.staying] += ahead
            gain *= step_ratios[moment.steps]
            here, visits = moment.among(block), solved.coefficients[t] @ moment.basis.T
            ahead = _applied(solved.inverses[t], (here * gain) @ moment.basis) @ moment.basis.T
            slopes[:, moment.episodes] += visits * (gain - ahead)
            by_ratio[moment.steps] = (here * visits * gain)[0]
        with np.errstate(invalid="ignore", divide="ignore"):
            total = block.sum(axis=1, keepdims=True)
            return (slopes + ahead - solved.values[:, None]) / total, by_ratio / total[0]


def _columns(moment: Moment, following: Moment | None, step_ratios: Array) -> Array:
    """What is summed over the episodes of one time, (m, columns): b_i b_jᵀ for i ≤ j, ρ r b, and ρ b' bᵀ by rows."""
    basis = moment.basis
    rows, columns = np.triu_indices(basis.shape[1])
    weighed = step_ratios[:, None] * basis
    parts = [basis[:, rows] * basis[:, columns], weighed * moment.earned[:, None]]
    if following is not None:
        moved = np.zeros((len(basis), following.basis.shape[1], basis.shape[1]))
        moved[moment.staying] = following.basis[:, :, None] * weighed[moment.staying, None, :]
        parts.append(moved.reshape(len(basis), -1))
    return np.hstack(parts)


def _independent(features: Array) -> Array:
    """The same functions of the logged states by fewer features, of mean square 1 and mean products 0: (m, k)."""
    sizes = np.sqrt(np.square(features).mean(axis=0))
    left, lengths, _ = np.linalg.svd(features / np.where(sizes > 0, sizes, 1.0), full_matrices=False)
    kept = lengths > DEPENDENT * max(lengths[0], 1e-300)
    result: Array = np.ascontiguousarray(left[:, kept]) * np.sqrt(len(features))
    return result


def _filled(weights: Array) -> Array:
    """Weights with a multiple of ROWS rows; the last row fills up."""
    return weights[np.minimum(np.arange(-(-len(weights) // ROWS) * ROWS), len(weights) - 1)]


def _products(weights: Array, columns: Array) -> Array:
    """weights @ columns, ROWS rows at a time."""
    return np.concatenate([weights[first : first + ROWS] @ columns for first in range(0, len(weights), ROWS)])


def _inverse(sums: Array, k: int) -> Array:
    """The inverse of Σ_i w_i b_i b_iᵀ of each row, (rows, k, k), 0 in directions that no weight is on."""
    rows, columns = np.triu_indices(k)
    squares = np.empty((len(sums), k, k))
    squares[:, rows, columns] = squares[:, columns, rows] = sums
    lengths, axes = np.linalg.eigh(squares)
    sound = lengths > WEIGHTLESS * np.maximum(lengths[:, -1:], 0.0)
    shrunk = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=sound & (lengths > 0))
    inverse: Array = (axes * shrunk[:, None, :]) @ axes.transpose(0, 2, 1)
    return inverse


def _applied(matrices: Array, vectors: Array) -> Array:
    """Each row's matrix times its vector, (rows, k)."""
    result: Array = (matrices @ vectors[..., None])[..., 0]
    return result
