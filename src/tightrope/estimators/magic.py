"""MAGIC: a blend of all steps from the model's value to WDR, with the least estimated error.

    g_j = mean of v̂_0(S_0) + Σ_{t<j} γ^t Σ_i w_t^i δ_t^i,   j = 0 … L,   V̂ = Σ_j x_j g_j

g_0 is the model's value, g_L is WDR, and g_j takes j steps of importance sampling and the model's value for the rest
(the paper's g^(j−1)). x ≥ 0 with Σ x = 1 minimises xᵀ(Ω + b bᵀ)x: Ω is the covariance of the g_j, from what each
episode does to them; b_j is how far g_j lies outside an interval around WDR.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from statistics import NormalDist
from typing import ClassVar, NamedTuple, Protocol

import numpy as np

from tightrope.base.clusters import n_independent
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import TightropeError
from tightrope.base.problem import Problem
from tightrope.estimators.doubly_robust import Fit, _DoublyRobust
from tightrope.estimators.model_based import ModelStatistic, row_blocks
from tightrope.models import PreparedModel, TracedModel, prepared_model

MOST_LENGTHS = 10  # of returns, besides the model's value

BLOCK_BYTES = 1 << 18  # what q̂ of all steps may take at a time: small enough for the cache


@dataclass(frozen=True)
class MAGIC(_DoublyRobust):
    """Model and guided importance sampling combined: between MB and WDR, where the logs say that the error is least.

    Where the model is good it is the model's value, where it is bad and the logs are large it is WDR. The bias of each
    step between them is how far it lies from an ``interval`` around WDR, made of whole episodes: the normal one from
    WDR's standard error, which a bootstrap of episodes approaches. With few logs it believes a wrong model: biases
    smaller than WDR's own error do not show. Horizons above 10 are blended at ten lengths, spaced by ratios.

    The model's value is part of the blend, and resampling sees its error only where the model is fitted again. So by
    default (``fit="auto"``) every row of weights has a model of its own where that is quick, as with tabular models;
    models that need roll-outs are cross-fitted, and bounds err more often than they say. On four small problems with 20
    episodes, 95 % bounds of either side erred in 0 to 11 % of data sets with a model per row, in 1 to 22 % with values
    that stay; on one where every model is wrong, in up to 31 % and 47 %.

    Thomas and Brunskill (2016), "Data-Efficient Off-Policy Policy Evaluation for Reinforcement Learning". Ω is that of
    the mean; the authors' published code notes that a factor n was missing from it in the paper's experiments.
    """

    name: ClassVar[str] = "magic"
    self_normalized: ClassVar[bool] = True
    without_model: ClassVar[str | None] = "pdwis"
    chooses: ClassVar[bool] = True  # among the model, WDR and what lies between
    fits: ClassVar[tuple[Fit, ...]] = ("auto", "cross", "shared", "refit")

    fit: Fit = "auto"  # "refit" where refits are quick, else "cross"; "cross", "shared", "refit"
    interval: float = 0.1  # the coverage of the interval around WDR: the larger, the longer the model is believed

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.interval < 1:
            raise TightropeError(f"interval must be a coverage from 0 to below 1; got {self.interval!r}")

    def __call__(self, problem: Problem) -> ModelStatistic:
        """The statistic of the candidate's value."""
        _ = problem.ratios  # no overlap, no blend: refuse before fitting anything
        prepared = prepared_model(self.model, problem, self.anchor)
        source: StepValues
        if isinstance(prepared, TracedModel) and self.fit in ("auto", "refit"):
            source = prepared
        else:
            source = OneByOne(prepared) if self.fit == "refit" else FixedValues(*self.fixed_values(problem, prepared))
        if isinstance(source, TracedModel) and problem.behavior is None:
            return ModelStatistic(SmoothBlend(problem, source, self.interval))
        return ModelStatistic(Blend(problem, source, self.interval))


class Logs(NamedTuple):
    """What is the same under all weights, for the compiled kernels."""

    offsets: IntArray  # (n+1,)
    rewards: Array  # (N,)
    discount: float
    discounts: Array  # (K,): γ^t of the times that count
    lengths: IntArray  # (J,): how many steps of importance sampling each return takes, from none to all
    units: IntArray  # (n,): which cluster each episode belongs to; (0,) without clusters
    freedom: float  # how many episodes, or clusters of them, could differ
    reach: float  # to how many standard errors the interval reaches


class Returns(NamedTuple):
    """The returns of every length under one row of weights, what is made of them, and what they are made of."""

    values: Array  # (J,): g_j
    covariance: Array  # (J, J): Ω
    biases: Array  # (J,): b
    shares: Array  # (J,): x
    weights: Array  # (n,), of sum one
    ratios: Array  # (n, K): ρ_t by their mean
    steps: Array  # (n, K): what each episode does to the part of each time
    moved: Array  # (n, J): what each episode does to each g_j, Σw ∂g_j/∂w_i


class StepValues(Protocol):
    """q̂ and v̂ of every step under any weights."""

    def step_values(self, weights: Array) -> tuple[Array, Array]:
        """Under each row of weights, (rows, N) each, or (1, N) where they are the same under all."""
        ...


