"""The two forms of other libraries' policies: scores of labelled actions, or a density of continuous ones."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import numbers
from tightrope.base.errors import PolicyError
from tightrope.base.policy.base import Anything, Array, Sampling, in_chunks
from tightrope.base.policy.discrete import invert, log_softmax

Times = npt.NDArray[np.int64]
Output = Literal["probabilities", "log_probabilities", "logits"]
OUTPUTS: tuple[Output, ...] = get_args(Output)
MOST_NUMBERS = 10_000  # actions with a column each, labels or not, where probabilities are listed by number
ROW_TOLERANCE = 1e-5  # float32 rows of probabilities miss one by that much


@dataclass(frozen=True, eq=False)
class LabelledPolicy(Sampling):
    """Actions by label: ``scores(states, t)`` gives logits (N, k), a column per label. Acts by inversion."""

    scores: Callable[[Anything, Times], Anything]
    labels: Anything  # (k,): the actions as the logs hold them

    noise_width = 1

    def log_prob(self, states: Anything, actions: Anything, t: Times) -> Array:
        """Log-probability of each action, (N,)."""
        return in_chunks(self._log_prob, states, actions, t)

    def act(self, states: Anything, t: Times, uniforms: Array) -> Anything:
        """The label at which the cumulative probability passes the uniform, (N,)."""
        return self.labels[invert(np.exp(self.log_probs(states, t)), uniforms[:, 0])]

    def log_probs(self, states: Anything, t: Times) -> Array:
        """Log-probabilities of all labels, (N, k)."""
        table = log_softmax("the policy's scores", numbers("the policy", self.scores(states, t)), states)
        if table.shape[1] != len(self.labels):
            raise PolicyError(
                f"the policy must give {len(self.labels)} scores per state, one for each action; got {table.shape[1]}"
            )
        return table

    def _log_prob(self, states: Anything, actions: Anything, t: Times) -> Array:
        place = self._place(actions)
        return self.log_probs(states, t)[np.arange(len(states)), place]

    def _place(self, actions: Anything) -> Anything:
        """The column of each action."""
        named = ", ".join(map(str, self.labels[:20])) + (", ..." if len(self.labels) > 20 else "")
        if (
            actions.ndim != 1
            or (actions.dtype.kind == "U") != (self.labels.dtype.kind == "U")
            or (actions.dtype.kind not in "iubU")
        ):
            raise PolicyError(
                f"actions must be one of {named} ({self.labels.dtype}) per step for this policy; the logs hold "
                f"{actions.dtype} of shape {actions.shape}"
            )
        order = np.argsort(self.labels)
        place: Anything = order[np.searchsorted(self.labels, actions, sorter=order).clip(max=len(order) - 1)]
        unknown = self.labels[place] != actions
        if unknown.any():
            row = int(np.argmax(unknown))
            raise PolicyError(f"action must be one of the policy's actions ({named}); got {actions[row]}", row=row)
        return place


@dataclass(frozen=True, eq=False)
class NumberedPolicy(LabelledPolicy):
    """Labels that are whole numbers from 0 up, so that probabilities can be listed by action number."""

    def probs(self, states: Anything, t: Times) -> Array:
        """Probabilities of actions 0 to the largest label, (N, largest + 1); 0 for numbers that are no label."""
        table = np.zeros((len(states), int(self.labels.max()) + 1))
        table[:, self.labels] = np.exp(self.log_probs(states, t))
        return table


def labelled(scores: Callable[[Anything, Times], Anything], labels: Any) -> LabelledPolicy:
    """The policy over these labels, numbered where they are whole numbers from 0 up that a table has room for."""
    names = np.asarray(labels)
    if names.dtype.kind == "O":
        names = np.array([str(label) for label in names]) if all(isinstance(x, str) for x in names) else names
    if names.dtype.kind == "b" or (names.dtype.kind == "f" and (names % 1 == 0).all()):
        names = names.astype(np.int64)
    if names.ndim != 1 or names.dtype.kind not in "iuU" or len(np.unique(names)) != len(names):
        raise PolicyError(f"the policy's actions must be different whole numbers or texts; got {labels!r}")
    if names.dtype.kind == "U" or names.min() < 0 or names.max() >= MOST_NUMBERS:
        return LabelledPolicy(scores, names)
    return NumberedPolicy(scores, names.astype(np.int64))


@dataclass(frozen=True, eq=False)
class DensityPolicy(Sampling):
    """Continuous actions: ``density(states, actions, t)`` gives log-densities, ``draw(states, t, uniforms)`` acts."""

    density: Callable[[Anything, Array, Times], Array]
    draw: Callable[[Anything, Times, Array], Anything]
    noise_width: int  # numbers in an action

    def log_prob(self, states: Anything, actions: Anything, t: Times) -> Array:
        """Log-density of each action, (N,)."""
        if actions.dtype.kind != "f" or actions.size != len(actions) * self.noise_width:
            raise PolicyError(
                f"actions must be {self.noise_width} floats per step for this policy; the logs hold {actions.dtype} of "
                f"shape {actions.shape}"
            )
        return in_chunks(self.density, states, actions.reshape(len(actions), -1).astype(np.float64), t)

    def act(self, states: Anything, t: Times, uniforms: Array) -> Anything:
        """One action per state by inversion, (N, k)."""
        return numbers("the policy's actions", self.draw(states, t, uniforms)).reshape(len(states), -1)


def as_logits(output: Output, table: Array) -> Array:
    """A table (N, k) declared to hold this as logits; refuses rows that are not what was declared."""
    if table.ndim != 2:
        raise PolicyError(f"the policy must return shape (N, actions); got shape {table.shape}")
    if output == "logits":
        return table
    row = _first_bad(output, table)
    if row is not None:
        raise PolicyError(
            f"the policy's {output} of one state are {table[row]}; {_MEANING[output]}. If they are something else, "
            f"declare it: one of {', '.join(OUTPUTS)}",
            row=row,
        )
    if output == "log_probabilities":
        return table
    with np.errstate(divide="ignore"):
        return np.log(table)


def tell_output(table: Array) -> Output:
    """Whether rows are probabilities or their logarithms; refuses what is neither."""
    if table.ndim != 2:
        raise PolicyError(f"the policy must return shape (N, actions), one row per state; got shape {table.shape}")
    outputs: tuple[Output, ...] = ("probabilities", "log_probabilities")
    for output in outputs:
        if _first_bad(output, table) is None:
            return output
    raise PolicyError(
        f"the policy must return probabilities ({_MEANING['probabilities']}) or log-probabilities "
        f"({_MEANING['log_probabilities']}); got {table[0]} for a state. If these are logits, say so: "
        'StatePolicy(function, output="logits")'
    )


_MEANING = {
    "probabilities": "each must lie in [0, 1] and they must sum to one",
    "log_probabilities": "their exponentials must sum to one",
}


def _first_bad(output: str, table: Array) -> int | None:
    """The first row that is not what it is declared to be."""
    with np.errstate(over="ignore"):
        chances = table if output == "probabilities" else np.exp(table)
    good = (chances >= 0).all(axis=1) & (np.abs(chances.sum(axis=1) - 1.0) <= ROW_TOLERANCE)
    return None if good.all() else int(np.argmin(good))
