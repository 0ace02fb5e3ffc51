"""Importance sampling with a behaviour policy that is fitted anew under every row of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tightrope.base.behavior import SmoothBehavior
from tightrope.base.dataset import Array
from tightrope.base.problem import Problem


class Sums(NamedTuple):
    """Weighted sums under one row of weights, relative to exp(top) at each time."""

    parameters: Array
    logs: Array  # (n, K): log ρ_t, where the weight is not 0
    top: Array  # (K,)
    below: Array  # (K,)
    above: Array  # (K,)
    defined: bool


@dataclass(frozen=True, eq=False, kw_only=True)
class Reestimated:
    """Fit π̂_b under the weights, weigh by π_e / π̂_b, average under the same weights."""

    problem: Problem
    first: int  # the first of the K times whose ratios are used
    coefficients: Array  # (K,)
    values_weighed: Array  # (n, K)
    self_normalized: bool
    unweighted: Array  # (n,)
    constant: float

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.problem.dataset.n_trajectories

    def values(self, weights: Array) -> Array:
        """The estimate under each row of weights, (rows,); NaN where a row has no fit or nothing to divide by."""
        return np.array([self._value(row) for row in weights])

    def _value(self, weights: Array) -> float:
        sums = self.sums(weights)
        if not sums.defined:
            return np.nan
        value = (
            self.constant + weights @ self.unweighted / weights.sum() + (sums.above / sums.below) @ self.coefficients
        )
        return float(value) if np.isfinite(value) else np.nan

    def sums(self, weights: Array) -> Sums:
        """What is divided by what, under weights (n,)."""
        from tightrope.estimators import weighing_kernels

        problem, count = self.problem, len(self.coefficients)
        logs, (top, below, above) = np.empty((len(weights), count)), np.zeros((3, count))
        parameters = problem.fits(weights)
        log_probs = problem.fits.behavior.log_probs(parameters)
        defined = bool(weights.any()) and weighing_kernels.weigh(
            problem.eval_log_probs,
            log_probs,
            problem.dataset.offsets,
            np.ascontiguousarray(weights),
            self.first,
            self.values_weighed,
            self.self_normalized,
            logs,
            top,
            below,
            above,
        )
        return Sums(parameters, logs, top, below, above, defined)


@dataclass(frozen=True, eq=False, kw_only=True)
class SmoothReestimated(Reestimated):
    """The same, with derivatives: through the ratios of each episode itself, and through the fit that all share."""

    def influences(self, weights: Array) -> Array:
        """∂value/∂w_i under each row, (rows, n); 0 where the weight is 0 or the value undefined."""
        return np.array([self._influence(row) for row in weights])

    def _influence(self, weights: Array) -> Array:
        from tightrope.estimators import weighing_kernels

        sums, total, data = self.sums(weights), weights.sum(), self.problem.dataset
        direct, gradient = np.zeros(len(weights)), np.zeros(data.n_steps)
        if not sums.defined:
            return direct
        weighing_kernels.slopes(
            data.offsets,
            weights,
            self.first,
            self.values_weighed,
            self.self_normalized,
            self.coefficients,
            sums.logs,
            sums.top,
            sums.below,
            sums.above,
            direct,
            gradient,
        )
        direct += (self.unweighted - weights @ self.unweighted / total) / total
        if not self.self_normalized:
            direct -= (sums.above / sums.below) @ self.coefficients / total
        behavior = self.problem.fits.behavior
        assert isinstance(behavior, SmoothBehavior)
        slope = direct + behavior.pull_back(sums.parameters, weights, gradient)
        return np.where((weights > 0) & np.isfinite(slope), slope, 0.0)
