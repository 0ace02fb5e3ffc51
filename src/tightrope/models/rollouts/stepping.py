"""Roll-outs in the fitted models of many replicates, stepped side by side with the same noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, Self

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import lent
from tightrope.base.dataset import Array, BoolArray
from tightrope.base.folder import parts
from tightrope.base.policy import Actor, PreparedActor
from tightrope.models.rollouts.lanes import Bank, Lanes, Starts
from tightrope.models.rollouts.transitions import Outcome, Transitions, outcome

Anything = npt.NDArray[Any]
Anchor = Literal["low", "high"]

FINISHED = 0.1  # the share of lanes that must have ended in every row before they are dropped


class Dynamics(Protocol):
    """Models fitted under some rows of weights, stepped side by side."""

    @property
    def fitted(self) -> BoolArray:
        """Which rows could be fitted, (rows,)."""
        ...

    def take(self, rows: slice) -> Self:
        """Some of the rows."""
        ...

    def step(self, states: Array, actions: Anything, noise: Array) -> tuple[Array, Array | None, Array | None]:
        """Next states (d, rows, K), rewards (rows, K) and probabilities of an end (rows, K), None where not learned.

        From states (d, rows, K), actions (rows · K, ...) and noise (width, K), the same for all rows. A probability
        below 0 counts as 0, one above 1 as 1.
        """
        ...


@dataclass(eq=False)
class Stepper:
    """Steps roll-outs to their ends, and counts them."""

    transitions: Transitions
    actor: Actor
    reward: Outcome | None
    terminated: Outcome | None
    blow_up: float
    anchor: Anchor
    n_rolled: int = field(default=0, init=False)
    n_blown_up: int = field(default=0, init=False)

    def returns(self, dynamics: Dynamics, bank: Bank, starts: Starts) -> Array:
        """Discounted returns from each start to the horizon, (rows, K, R)."""
        data, rows, size = self.transitions.data, len(dynamics.fitted), bank.size
        count = len(starts.times)
        totals = np.zeros((rows, count * size))
        noise = (starts.banks[:, None] * size + np.arange(size)).ravel()
        begun = np.repeat(starts.times, size)
        lanes = Lanes.none(self.transitions.width, rows)
        for t in range(int(starts.times[0]), data.horizon):
            fresh = np.arange(*np.searchsorted(begun, [t, t + 1]))
            if len(fresh):
                lanes.begin(starts.states[fresh // size], fresh)
            elif not len(lanes.place):
                continue
            first = None if starts.actions is None or not len(fresh) else starts.actions[fresh // size]
            discounts = np.power(data.discount, t - begun[lanes.place])
            self._advance(lanes, dynamics, t, bank, noise[lanes.place], discounts, first)
            going: BoolArray = np.logical_or.reduce(lanes.share > 0, axis=0)
            if np.count_nonzero(going) <= (1 - FINISHED) * len(going):
                lanes.drop(going, totals)
        totals[:, lanes.place] = lanes.total
        self.n_rolled += totals.size
        return totals.reshape(rows, count, size)

    def _advance(
        self,
        lanes: Lanes,
        dynamics: Dynamics,
        t: int,
        bank: Bank,
        noise: npt.NDArray[np.int64],
        discounts: Array,
        first: Anything | None,
    ) -> None:
        """One step; ``noise`` (K,) says where in the bank, ``first`` are the actions of the last lanes, which begin."""
        d, rows, count = lanes.states.shape
        times = np.full(rows * count, t, dtype=np.int64)
        before = self.transitions.as_logged(lanes.states.reshape(d, -1).T)
        actions = self._act(before, times, bank.to_act[t][:, noise], rows)
        if first is not None:
            actions = actions.copy(order="K")
            for row in range(rows):
                actions[(row + 1) * count - len(first) : (row + 1) * count] = first
        following, rewards, ends = dynamics.step(lanes.states, actions, bank.to_move[t][:, noise])
        self._stop_wild(lanes, following, discounts * self._rest[t])
        ended = lanes.share == 0
        if ended.any():
            np.copyto(following, lanes.states, where=ended)
        then = (before, actions, self.transitions.as_logged(following.reshape(d, -1).T), times)
        if self.reward is not None:
            rewards = outcome("reward", self.reward, *then).reshape(rows, count)
        if self.terminated is not None:
            ends = outcome("terminated", self.terminated, *then).reshape(rows, count)
        assert rewards is not None
        np.add(lanes.total, rewards * discounts * lanes.share, out=lanes.total, where=~ended)
        lanes.states = following
        if ends is not None:  # ends are not drawn but kept as probabilities: less noise
            lanes.share *= 1.0 - np.clip(ends, 0.0, 1.0)

    def _act(self, states: Anything, times: npt.NDArray[np.int64], noise: Array, rows: int) -> Anything:
        """The candidate's actions, (rows · K, ...), with the same noise (width, K) in every row."""
        width, count = noise.shape  # a policy without noise has width 0
        spread = np.broadcast_to(noise[:, None], (width, rows, count)).reshape(width, rows * count).T
        return self.transitions.as_action(self._actions(lent(states), lent(times), lent(spread)), len(times))

    @cached_property
    def _actions(self) -> Callable[[Anything, npt.NDArray[np.int64], Array], Anything]:
        return self.actor.act_with if isinstance(self.actor, PreparedActor) else self.actor.act

    def _stop_wild(self, lanes: Lanes, following: Array, rest: Array) -> None:
        """End the lanes whose next state is not finite or absurdly large, at the worst they could still earn."""
        low, high = self._room
        if (following.min(axis=(1, 2)) >= low).all() and (following.max(axis=(1, 2)) <= high).all():
            return
        near = (following >= low[:, None, None]) & (following <= high[:, None, None])
        wild = (lanes.share > 0) & ~near.all(axis=0)
        self.n_blown_up += int(wild.sum())
        lanes.total += np.where(wild, rest * lanes.share, 0.0)
        lanes.share[wild] = 0.0

    @cached_property
    def _room(self) -> tuple[Array, Array]:
        """How low and how high states may go, (d,) each."""
        logs = self.transitions
        low, high = logs.states.min(axis=0), logs.states.max(axis=0)
        for part in parts(len(logs.known)):
            after = logs.next_states[part][logs.known[part]]
            low, high = np.vstack([low, after]).min(axis=0), np.vstack([high, after]).max(axis=0)
        middle, spread = (low + high) / 2, high - low
        reach = self.blow_up * np.where(spread > 0, spread, np.maximum(np.abs(middle), 1.0))
        return middle - reach, middle + reach

    @cached_property
    def _rest(self) -> Array:
        """What a roll-out that blows up at time t is worth from there on, (horizon,): the end of the reward range."""
        data = self.transitions.data
        side = 0 if self.anchor == "low" else 1
        declared = (data.step_range or (-np.inf, np.inf))[side]
        logged = min(data.rewards.min(), 0.0) if self.anchor == "low" else max(data.rewards.max(), 0.0)
        reward = declared if np.isfinite(declared) else logged
        left: Array = reward * np.cumsum(data.discounts)[::-1]
        return left