@dataclass(frozen=True, eq=False)
class Blend:
    """MAGIC under any weights: returns, covariance, biases and shares are computed anew under each row."""

    problem: Problem
    source: StepValues
    interval: float

    @property
    def n_trajectories(self) -> int:
        """How many weights a row has."""
        return self.problem.dataset.n_trajectories

    def values(self, weights: Array) -> Array:
        """Σ x_j g_j under each row of weights, (rows,); NaN where a time has no ratio to divide by."""
        from tightrope.estimators import blend_kernels as kernels

        result, room = np.empty(len(weights)), self._room()
        for rows in self._blocks(len(weights)):
            kernels.blends(self.logs, *self._inputs(weights[rows]), room, result[rows])
        return result

    def returns(self, weights: Array) -> Returns | None:
        """The blend under weights (n,); None where it is undefined."""
        from tightrope.estimators import blend_kernels as kernels

        rows, *values = self._inputs(weights[None])
        room = self._room()
        return room if kernels.blend(self.logs, rows[0], *(one[0] for one in values), room) else None

    @cached_property
    def logs(self) -> Logs:
        """What is the same under all weights."""
        data, names = self.problem.dataset, self.problem.dataset.clusters
        counted = int(np.count_nonzero(data.discounts))
        return Logs(
            data.offsets,
            np.asarray(data.rewards, dtype=np.float64),
            float(data.discount),
            data.discounts[:counted],
            lengths_up_to(counted),
            np.zeros(0, dtype=np.int64) if names is None else np.unique(names, return_inverse=True)[1],
            float(max(n_independent(data) - 1, 1)),
            NormalDist().inv_cdf((1 + self.interval) / 2),
        )

    def _room(self) -> Returns:
        """Arrays to be filled."""
        n, count, several = self.n_trajectories, len(self.logs.discounts), len(self.logs.lengths)
        shapes = (several,), (several, several), (several,), (several,), (n,), (n, count), (n, count), (n, several)
        return Returns(*(np.empty(shape) for shape in shapes))

    def _blocks(self, count: int) -> Iterator[slice]:
        """Rows whose values of all steps fit into the cache."""
        return row_blocks(count, self.problem.dataset.n_steps, BLOCK_BYTES)

    def _inputs(self, weights: Array) -> tuple[Array, Array, Array, Array]:
        """Rows of weights, and of each, or once for all: q̂ and v̂ of every step, and ρ_t up to a factor, (n, K)."""
        rows = np.ascontiguousarray(weights, dtype=np.float64)
        ratios = self._ratios if self.problem.behavior is None else np.stack([self._estimated(row) for row in rows])
        return rows, *self.source.step_values(rows), ratios

    @cached_property
    def _ratios(self) -> Array:
        """ρ_t relative to the largest of each time, (1, n, K)."""
        ratios, count = self.problem.ratios, len(self.logs.discounts)
        logs = ratios.log(0, self.n_trajectories)[:, :count]
        return np.exp(logs - ratios.log_max[:count])[None]

    def _estimated(self, weights: Array) -> Array:
        """The same with the behaviour policy fitted under the weights, (n, K); 0 for episodes without weight."""
        problem, data, count = self.problem, self.problem.dataset, len(self.logs.discounts)
        log_probs = problem.fits.behavior.log_probs(problem.fits(weights))
        with np.errstate(invalid="ignore"):  # what the fit never saw has no weight
            steps = data.pad(problem.eval_log_probs - log_probs, 0, data.n_trajectories)
        logs = np.cumsum(steps, axis=1)[:, :count]
        logs[weights == 0] = -np.inf
        with np.errstate(invalid="ignore"):
            return np.asarray(np.exp(logs - logs.max(axis=0)))


@dataclass(frozen=True, eq=False)
class SmoothBlend(Blend):
    """MAGIC with its derivatives: of the returns, of their shares, and of q̂ and v̂ where weights change them."""

    source: TracedModel

    def influences(self, weights: Array) -> Array:
        """∂V̂/∂w_i under each row, (rows, n), while the same returns have a share; NaN where V̂ is undefined."""
        from tightrope.estimators import blend_kernels as kernels

        result, room = np.empty(weights.shape), self._room()
        for rows in self._blocks(len(weights)):
            inputs = self._inputs(weights[rows])
            by_values = np.empty((2, len(inputs[0]), self.problem.dataset.n_steps))
            kernels.blend_slopes(self.logs, *inputs, room, result[rows], *by_values)
            result[rows] += self.source.pull_back(inputs[0], *by_values)
        return result


def lengths_up_to(most: int) -> IntArray:
    """How many steps of importance sampling each return takes, (J,)."""
    if most <= MOST_LENGTHS:
        return np.arange(most + 1)
    return np.append(0, np.unique(np.rint(np.geomspace(1, most, MOST_LENGTHS)).astype(np.int64)))


@dataclass(frozen=True, eq=False)
class FixedValues:
    """Values that no weights change."""

    q_values: Array  # (N,)
    state_values: Array  # (N,)

    def step_values(self, weights: Array) -> tuple[Array, Array]:
        """The same under all rows, (1, N) each."""
        return self.q_values[None], self.state_values[None]

    def pull_back(self, weights: Array, q_slopes: Array, state_slopes: Array) -> Array:
        """Nothing."""
        return np.zeros_like(weights)


@dataclass(frozen=True, eq=False)
class OneByOne:
    """Values of a model that is fitted for one row of weights after the other."""

    model: PreparedModel

    def step_values(self, weights: Array) -> tuple[Array, Array]:
        """Of one model each, (rows, N) each."""
        each = [self.model.control_variates(row) for row in weights]
        return np.stack([q for q, _ in each]), np.stack([v for _, v in each])
