"""Models to rehearse in: they repeat logged steps, recombined, so that simulated logs hold rare episodes too."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from tightrope.base.dataset import Array, IntArray

WORST = 0.5  # pseudo-visits of every pair by the worst that was declared
BINS = 4  # of the last reward, in the world that remembers it
NONE: IntArray = np.zeros(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Steps:
    """Logged steps with numbered states and actions, N in all; ``following`` is −1 where nobody saw it, S: the end."""

    states: IntArray
    actions: IntArray
    rewards: Array
    following: IntArray
    times: IntArray
    first: IntArray  # which steps begin an episode
    n_states: int
    n_actions: int
    horizon: int


@dataclass(frozen=True, eq=False)
class World:
    """A process that repeats logged steps. Its places are the logged states, or states with what came before."""

    name: str
    starts: IntArray  # (n,)
    base: IntArray  # (X,): the state of each place
    edges: IntArray  # (X·A + 1,): where the steps of each pair begin
    following: IntArray  # (N,): the place after each step; X: the end
    earned: Array  # (N,)
    pool_edges: IntArray  # (X + 1,)
    pool: IntArray  # (N,): the steps of each place
    timed_edges: IntArray  # (T·X·A + 1,): where the steps of each pair at each time begin; empty: time does not matter
    timed: IntArray
    worst: float  # pseudo-visits of the worst outcome

    @property
    def arrays(self) -> tuple[IntArray, IntArray, Array, IntArray, IntArray, IntArray, IntArray, float]:
        """What the kernels take, in their order."""
        return (
            self.edges, self.following, self.earned, self.pool_edges, self.pool, self.timed_edges, self.timed,
            self.worst,
        )  # fmt: skip


def worlds(steps: Steps) -> list[World]:
    """Four of them: states alone, states and time, states and a worst case, states and what came just before."""
    places = steps.states
    light = _world("states", steps, places, np.arange(steps.n_states), steps.following)
    timed = _with_time(light, steps)
    floor = replace(light, name="states and the worst case", worst=WORST)
    return [light, timed, floor, _history(steps)]


def _world(name: str, steps: Steps, places: IntArray, base: IntArray, following: IntArray) -> World:
    n_actions = steps.n_actions
    pair = places * n_actions + steps.actions
    seen = following >= 0
    lost = np.bincount(pair[seen], minlength=len(base) * n_actions)[pair] == 0  # nobody ever saw what follows the pair
    following = np.where(seen, following, places)
    kept = np.flatnonzero(seen | lost)
    order = kept[np.argsort(pair[kept], kind="stable")]
    pool = np.argsort(places[order], kind="stable")
    return World(
        name, places[steps.first], base, np.searchsorted(pair[order], np.arange(len(base) * n_actions + 1)),
        following[order], steps.rewards[order], np.searchsorted(places[order][pool], np.arange(len(base) + 1)),
        pool, NONE, NONE, 0.0,
    )  # fmt: skip


def _with_time(light: World, steps: Steps) -> World:
    """The same, with steps of the same time counting before others."""
    n_pairs = steps.n_states * steps.n_actions
    pair = np.repeat(np.arange(n_pairs), np.diff(light.edges))
    place = np.argsort(steps.states * steps.n_actions + steps.actions, kind="stable")
    # light keeps a subset of the steps, in the order of their pairs: find their times in the same way
    keys = steps.states * steps.n_actions + steps.actions
    seen = steps.following >= 0
    lost = np.bincount(keys[seen], minlength=n_pairs)[keys] == 0
    times = steps.times[place[(seen | lost)[place]]]
    spot = times * n_pairs + pair
    timed = np.argsort(spot, kind="stable")
    edges = np.searchsorted(spot[timed], np.arange(steps.horizon * n_pairs + 1))
    return replace(light, name="states and time", timed_edges=edges, timed=timed)


def _history(steps: Steps) -> World:
    """Places are a state with the action and the reward just before."""
    cuts = np.unique(np.quantile(steps.rewards, np.linspace(0, 1, BINS + 1)[1:-1]))
    size = np.searchsorted(cuts, steps.rewards, side="left")
    kind = 1 + steps.actions * (BINS + 1) + size  # 0: nothing came before
    kinds = 1 + steps.n_actions * (BINS + 1)
    before = np.append(0, kind[:-1])
    before[steps.first] = 0
    keys = steps.states * kinds + before
    after = np.where((steps.following >= 0) & (steps.following < steps.n_states), steps.following * kinds + kind, -1)
    known = np.unique(np.concatenate([keys, after[after >= 0]]))
    following = np.where(after >= 0, np.searchsorted(known, after), np.where(steps.following < 0, -1, len(known)))
    return _world("states and what came before", steps, np.searchsorted(known, keys), known // kinds, following)
