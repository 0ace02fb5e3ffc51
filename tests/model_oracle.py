"""Slow and obvious: models counted in dictionaries, values by plain recursion. Nothing here imports tightrope."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np

from tests.oracle import END, Episode, Mdp, Policy

Q = Callable[[int, int, int], float]  # (state, action, time) to a value
V = Callable[[int, int], float]  # (state, time)


@dataclass(frozen=True)
class Counted:
    """A model as dictionaries; a pair without a next state was never seen to lead anywhere."""

    start: dict[int, float]
    rewards: dict[tuple[int, int], float]
    following: dict[tuple[int, int], dict[int | None, float]]


def counted(episodes: Sequence[Episode], horizon: int, weights=None, *, finals: bool = False) -> Counted:
    """Maximum likelihood under weights. Without ``finals`` nothing is known of what follows the horizon's last step."""
    weights = [1.0] * len(episodes) if weights is None else weights
    start, visits, earned = defaultdict(float), defaultdict(float), defaultdict(float)
    arcs = defaultdict(lambda: defaultdict(float))
    for w, e in zip(weights, episodes, strict=True):
        if w == 0:
            continue
        start[e.states[0]] += w
        for t, pair in enumerate(zip(e.states, e.actions, strict=True)):
            visits[pair] += w
            earned[pair] += w * e.rewards[t]
            after = e.states[t + 1] if t + 1 < len(e.rewards) else END if e.terminated else e.final
            if finals or t < horizon - 1:
                arcs[pair][after] += w
    total = sum(start.values())
    return Counted(
        {s: c / total for s, c in start.items()},
        {pair: earned[pair] / c for pair, c in visits.items()},
        {pair: {s: c / sum(row.values()) for s, c in row.items()} for pair, row in arcs.items()},
    )


def values(
    model: Counted, policy: Policy, horizon: int, discount: float, unseen: str = "worst", unseen_reward: float = 0.0
) -> tuple[float, Q, V]:
    """The policy's value in the model, q_t(s, a) and v_t(s)."""

    @cache
    def q(state: int, action: int, t: int) -> float:
        reward = model.rewards.get((state, action), unseen_reward)
        row = model.following.get((state, action))
        if row is not None:
            return reward + discount * sum(p * v(after, t + 1) for after, p in row.items())
        if unseen == "worst":
            return reward + sum(discount**k * unseen_reward for k in range(1, horizon - t))
        return reward + (discount * v(state, t + 1) if unseen == "self-loop" else 0.0)

    @cache
    def v(state: int | None, t: int) -> float:
        if state is END or t == horizon:
            return 0.0
        return sum(p * q(state, a, t) for a, p in enumerate(policy(state, t)) if p > 0)

    return sum(p * v(s, 0) for s, p in model.start.items()), q, v


def truth(mdp: Mdp) -> Counted:
    """The process itself in the form of a model."""
    return Counted(
        mdp.start,
        {pair: sum(p * r for p, _, r in row) for pair, row in mdp.outcomes.items()},
        {pair: _merged([(after, p) for p, after, _ in row]) for pair, row in mdp.outcomes.items()},
    )


def _merged(row: list[tuple[int | None, float]]) -> dict[int | None, float]:
    result = defaultdict(float)
    for after, p in row:
        result[after] += p
    return dict(result)


def slow_dr(episodes: Sequence[Episode], discount: float, horizon: int, each: Sequence[tuple[Q, V]], weights) -> float:
    """Σ_i w_i Σ_t γ^t (ρ_t r_t − ρ_t q̂_t + ρ_{t-1} v̂_t) / Σ w, ρ_{-1} = 1; q̂ and v̂ may differ between episodes."""
    total = 0.0
    for w, e, (q, v) in zip(weights, episodes, each, strict=True):
        for t, (s, a, r) in enumerate(zip(e.states, e.actions, e.rewards, strict=True)):
            before = e.ratio(t - 1) if t > 0 else 1.0
            total += w * discount**t * (e.ratio(t) * (r - q(s, a, t)) + before * v(s, t))
    return total / sum(weights)


def slow_wdr(episodes: Sequence[Episode], discount: float, horizon: int, each: Sequence[tuple[Q, V]], weights) -> float:
    """The paper's definition with w_{-1} = 1/n: Σ_t γ^t Σ_i [w_t r_t − (w_t q̂_t − w_{t-1} v̂_t)]."""
    below = [sum(w * e.ratio(t) for w, e in zip(weights, episodes, strict=True)) for t in range(horizon)]
    value = 0.0
    for w, e, (q, v) in zip(weights, episodes, each, strict=True):
        for t, (s, a, r) in enumerate(zip(e.states, e.actions, e.rewards, strict=True)):
            if discount**t == 0:  # counts for nothing, whatever there is to divide by
                continue
            now = w * e.ratio(t) / below[t]
            before = w * e.ratio(t - 1) / below[t - 1] if t > 0 else w / sum(weights)
            value += discount**t * (now * r - (now * q(s, a, t) - before * v(s, t)))
    return value


def from_table(table: np.ndarray, policy: Policy) -> tuple[Q, V]:
    """q̂ as a (times, states, actions) table says, v̂ its average under the policy."""
    return (
        lambda s, a, t: float(table[t, s, a]),
        lambda s, t: sum(p * float(table[t, s, a]) for a, p in enumerate(policy(s, t))),
    )


def as_table(q: Q, horizon: int, n_states: int, n_actions: int) -> np.ndarray:
    """Every value of q, (times, states, actions)."""
    return np.array([[[q(s, a, t) for a in range(n_actions)] for s in range(n_states)] for t in range(horizon)])


def sampled(mdp: Mdp, n: int, *, seed: int) -> list[Episode]:
    """Episodes of the behaviour policy, drawn one by one."""
    rng = np.random.default_rng(seed)
    episodes = []
    for _ in range(n):
        states, p = zip(*mdp.start.items(), strict=True)
        state = states[rng.choice(len(p), p=p)]
        done = []
        while state is not END and len(done) < mdp.horizon:
            b, e = mdp.behavior(state, len(done)), mdp.candidate(state, len(done))
            action = int(rng.choice(len(b), p=b))
            chances, after, rewards = zip(*mdp.outcomes[state, action], strict=True)
            k = rng.choice(len(chances), p=chances)
            done.append((state, action, rewards[k], b[action], e[action]))
            state = after[k]
        states, actions, rewards, b, e = (list(column) for column in zip(*done, strict=True))
        episodes.append(Episode(rewards, b, e, state is END, states, actions, state))
    return episodes


def arbitrary(n: int, horizon: int, n_states: int, policy: Policy, *, seed: int) -> list[Episode]:
    """Episodes of no process at all: states, actions and rewards at random, lengths unequal, two actions."""
    rng = np.random.default_rng(seed)
    episodes = []
    for i in range(n):
        length = horizon if i == 0 else int(rng.integers(1, horizon + 1))
        states, actions = rng.integers(0, n_states, length).tolist(), rng.integers(0, 2, length).tolist()
        behavior = rng.uniform(0.3, 0.7, length).tolist()
        candidate = [policy(s, t)[a] for t, (s, a) in enumerate(zip(states, actions, strict=True))]
        # Both few and many distinct rewards of a pair.
        rewards = [float(rng.choice([-1.0, 0.5, 2.0, rng.uniform(-2.0, 3.0)])) for _ in range(length)]
        ended = length < horizon or bool(rng.random() < 0.5)
        final = END if ended else int(rng.integers(0, n_states))
        episodes.append(Episode(rewards, behavior, candidate, ended, states, actions, final))
    return episodes
