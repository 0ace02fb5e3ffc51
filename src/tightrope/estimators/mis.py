"""MIS: how often the candidate is where, carried forwards from step to step, times what it earns there.

    d̂_0(s) = share of the episodes that start in s
    d̂_{t+1}(s') = Σ_s d̂_t(s) · mean over the visits to s at t of ρ_t 1{S_{t+1} = s'}
    V̂ = Σ_t γ^t Σ_s d̂_t(s) · mean over the visits to s at t of ρ_t r_t,    ρ_t = π_e(A_t|S_t) / π_b(A_t|S_t)

An episode that has ended is nowhere and earns nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.estimators.base import Estimator
from tightrope.estimators.model_based import ModelStatistic
from tightrope.estimators.step_ratios import numbered_states, step_weighted
from tightrope.models.tabular.blocks import blocks, lanes
from tightrope.models.tabular.sorting import Index


@dataclass(frozen=True)
class MIS(Estimator):
    """Marginalised importance sampling: every visit of a state at a time counts alike, however the episode came there.

    Ratios of different steps are never multiplied within an episode, so that its variance grows polynomially with the
    horizon, where that of IS grows exponentially. States must be numbered and hold all that matters (Markov): what an
    episode did before is forgotten, and a hidden state makes it wrong however many logs there are. Where no two
    episodes are in one state at one time, it is PDIS. With a behaviour policy that is counted by state and time, it is
    the value in the tabular model with time in the state. Xie, Ma, Wang (2019); Yin and Wang (2020).
    """

    name: ClassVar[str] = "mis"
    trusts_states: ClassVar[bool] = True

    def __call__(self, problem: Problem) -> ModelStatistic:
        """The statistic of the candidate's value."""
        problem.check_memory(self.name)
        states = numbered_states(problem, self.name, "dice, which takes features of the state, or dr")
        return step_weighted(self.name, Places.of(problem.dataset, states), problem)


@dataclass(frozen=True, eq=False)
class Places:
    """The logged steps sorted by place, which is a state at a time: C places, sorted by time."""

    order: IntArray  # (N,): which step each is
    edges: IntArray  # (C+1,): the steps of each place
    members: Index  # (N,): the episode of each step
    nexts: Index  # (N,): the place of the step that follows; C where none does
    earned: Array  # (N,): γ^t r_t
    n_first: int  # the places of the first step come first
    n_trajectories: int  # how many weights it takes

    @classmethod
    def of(cls, data: TrajectoryDataset, states: IntArray) -> Places:
        """Sort the steps of states numbered from 0, (N,)."""
        key = data.times * (int(states.max()) + 1) + states
        distinct, place = np.unique(key, return_inverse=True)
        following = np.append(place[1:], 0)
        following[data.offsets[1:] - 1] = len(distinct)
        order = np.argsort(place, kind="stable")
        return cls(
            order,
            np.searchsorted(place[order], np.arange(len(distinct) + 1)),
            np.repeat(np.arange(data.n_trajectories), data.lengths)[order].astype(np.int32),
            following[order].astype(np.int32),
            (data.rewards * data.discounts[data.times])[order],
            int(np.searchsorted(distinct, int(states.max()) + 1)),
            data.n_trajectories,
        )

    @cached_property
    def place(self) -> IntArray:
        """The place of every logged step, (N,), in the order of the logs."""
        result = np.empty(len(self.order), dtype=np.int64)
        result[self.order] = np.repeat(np.arange(len(self.edges) - 1), np.diff(self.edges))
        return result

    def values(self, weights: Array, step_ratios: Array) -> Array:
        """V̂ under each row of weights, (rows,)."""
        result, in_order = np.empty(len(weights)), step_ratios[self.order]
        for rows, block in blocks(weights):
            result[rows] = self._carry(block, in_order)[2][0, : rows.stop - rows.start]
        return result

    def slopes(self, weights: Array, step_ratios: Array) -> Array:
        """∂V̂/∂w_i under each row of weights, (rows, n)."""
        result, in_order = np.empty(weights.shape), step_ratios[self.order]
        for rows, block in blocks(weights):
            result[rows] = self._look_back(block, in_order)[0].T[: rows.stop - rows.start]
        return result

    def ratio_slopes(self, weights: Array, step_ratios: Array) -> Array:
        """∂V̂/∂log ratio of every step, (N,)."""
        ((_, block),) = blocks(weights[None])
        result = np.empty(len(self.order))
        result[self.order] = self._look_back(block, step_ratios[self.order])[1]
        return result

    def mass(self, step_ratios: Array) -> float:
        """How much of the candidate arrives at the end."""
        ((_, block),) = blocks(np.ones((1, self.n_trajectories)))
        return float(self._carry(block, step_ratios[self.order])[1][-1, 0])

    def visit_ratios(self, weights: Array, step_ratios: Array) -> Array:
        """d̂_t(s) divided by the share of the logs at s at time t, of every logged step, (N,), under weights (n,).

        0 where the weights leave no visit: nothing is known of how often the candidate comes there.
        """
        ((_, block),) = blocks(weights[None])
        visits, reached, _ = self._carry(block, step_ratios[self.order])
        shares = visits[:, 0] / weights.sum()
        ratio: Array = np.divide(reached[:-1, 0], shares, out=np.zeros(len(shares)), where=shares > 0)
        return ratio[self.place]

    def _carry(self, block: Array, in_order: Array) -> tuple[Array, Array, Array]:
        """Visits (C, lanes), the candidate's share of each place (C+1, lanes) and its value (1, lanes)."""
        from tightrope.estimators import marginal_kernels  # compiles
        from tightrope.models.tabular import kernels

        visits, reached, value = lanes(len(self.edges) - 1), lanes(len(self.edges)), lanes(1)
        kernels.count(block, self.edges, self.members, visits)
        marginal_kernels.carry(
            block, self.edges, self.members, self.nexts, in_order, self.earned, self.n_first, visits, reached, value
        )
        return visits, reached, value

    def _look_back(self, block: Array, in_order: Array) -> tuple[Array, Array]:
        """∂V̂/∂w_i, (n, lanes), and by the logarithm of each ratio, (N,), sorted by place, in the first lane."""
        from tightrope.estimators import marginal_kernels  # compiles

        visits, reached, value = self._carry(block, in_order)
        by_ratio, result = np.empty(len(self.order)), lanes(self.n_trajectories)
        marginal_kernels.look_back(
            block,
            self.edges,
            self.members,
            self.nexts,
            in_order,
            self.earned,
            self.n_first,
            visits,
            reached,
            value,
            lanes(len(self.edges)),
            by_ratio,
            result,
        )
        return result, by_ratio
