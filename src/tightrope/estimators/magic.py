"""MAGIC: a blend of all steps from the model's value to WDR, with the least estimated error.

    g_j = mean of v̂_0(S_0) + Σ_{t<j} γ^t Σ_i w_t^i δ_t^i,   j = 0 … L,   V̂ = Σ_j x_j g_j

g_0 is the model's value, g_L is WDR, and g_j takes j steps of importance sampling and the model's value for the rest
(the paper's g^(j−1)). x ≥ 0 with Σ x = 1 minimises xᵀ(Ω + b bᵀ)x: Ω is the covariance of the g_j, from what each
episode does to them; b_j is how far g_j lies outside an interval around WDR.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import ClassVar, NamedTuple

import numpy as np

from tightrope.base.clusters import n_independent
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import TightropeError
from tightrope.base.problem import Problem
from tightrope.estimators.doubly_robust import _DoublyRobust, td_errors
from tightrope.estimators.model_based import ModelStatistic
from tightrope.estimators.simplex import nearest_to_zero
from tightrope.models import prepared_model

MOST_LENGTHS = 10  # of returns, besides the model's value

Values = Callable[[Array], tuple[Array, Array]]  # weights (n,) to q̂ and v̂ of every step, (N,) each


@dataclass(frozen=True)
class MAGIC(_DoublyRobust):
    """Model and guided importance sampling combined: between MB and WDR, where the logs say that the error is least.

    Where the model is good it is the model's value, where it is bad and the logs are large it is WDR. The bias of each
    step between them is how far it lies from an ``interval`` around WDR, made of whole episodes: the normal one from
    WDR's standard error, which a bootstrap of episodes approaches. With few logs it believes a wrong model: biases
    smaller than WDR's own error do not show. Horizons above 10 are blended at ten lengths, spaced by ratios.

    For bounds take ``fit="refit"``: the model's value is part of the blend, and resampling sees its error only where
    the model is fitted again. With fixed values 95 % lower bounds err in up to 27 % of small logs, two to four times as
    often.

    Thomas and Brunskill (2016), "Data-Efficient Off-Policy Policy Evaluation for Reinforcement Learning". Ω is that of
    the mean; the authors' published code notes that a factor n was missing from it in the paper's experiments.
    """

    name: ClassVar[str] = "magic"
    self_normalized: ClassVar[bool] = True
    without_model: ClassVar[str | None] = "pdwis"
    chooses: ClassVar[bool] = True  # among the model, WDR and what lies between

    interval: float = 0.1  # the coverage of the interval around WDR: the larger, the longer the model is believed

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.interval < 1:
            raise TightropeError(f"interval must be a coverage from 0 to below 1; got {self.interval!r}")

    def __call__(self, problem: Problem) -> ModelStatistic:
        """The statistic of the candidate's value."""
        _ = problem.ratios  # no overlap, no blend: refuse before fitting anything
        prepared = prepared_model(self.model, problem, self.anchor)
        if self.fit == "refit":
            return ModelStatistic(Blend(problem, prepared.control_variates, self.interval))
        fixed = self.fixed_values(problem, prepared)
        kind = SmoothBlend if problem.behavior is None else Blend
        return ModelStatistic(kind(problem, lambda weights: fixed, self.interval))


class Returns(NamedTuple):
    """The returns of every length under one row of weights, what is made of them, and what they are made of."""

    lengths: IntArray  # (J,)
    values: Array  # (J,): g_j
    covariance: Array  # (J, J): Ω
    biases: Array  # (J,): b
    shares: Array  # (J,): x
    weights: Array  # (n,), of sum one
    ratios: Array  # (n, K): ρ_t by their mean
    steps: Array  # (n, K): what each episode does to the part of each time
    moved: Array  # (n, J): what each episode does to each g_j, Σw ∂g_j/∂w_i

    @property
    def errors(self) -> Array:
        """Ω + b bᵀ, (J, J)."""
        return self.covariance + self.biases[:, None] * self.biases


