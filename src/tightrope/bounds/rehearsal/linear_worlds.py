"""Linear worlds to rehearse in: a regression says what follows on average, a logged step's residual is added to it.

    s' = B_sᵀx + e_j,   r = b_rᵀx + u_j,   P(end) = b_eᵀx,   x = φ(s, a) and what else the world looks at,

with (e_j, u_j) the residuals of one logged step j, drawn anew for every step: among those that ended their episode
where this one ends, else among those after which it went on. Rewards stay within their declared range, states within
half of the logged range beyond it. Rewards and ends that are known functions are not learned.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.base.errors import DataError
from tightrope.base.policy import DiscretePolicy
from tightrope.bounds.rehearsal.worlds import WORST
from tightrope.models.regression import Features
from tightrope.models.rollouts.transitions import Outcome, Transitions, outcome

REACH = 0.5  # of the logged range: how far beyond it a state may go, since lines know no walls
RIDGE = 1e-12  # share of a scaled feature's mean square: what was never logged gets a leverage without measure
DRAWS = 6  # uniforms of one step: to act, to end, the worst case, and three to choose a residual


@dataclass(frozen=True, eq=False)
class Ground:
    """The logs that worlds are fitted to; rewards are counted so that more is better for the bound's side."""

    logs: Transitions
    features: Features
    rewards: Array  # (N,)
    sign: float
    lowest: float
    highest: float
    reward: Outcome | None  # known, or learned
    terminated: Outcome | None

    @property
    def levels(self) -> IntArray:
        """The logged actions, rising."""
        assert self.logs.levels is not None
        return self.logs.levels

    @property
    def learns_end(self) -> bool:
        """Whether ends are learned: they are not known, and there are some."""
        return self.terminated is None and bool(self.logs.data.terminated.any())

    @property
    def starts(self) -> Array:
        """Where each logged episode began, (n, d)."""
        return self.logs.states[self.logs.data.offsets[:-1]]

    @cached_property
    def room(self) -> tuple[Array, Array]:
        """How low and how high a state may go, (d,) each."""
        low, high = self.logs.states.min(axis=0), self.logs.states.max(axis=0)
        reach = REACH * (high - low)
        return low - reach, high + reach


class Past(NamedTuple):
    """What came just before some steps: the place of the last action, −1 where there was none, and its reward."""

    actions: IntArray  # (K,)
    rewards: Array  # (K,): 0 where there was none


class Moment(NamedTuple):
    """One step of all episodes that are still going on, K of them."""

    episodes: IntArray  # which they are
    states: Array  # (K, d)
    actions: IntArray  # (K,), as logged
    rewards: Array
    following: Array  # (K, d)
    ended: BoolArray


@dataclass(frozen=True, eq=False)
class Pool:
    """Logged steps to take residuals from, sorted by a key: those of the same key count one each, all others one."""

    steps: IntArray
    edges: IntArray

    @classmethod
    def of(cls, steps: IntArray, keys: IntArray, count: int) -> Pool:
        """Some steps with their keys below ``count``."""
        order = np.argsort(keys, kind="stable")
        return cls(steps[order], np.searchsorted(keys[order], np.arange(count + 1)))

    def pick(self, keys: IntArray, uniforms: Array) -> IntArray:
        """A step for each key, from three uniforms (K, 3): whether of its own key, which of those, which of all."""
        first = self.edges[keys]
        own = self.edges[keys + 1] - first
        near = first + (uniforms[:, 1] * own).astype(np.int64)
        anyone = (uniforms[:, 2] * len(self.steps)).astype(np.int64)
        return self.steps[np.where(uniforms[:, 0] * (own + 1.0) < own, near, anyone)]


