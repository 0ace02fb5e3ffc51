"""A finite Markov decision process: exact values and fast simulation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.dataset import Array, TrajectoryDataset
from tightrope.errors import TightropeError
from tightrope.policy import DiscretePolicy, TabularPolicy, check_probs


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """States 0..S-1; a transition to the extra state S ends the episode for good."""

    transition_probs: Array  # (S, A, S+1): the last column is the end
    rewards: Array  # (S, A, S+1)
    start_probs: Array  # (S,)
    horizon: int
    discount: float = 1.0

    def __post_init__(self) -> None:
        shape = self.transition_probs.shape
        if (
            len(shape) != 3
            or shape[2] != shape[0] + 1
            or self.rewards.shape != shape
            or len(self.start_probs) != shape[0]
        ):
            raise TightropeError(
                f"transition_probs has shape {shape}, rewards {self.rewards.shape}; (S, A, S+1) expected"
            )
        check_probs("transition_probs", self.transition_probs)
        check_probs("start_probs", self.start_probs[None])

    @property
    def reward_range(self) -> tuple[float, float]:
        """The lowest and highest reward that can occur, 0 included: absorbing steps earn it."""
        possible = self.rewards[self.transition_probs > 0]
        return min(0.0, float(possible.min())), max(0.0, float(possible.max()))

    @property
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

    def simulate(
        self,
        behavior: TabularPolicy,
        n: int,
        *,
        rng: np.random.Generator,
        candidate: DiscretePolicy | None = None,
    ) -> TrajectoryDataset:
        """Logs of n episodes under ``behavior``, all episodes stepped side by side."""
        n_states, _, _ = self.transition_probs.shape
        cumulative = np.cumsum(self.transition_probs, axis=2)
        state = _draw(np.broadcast_to(np.cumsum(self.start_probs), (n, n_states)), rng)
        alive = np.arange(n)
        record: dict[str, list[npt.NDArray[Any]]] = {
            name: [] for name in ("episode", "t", "state", "action", "reward", "log_prob", "next")
        }
        for t in range(self.horizon):
            times = np.full(len(alive), t)
            probs = behavior.probs(state, times)
            action = _draw(np.cumsum(probs, axis=1), rng)
            after = _draw(cumulative[state, action], rng)
            for name, values in {
                "episode": alive,
                "t": times,
                "state": state,
                "action": action,
                "reward": self.rewards[state, action, after],
                "log_prob": np.log(probs[np.arange(len(alive)), action]),
                "next": after,
            }.items():
                record[name].append(values)
            going = after < n_states
            alive, state = alive[going], after[going]
            if not len(alive):
                break
        flat = {name: np.concatenate(parts) for name, parts in record.items()}
        order = np.lexsort((flat["t"], flat["episode"]))
        flat = {name: values[order] for name, values in flat.items()}
        offsets = np.append(np.flatnonzero(flat["t"] == 0), len(order))
        states, actions, times = (flat[name].astype(np.int64) for name in ("state", "action", "t"))
        last = flat["next"][offsets[1:] - 1].astype(np.int64)
        return TrajectoryDataset(
            offsets=offsets,
            rewards=flat["reward"],
            terminated=last == n_states,
            horizon=self.horizon,
            discount=self.discount,
            behavior_log_probs=flat["log_prob"],
            eval_log_probs=None if candidate is None else candidate.log_prob(states, actions, times),
            states=states,
            actions=actions,
            final_states=last,
            reward_range=self.reward_range,
            return_range=self.return_range,
            behavior=behavior,
        )


def _draw(cumulative: Array, rng: np.random.Generator) -> npt.NDArray[np.int64]:
    draws = rng.random(len(cumulative)) * cumulative[:, -1]
    chosen: npt.NDArray[np.int64] = (draws[:, None] >= cumulative).sum(axis=1)
    return chosen
