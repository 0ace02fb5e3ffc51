"""DR and WDR: importance sampling with the model's value functions as control variate.

    DR  = mean of v̂_0(S_0) + Σ_t γ^t ρ_t δ_t
    WDR = mean of v̂_0(S_0) + Σ_t γ^t Σ_i w_t^i δ_t^i,    δ_t = r_t − q̂_t(S_t, A_t) + γ v̂_{t+1}(S_{t+1})

the folded form of the paper's definition with w_{-1} = 1/n (as printed, with 1, the estimate is about n·V), v̂_L = 0,
and r = q̂ = v̂ = 0 after an episode's end, whose ratio stays in the denominators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar, Literal, Self

import numpy as np

from tightrope.base import folder
from tightrope.base.clusters import fold_of
from tightrope.base.dataset import Array, BoolArray, TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.folder import parts
from tightrope.base.names import must_be_one_of
from tightrope.base.problem import Problem
from tightrope.base.progress import part
from tightrope.estimators.base import Anchor, Estimator
from tightrope.estimators.model_based import ModelStatistic
from tightrope.estimators.refit import Refitted, RefittedAtOnce
from tightrope.estimators.weighing import Weighing
from tightrope.functional.statistic import SumStatistic
from tightrope.models import BatchedModel, Model, PreparedModel, model_key, prepared_model
from tightrope.models.residuals import td_errors

Fit = Literal["auto", "cross", "shared", "refit"]


@dataclass(frozen=True)
class _DoublyRobust(Estimator):
    """Settings that DR and WDR share.

    ``fit`` says where q̂ comes from: "cross" (each episode is corrected by a model fitted on the other folds),
    "shared" (one model from all the data, the paper's choice) or "refit" (one per resample). With one model fitted on
    the data it corrects, deterministic dynamics leave δ = 0 everywhere and nothing is corrected; hence "cross" by
    default.
    """

    shares_weights: ClassVar[bool] = True
    self_normalized: ClassVar[bool]  # whether the ratios of each time are divided by their sum
    fits: ClassVar[tuple[Fit, ...]] = ("cross", "shared", "refit")  # that it knows

    model: str | Model = "auto"  # by name or as an object
    fit: Fit = "cross"  # where q̂ comes from: "cross", "shared" or "refit"
    folds: int = 5  # of cross-fitting
    anchor: Anchor = "low"  # the side of the bound; bounds choose it themselves

    def __post_init__(self) -> None:
        if self.fit not in self.fits:
            raise TightropeError(must_be_one_of("fit", self.fit, self.fits))
        if self.folds < 2:
            raise TightropeError(f"folds is {self.folds}; cross-fitting needs at least 2")

    def anchored(self, anchor: Anchor) -> Self:
        """What an unseen pair is worth depends on the side."""
        return replace(self, anchor=anchor)

    @property
    def fitted_to_all(self) -> bool:
        """Unless it is cross-fitted."""
        return self.fit != "cross"

    def __call__(self, problem: Problem) -> SumStatistic | ModelStatistic:
        """The statistic of the candidate's value."""
        data, _ = problem.dataset, problem.ratios  # no overlap, no correction: refuse before fitting anything
        prepared = prepared_model(self.model, problem, self.anchor)

        def statistic(values: tuple[Array, Array]) -> SumStatistic | ModelStatistic:
            return self._weighing(
                data, td_errors(data, *values), data.scratch.taken(values[1], data.offsets[:-1])
            ).statistic(problem)

        if self.fit == "refit":
            zero = self._weighing(data, np.broadcast_to(0.0, data.n_steps), np.zeros(data.n_trajectories))
            if isinstance(prepared, BatchedModel) and problem.behavior is None:
                return ModelStatistic(RefittedAtOnce(prepared, problem, zero))
            return ModelStatistic(Refitted(prepared, statistic))
        return statistic(self.fixed_values(problem, prepared))

    def fixed_values(self, problem: Problem, prepared: PreparedModel) -> tuple[Array, Array]:
        """q̂ and v̂ of every step where no weights change them: cross-fitted, or of the model of all logs."""
        n = problem.dataset.n_trajectories
        if self.fit == "shared" or n < 2:
            return prepared.control_variates(problem.dataset.scratch.full(n, 1.0))
        return held_out_values(problem, self.model, self.anchor, self.folds)

    def _weighing(self, data: TrajectoryDataset, deltas: Array, start_values: Array) -> Weighing:
        """v̂_0 and Σ_t γ^t ρ_t δ_t."""
        counts = int(np.count_nonzero(data.discounts))

        def values(start: int, stop: int) -> Array:
            return data.pad(deltas[data.steps(start, stop)], start, stop)[:, :counts]

        return Weighing(
            slice(0, counts),
            data.discounts[:counts],
            values,
            self_normalized=self.self_normalized,
            unweighted=start_values,
        )


def held_out_values(problem: Problem, chosen: str | Model, anchor: Anchor, folds: int) -> tuple[Array, Array]:
    """``cross_fitted`` of this model, once for DR, WDR and the model's check."""
    return problem.once(
        ("cross-fitted", model_key(chosen), anchor, folds),
        lambda: cross_fitted(problem.dataset, prepared_model(chosen, problem, anchor), folds),
    )


def cross_fitted(data: TrajectoryDataset, prepared: PreparedModel, folds: int) -> tuple[Array, Array]:
    """q̂ and v̂ of every step from the model fitted on the other folds."""
    q_values, state_values = data.scratch.empty(data.n_steps), data.scratch.empty(data.n_steps)
    pairs = list(held_out_folds(data, folds))
    for place, (held, others) in enumerate(pairs):
        with part(place, len(pairs)):
            q, v = prepared.control_variates(others, held)
        for values, all_values in ((q, q_values), (v, state_values)):
            copy_steps(data, held, values, all_values)
    return q_values, state_values


def held_out_folds(data: TrajectoryDataset, folds: int) -> Iterator[tuple[BoolArray, Array]]:
    """(which episodes a fold holds, the weights of those to learn from), (n,) each, fold by fold."""
    fold = fold_of(data, folds)
    belongs, weights = data.scratch.empty((folds, len(fold)), np.bool_), data.scratch.empty((folds, len(fold)))
    for k, held, others in zip(range(folds), belongs, weights, strict=True):
        for some in parts(len(fold)):
            held[some] = fold[some] == k
            others[some] = ~held[some]
        if held.any():
            yield held, others if others.any() else held.astype(np.float64)  # a single identity: nothing else


def copy_steps(data: TrajectoryDataset, wanted: BoolArray, values: Array, out: Array) -> None:
    """Copy the values of the steps of the episodes wanted (n,), some episodes at a time."""
    for start, stop in data.ranges(folder.PART):
        steps, chosen = data.steps(start, stop), np.repeat(wanted[start:stop], data.lengths_of(start, stop))
        out[steps][chosen] = values[steps][chosen]


@dataclass(frozen=True)
class DR(_DoublyRobust):
    """Doubly robust: unbiased with true ratios and any fixed model, or with a true model and any ratios.

    Jiang and Li (2016).
    """

    name: ClassVar[str] = "dr"
    self_normalized: ClassVar[bool] = False

    def preference(self, dataset: TrajectoryDataset) -> int:
        """After PDWIS."""
        return 3


@dataclass(frozen=True)
class WDR(_DoublyRobust):
    """Weighted doubly robust: consistent whatever the model, with far less variance; with the bootstrap, WDR-bootstrap.

    Its control variate does not have mean zero (self-normalised weights), so it is biased at small n. Thomas and
    Brunskill (2016); "Bootstrapping with Models".
    """

    name: ClassVar[str] = "wdr"
    self_normalized: ClassVar[bool] = True
    without_model: ClassVar[str | None] = "pdwis"

    def preference(self, dataset: TrajectoryDataset) -> int:
        """The first: the least variance."""
        return 1
