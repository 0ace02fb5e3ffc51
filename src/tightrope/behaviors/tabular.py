"""A behaviour policy counted from the logs, for states and actions that come from finite sets."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.behaviors.logged import discrete_actions, logged_states, require


@dataclass(frozen=True)
class TabularBehavior:
    """π̂_b(a|s) = Σ w_i #_i(s, a) / Σ w_i #_i(s): the share of the visits to a state in which an action was taken.

    The maximum likelihood estimate, without smoothing, so that no logged action gets probability 0. ``timed`` counts
    each time step by itself, for a logging policy that changed with time. Fails where states are visited once or
    twice: the logged action then looks certain; the check on held-out episodes shows it.
    """

    name: ClassVar[str] = "tabular"

    timed: bool = False

    def prepare(self, dataset: TrajectoryDataset) -> TabularCounts:
        """Number the states and the actions."""
        states = logged_states(dataset)
        require(
            states.dtype.kind != "f",
            f"states are {states.dtype} of shape {states.shape}: counting needs states that recur; use "
            'behavior="logistic", or give states as integers',
        )
        _, actions = discrete_actions(dataset)
        rows = states.reshape(len(states), -1)
        if self.timed:
            rows = np.column_stack([rows, dataset.times.astype(rows.dtype)])
        _, place = np.unique(rows, axis=0, return_inverse=True)
        state = place.reshape(-1).astype(np.int64)
        n_actions = int(actions.max()) + 1
        return TabularCounts(dataset.lengths, state, actions, int(state.max()) + 1, n_actions)


@dataclass(frozen=True, eq=False)
class TabularCounts:
    """Numbered states and actions of some logs."""

    lengths: IntArray  # (n,)
    states: IntArray  # (N,)
    choices: IntArray  # (N,)
    n_states: int
    n_actions: int

    def fit(self, weights: Array) -> Array:
        """Log-probabilities (states · actions,); -inf for actions not taken, NaN for states not visited."""
        counts = self._counts(weights, self._pairs, self.n_states * self.n_actions).reshape(self.n_states, -1)
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.asarray(np.log(counts / counts.sum(axis=1, keepdims=True))).ravel()

    def log_probs(self, parameters: Array) -> Array:
        """Of all logged actions, (N,)."""
        return parameters[self._pairs]

    def probs(self, parameters: Array) -> Array:
        """Of all actions at every step, (N, k)."""
        return np.exp(parameters.reshape(self.n_states, -1)[self.states])

    def pull_back(self, parameters: Array, weights: Array, gradient: Array) -> Array:
        """∂log b(a|s)/∂w_i = #_i(s, a)/C(s, a) − #_i(s)/C(s)."""
        pairs, size = self._pairs, self.n_states * self.n_actions
        counts = self._counts(weights, pairs, size)
        visits = counts.reshape(self.n_states, -1).sum(axis=1)
        by_pair: Array = np.bincount(pairs, weights=gradient, minlength=size).astype(np.float64)
        by_state = by_pair.reshape(self.n_states, -1).sum(axis=1)
        per_step = _share(by_pair, counts)[pairs] - _share(by_state, visits)[self.states]
        return np.add.reduceat(per_step, np.cumsum(self.lengths) - self.lengths)

    @cached_property
    def _pairs(self) -> IntArray:
        return self.states * self.n_actions + self.choices

    def _counts(self, weights: Array, kinds: IntArray, size: int) -> Array:
        return np.bincount(kinds, weights=np.repeat(weights, self.lengths), minlength=size).astype(np.float64)


def _share(above: Array, below: Array) -> Array:
    seen: BoolArray = below > 0
    return np.divide(above, below, out=np.zeros_like(above), where=seen)