@dataclass(frozen=True, eq=False)
class Blend:
    """MAGIC under any weights: returns, covariance, biases and shares are computed anew under each row."""

    problem: Problem
    with_weights: Values
    interval: float

    @property
    def n_trajectories(self) -> int:
        """How many weights a row has."""
        return self.problem.dataset.n_trajectories

    def values(self, weights: Array) -> Array:
        """Σ x_j g_j under each row of weights, (rows,); NaN where a time has no ratio to divide by."""
        each = [self.returns(row) for row in weights]
        return np.array([np.nan if one is None else float(one.shares @ one.values) for one in each])

    def returns(self, weights: Array) -> Returns | None:
        """The blend under weights (n,); None where it is undefined.

        Weights matter by their proportions, so they do not say how many episodes there are: Ω is that of the mean of as
        many as were logged.
        """
        total, lengths = weights.sum(), self._lengths
        if not total > 0:
            return None
        shares, starts, errors, ratios = weights / total, *self._steps(weights)
        below = shares @ ratios
        if not (below > 0).all():  # NaN too: the behaviour policy has no fit
            return None
        mean, means, ratios = shares @ starts, shares @ (ratios * errors) / below, ratios / below
        steps = self._discounts * ratios * (errors - means)
        values = np.append(mean, mean + np.cumsum(self._discounts * means))[lengths]
        moved = np.cumsum(np.column_stack([starts - mean, steps]), axis=1)[:, lengths]
        together = self._by_unit(shares, moved)
        covariance = (shares[:, None] * together).T @ together / self._freedom
        half = self._reach * np.sqrt(covariance[-1, -1])
        biases = np.maximum(np.abs(values - values[-1]) - half, 0.0)
        blend = Returns(lengths, values, covariance, biases, biases, shares, ratios, steps, moved)
        return blend._replace(shares=nearest_to_zero(blend.errors))

    @cached_property
    def _reach(self) -> float:
        """To how many standard errors the interval reaches."""
        return NormalDist().inv_cdf((1 + self.interval) / 2)

    @cached_property
    def _freedom(self) -> int:
        """How many episodes, or clusters of them, could differ."""
        return max(n_independent(self.problem.dataset) - 1, 1)

    @cached_property
    def _units(self) -> IntArray | None:
        """Which cluster each episode belongs to, (n,)."""
        names = self.problem.dataset.clusters
        return None if names is None else np.unique(names, return_inverse=True)[1]

    def _by_unit(self, shares: Array, values: Array) -> Array:
        """Values (n, ...) as they are, or the weighted mean of each episode's cluster: what is drawn together."""
        code = self._units
        if code is None:
            return values
        flat = values.reshape(len(values), -1)
        total = np.bincount(code, weights=shares)
        sums = np.stack([np.bincount(code, weights=shares * column) for column in flat.T], axis=1)
        means = np.divide(sums, total[:, None], out=np.zeros_like(sums), where=total[:, None] > 0)
        return np.asarray(means[code].reshape(values.shape))

    @cached_property
    def _discounts(self) -> Array:
        """γ^t of the times that count, (K,)."""
        discounts = self.problem.dataset.discounts
        return discounts[: int(np.count_nonzero(discounts))]

    @cached_property
    def _lengths(self) -> IntArray:
        """How many steps of importance sampling each return takes, (J,), from none to all."""
        most = len(self._discounts)
        if most <= MOST_LENGTHS:
            return np.arange(most + 1)
        return np.append(0, np.unique(np.rint(np.geomspace(1, most, MOST_LENGTHS)).astype(np.int64)))

    def _steps(self, weights: Array) -> tuple[Array, Array, Array]:
        """v̂_0 (n,), and δ_t and ρ_t up to a factor for each time, (n, K) each."""
        data, count = self.problem.dataset, len(self._discounts)
        q_values, state_values = self.with_weights(weights)
        errors = data.pad(td_errors(data, q_values, state_values), 0, data.n_trajectories)[:, :count]
        ratios = self._ratios if self.problem.behavior is None else self._estimated(weights)
        return state_values[data.offsets[:-1]], errors, ratios

    @cached_property
    def _ratios(self) -> Array:
        """ρ_t relative to the largest of each time, (n, K)."""
        ratios, count = self.problem.ratios, len(self._discounts)
        logs = ratios.log(0, self.n_trajectories)[:, :count]
        return np.exp(logs - ratios.log_max[:count])

    def _estimated(self, weights: Array) -> Array:
        """The same with the behaviour policy fitted under the weights; 0 for episodes without weight."""
        problem, data, count = self.problem, self.problem.dataset, len(self._discounts)
        log_probs = problem.fits.behavior.log_probs(problem.fits(weights))
        with np.errstate(invalid="ignore"):  # what the fit never saw has no weight
            steps = data.pad(problem.eval_log_probs - log_probs, 0, data.n_trajectories)
        logs = np.cumsum(steps, axis=1)[:, :count]
        logs[weights == 0] = -np.inf
        with np.errstate(invalid="ignore"):
            return np.asarray(np.exp(logs - logs.max(axis=0)))