@dataclass(frozen=True, eq=False)
class LinearWorld:
    """One such process. ``timed``: means know the time, residuals come from it; ``remembers``: means know the past."""

    name: str
    number: int  # of its random numbers
    ground: Ground
    timed: bool
    remembers: bool
    worst: float  # pseudo-visits of the worst outcome
    coefficients: Array  # (p, d + 1 + 1): next state, reward, end
    half: Array  # (p, p): the leverage of x is |x·half|²
    residuals: Array  # (N, d + 1): of next states and rewards
    going: Pool
    ending: Pool

    @property
    def horizon(self) -> int:
        """How many steps an episode has, at most."""
        return self.ground.logs.data.horizon

    def play(self, policy: DiscretePolicy, states: Array, rng: np.random.Generator) -> Iterator[Moment]:
        """Episodes of a policy from these states (K, d), step by step."""
        episodes, count = np.arange(len(states)), len(states)
        past = Past(np.full(count, -1, dtype=np.int64), np.zeros(count))
        for t in range(self.horizon):
            uniforms = rng.random((len(episodes), DRAWS))
            places = self.act(policy, states, t, uniforms[:, 0])
            following, rewards, ended = self.step(states, places, t, past, uniforms[:, 1:])
            yield Moment(episodes, states, self.ground.levels[places], rewards, following, ended)
            stay = ~ended
            episodes, states, past = episodes[stay], following[stay], Past(places[stay], rewards[stay])
            if not len(episodes):
                return

    def act(self, policy: DiscretePolicy, states: Array, t: int, uniforms: Array) -> IntArray:
        """The place, among the logged actions, of what the policy does in each state."""
        times = np.full(len(states), t, dtype=np.int64)
        listed = numbers("probs", policy.probs(lent(self.ground.logs.as_logged(states)), lent(times)))
        known = np.minimum(self.ground.levels, listed.shape[1] - 1)
        edges = np.cumsum(np.where(self.ground.levels < listed.shape[1], listed[:, known], 0.0), axis=1)
        places: IntArray = (edges[:, :-1] <= uniforms[:, None] * edges[:, -1:]).sum(axis=1)
        return places

    def step(
        self, states: Array, places: IntArray, t: int, past: Past, uniforms: Array
    ) -> tuple[Array, Array, BoolArray]:
        """Next states, rewards and whether the episode ended, from uniforms (K, DRAWS − 1)."""
        ground, d = self.ground, self.ground.logs.width
        times = np.full(len(states), t, dtype=np.int64)
        design = self.design(states, places, times, past)
        mean = design @ self.coefficients
        ended: BoolArray = uniforms[:, 0] < mean[:, -1]  # without learned ends that column is 0
        keys = times if self.timed else places
        picked = self.going.pick(keys, uniforms[:, 2:])
        picked[ended] = self.ending.pick(keys[ended], uniforms[ended, 2:])
        following = np.clip(mean[:, :d] + self.residuals[picked, :d], *ground.room)
        rewards = np.clip(mean[:, d] + self.residuals[picked, d], ground.lowest, ground.highest)
        given = (ground.logs.as_logged(states), ground.levels[places], ground.logs.as_logged(following), times)
        if ground.reward is not None:
            rewards = ground.sign * outcome("reward", ground.reward, *given)
        if ground.terminated is not None:
            ended = outcome("terminated", ground.terminated, *given) > 0
        if self.worst:
            leverage = np.square(design @ self.half).sum(axis=1)
            bad = uniforms[:, 1] * (1.0 + (1.0 + self.worst) * leverage) < self.worst * leverage
            rewards, ended = np.where(bad, ground.lowest, rewards), ended | bad
        return following, rewards, ended

    def design(self, states: Array, places: IntArray, times: IntArray, past: Past) -> Array:
        """x of each step, (K, p)."""
        ground = self.ground
        parts = [ground.features(ground.logs, states, ground.levels[places])]
        if self.timed:
            share = times[:, None] / self.horizon
            parts += [share, share * share]
        if self.remembers:
            parts += [
                (past.actions[:, None] == np.arange(len(ground.levels))).astype(np.float64),
                past.rewards[:, None],
            ]
        return np.hstack(parts)


def linear_worlds(ground: Ground) -> list[LinearWorld]:
    """Four of them, as tables have them: states alone, with time, with a worst case, with what came just before."""
    return [
        _world("states", 0, ground),
        _world("states and time", 1, ground, timed=True),
        _world("states and the worst case", 2, ground, worst=WORST),
        _world("states and what came before", 3, ground, remembers=True),
    ]


def _world(
    name: str, number: int, ground: Ground, *, timed: bool = False, remembers: bool = False, worst: float = 0.0
) -> LinearWorld:
    logs, data, d = ground.logs, ground.logs.data, ground.logs.width
    empty = Pool(np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64))
    blank = LinearWorld(
        name,
        number,
        ground,
        timed,
        remembers,
        worst,
        np.zeros((0, 0)),
        np.zeros((0, 0)),
        np.zeros((0, 0)),
        empty,
        empty,
    )
    places = np.searchsorted(ground.levels, logs.actions)
    before = np.append(-1, places[:-1]), np.append(0.0, ground.rewards[:-1])
    before[0][data.offsets[:-1]], before[1][data.offsets[:-1]] = -1, 0.0
    design = blank.design(logs.states, places, data.times, Past(*before))
    ended = logs.ends > 0
    apart = ground.learns_end and ground.reward is None  # a known reward may look at the state of the end
    moved = logs.known & ~ended if apart else logs.known
    if moved.sum() < design.shape[1]:
        raise DataError(
            f"{moved.sum()} transitions cannot determine the {design.shape[1]} features of a linear world; log more "
            "episodes, give final_states, or use fewer features"
        )
    coefficients = np.zeros((design.shape[1], d + 2))
    coefficients[:, :d], half = _regression(design[moved], logs.next_states[moved])
    coefficients[:, d:], _ = _regression(design, np.column_stack([ground.rewards, logs.ends]))
    if not ground.learns_end:
        coefficients[:, -1] = 0.0
    targets = np.column_stack([logs.next_states, ground.rewards])
    residuals = targets - design @ coefficients[:, : d + 1]
    keys, count = (data.times, data.horizon) if timed else (places, len(ground.levels))
    going, ending = np.flatnonzero(moved & ~(ended & ground.learns_end)), np.flatnonzero(ended)
    return LinearWorld(
        name, number, ground, timed, remembers, worst, coefficients, half, residuals,
        Pool.of(going, keys[going], count), Pool.of(ending, keys[ending], count),
    )  # fmt: skip


def _regression(design: Array, targets: Array) -> tuple[Array, Array]:
    """Least squares of (N, q) targets on (N, p) features, and the matrix whose product with x has leverage length."""
    scale = np.sqrt(np.square(design).mean(axis=0))
    scale[scale == 0] = 1.0
    p = design.shape[1]
    rows = np.vstack([design / scale, np.sqrt(RIDGE * len(design)) * np.eye(p)])
    orthogonal, triangle = np.linalg.qr(rows)
    half: Array = np.linalg.inv(triangle) / scale[:, None]
    return half @ (orthogonal[: len(design)].T @ targets), half
