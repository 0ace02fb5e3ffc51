"""The rehearsed bound: WDR − q·se, with q from logs that were simulated from models of the logs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError
from tightrope.base.policy import DiscretePolicy, TabularPolicy
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Side
from tightrope.base.threads import side_by_side
from tightrope.bounds.base import ProcessBound
from tightrope.bounds.rehearsal.worlds import Steps, World, worlds
from tightrope.models import is_discrete
from tightrope.models.tabular.following import following_states
from tightrope.models.tabular.model import numbered, policy_table

FOLDS = 5  # as WDR has them
MOST_CELLS = 200_000  # states × actions × states


@dataclass(frozen=True)
class Rehearsed(ProcessBound):
    """WDR − q·se: q is the largest, over four models, of the level's quantile of (WDR_m − V_model)/se_m.

    The models repeat logged steps in new combinations, so that simulated logs hold the rare episodes that the logs
    themselves have missed; in each of them the candidate's value is known. Standard errors are the jackknife's. The
    rank of q is ⌈(1 − δ)(M + 1)⌉ of M, so that the level is right on average whatever M is.
    """

    name: ClassVar[str] = "rehearsed"
    of: ClassVar[str] = "wdr"
    n_rehearsals: int = 399  # logs simulated from each model
    n_jobs: int | None = None  # threads, a model each; None: as many as there are cores

    def bound(self, problem: Problem, *, confidence: float, side: Side, seed: int, about: About) -> Bound:
        """The bound on the candidate's value, or on its gain over the behaviour policy."""
        problem.check_memory("rehearsal")
        stage = Stage.of(problem, side)
        rank = int(np.ceil(confidence * (self.n_rehearsals + 1) - 1e-9))
        if rank > self.n_rehearsals:
            raise BoundError(
                f"n_rehearsals must be at least {fewest(confidence)} for confidence {confidence:g}; got "
                f"{self.n_rehearsals}"
            )
        estimate, error = stage.wdr(about)

        def quantile(world: World) -> float:
            return float(np.sort(stage.pivots(world, self.n_rehearsals, seed, about))[rank - 1])

        worst = max(side_by_side(quantile, worlds(stage.steps), self.n_jobs))
        value = estimate - worst * error if np.isfinite(worst) and error > 0 else -np.inf
        sign = stage.sign
        return Bound(
            value=sign * value, side=side, confidence=confidence, estimate=sign * estimate, estimator="wdr",
            method=self.name, guarantee="approximate", standard_error=error,
            n_trajectories=problem.dataset.n_trajectories, seed=seed, about=about,
        )  # fmt: skip


def fewest(confidence: float) -> int:
    """How many rehearsals it takes to see an error as rare as this confidence allows."""
    return int(np.ceil(confidence / (1 - confidence) - 1e-9))


@dataclass(frozen=True, eq=False)
class Stage:
    """The logs as rehearsal needs them: numbered, with rewards counted so that more is better for the bound's side."""

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
    def of(cls, problem: Problem, side: Side) -> Stage:
        """Refuses logs that are not finite, policies that do not list their probabilities, and undeclared rewards."""
        data, candidate, behavior = problem.coded.dataset, problem.coded.policy, problem.coded.dataset.behavior
        if not is_discrete(problem) or not isinstance(candidate, DiscretePolicy):
            raise BoundError("rehearsal simulates logs: it needs numbered states and actions, and the policy itself")
        if problem.behavior is not None or not isinstance(behavior, DiscretePolicy):
            raise BoundError(
                "rehearsal simulates logs of the behaviour policy: read the logs with it (read(behavior=policy))"
            )
        sign = 1.0 if side == "lower" else -1.0
        low, high = data.step_range or (-np.inf, np.inf)
        lowest = low if sign > 0 else -high
        if not np.isfinite(lowest):
            raise BoundError("rehearsal needs the worst reward declared: reward_range=(...) (--reward-range)")
        if data.any_cut:
            raise BoundError("rehearsal needs whole episodes; some of these were cut off")
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
        assert data.episode_ids is not None
        fold = np.unique(data.episode_ids, return_inverse=True)[1] % FOLDS
        log_ratio = problem.eval_log_probs - (data.behavior_log_probs if data.behavior_log_probs is not None else 0.0)
        ratios = np.concatenate([data.pad(np.exp(log_ratio)[data.steps(a, b)], a, b) for a, b in data.chunks()])
        return cls(
            steps, sign, lowest, policy, behaves, data.discount, data.lengths,
            following[data.offsets[1:] - 1], fold.astype(np.int64), ratios,
        )  # fmt: skip

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

        truth = self.value(world, self.policy)
        if about == "gain":
            truth -= self.value(world, self.behavior)
        table = np.divide(self.policy, self.behavior, out=np.zeros_like(self.policy), where=self.behavior > 0)
        rng = np.random.default_rng([seed, len(world.base), len(world.timed), int(2 * world.worst)])
        pivots = np.empty(count)
        kernels.rehearse(
            rng, len(self.lengths), truth, about == "gain", self.lowest, FOLDS, self.policy, self.discount, table,
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
