"""The model-based estimator: the candidate's value in a model fitted to the logs, anew under every weight row."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt

from tightrope.base.blas import one_blas_thread
from tightrope.base.dataset import Array
from tightrope.base.folder import Scratch, parts
from tightrope.base.problem import Problem
from tightrope.estimators.base import Anchor, Estimator
from tightrope.functional.standard_errors import row_errors
from tightrope.functional.statistic import weight_rows
from tightrope.models import CountedModel, Evaluated, Model, SmoothModel, prepared_model
from tightrope.models.tabular.blocks import LANES

ROW_BYTES = 8 << 20  # what one block of whole weight rows may take
SLOPE_BYTES = 1 << 21  # what the slopes of a few rows may take, so that they stay in a cache
MOST_FITS = 2000  # episodes up to which leaving one out is done by fitting


@dataclass(frozen=True)
class MB(Estimator):
    """V̂ of the candidate in the fitted model; with the bootstrap, the paper's MB-bootstrap.

    Little variance, but biased where the model class is wrong or pairs were never logged, and no resampling shows that
    bias. "Bootstrapping with Models", section on direct model-based bootstrapping.
    """

    name: ClassVar[str] = "mb"
    uses_ratios: ClassVar[bool] = False

    model: str | Model = "auto"  # by name or as an object
    anchor: Anchor = "low"  # the side of the bound; bounds choose it themselves

    def anchored(self, anchor: Anchor) -> Self:
        """What an unseen pair is worth depends on the side."""
        return replace(self, anchor=anchor)

    def __call__(self, problem: Problem) -> ModelStatistic:
        """The statistic of the candidate's value."""
        return ModelStatistic(prepared_model(self.model, problem, self.anchor), problem.dataset.scratch)


@dataclass(frozen=True, eq=False)
class ModelStatistic:
    """A statistic that does not reduce to a few sums: each weight row is a fit and an evaluation of its own."""

    model: Evaluated
    scratch: Scratch = field(default_factory=Scratch)  # room for numbers of each episode

    @property
    def n_trajectories(self) -> int:
        """How many weights it takes."""
        return self.model.n_trajectories

    @property
    def parallel(self) -> bool:
        """Where counts are all it takes; what calls a user's code may not bear it."""
        return isinstance(self.model, CountedModel)

    @one_blas_thread
    def __call__(self, weights: npt.ArrayLike) -> Array:
        """(..., n) weights to (...,) values."""
        rows = weight_rows(weights, self.n_trajectories)
        return self.model.values(rows.reshape(-1, self.n_trajectories)).reshape(rows.shape[:-1])

    @cached_property
    def estimate(self) -> float:
        """The point estimate: all weights one."""
        return float(self(self.scratch.full(self.n_trajectories, 1.0)))

    def influence(self) -> Array:
        """n ∂V̂/∂w_i, exactly where the model knows it, else by leaving each episode out."""
        return self._influence

    def leave_one_out(self) -> Array:
        """The value without each episode in turn, (n,): n more fits.

        Beyond a few thousand episodes a model that knows its derivatives answers to first order, θ̂ − ψ_i/(n−1);
        where it is smooth the difference is of the order 1/n², and the fits would take longer than the bootstrap.
        """
        return self._others

    @cached_property
    @one_blas_thread
    def _influence(self) -> Array:
        n = self.n_trajectories
        if isinstance(self.model, SmoothModel):
            slopes = self.scratch.copy(self.model.influences(self.scratch.full((1, n), 1.0))[0])
            slopes *= n
            return slopes
        return np.asarray((n - 1) * (self._others.mean() - self._others))

    @cached_property
    @one_blas_thread
    def _others(self) -> Array:
        n = self.n_trajectories
        if n > MOST_FITS and isinstance(self.model, SmoothModel):
            result: Array = self.scratch.empty(n)
            for part in parts(n):
                result[part] = self.estimate - self._influence[part] / (n - 1)
            return result
        return np.concatenate([self(self._without(rows)) for rows in self._blocks()])

    def _without(self, rows: slice) -> Array:
        weights = np.ones((rows.stop - rows.start, self.n_trajectories))
        weights[np.arange(len(weights)), np.arange(rows.start, rows.stop)] = 0.0
        return weights

    @one_blas_thread
    def standard_errors(self, weights: Array, draws: Sequence[int]) -> Array | None:
        """The infinitesimal jackknife's standard error under each row, (rows,); None without the model's derivative."""
        if not isinstance(self.model, SmoothModel):
            return None
        result = np.empty(len(weights))
        for rows in row_blocks(len(weights), self.n_trajectories, SLOPE_BYTES):
            result[rows] = row_errors(weights[rows], self.model.influences(weights[rows]), draws)
        return result

    def _blocks(self) -> Iterator[slice]:
        size = max(1, ROW_BYTES // (8 * self.n_trajectories))
        for first in range(0, self.n_trajectories, size):
            yield slice(first, min(first + size, self.n_trajectories))


def row_blocks(count: int, width: int, most_bytes: int) -> Iterator[slice]:
    """So many rows of so many numbers, some at a time: what fits these bytes, in steps that tabular models take."""
    size = max(LANES, most_bytes // (8 * width) // LANES * LANES)
    for first in range(0, count, size):
        yield slice(first, min(first + size, count))
