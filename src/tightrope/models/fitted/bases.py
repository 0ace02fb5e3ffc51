"""Two kinds of features: one per pair where states and actions are numbered, else functions of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import DataError
from tightrope.base.folder import parts
from tightrope.base.policy import Actor, DiscretePolicy
from tightrope.models.fitted.steps import Choices
from tightrope.models.rollouts.transitions import Transitions

Anything = npt.NDArray[Any]
FeatureMap = Callable[[Anything, Anything], Any]
QUESTIONS = 1 << 16  # places that the candidate is asked about at once


@dataclass(frozen=True, eq=False)
class PairBasis:
    """A feature for every pair of a numbered state and a numbered action: 1 for that pair, else 0."""

    states: IntArray  # (places,)
    pairs: IntArray  # (N,): of each step
    probs: Array  # (horizon, S, A): the candidate

    @property
    def n_actions(self) -> int:
        """How many actions each state has."""
        return int(self.probs.shape[2])

    @cached_property
    def names(self) -> list[str]:
        """The pairs, in the order of the features."""
        _, n_states, n_actions = self.probs.shape
        return [f"state {s}, action {a}" for s in range(n_states) for a in range(n_actions)]

    def taken(self, steps: IntArray) -> Array:
        """1 for the pair of each step, (k, p)."""
        return self._marked(self.pairs[steps])

    def choices(self, places: IntArray, times: IntArray) -> Choices:
        """Every action that the candidate can take."""
        states = self.states[places]
        probs = self.probs[times, states]
        owners, actions = np.nonzero(probs > 0)
        return Choices(owners, probs[owners, actions], self._marked(states[owners] * self.n_actions + actions))

    def expected(self, places: IntArray, times: IntArray) -> Array:
        """The candidate's probabilities, each at its pair, (k, p)."""
        states = self.states[places]
        result = np.zeros((len(places), len(self.names)))
        columns = states[:, None] * self.n_actions + np.arange(self.n_actions)
        result[np.arange(len(places))[:, None], columns] = self.probs[times, states]
        return result

    def signature(self, places: IntArray, t: int) -> bytes:
        """The candidate's table at time t."""
        return bytes(self.probs[t].tobytes())

    def _marked(self, pairs: IntArray) -> Array:
        result = np.zeros((len(pairs), len(self.names)))
        result[np.arange(len(pairs)), pairs] = 1.0
        return result


