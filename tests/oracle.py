"""Slow and obvious: every trajectory enumerated, every definition a plain loop. Nothing here imports tightrope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod

import numpy as np

END = None  # the state after an episode has ended for good


@dataclass(frozen=True)
class Episode:
    """One trajectory, as lists over its steps."""

    rewards: list[float]
    behavior: list[float]  # probability of the logged action under the behaviour policy
    candidate: list[float]  # and under the candidate
    terminated: bool
    states: list[int] | None = None
    actions: list[int] | None = None
    final: int | None = END  # the state after the last step

    def ratio(self, t: int) -> float:
        """The product of the step ratios of actions 0..t; a finished episode keeps its last one."""
        steps = min(t + 1, len(self.rewards))
        return prod(self.candidate[k] / self.behavior[k] for k in range(steps))

    def reward(self, t: int) -> float:
        return self.rewards[t] if t < len(self.rewards) else 0.0

    def discounted_return(self, discount: float) -> float:
        return sum(discount**t * r for t, r in enumerate(self.rewards))


Policy = Callable[[int, int], Sequence[float]]  # (state, time) to the probability of each action


@dataclass(frozen=True)
class Mdp:
    """Outcomes of each (state, action): (probability, next state or END, reward)."""

    name: str
    outcomes: dict[tuple[int, int], list[tuple[float, int | None, float]]]
    start: dict[int, float]
    horizon: int
    discount: float
    behavior: Policy
    candidate: Policy

    def value(self, policy: Policy) -> float:
        """By recursion over time, straight from the Bellman expectation equation."""

        def ahead(state: int | None, t: int) -> float:
            if state is END or t == self.horizon:
                return 0.0
            return sum(
                chance * p * (reward + self.discount * ahead(after, t + 1))
                for action, chance in enumerate(policy(state, t))
                for p, after, reward in self.outcomes[state, action]
            )

        return sum(p * ahead(state, 0) for state, p in self.start.items())

    def trajectories(self) -> Iterator[tuple[float, Episode]]:
        """Every trajectory the behaviour policy can produce, with its probability."""

        def extend(p: float, state: int | None, done: list[tuple[int, int, float, float, float]]):
            t = len(done)
            if state is END or t == self.horizon:
                states, actions, rewards, b, e = (list(column) for column in zip(*done, strict=True))
                yield p, Episode(rewards, b, e, state is END, states, actions, state)
                return
            b, e = self.behavior(state, t), self.candidate(state, t)
            for action in range(len(b)):
                for chance, after, reward in self.outcomes[state, action]:
                    step = (state, action, reward, b[action], e[action])
                    if b[action] * chance > 0:
                        yield from extend(p * b[action] * chance, after, [*done, step])

        for state, p in self.start.items():
            yield from extend(p, state, [])


def mdps() -> list[Mdp]:
    """Three problems, each built to expose a different slip."""
    early = Mdp(
        "negative rewards, early end",
        outcomes={
            (0, 0): [(0.8, 1, -1.0), (0.2, END, -3.0)],
            (0, 1): [(0.5, 0, -1.0), (0.5, END, -1.0)],
            (1, 0): [(1.0, 0, -2.0)],
            (1, 1): [(0.3, 1, -0.5), (0.7, END, -4.0)],
        },
        start={0: 0.6, 1: 0.4},
        horizon=4,
        discount=1.0,
        behavior=lambda s, t: [0.5, 0.5] if s == 0 else [0.3, 0.7],
        candidate=lambda s, t: [0.8, 0.2] if s == 0 else [0.6, 0.4],
    )
    timed = Mdp(
        "policies that change with time",
        outcomes={
            (0, 0): [(0.6, 0, 1.0), (0.4, 1, -1.0)],
            (0, 1): [(1.0, 1, 2.0)],
            (1, 0): [(0.5, 0, 0.0), (0.5, END, 5.0)],
            (1, 1): [(0.9, 1, -0.5), (0.1, END, 1.0)],
        },
        start={0: 1.0},
        horizon=4,
        discount=1.0,
        behavior=lambda s, t: [[0.5, 0.5], [0.2, 0.8], [0.9, 0.1], [0.4, 0.6]][t],
        # At time 2 the candidate never takes action 1: ratios of zero.
        candidate=lambda s, t: [[0.9, 0.1], [0.5, 0.5], [1.0, 0.0], [0.1, 0.9]][t],
    )
    discounted = Mdp(
        "discount below one",
        outcomes={
            (0, 0): [(0.7, 1, 1.0), (0.3, 0, 0.0)],
            (0, 1): [(1.0, 0, 0.5)],
            (1, 0): [(0.5, 0, 2.0), (0.5, END, -1.0)],
            (1, 1): [(1.0, 1, 3.0)],
        },
        start={0: 0.5, 1: 0.5},
        horizon=5,
        discount=0.8,
        behavior=lambda s, t: [0.6, 0.4],
        candidate=lambda s, t: [0.2, 0.8] if s == 1 else [0.7, 0.3],
    )
    return [early, timed, discounted]


# The estimators, straight from their definitions; weights default to one each.


def _weights(episodes: Sequence[Episode], weights: Sequence[float] | None) -> Sequence[float]:
    return [1.0] * len(episodes) if weights is None else weights


def slow_is(episodes: Sequence[Episode], discount: float, horizon: int, weights=None, shift: float = 0.0) -> float:
    """shift + Σ w ρ_{L-1} (return − shift) / Σ w."""
    w = _weights(episodes, weights)
    total = 0.0
    for i, episode in enumerate(episodes):
        total += w[i] * episode.ratio(horizon - 1) * (episode.discounted_return(discount) - shift)
    return shift + total / sum(w)


def slow_pdis(episodes: Sequence[Episode], discount: float, horizon: int, weights=None, shift: float = 0.0) -> float:
    """shift·H + Σ w Σ_t γ^t ρ_t (r_t − shift) / Σ w, absorbing steps included."""
    w = _weights(episodes, weights)
    total, length = 0.0, 0.0
    for t in range(horizon):
        length += discount**t
        for i, episode in enumerate(episodes):
            total += w[i] * discount**t * episode.ratio(t) * (episode.reward(t) - shift)
    return shift * length + total / sum(w)


def slow_wis(episodes: Sequence[Episode], discount: float, horizon: int, weights=None) -> float:
    """Σ w ρ_{L-1} return / Σ w ρ_{L-1}."""
    w = _weights(episodes, weights)
    above = below = 0.0
    for i, episode in enumerate(episodes):
        below += w[i] * episode.ratio(horizon - 1)
        above += w[i] * episode.ratio(horizon - 1) * episode.discounted_return(discount)
    return above / below


def slow_pdwis(episodes: Sequence[Episode], discount: float, horizon: int, weights=None) -> float:
    """Σ_t γ^t Σ_i w_i ρ_t^i r_t^i / Σ_i w_i ρ_t^i; finished episodes stay in the denominator."""
    w = _weights(episodes, weights)
    value = 0.0
    for t in range(horizon):
        if discount**t == 0:  # counts for nothing, whatever there is to divide by
            continue
        above = below = 0.0
        for i, episode in enumerate(episodes):
            below += w[i] * episode.ratio(t)
            above += w[i] * episode.ratio(t) * episode.reward(t)
        value += discount**t * above / below
    return value


def counted_behavior(episodes: Sequence[Episode], weights: Sequence[float], *, timed: bool = False) -> list[Episode]:
    """The episodes with the behaviour policy counted under the weights: Σ w #(s, a) / Σ w #(s)."""
    pairs, visits = defaultdict(float), defaultdict(float)
    for w, e in zip(weights, episodes, strict=True):
        for t, (s, a) in enumerate(zip(e.states, e.actions, strict=True)):
            where = (s, t) if timed else s
            pairs[where, a] += w
            visits[where] += w

    def share(s: int, a: int, t: int) -> float:
        where = (s, t) if timed else s
        with np.errstate(all="ignore"):  # one of weight 0 is never asked for
            return np.where(pairs[where, a] == 0, 1.0, np.divide(pairs[where, a], visits[where]))

    return [
        replace(e, behavior=[share(s, a, t) for t, (s, a) in enumerate(zip(e.states, e.actions, strict=True))])
        for e in episodes
    ]


SLOW = {"is": slow_is, "pdis": slow_pdis, "wis": slow_wis, "pdwis": slow_pdwis}


def random_episodes(n: int, horizon: int, *, seed: int, zeros: float = 0.0, spread: float = 0.5) -> list[Episode]:
    """Episodes of unequal lengths; a share ``zeros`` of the steps is one the candidate would never take."""
    rng = np.random.default_rng(seed)
    episodes = []
    for i in range(n):
        length = horizon if i == 0 else int(rng.integers(1, horizon + 1))
        behavior = rng.uniform(0.3, 0.7, length)
        candidate = np.clip(behavior * np.exp(spread * rng.standard_normal(length)), 0.02, 1.0)
        if i > 0:  # the first episode always keeps its weight, so that no step is without any
            candidate[rng.random(length) < zeros] = 0.0
        rewards = rng.uniform(-2.0, 3.0, length)
        ended = length < horizon or bool(rng.random() < 0.5)
        episodes.append(Episode(rewards.tolist(), behavior.tolist(), candidate.tolist(), ended))
    return episodes
