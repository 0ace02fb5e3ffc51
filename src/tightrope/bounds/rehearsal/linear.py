"""Rehearsal of logs whose states are quantities: linear worlds, and the library's own models for WDR in each log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from tightrope.base.checks import lent, numbers
from tightrope.base.clusters import fold_of
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.policy import DiscretePolicy
from tightrope.base.problem import Problem
from tightrope.base.progress import tell
from tightrope.base.records import About, Side
from tightrope.base.warnings import Caution, caution
from tightrope.bounds.rehearsal.linear_worlds import Ground, LinearWorld, linear_worlds
from tightrope.bounds.rehearsal.stage import FOLDS, signed_range, simulated_policies
from tightrope.models import FittedQ, LinearModel, Model, PolynomialModel, model, prepared_model
from tightrope.models.base import AssignedModel
from tightrope.models.fitted.linear import LinearQ
from tightrope.models.regression import check_final_states
from tightrope.models.residuals import td_errors
from tightrope.models.rollouts.model import RolloutSettings
from tightrope.models.rollouts.transitions import Transitions

PER_START, FEWEST_PLAYED = 200, 20_000  # roll-outs of each policy in each world: from each start, and in all
SAFE = 2.0  # standard errors by which a simulated truth is taken to the safe side
LANES = 16_384  # episodes stepped together: their arrays stay in cache
STEPS = 1 << 19  # of simulated logs that are held together
MOST_SIMULATED = 10**9  # steps of roll-outs for q̂ in all simulated logs: some five minutes
LEAST = -700.0  # the logarithm of a ratio that counts as none
PLAYING, REHEARSING = "the candidate's value in a linear world", "WDR in simulated logs"


@dataclass(frozen=True, eq=False)
class LinearStage:
    """The logs as rehearsal needs them, with states that are rows of numbers."""

    parallel: ClassVar[bool] = False  # policies, features and models may be anybody's code
    usual_count: ClassVar[int] = 99

    problem: Problem
    model: str | Model  # of WDR
    ground: Ground
    candidate: DiscretePolicy
    behavior: DiscretePolicy

    @classmethod
    def of(cls, problem: Problem, side: Side, chosen: str | Model, world: str | Model) -> LinearStage:
        """Refuses continuous actions, policies that do not list their probabilities, and undeclared rewards."""
        data = problem.dataset
        candidate, behavior = simulated_policies(problem)
        if data.states is None or not data.discrete_actions:
            raise BoundError(
                "rehearsal simulates logs: it needs states, and discrete actions, numbered from 0 (states may be "
                "numbers, names or quantities). For others use tdr with percentile, or pdwis with studentized"
            )
        sign, lowest, highest = signed_range(data, side)
        logs, settings = Transitions.of(data), regression(chosen, world)
        check_final_states(settings, data)
        for name, policy in (("policy", candidate), ("behavior", behavior)):
            _check_actions(name, policy, logs)
        ground = Ground(
            logs, settings.design(logs)[0], sign * data.rewards, sign, lowest, highest, settings.reward,
            settings.terminated,
        )  # fmt: skip
        return cls(problem, chosen, ground, candidate, behavior)

    @property
    def sign(self) -> float:
        """1 for a lower bound, −1 for an upper one."""
        return self.ground.sign

    @cached_property
    def worlds(self) -> list[LinearWorld]:
        """States alone, states and time, states and a worst case, states and what came just before."""
        return linear_worlds(self.ground)

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """Lines know no cliffs."""
        text = (
            "it is calibrated in linear models of the logs: it was measured to err too often where a loss lies beyond "
            "a limit of the state that few logged steps pass"
        )
        return (caution("linear-worlds", text),)

    def check_cost(self, count: int) -> None:
        """Refuse so many logs where q̂ in each of them takes roll-outs from every step."""
        settings, data = model(self.model, self.problem), self.problem.dataset
        if not isinstance(settings, RolloutSettings):
            return
        left = float(np.sum(data.lengths * (data.horizon - (data.lengths - 1) / 2)))
        simulated = 2 * settings.n_rollouts * left * count * len(self.worlds)
        if simulated > MOST_SIMULATED:
            raise BoundError(
                f"rehearsal computes WDR on {count} simulated logs in each of {len(self.worlds)} worlds, and the "
                f"{settings.name} model simulates from every step of each: {simulated:.1g} steps in all, at some 4 "
                'million a second. Use a model without roll-outs, model="fitted-q" (--model fitted-q), or fewer '
                "rehearsals"
            )

    def wdr(self, about: About) -> tuple[float, float]:
        """WDR of the logs themselves and its standard error."""
        ((estimate, error),) = self._wdr(self.problem, fold_of(self.problem.dataset, FOLDS), 1, about)
        return float(estimate), float(error)

    def truth(self, world: LinearWorld, about: About) -> tuple[float, float]:
        """The candidate's mean return in this world, or its gain, and the standard error of that mean."""
        value, error = self._value(world, self.candidate, 0)
        if about == "gain":
            less, other = self._value(world, self.behavior, 1)
            return value - less, float(np.hypot(error, other))
        return value, error

    @property
    def n_rehearsed(self) -> int:
        """As many as the logs have."""
        return self.problem.dataset.n_trajectories

    def pivots(self, world: LinearWorld, count: int, seed: int, about: About) -> Array:
        """(WDR − truth)/se on ``count`` simulated logs, the truth so much lower as its Monte Carlo error may be."""
        value, error = self.truth(world, about)
        truth, n = value - SAFE * error, self.n_rehearsed
        rng, pivots = np.random.default_rng([seed, world.number]), np.full(count, np.inf)
        together = max(1, STEPS // (n * self.problem.dataset.horizon))
        for first in range(0, count, together):
            tell(REHEARSING, first / count)
            some = min(together, count - first)
            logs = self._played(world, rng, self.problem.dataset, some)
            try:
                results = self._wdr(replace(self.problem, dataset=logs), np.arange(some * n) % n % FOLDS, some, about)
            except TightropeError:  # none of them overlaps with the candidate, or can be fitted: as bad as it gets
                continue
            sound = results[:, 1] > 0
            pivots[first : first + some][sound] = (results[sound, 0] - truth) / results[sound, 1]
        return pivots

    def logs(self, world: LinearWorld, rng: np.random.Generator, like: TrajectoryDataset) -> TrajectoryDataset:
        """Logs of the behaviour policy in this world, as many and as declared as the ones at hand."""
        return self._played(world, rng, like, 1)

    def _played(
        self, world: LinearWorld, rng: np.random.Generator, like: TrajectoryDataset, count: int
    ) -> TrajectoryDataset:
        """``count`` such logs, one after the other in one dataset."""
        starts, n, shaped = self.ground.starts, count * like.n_trajectories, self.ground.logs.as_logged
        moments = list(world.play(self.behavior, starts[rng.integers(len(starts), size=n)], rng))
        episodes = np.concatenate([moment.episodes for moment in moments])
        order = np.argsort(episodes, kind="stable")  # within an episode the steps are in order already
        lengths = np.bincount(episodes, minlength=n)
        offsets = np.append(0, np.cumsum(lengths))
        states, actions, rewards, following, ended = (
            np.concatenate(parts)[order] for parts in zip(*(moment[1:] for moment in moments), strict=True)
        )
        times, last = np.arange(len(order)) - np.repeat(offsets[:-1], lengths), offsets[1:] - 1
        return TrajectoryDataset(
            offsets=offsets, rewards=self.sign * rewards, terminated=ended[last], horizon=like.horizon,
            discount=like.discount, states=shaped(states), actions=actions.astype(self.ground.logs.actions.dtype),
            behavior_log_probs=_log_probs(self.behavior, shaped(states), actions, times),
            final_states=None if like.final_states is None else shaped(following[last]),
            reward_range=like.reward_range, return_range=like.return_range, behavior=self.behavior,
        )  # fmt: skip

    def _value(self, world: LinearWorld, policy: DiscretePolicy, number: int) -> tuple[float, float]:
        """A policy's mean return and its Monte Carlo standard error, from every logged start equally often."""
        starts, discounts = self.ground.starts, self.problem.dataset.discounts
        rounds = max(PER_START, -(-FEWEST_PLAYED // len(starts)))
        rng, returns = np.random.default_rng([world.number, number, rounds]), []
        for chunk in _chunks(rounds * len(starts)):
            tell(PLAYING, chunk.start / (rounds * len(starts)))
            total = np.zeros(chunk.stop - chunk.start)
            begun = starts[np.arange(chunk.start, chunk.stop) % len(starts)]
            for discount, moment in zip(discounts, world.play(policy, begun, rng), strict=False):
                total[moment.episodes] += discount * moment.rewards
            returns.append(total)
        each = np.concatenate(returns).reshape(rounds, len(starts))
        return float(each.mean()), float(np.sqrt(each.var(axis=0, ddof=1).mean() / each.size))

    def _wdr(self, problem: Problem, fold: IntArray, count: int, about: About) -> Array:
        """Cross-fitted WDR of ``count`` logs of one size, one after the other, and its jackknife error: (count, 2)."""
        from tightrope.bounds.rehearsal import kernels

        data, ratios = problem.dataset, problem.ratios
        q_values, state_values = self._cross_fitted(problem, fold, count)
        errors = td_errors(data, q_values, state_values)
        plain = self.sign * (state_values[data.offsets[:-1]] - (data.returns if about == "gain" else 0.0))
        results, n = np.empty((count, 2)), data.n_trajectories // count
        for place in range(count):
            a, b = place * n, (place + 1) * n
            logs = ratios.log(a, b)
            weights = np.exp(logs - np.maximum(logs.max(axis=0), LEAST))  # as large as it takes: they are divided
            terms = self.sign * weights * data.pad(errors[data.steps(a, b)], a, b) * data.discounts
            results[place] = kernels.jackknife(plain[a:b], weights, terms)
        return results

    def _cross_fitted(self, problem: Problem, fold: IntArray, count: int) -> tuple[Array, Array]:
        """q̂ and v̂ of every step from the model fitted on the other folds of the same log, as WDR has them.

        A model is fitted under weights of the episodes: one that was prepared for all logs together is fitted to one
        of them where the others have none.
        """
        data = problem.dataset
        prepared = prepared_model(self._fixed_model, problem, self._anchor)
        rows = np.repeat(np.arange(count), data.n_trajectories // count) * FOLDS + fold
        number = np.arange(count * FOLDS)[:, None]
        weights = ((rows // FOLDS == number // FOLDS) & (rows != number)).astype(np.float64)
        if isinstance(prepared, AssignedModel):
            return prepared.assigned_variates(weights, rows)
        q_values, state_values = np.empty(data.n_steps), np.empty(data.n_steps)
        for row in np.unique(rows):
            q, v = prepared.control_variates(weights[row], rows == row)
            steps = data.steps_of(np.flatnonzero(rows == row))
            q_values[steps], state_values[steps] = q[steps], v[steps]
        return q_values, state_values

    @property
    def _anchor(self) -> str:
        return "low" if self.sign > 0 else "high"

    @cached_property
    def _fixed_model(self) -> str | Model:
        """WDR's model. A candidate that does the same at all times in all logged states is asked once about others."""
        settings = model(self.model, self.problem)
        if not isinstance(settings, FittedQ):
            return self.model
        prepared = prepared_model(self.model, self.problem, self._anchor)
        fixed = isinstance(prepared, LinearQ) and not prepared.steps.kinds.any()
        return replace(settings, stationary=True) if fixed else settings


def regression(chosen: str | Model, world: str | Model) -> LinearModel | PolynomialModel:
    """The regression that says what follows: that of the world, of WDR's model, or on the features of its fitted Q."""
    for name, given in (("world", world), ("model", chosen)):
        if isinstance(given, (LinearModel, PolynomialModel)):
            return given
        if given in ("linear", "polynomial"):
            return LinearModel() if given == "linear" else PolynomialModel()
        if name == "world" and given != "auto":
            raise BoundError(
                f'world must be "auto", "linear", "polynomial", a LinearModel or a PolynomialModel; got {given!r}'
            )
    if isinstance(chosen, FittedQ) and chosen.features is not None:
        return PolynomialModel(features=chosen.features)
    return LinearModel()


def _check_actions(name: str, policy: DiscretePolicy, logs: Transitions) -> None:
    """Refuse a policy that takes actions in logged states which nobody logged."""
    assert logs.levels is not None
    states = logs.as_logged(logs.states)
    listed = numbers("probs", policy.probs(lent(states), lent(logs.data.times)))
    unseen = np.setdiff1d(np.flatnonzero((listed > 0).any(axis=0)), logs.levels)
    if len(unseen):
        raise BoundError(
            f"{name} takes action {unseen[0]} in a logged state, and the logs hold no step with it: a linear world "
            "cannot know what follows. Log episodes with it, or use tdr with percentile"
        )


def _log_probs(policy: DiscretePolicy, states: Array, actions: IntArray, times: IntArray) -> Array:
    """Logarithms of the probabilities with which a policy takes these actions, (N,)."""
    listed = numbers("probs", policy.probs(lent(states), lent(times)))
    with np.errstate(divide="ignore"):
        taken: Array = np.log(listed[np.arange(len(listed)), actions])
    return taken


def _chunks(count: int) -> Iterator[slice]:
    for first in range(0, count, LANES):
        yield slice(first, min(first + LANES, count))