@dataclass(frozen=True, eq=False)
class SmoothBlend(Blend):
    """MAGIC with q̂ and ratios that no weights change, and its derivatives: of the returns, and of their shares too."""

    def influences(self, weights: Array) -> Array:
        """∂V̂/∂w_i under each row, (rows, n), while the same returns have a share; NaN where V̂ is undefined."""
        result = np.full(weights.shape, np.nan)
        for row, slopes in zip(np.asarray(weights, dtype=np.float64), result, strict=True):
            blend = self.returns(row)
            if blend is not None:
                slopes[:] = self._slopes(blend) / row.sum()
        return result

    def _slopes(self, blend: Returns) -> Array:
        """Σw ∂V̂/∂w_i, (n,).

        Shares x solve Qx = λ1 on their support, Q = Ω + b bᵀ, so that Σ g_j dx_j = −aᵀ dQ x with Qa = g − μ1, Σ a = 0.
        """
        slopes, used = blend.moved @ blend.shares, np.flatnonzero(blend.shares > 0)
        if len(used) == 1:
            return slopes
        turn, size, k = np.zeros(len(blend.shares)), np.diag(blend.errors).max(), len(used)
        system = np.ones((k + 1, k + 1))
        system[:k, :k], system[k, k] = blend.errors[np.ix_(used, used)] / size, 0.0
        turn[used] = np.linalg.lstsq(system, np.append(blend.values[used], 0.0), rcond=None)[0][:k] / size
        slopes -= self._covariance_slopes(blend, turn, blend.shares)
        biased, last = blend.biases > 0, np.eye(len(turn))[-1]
        if biased.any():
            error = np.sqrt(blend.covariance[-1, -1])
            wider = self._covariance_slopes(blend, last, last) / (2 * error) if error > 0 else np.zeros(len(slopes))
            apart = np.sign(blend.values - blend.values[-1]) * (blend.moved - blend.moved[:, -1:])
            biases = np.where(biased, apart - self._reach * wider[:, None], 0.0)
            slopes -= biases @ (turn * (blend.biases @ blend.shares) + blend.shares * (blend.biases @ turn))
        return slopes

    def _covariance_slopes(self, blend: Returns, left: Array, right: Array) -> Array:
        """Σw ∂(aᵀΩx)/∂w_i, (n,), for fixed a and x."""
        shares, steps, ratios = blend.weights, blend.steps, blend.ratios
        one, other = blend.moved @ left, blend.moved @ right
        both = self._by_unit(shares, np.stack([one, other], axis=1))
        direct = one * both[:, 1] + both[:, 0] * other - both[:, 0] * both[:, 1]
        later = np.arange(steps.shape[1]) < blend.lengths[:, None]  # (J, K): which times a return holds
        use = (shares * both[:, 1])[:, None] * (left @ later) + (shares * both[:, 0])[:, None] * (right @ later)
        indirect = (ratios - 1.0) @ (use * steps).sum(axis=0) + steps @ (use * ratios).sum(axis=0)
        result: Array = (direct - shares @ direct - indirect) / self._freedom
        return result
