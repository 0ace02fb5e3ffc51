"""A finite Markov decision process: exact values and fast simulation."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.policy import DiscretePolicy, TabularPolicy, check_probs
from tightrope.domains.episodes import simulate

Anything = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """States 0..S-1; a transition to the extra state S ends the episode for good."""

    transition_probs: Array  # (S, A, S+1): the last column is the end
    rewards: Array  # (S, A, S+1)
    start_probs: Array  # (S,)
    horizon: int  # how many steps an episode has at most
    discount: float = 1.0  # γ

    def __post_init__(self) -> None:
        shape = self.transition_probs.shape
        if (
            len(shape) != 3
            or shape[2] != shape[0] + 1
            or self.rewards.shape != shape
            or len(self.start_probs) != shape[0]
        ):
            raise TightropeError(
                f"transition_probs and rewards must have shape (S, A, S+1); got {shape} and {self.rewards.shape}"
            )
        check_probs("transition_probs", self.transition_probs)
        check_probs("start_probs", self.start_probs[None])

    @cached_property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and highest reward that can occur, 0 included: absorbing steps earn it."""
        possible = self.rewards[self.transition_probs > 0]
        return min(0.0, float(possible.min())), max(0.0, float(possible.max()))

    @cached_property
    def return_range(self) -> tuple[float, float]:
        """The lowest and highest return that can occur, by backward induction over what is possible."""
        possible = self.transition_probs > 0
        ends = []
        for sign in (-1.0, 1.0):
            ahead = np.zeros(len(self.start_probs) + 1)
            for _ in range(self.horizon):
                best = np.where(possible, sign * self.rewards + self.discount * ahead, -np.inf).max(axis=(1, 2))
                ahead = np.append(best, 0.0)
            ends.append(sign * float(ahead[:-1][self.start_probs > 0].max()))
        return ends[0], ends[1]

    def value(self, policy: DiscretePolicy) -> float:
        """The policy's value, exactly, by backward induction over the horizon."""
        n_states = len(self.start_probs)
        states = np.arange(n_states)
        mean_rewards = np.einsum("sap,sap->sa", self.transition_probs, self.rewards)
        ahead = np.zeros(n_states + 1)
        for t in reversed(range(self.horizon)):
            action_values = mean_rewards + self.discount * self.transition_probs @ ahead
            probs = policy.probs(states, np.full(n_states, t))
            ahead[:n_states] = np.einsum("sa,sa->s", probs, action_values)
        return float(self.start_probs @ ahead[:n_states])

    def spread(self, policy: DiscretePolicy) -> float:
        """The standard deviation of the policy's return, exactly, by backward induction over its first two moments."""
        n_states = len(self.start_probs)
        mean, square = np.zeros(n_states + 1), np.zeros(n_states + 1)
        for t in reversed(range(self.horizon)):
            probs = policy.probs(np.arange(n_states), np.full(n_states, t))
            chances = probs[:, :, None] * self.transition_probs
            squares = self.rewards**2 + 2 * self.rewards * self.discount * mean + self.discount**2 * square
            square[:n_states] = (chances * squares).sum(axis=(1, 2))
            mean[:n_states] = (chances * (self.rewards + self.discount * mean)).sum(axis=(1, 2))
        variance = float(self.start_probs @ square[:-1] - (self.start_probs @ mean[:-1]) ** 2)
        return float(np.sqrt(max(0.0, variance)))

    def simulate(
        self,
        behavior: TabularPolicy,
        n: int,
        *,
        rng: np.random.Generator,
        candidate: DiscretePolicy | None = None,
    ) -> TrajectoryDataset:
        """Logs of n episodes under ``behavior``."""
        return simulate(
            self,
            behavior,
            n,
            rng=rng,
            candidate=candidate,
            reward_range=self.reward_range,
            return_range=self.return_range,
        )

    def start(self, n: int, rng: np.random.Generator) -> IntArray:
        """First states, (n,)."""
        return _draw(np.broadcast_to(np.cumsum(self.start_probs), (n, len(self.start_probs))), rng)

    def step(self, states: Anything, actions: Anything, rng: np.random.Generator) -> tuple[IntArray, Array, BoolArray]:
        """Next states, S after an end; rewards; and which have ended, (K,) each."""
        after = _draw(self._cumulative[states, actions], rng)
        return after, self.rewards[states, actions, after], after == len(self.start_probs)

    @cached_property
    def _cumulative(self) -> Array:
        return np.cumsum(self.transition_probs, axis=2)


def _draw(cumulative: Array, rng: np.random.Generator) -> IntArray:
    draws = rng.random(len(cumulative)) * cumulative[:, -1]
    chosen: IntArray = (draws[:, None] >= cumulative).sum(axis=1)
    return chosen
