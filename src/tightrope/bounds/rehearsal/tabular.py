"""Rehearsal of logs with numbered states: every world is a table of logged steps, in which values are exact."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tightrope.base.checks import lent, numbers
from tightrope.base.clusters import fold_of
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.base.records import About, Side
from tightrope.base.warnings import Caution
from tightrope.bounds.rehearsal.stage import FOLDS, signed_range, simulated_policies
from tightrope.bounds.rehearsal.worlds import Steps, World, worlds
from tightrope.models.tabular.following import following_states
from tightrope.models.tabular.model import numbered, policy_table

MOST_CELLS = 200_000  # states × actions × states
# Episodes of a simulated log. The pivot of larger logs only lies nearer to the normal one; error rates were measured up
# to here (docs/coverage.md).
MOST_EPISODES = 1000


@dataclass(frozen=True, eq=False)
class TabularStage:
    """The logs as rehearsal needs them: numbered, with rewards counted so that more is better for the bound's side."""

    parallel: ClassVar[bool] = True
    usual_count: ClassVar[int] = 399
    cautions: ClassVar[tuple[Caution, ...]] = ()

    steps: Steps
    sign: float
    lowest: float  # the worst reward that was declared
    policy: Array  # (T, S, A)
    behavior: Array  # (T, S, A)
    discount: float
    lengths: IntArray
    final: IntArray
    fold: IntArray
    ratios: Array  # (n, T)

    @classmethod
    def of(cls, problem: Problem, side: Side) -> TabularStage:
        """Refuses logs that are not finite, policies that do not list their probabilities, and undeclared rewards."""
        data = problem.coded.dataset
        candidate, behavior = simulated_policies(problem.coded)
        sign, lowest, _ = signed_range(data, side)
        states, actions = numbered("state", data.states), numbered("action", data.actions)
        following, final = following_states(data, states)
        labels = np.unique(np.concatenate([states, final]))
        policy, columns = policy_table(candidate, labels, actions, data.horizon)
        if len(labels) ** 2 * len(columns) > MOST_CELLS:
            raise BoundError(f"rehearsal is for small problems; {len(labels)} states are too many")
        behaves = np.zeros_like(policy)
        for t in range(data.horizon):
            listed = numbers("probs", behavior.probs(lent(labels), np.full(len(labels), t)))
            known = columns < listed.shape[1]
            behaves[t][:, known] = listed[:, columns[known]]
        inside = following >= 0
        following[inside] = np.searchsorted(labels, following[inside])
        following[following == -2] = len(labels)
        steps = Steps(
            np.searchsorted(labels, states), np.searchsorted(columns, actions), sign * data.rewards, following,
            data.times, data.offsets[:-1], len(labels), len(columns), data.horizon,
        )  # fmt: skip
        log_ratio = problem.eval_log_probs - (data.behavior_log_probs if data.behavior_log_probs is not None else 0.0)
        ratios = np.concatenate([data.pad(np.exp(log_ratio)[data.steps(a, b)], a, b) for a, b in data.chunks()])
        return cls(
            steps, sign, lowest, policy, behaves, data.discount, data.lengths,
            following[data.offsets[1:] - 1], fold_of(data, FOLDS), ratios,
        )  # fmt: skip

    @property
    def candidate(self) -> TabularPolicy:
        """The candidate over the numbered states."""
        return TabularPolicy(self.policy)

    @cached_property
    def worlds(self) -> list[World]:
        """States alone, states and time, states and a worst case, states and what came just before."""
        return worlds(self.steps)

    @property
    def n_rehearsed(self) -> int:
        """No more than it takes to see how far pivots are from normal ones."""
        return min(len(self.lengths), MOST_EPISODES)

    def check_cost(self, count: int) -> None:
        """Tables are quick."""

    def truth(self, world: World, about: About) -> tuple[float, float]:
        """The candidate's value in this world, or its gain, by backward induction."""
        value = self.value(world, self.policy)
        return value - self.value(world, self.behavior) if about == "gain" else value, 0.0

    def wdr(self, about: About) -> tuple[float, float]:
        """WDR of the logs themselves and its standard error."""
        from tightrope.bounds.rehearsal import kernels

        shape = self.ratios.shape
        full = np.arange(shape[1]) < self.lengths[:, None]
        states, actions = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        rewards = np.zeros(shape)
        states[full], actions[full], rewards[full] = self.steps.states, self.steps.actions, self.steps.rewards
        estimate, error = kernels.wdr(
            states, actions, rewards, self.lengths, self.final, self.fold, self.ratios, self.policy,
            self.discount, self.lowest, about == "gain",
        )  # fmt: skip
        return float(estimate), float(error)

    def pivots(self, world: World, count: int, seed: int, about: About) -> Array:
        """(WDR − truth)/se on ``count`` logs simulated in this world."""
        from tightrope.bounds.rehearsal import kernels

        truth, _ = self.truth(world, about)
        table = np.divide(self.policy, self.behavior, out=np.zeros_like(self.policy), where=self.behavior > 0)
        rng = np.random.default_rng([seed, len(world.base), len(world.timed), int(2 * world.worst)])
        pivots = np.empty(count)
        kernels.rehearse(
            rng, self.n_rehearsed, truth, about == "gain", self.lowest, FOLDS, self.policy, self.discount, table,
            world.starts, world.base, self.behavior, *world.arrays, self.lowest, pivots,
        )  # fmt: skip
        return pivots

    def logs(self, world: World, rng: np.random.Generator, like: TrajectoryDataset) -> TrajectoryDataset:
        """Logs of the behaviour policy in this world, as many and as declared as the ones at hand."""
        from tightrope.bounds.rehearsal import kernels

        n, shape = len(self.lengths), self.ratios.shape
        states, actions = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
        rewards, lengths, final = np.zeros(shape), np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        kernels.simulate(
            rng, world.starts, world.base, self.behavior, *world.arrays, self.lowest, states, actions, rewards,
            lengths, final,
        )  # fmt: skip
        full = np.arange(shape[1]) < lengths[:, None]
        behavior = TabularPolicy(self.behavior)
        times = np.broadcast_to(np.arange(shape[1]), shape)[full]
        return TrajectoryDataset(
            offsets=np.append(0, np.cumsum(lengths)), rewards=self.sign * rewards[full], terminated=lengths < shape[1],
            horizon=shape[1], discount=self.discount, states=states[full], actions=actions[full],
            behavior_log_probs=behavior.log_prob(states[full], actions[full], times), reward_range=like.reward_range,
            return_range=like.return_range, behavior=behavior,
        )  # fmt: skip

    def value(self, world: World, policy: Array) -> float:
        """A policy's value in this world, counted as the stage counts."""
        from tightrope.bounds.rehearsal import kernels

        return float(kernels.true_value(policy, self.discount, world.starts, world.base, *world.arrays, self.lowest))
