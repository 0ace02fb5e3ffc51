"""What a model learned from some episodes says of the steps of others: the guesses that TDR corrects."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.estimators.base import Anchor
from tightrope.estimators.choices import Choices
from tightrope.models import Model, has_tabular, prepared_model
from tightrope.models.base import ActionValuedModel, PreparedModel

Blocks = Sequence[tuple[IntArray, IntArray]]  # episodes to learn from, episodes to tell


class Guesses(Protocol):
    """Guesses of the return still to come."""

    def of(self, blocks: Blocks) -> list[Array]:
        """For each pair: what the first episodes teach of the steps of the second ones, (steps, choices)."""
        ...


def guesses(chosen: str | Model, problem: Problem, anchor: Anchor, known: Choices) -> Guesses:
    """The guesses of a model; without one, or where "auto" finds none that fits, of the time alone."""
    if isinstance(chosen, str) and (chosen == "none" or (chosen == "auto" and not _fits(problem, known))):
        return TimeGuesses(problem.dataset, known.probs.shape[1])
    prepared = prepared_model(chosen, problem, anchor)
    if isinstance(prepared, ActionValuedModel) and known.are_actions:
        return ActionGuesses(prepared, problem.dataset.n_trajectories)
    return StateGuesses(prepared, problem.dataset, known.probs.shape[1])


def _fits(problem: Problem, known: Choices) -> bool:
    return has_tabular(problem) and known.are_actions


@dataclass(frozen=True, eq=False)
class TimeGuesses:
    """The mean return still to come at each time: needs no states and no model."""

    data: TrajectoryDataset
    n_choices: int

    def of(self, blocks: Blocks) -> list[Array]:
        """The same for every choice."""
        data = self.data
        to_come = np.zeros(data.n_steps)
        later = data.discounts[data.times] * data.rewards
        ends = np.repeat(np.append(0.0, np.cumsum(later))[data.offsets[1:]], data.lengths)
        past = np.append(0.0, np.cumsum(later))[:-1]
        scale = data.discounts[data.times]
        np.divide(ends - past, scale, out=to_come, where=scale > 0)
        parts = []
        for taught, told in blocks:
            steps = data.steps_of(taught)
            sums = np.bincount(data.times[steps], weights=to_come[steps], minlength=data.horizon)
            counts = np.bincount(data.times[steps], minlength=data.horizon)
            guess = np.divide(sums, counts, out=np.zeros(data.horizon), where=counts > 0)
            parts.append(np.repeat(guess[data.times[data.steps_of(told)], None], self.n_choices, axis=1))
        return parts


@dataclass(frozen=True, eq=False)
class ActionGuesses:
    """q̂ of every action, in a model of the episodes to learn from."""

    prepared: ActionValuedModel
    n_trajectories: int

    def of(self, blocks: Blocks) -> list[Array]:
        """Of all models at once."""
        weights = np.zeros((len(blocks), self.n_trajectories))
        for row, (taught, _) in zip(weights, blocks, strict=True):
            row[taught] = 1.0
        return self.prepared.action_values(weights, [told for _, told in blocks])


@dataclass(frozen=True, eq=False)
class StateGuesses:
    """v̂, the same for every action, of models that do not list all actions' values."""

    prepared: PreparedModel
    data: TrajectoryDataset
    n_choices: int

    def of(self, blocks: Blocks) -> list[Array]:
        """One model after the other."""
        parts = []
        for taught, told in blocks:
            steps = self.data.steps_of(told)
            guess = np.zeros(len(steps))
            if len(taught):
                weights, wanted = np.zeros(self.data.n_trajectories), np.zeros(self.data.n_trajectories, dtype=np.bool_)
                weights[taught], wanted[told] = 1.0, True
                guess = np.nan_to_num(self.prepared.control_variates(weights, wanted)[1][steps])
            parts.append(np.repeat(guess[:, None], self.n_choices, axis=1))
        return parts
