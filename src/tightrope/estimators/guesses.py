"""What a model learned from some episodes says of the steps of others: the guesses that TDR corrects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from tightrope.base import folder
from tightrope.base.arrays import pieces, times_of
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.problem import Problem
from tightrope.estimators.base import Anchor
from tightrope.estimators.choices import Choices
from tightrope.models import Model, TabularModel, has_tabular, model, model_key, prepared_model
from tightrope.models.base import ActionValuedModel, PreparedModel

TOGETHER = 8  # models that are fitted at once: each takes a weight for every episode
Blocks = Sequence[tuple[IntArray, IntArray]]  # episodes to learn from, episodes to tell


class Guesses(Protocol):
    """Guesses of the return still to come."""

    def of(self, blocks: Blocks) -> Iterator[tuple[int, slice, Array]]:
        """What the first episodes of each pair teach of the steps of the second ones, some of these at a time.

        That is: which pair, which of its second episodes, and the guesses (steps, choices).
        """
        ...


def guesses(chosen: str | Model, problem: Problem, anchor: Anchor, known: Choices, *, exact: bool) -> Guesses:
    """The guesses of a model; without one, or where "auto" finds none that fits, of the time alone.

    ``exact`` refuses models that look at more than the episodes they are fitted to.
    """
    data, n_choices = problem.dataset, known.probs.shape[1]
    if isinstance(chosen, str) and (chosen == "none" or (chosen == "auto" and not _fits(problem, known))):
        return TimeGuesses(data, n_choices)
    key = ("settled", model_key(chosen), anchor)
    settled = problem.once(key, lambda: (chosen, _settled(chosen, problem, anchor)))[1]
    prepared = prepared_model(settled, problem, anchor)
    resolved = model(settled, problem)
    if exact and not _learns_from_the_past(resolved, prepared):
        raise BoundError(
            "an exact bound with tdr needs a model that is fitted to earlier episodes and looks at no others, not even "
            f'for a range or a set of states; {resolved.name} does. Use model="tabular" (with n_states, if it is '
            'smoothed), values that you give, or model="none"'
        )
    if isinstance(prepared, ActionValuedModel) and known.are_actions:
        return ActionGuesses(prepared, data, n_choices)
    return StateGuesses(prepared, data, n_choices)


def _fits(problem: Problem, known: Choices) -> bool:
    return has_tabular(problem) and known.are_actions


def _settled(chosen: str | Model, problem: Problem, anchor: Anchor) -> str | Model:
    """The model with nothing left to take from all logs at once, as the lowest reward for what was never seen."""
    data, resolved, side = problem.dataset, model(chosen, problem), 0 if anchor == "low" else 1
    if not isinstance(resolved, TabularModel) or resolved.unseen_reward is not None:
        return chosen
    if data.step_range is not None and np.isfinite(data.step_range[side]):
        return chosen
    assert data.value_range is not None
    return replace(resolved, unseen_reward=data.value_range[side] / float(data.discounts.sum()))


def _learns_from_the_past(chosen: Model, prepared: PreparedModel) -> bool:
    smoothed = isinstance(chosen, TabularModel) and chosen.smoothing > 0 and chosen.n_states is None
    return isinstance(prepared, ActionValuedModel) and not smoothed


@dataclass(frozen=True, eq=False)
class TimeGuesses:
    """The mean return still to come at each time: needs no states and no model."""

    data: TrajectoryDataset
    n_choices: int

    def of(self, blocks: Blocks) -> Iterator[tuple[int, slice, Array]]:
        """The same for every choice."""
        from tightrope.estimators.tether_kernels import mean_returns_to_come

        data = self.data
        for row, (earlier, later) in enumerate(blocks):
            taught = data.scratch.copy(earlier)
            taught.sort()
            guess = mean_returns_to_come(data.offsets, taught, data.rewards, data.discount, data.horizon)
            for some in pieces(data.offsets, later, folder.PART):
                values = guess[times_of(data.offsets, later[some])]
                yield row, some, np.repeat(values[:, None], self.n_choices, axis=1)


@dataclass(frozen=True, eq=False)
class ActionGuesses:
    """q̂ of every action, in a model of the episodes to learn from."""

    prepared: ActionValuedModel
    data: TrajectoryDataset
    n_choices: int

    def of(self, blocks: Blocks) -> Iterator[tuple[int, slice, Array]]:
        """Of some models at once; actions that neither policy lists are no choices."""
        for first in range(0, len(blocks), TOGETHER):
            group = blocks[first : first + TOGETHER]
            weights = self.data.scratch.full((len(group), self.data.n_trajectories), 0.0)
            for weight, (earlier, _) in zip(weights, group, strict=True):
                weight[earlier] = 1.0
            for row, some, table in self.prepared.action_values(weights, [later for _, later in group]):
                if table.ndim != 2 or table.shape[1] < self.n_choices:
                    raise TightropeError(
                        f"the model's action values have shape {table.shape}; {self.n_choices} actions expected"
                    )
                yield first + row, some, np.ascontiguousarray(table[:, : self.n_choices])


@dataclass(frozen=True, eq=False)
class StateGuesses:
    """v̂, the same for every action, of models that do not list all actions' values."""

    prepared: PreparedModel
    data: TrajectoryDataset
    n_choices: int

    def of(self, blocks: Blocks) -> Iterator[tuple[int, slice, Array]]:
        """One model after the other."""
        data = self.data
        for row, (earlier, later) in enumerate(blocks):
            weights, wanted = data.scratch.full(data.n_trajectories, 0.0), np.zeros(data.n_trajectories, dtype=np.bool_)
            weights[earlier], wanted[later] = 1.0, True
            state_values = self.prepared.control_variates(weights, wanted)[1] if len(earlier) else None
            for some in pieces(data.offsets, later, folder.PART):
                steps = data.steps_of(later[some])
                guess = np.zeros(len(steps)) if state_values is None else np.nan_to_num(state_values[steps])
                yield row, some, np.repeat(guess[:, None], self.n_choices, axis=1)
