"""DRL: doubly robust, with the candidate's visits to a state in place of the product of all ratios up to it.

    mean of v̂_0(S_0) + Σ_t γ^t ŵ_t(S_t) ρ_t δ_t,    δ_t = r_t − q̂_t(S_t, A_t) + γ v̂_{t+1}(S_{t+1}),

ρ_t = π_e(A_t|S_t) / π_b(A_t|S_t), and ŵ_t(s) is how much more often the candidate is in s at time t than the logs are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

import numpy as np

from tightrope.base.checks import numbers
from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import DataError, TightropeError
from tightrope.base.problem import Problem
from tightrope.estimators.base import Anchor, Estimator
from tightrope.estimators.doubly_robust import copy_steps, held_out_folds, held_out_values
from tightrope.estimators.mis import Places
from tightrope.estimators.step_ratios import logged_step_ratios, numbered_states, refuse_cut_paths
from tightrope.functional.statistic import RatioSum, SumStatistic
from tightrope.models import Model
from tightrope.models.residuals import td_errors
from tightrope.models.tabular.model import numbered


@dataclass(frozen=True)
class DRL(Estimator):
    """Double reinforcement learning: efficient, as no estimator has less variance in large logs of a Markov process.

    That holds once model and visits are learned well; to be consistent one of them is enough. Each episode is corrected
    by a model and by visits (those of MIS) that were learned from the other folds; under weights both stay as they are,
    for to first order their errors do not move the estimate where both are right in the limit (where one is wrong, a
    bootstrap does not see the other's error). States must be numbered and hold all that matters
    (Markov). A state that the other folds never visited at that time is not corrected. An estimated behaviour policy
    is fitted once, to all logs. Kallus and Uehara (2020).
    """

    name: ClassVar[str] = "drl"
    trusts_states: ClassVar[bool] = True

    model: str | Model = "auto"  # by name or as an object
    folds: int = 5  # of cross-fitting
    visit_ratios: tuple[tuple[float, ...], ...] | None = None  # (times, states): w_t(s) where known; None: learned
    anchor: Anchor = "low"  # the side of the bound; bounds choose it themselves

    def __post_init__(self) -> None:
        if self.folds < 2:
            raise TightropeError(f"folds is {self.folds}; cross-fitting needs at least 2")
        if self.visit_ratios is not None:
            table = numbers("visit_ratios", self.visit_ratios, DataError)
            if table.ndim != 2 or not (np.isfinite(table) & (table >= 0)).all():
                raise DataError(
                    f"visit_ratios must be finite numbers ≥ 0 of shape (times, states); got shape {table.shape}"
                )
            object.__setattr__(self, "visit_ratios", tuple(tuple(float(ratio) for ratio in row) for row in table))

    def anchored(self, anchor: Anchor) -> Self:
        """What an unseen pair is worth depends on the side."""
        return replace(self, anchor=anchor)

    def __call__(self, problem: Problem) -> SumStatistic:
        """The statistic of the candidate's value: a mean of one value per episode."""
        problem.check_memory(self.name)
        data, step_ratios = problem.dataset, logged_step_ratios(problem, self.name)
        if self.visit_ratios is None:
            visits = held_out_visits(problem, step_ratios, self.folds)
        else:
            visits = self._given_visits(data)
        q_values, state_values = held_out_values(problem, self.model, self.anchor, self.folds)
        corrections = data.discounts[data.times] * visits * step_ratios * td_errors(data, q_values, state_values)
        first = data.offsets[:-1]
        columns = np.stack([np.ones(len(first)), state_values[first] + np.add.reduceat(corrections, first)], axis=1)
        mean = RatioSum(np.ones(1))
        return SumStatistic(len(first), mean.fields, lambda start, stop: columns[start:stop], mean)

    def _given_visits(self, data: TrajectoryDataset) -> Array:
        """The visit ratio of every logged step, (N,), from the table."""
        table, states = np.array(self.visit_ratios), numbered("state", data.states)
        if len(table) < data.horizon or states.max() >= table.shape[1]:
            raise DataError(
                f"visit_ratios must cover horizon {data.horizon} and states up to {states.max()}, as the logs have "
                f"them; got shape {table.shape}"
            )
        result: Array = table[data.times, states]
        return result


def held_out_visits(problem: Problem, step_ratios: Array, folds: int) -> Array:
    """ŵ_t(S_t) of every logged step, (N,), from the visits in the other folds."""
    data = problem.dataset
    states = numbered_states(problem, DRL.name, "dr, which needs no visits; or give visit_ratios")
    places = Places.of(data, states)
    refuse_cut_paths(DRL.name, places.mass(step_ratios))
    result = np.empty(data.n_steps)
    for held, others in held_out_folds(data, folds):
        copy_steps(data, held, places.visit_ratios(others, step_ratios), result)
    return result