@dataclass(frozen=True, eq=False)
class MapBasis:
    """Features that are a function of states and actions."""

    states: Anything  # (places, ...), as logged
    actions: Anything  # (N, ...), as logged
    function: FeatureMap
    names: list[str]
    policy: DiscretePolicy | Actor
    uniforms: Array  # (draws, noise_width): with which a candidate acts that does not list its actions

    def taken(self, steps: IntArray) -> Array:
        """Features of what was done, (k, p)."""
        return self._features(self.states[steps], self.actions[steps])

    def choices(self, places: IntArray, times: IntArray) -> Choices:
        """Every action that the candidate can take, or as many draws of each place as there are uniforms."""
        states, count = self.states[places], len(places)
        if isinstance(self.policy, DiscretePolicy):
            probs = self._answers(places, times)
            owners, actions = np.nonzero(probs > 0)
            inputs = self._features(states[owners], actions.astype(self.actions.dtype))
            return Choices(owners, probs[owners, actions], inputs)
        draws = len(self.uniforms)
        owners = np.repeat(np.arange(count), draws)
        answers = self._answers(places, times)
        inputs = self._features(states[owners], answers.reshape(count * draws, *self.actions.shape[1:]))
        return Choices(owners, np.full(count * draws, 1.0 / draws), inputs)

    def expected(self, places: IntArray, times: IntArray) -> Array:
        """The candidate's average features, (k, p)."""
        states, answers = self.states[places], self._answers(places, times)
        result = np.zeros((len(places), len(self.names)))
        if not isinstance(self.policy, DiscretePolicy):
            for draw in range(len(self.uniforms)):
                actions = answers[:, draw].reshape(-1, *self.actions.shape[1:])
                result += self._features(states, actions) / len(self.uniforms)
            return result
        for action, probs in enumerate(answers.T):
            some = np.flatnonzero(probs > 0)
            if len(some):
                actions = np.full(len(some), action, dtype=self.actions.dtype)
                result[some] += probs[some, None] * self._features(states[some], actions)
        return result

    def signature(self, places: IntArray, t: int) -> bytes:
        """The candidate's probabilities or actions at time t, as a hash."""
        state = hashlib.blake2b(digest_size=16)
        for part in parts(len(places), QUESTIONS):
            state.update(self._answers(places[part], np.full(len(places[part]), t)).tobytes())
        return state.digest()

    def _answers(self, places: IntArray, times: IntArray) -> Array:
        """Probabilities (k, A), or actions (k, draws, width)."""
        states, count = self.states[places], len(places)
        if isinstance(self.policy, DiscretePolicy):
            return numbers("probs", self.policy.probs(lent(states), lent(times)))
        width = int(np.prod(self.actions.shape[1:]))
        answers = np.empty((count, len(self.uniforms), width))
        for draw, uniforms in enumerate(self.uniforms):
            noise = np.repeat(uniforms[None], count, axis=0)
            chosen = numbers("act", self.policy.act(lent(states), lent(times), lent(noise)))
            if chosen.size != count * width:
                raise DataError(
                    f"the policy's actions must have shape ({count}, {width}), as in the logs; got shape {chosen.shape}"
                )
            answers[:, draw] = chosen.reshape(count, width)
        return answers

    def _features(self, states: Anything, actions: Anything) -> Array:
        values = numbers("features", self.function(lent(states), lent(actions)), DataError)
        if values.ndim != 2 or len(values) != len(states) or values.shape[1] != len(self.names):
            raise DataError(
                f"features must return shape ({len(states)}, {len(self.names)}), a row per step; got {values.shape}"
            )
        if not np.isfinite(values).all():
            row = int(np.argmin(np.isfinite(values).all(axis=1)))
            raise DataError(f"features must be finite numbers; got {values[row]} for state {states[row]}")
        return values


def plain(logs: Transitions) -> tuple[FeatureMap, list[str]]:
    """s, and a or a column for every discrete action: for regressors that make features of their own."""
    states = [f"state {k}" for k in range(logs.width)]
    levels = logs.levels

    def joined(given: Anything, actions: Anything) -> Array:
        encoded = logs.encode(actions)  # refuses what was never logged
        numbers_of = encoded if levels is None else (actions[:, None] == levels).astype(np.float64)
        return np.hstack([np.asarray(given, dtype=np.float64).reshape(len(given), -1), numbers_of])

    marks = logs.action_names() if levels is None else [f"action = {level}" for level in levels]
    return joined, [*states, *marks]


def linear(logs: Transitions) -> tuple[FeatureMap, list[str]]:
    """1 and s for every discrete action apart, or 1, s and a where actions are quantities; and their names.

    States are counted from their mean in units of their spread: the same functions, with more digits left.
    """
    center, spread = logs.states.mean(axis=0), logs.states.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    states = [f"state {k}" for k in range(logs.width)]

    def scaled(given: Anything) -> Array:
        values = (np.asarray(given, dtype=np.float64).reshape(len(given), -1) - center) / spread
        return np.hstack([np.ones((len(values), 1)), values])

    if logs.levels is None:
        return lambda s, a: np.hstack([scaled(s), logs.encode(a)]), ["1", *states, *logs.action_names()]
    levels = logs.levels

    def apart(given: Anything, actions: Anything) -> Array:
        logs.encode(actions)  # refuses what was never logged
        marked = (np.asarray(actions)[:, None] == levels).astype(np.float64)
        block = marked[:, :, None] * scaled(given)[:, None]
        return np.asarray(block.reshape(len(block), -1))

    return apart, [f"{name} (action {level})" for level in levels for name in ("1", *states)]
