"""Monte Carlo evaluation in a fitted model: roll-outs of many replicates side by side, all with the same noise.

V̂(w) = Σ_i w_i v̂(s0_i) / Σ_i w_i, where v̂(s0_i) averages the returns of ``n_rollouts`` simulated from trajectory i's own
start. The noise belongs to the trajectory (its episode id), the roll-out and the absolute time, and to nothing else:
replicates differ by their fits alone, a weight of k equals k repeats, and neither order nor chunks matter. Every other
roll-out mirrors the noise of the one before (u to 1 − u). Frozen noise shifts all replicates alike and no bootstrap
sees it: ``diagnostics`` reports its standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, Protocol, Self, cast

import numpy as np
import numpy.typing as npt

from tightrope.dataset import Array, BoolArray, IntArray
from tightrope.errors import DataError
from tightrope.models.lanes import Bank, Lanes, Starts, trajectory_key
from tightrope.models.transitions import Outcome, Transitions, outcome
from tightrope.policy import Actor, as_actor
from tightrope.problem import Problem

Anything = npt.NDArray[Any]
Anchor = Literal["low", "high"]

FIT_ROWS = 256  # replicates fitted together
LANES = 16384  # roll-outs stepped together, replicates included: their arrays stay in cache
CHUNK_LANES = 4096  # roll-outs of one replicate stepped together
BANK_BYTES = 32 << 20  # what the noise of one chunk of trajectories may take


@dataclass(frozen=True, kw_only=True)
class RolloutSettings:
    """What every model that is evaluated by roll-outs takes.

    ``reward`` and ``terminated`` are known functions of (states, actions, next_states, t), one row per transition;
    where they are None the model learns them. A roll-out whose state goes further than ``blow_up`` times the logged
    range (of all logs, whatever their weights) is ended there, with the worst reward on every step to come (the best,
    for an upper bound), and counted.
    """

    reward: Outcome | None = None
    terminated: Outcome | None = None
    n_rollouts: int = 10  # from every start; even, since they come in mirrored pairs
    seed: int = 0  # of the frozen noise
    blow_up: float = 1e3

    def __post_init__(self) -> None:
        if not isinstance(self.n_rollouts, int) or self.n_rollouts < 2 or self.n_rollouts % 2:
            raise DataError(f"n_rollouts is {self.n_rollouts!r}; give an even number, at least 2: they come in pairs")
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise DataError(f"seed is {self.seed!r}; give a whole number from 0 up")
        if not self.blow_up > 0:
            raise DataError(f"blow_up is {self.blow_up!r}; give a positive number of ranges")


class Dynamics(Protocol):
    """Models fitted under some rows of weights, stepped side by side."""

    @property
    def fitted(self) -> BoolArray:
        """Which rows could be fitted, (rows,)."""
        ...

    def take(self, rows: slice) -> Self:
        """Some of the rows."""
        ...

    def step(self, states: Array, actions: Anything, uniforms: Array) -> tuple[Array, Array | None, Array | None]:
        """Next states (rows, K, d), rewards (rows, K) and probabilities of an end (rows, K), None where not learned.

        From states (rows, K, d), actions (rows · K, ...) and noise (K, width), the same for all rows. A probability
        below 0 counts as 0, one above 1 as 1.
        """
        ...


@dataclass(eq=False)
class RolloutModel:
    """A prepared model: refitted under every row of weights by ``fit``, evaluated by roll-outs."""

    transitions: Transitions
    actor: Actor
    settings: RolloutSettings
    anchor: Anchor
    noise_width: int  # how many uniforms a step of the model takes
    fit: Callable[[Array], Dynamics]  # (rows, n) weights
    fit_rows: int = FIT_ROWS  # how many rows to fit together, at most
    n_rolled: int = field(default=0, init=False)
    n_blown_up: int = field(default=0, init=False)

    @classmethod
    def of(
        cls, problem: Problem, transitions: Transitions, settings: RolloutSettings, anchor: str, width: int, fit: Any
    ) -> Self:
        """Check that the candidate can act, and that it is known which side is the safe one."""
        if anchor not in ("low", "high"):
            raise DataError(f'anchor is {anchor!r}; give "low" for a lower bound, "high" for an upper one')
        return cls(transitions, as_actor(problem.policy), settings, cast(Anchor, anchor), width, fit)

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.transitions.data.n_trajectories

    def values(self, weights: Array) -> Array:
        """V̂ in the model fitted under each row, (rows, n) to (rows,); NaN where there is no fit."""
        weights = np.asarray(weights, dtype=np.float64)
        totals = np.zeros(len(weights))
        size = min(FIT_ROWS, self.fit_rows)
        for first in range(0, len(weights), size):
            block = slice(first, first + size)
            dynamics = self.fit(weights[block])
            for rows, chunk, returns in self.start_returns(dynamics):
                totals[block][rows] += (weights[block][rows, chunk] * returns.mean(axis=2)).sum(axis=1)
            totals[block][~dynamics.fitted] = np.nan
        with np.errstate(invalid="ignore"):
            result: Array = totals / weights.sum(axis=1)
        return result

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every wanted step, (N,) each, by roll-outs over the steps left; else NaN.

        Both use the noise of the step's trajectory from its time on; v̂'s first action comes from the candidate, so that
        v̂ = E_a q̂ but for the Monte Carlo error, which the logged action knows nothing of.
        """
        data, actions = self.transitions.data, self.transitions.actions
        q, v = np.full(data.n_steps, np.nan), np.full(data.n_steps, np.nan)
        dynamics = self.fit(np.asarray(weights, dtype=np.float64)[None])
        if not dynamics.fitted[0]:
            return q, v
        episodes = np.arange(data.n_trajectories) if wanted is None else np.flatnonzero(wanted)
        for chunk in self._chunks(LANES // data.horizon, len(episodes)):
            bank, steps = self._bank(episodes[chunk]), data.steps_of(episodes[chunk])
            places = np.argsort(data.times[steps], kind="stable")
            banks = np.repeat(np.arange(chunk.stop - chunk.start), data.lengths[episodes[chunk]])[places]
            order = steps[places]
            start = Starts(self.transitions.states[order], data.times[order], banks)
            v[order] = self._roll(dynamics, bank, start)[0].mean(axis=1)
            start = Starts(start.states, start.times, banks, actions[order])
            q[order] = self._roll(dynamics, bank, start)[0].mean(axis=1)
        return q, v

    def diagnostics(self) -> dict[str, float]:
        """How far the roll-outs are to be trusted.

        The Monte Carlo standard error of the estimate (all weights one), which the frozen noise hides from the
        bootstrap; and how many roll-outs there were so far and how many of them blew up.
        """
        n, pairs = self.n_trajectories, self.settings.n_rollouts // 2
        parts = [returns[0] for _, _, returns in self.start_returns(self.fit(np.ones((1, n))))]
        means = np.concatenate(parts).reshape(n, pairs, 2).mean(axis=2)
        # One pair per start says nothing about its own spread; that over starts, which is wider, stands in.
        spread = means.var(axis=1, ddof=1).mean() if pairs > 1 else means.var(ddof=1) if n > 1 else np.nan
        return {
            "monte_carlo_standard_error": float(np.sqrt(spread / (n * pairs))),
            "rollouts": self.n_rolled,
            "blown_up": self.n_blown_up,
        }

    def start_returns(self, dynamics: Dynamics) -> Iterator[tuple[slice, slice, Array]]:
        """(rows, trajectories, returns (rows, m, n_rollouts)) from every trajectory's start, block by block."""
        data, size = self.transitions.data, self.settings.n_rollouts
        n_rows = len(dynamics.fitted)
        for chunk in self._chunks(CHUNK_LANES, data.n_trajectories):
            bank, m = self._bank(np.arange(chunk.start, chunk.stop)), chunk.stop - chunk.start
            start = self.transitions.states[data.offsets[chunk]]
            starts = Starts(start, np.zeros(m, dtype=np.int64), np.arange(m))
            width = max(1, LANES // (m * size))
            for first in range(0, n_rows, width):
                rows = slice(first, min(first + width, n_rows))
                yield rows, chunk, self._roll(dynamics.take(rows), bank, starts)

    def _chunks(self, lanes: int, count: int) -> Iterator[slice]:
        """Ranges of so many trajectories: at most ``lanes`` roll-outs and BANK_BYTES of noise each."""
        pairs = self.settings.n_rollouts // 2
        noise = 8 * self.transitions.data.horizon * pairs * self._width
        size = max(1, min(lanes // (2 * pairs), BANK_BYTES // noise))
        for first in range(0, count, size):
            yield slice(first, min(first + size, count))

    @property
    def _width(self) -> int:
        return 1 + self.actor.noise_width + self.noise_width  # the first is for the end

    def _bank(self, episodes: IntArray) -> Bank:
        ids = self.transitions.data.episode_ids
        assert ids is not None
        shape = (self.transitions.data.horizon, self.settings.n_rollouts // 2, self._width)
        return Bank.of([trajectory_key(i) for i in ids[episodes].tolist()], self.settings.seed, shape)

    def _roll(self, dynamics: Dynamics, bank: Bank, starts: Starts) -> Array:
        """Discounted returns from each start to the horizon, (rows, K, n_rollouts)."""
        size, rows = self.settings.n_rollouts, len(dynamics.fitted)
        lanes = Lanes.at(np.repeat(starts.states, size, axis=0), rows)
        horizon = self.transitions.data.horizon
        for t in range(int(starts.times[0]), horizon):
            begun = int(np.searchsorted(starts.times, t, side="right"))
            fresh = int(np.searchsorted(starts.times, t, side="left"))
            first = None
            if starts.actions is not None and fresh < begun:
                first = np.repeat(starts.actions[fresh:begun], size, axis=0)
            discounts = np.repeat(np.power(self.transitions.data.discount, t - starts.times[:begun]), size)
            self._advance(lanes, dynamics, t, bank.at(t, starts.banks[:begun]), discounts, first)
            if begun == len(starts.times) and not lanes.alive.any():
                break
        self.n_rolled += lanes.total.size
        return lanes.total.reshape(rows, len(starts.times), size)

    def _advance(
        self, lanes: Lanes, dynamics: Dynamics, t: int, uniforms: Array, discounts: Array, first: Anything | None
    ) -> None:
        """Step the lanes that have begun; ``first`` are the actions of the last of them, which begin now."""
        count = len(uniforms)
        states, alive, total = lanes.begun(count)
        n_rows, _, d = states.shape
        to_end, to_act, to_move = np.split(uniforms, [1, 1 + self.actor.noise_width], axis=1)
        times = np.full(n_rows * count, t, dtype=np.int64)
        logged = self.transitions.as_logged(states.reshape(-1, d))
        actions = self.transitions.as_action(
            self.actor.act(logged, times, np.tile(to_act, (n_rows, 1))), n_rows * count
        )
        if first is not None:
            actions = actions.copy()
            actions.reshape(n_rows, count, *actions.shape[1:])[:, count - len(first) :] = first
        following, rewards, ends = dynamics.step(states, actions, to_move)
        wild = self._wild(following)
        if wild is not None:
            wild &= alive
            self.n_blown_up += int(wild.sum())
            total += np.where(wild, discounts * self._rest[t], 0.0)
            alive &= ~wild
        if not alive.all():
            following = np.where(alive[..., None], following, states)
        then = (logged, actions, self.transitions.as_logged(following.reshape(-1, d)), times)
        if self.settings.reward is not None:
            rewards = outcome("reward", self.settings.reward, *then).reshape(n_rows, count)
        if self.settings.terminated is not None:
            ends = outcome("terminated", self.settings.terminated, *then).reshape(n_rows, count)
        assert rewards is not None
        total += np.where(alive, rewards * discounts, 0.0)
        states[...] = following
        if ends is not None:
            alive &= to_end[:, 0] >= ends

    @cached_property
    def _room(self) -> tuple[Array, Array]:
        """The middle of the logged states and how far from it a state may go, (d,) each."""
        seen = np.concatenate([self.transitions.states, self.transitions.next_states[self.transitions.known]])
        low, high = seen.min(axis=0), seen.max(axis=0)
        middle, spread = (low + high) / 2, high - low
        scale = np.where(spread > 0, spread, np.maximum(np.abs(middle), 1.0))
        return middle, self.settings.blow_up * scale

    def _wild(self, states: Array) -> BoolArray | None:
        """Which states are not finite or absurdly large, (rows, K); None where none is."""
        middle, reach = self._room
        near = np.abs(states - middle) <= reach
        return None if near.all() else np.logical_not(np.all(near, axis=-1))

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
