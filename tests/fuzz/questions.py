"""Random valid questions: small processes, logs of them, a candidate, and what is asked. Plain data, no tightrope."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import exp, prod
from typing import Any

import numpy as np

from tests.fuzz.rewards import Ends, max_ratio, ranges, with_rewards
from tests.model_oracle import sampled
from tests.oracle import END, SLOW, Episode, Mdp

Rng = np.random.Generator

ESTIMATORS = tuple(SLOW)
MODEL_BASED = ("dr", "wdr", "mb")
APPROXIMATE = ("percentile", "bca", "basic", "studentized", "t")
EXACT = ("hoeffding", "empirical-bernstein", "anderson", "cut", "betting", "betting-mixture")


@dataclass(frozen=True)
class Gaussian:
    """Normal around ``slope · state + offset``."""

    slope: Any  # (k, d)
    offset: Any  # (k,)
    covariance: Any  # (k, k)

    def mean(self, states: Any) -> Any:
        return np.asarray(states, dtype=float).reshape(len(states), -1) @ self.slope.T + self.offset

    def density(self, state: Any, action: Any) -> float:
        off = np.asarray(action) - self.slope @ np.asarray(state) - self.offset
        size = np.linalg.det(2 * np.pi * self.covariance)
        return exp(-0.5 * float(off @ np.linalg.inv(self.covariance) @ off)) / float(size) ** 0.5


@dataclass(frozen=True)
class Softmax:
    """Discrete actions with probability ∝ exp(slope · state); some never."""

    slope: Any  # (k, d)
    never: Any  # (k,): true for actions that it never takes

    def probs(self, states: Any) -> Any:
        scores = np.where(self.never, 0.0, np.exp(np.asarray(states, dtype=float) @ self.slope.T))
        return scores / scores.sum(axis=1, keepdims=True)


Policy = Gaussian | Softmax | np.ndarray  # (times, states, actions)


@dataclass(frozen=True)
class Question:
    """Logs, a candidate, and what is asked about it."""

    kind: str  # "finite", "features" or "gaussian"
    episodes: list[Episode]
    horizon: int
    discount: float
    behavior: Policy
    candidate: Policy
    finals: bool  # whether the state after the last step is logged
    horizon_declared: bool
    reward_range: Ends | None
    return_range: Ends | None
    max_ratio: float | None
    estimators: tuple[str, ...]
    methods: tuple[str, ...]
    sides: tuple[str, ...]
    confidence: float
    n_resamples: int
    seed: int
    resampling: str | int  # a number is the size of an m-out-of-n resample
    estimated: bool = False  # whether the behaviour policy is to be counted from the logs

    @property
    def n(self) -> int:
        return len(self.episodes)

    @property
    def steps(self) -> int:
        return sum(len(e.rewards) for e in self.episodes)

    def is_cut(self, episode: Episode) -> bool:
        """Whether the logger stopped before the episode ended; it is then taken to have ended there."""
        return len(episode.rewards) < self.horizon and not episode.terminated

    @property
    def any_cut(self) -> bool:
        return any(self.is_cut(e) for e in self.episodes)

    def changed(self, **changes: Any) -> Question:
        return replace(self, **changes)


def random_question(rng: Rng) -> Question:
    """Any of them."""
    kind = str(rng.choice(["finite", "features", "gaussian"], p=[0.7, 0.12, 0.18]))
    horizon = int(rng.integers(1, 7)) if rng.random() < 0.97 else int(rng.integers(7, 31))
    discount = float(rng.choice([1.0, 0.9, 0.5, 0.0, rng.uniform(0.05, 1.0)], p=[0.4, 0.25, 0.15, 0.1, 0.1]))
    n = int(rng.choice([1, rng.integers(2, 6), rng.integers(6, 21), rng.integers(21, 61)], p=[0.03, 0.32, 0.45, 0.2]))
    if horizon > 6:
        n = min(n, 10)
    elif rng.random() < 0.001:  # more than one block of weights
        n, horizon = int(rng.integers(1025, 1300)), 1
    make = {"finite": _finite, "features": _features, "gaussian": _gaussian}[kind]
    for _ in range(50):  # logs that the candidate could have produced somewhere; now and then those it could not
        behavior, candidate, episodes = make(rng, n, horizon, discount)
        if (rng.random() < 0.01 or _overlaps(episodes, horizon)) and not _underflows(episodes, horizon):
            break
    episodes = _within_floats(with_rewards(rng, episodes), horizon)
    declared = bool(rng.random() < 0.85)
    if rng.random() < 0.06:
        episodes = _cut_off(rng, episodes)
    if not declared:
        horizon = max(len(e.rewards) for e in episodes)
    finals = kind == "finite" and bool(rng.random() < 0.3)
    question = Question(
        kind,
        episodes,
        horizon,
        discount,
        behavior,
        candidate,
        finals,
        declared,
        *ranges(rng, episodes, discount),
        max_ratio(rng, episodes, horizon),
        *_asked(rng, kind, n),
    )
    if kind != "finite" or rng.random() > 0.1:
        return question
    names = tuple(name for name in question.estimators if name not in ("dr", "wdr"))
    return question.changed(estimated=True, estimators=names)


def _underflows(episodes: list[Episode], horizon: int) -> bool:
    """Whether a loop's product of possible ratios is too small for a float: the library's logarithms are not."""
    return any(e.ratio(horizon - 1) < 1e-290 and all(p > 0 for p in e.candidate[:horizon]) for e in episodes)


def _within_floats(episodes: list[Episode], horizon: int) -> list[Episode]:
    """Rewards as they are; their signs where a loop's products of them with the smallest ratio would underflow."""
    ratios = [ratio for e in episodes for t in range(horizon) if (ratio := e.ratio(t)) > 0]
    sizes = [abs(r) for e in episodes for r in e.rewards if r]
    if not ratios or not sizes or min(ratios) * min(sizes) > 1e-270:
        return episodes
    return [replace(e, rewards=[float(np.sign(r)) for r in e.rewards]) for e in episodes]


def _asked(rng: Rng, kind: str, n: int) -> tuple[Any, ...]:
    """Which estimators and bounds, on which side, and the settings of the bootstrap."""
    estimators = [name for name in ESTIMATORS if rng.random() < 0.6] or ["pdwis"]
    if kind == "finite" and rng.random() < 0.3:
        estimators += [name for name in ("dr", "wdr") if rng.random() < 0.6]
    if kind == "finite" and n <= 20 and rng.random() < 0.15:
        estimators.append("mb")
    methods = some(rng, (*APPROXIMATE, *EXACT), 0.6)
    if n > 1000:  # a derivative by each weight under each row takes too long
        methods = tuple(name for name in methods if name != "studentized") or ("percentile",)
    sides = (("lower",), ("upper",), ("lower", "upper"))[int(rng.integers(3))]
    confidence = float(rng.choice([0.9, 0.8, 0.95]))
    resampling: str | int = str(rng.choice(["multinomial", "poisson", "bayesian", "size"], p=[0.7, 0.1, 0.1, 0.1]))
    if resampling == "size":
        resampling = int(rng.integers(1, 2 * n + 1))
    size = int(rng.choice([40, 41, 60]))
    seed = [0, int(rng.integers(2**32)), 2**64 - 1 - int(rng.integers(2**20))][int(rng.integers(3))]
    return tuple(estimators), methods, sides, confidence, size, seed, resampling


def some(rng: Rng, methods: tuple[str, ...], share: float) -> tuple[str, ...]:
    """Some of the bounds, at least one of them valid for every estimator."""
    chosen = [name for name in methods if rng.random() < share]
    valid = [name for name in methods if name in APPROXIMATE]
    return tuple(chosen if set(chosen) & set(valid) else [valid[int(rng.integers(len(valid)))], *chosen])


# -- policies and processes ------------------------------------------------------------------------------------------


def _finite(rng: Rng, n: int, horizon: int, discount: float) -> tuple[Policy, Policy, list[Episode]]:
    n_states, n_actions = int(rng.integers(1, 7)), int(rng.integers(1, 5))
    timed = bool(rng.random() < 0.3)
    eighths = bool(rng.random() < 0.4)  # exact in any float format
    behavior = _table(rng, horizon, n_states, n_actions, timed=timed, eighths=eighths)
    candidate = _table(rng, horizon, n_states, n_actions, timed=timed, eighths=eighths)
    if rng.random() < 0.1:
        candidate = behavior
    elif rng.random() < 0.15:  # leaves nothing to chance
        candidate = np.eye(n_actions)[rng.integers(n_actions, size=(1 if not timed else horizon, n_states))]
        candidate = np.broadcast_to(candidate, (horizon, n_states, n_actions)).copy()
    ends = float(rng.choice([0.0, 0.1, 0.3]))
    outcomes = {}
    for s in range(n_states):
        for a in range(n_actions):
            nexts = rng.dirichlet(np.ones(n_states)) if rng.random() < 0.7 else np.eye(n_states)[rng.integers(n_states)]
            here = [(float((1 - ends) * p), int(after), 0.0) for after, p in enumerate(nexts) if p > 0]
            outcomes[s, a] = here + ([(ends, END, 0.0)] if ends else [])
    start = {s: float(p) for s, p in enumerate(rng.dirichlet(np.ones(n_states)))}
    mdp = Mdp("random", outcomes, start, horizon, discount, lambda s, t: behavior[t, s], lambda s, t: candidate[t, s])
    return behavior, candidate, sampled(mdp, n, seed=int(rng.integers(2**32)))


def _table(rng: Rng, horizon: int, n_states: int, n_actions: int, *, timed: bool, eighths: bool) -> np.ndarray:
    """Probabilities (times, states, actions), some of them zero."""
    shape = (horizon if timed else 1, n_states)
    if eighths:
        balls = rng.multinomial(8, np.full(n_actions, 1 / n_actions), size=shape)
        table = balls / 8
    else:
        table = rng.dirichlet(np.full(n_actions, float(rng.choice([0.3, 1.0, 5.0]))), size=shape)
        table = np.where(table < 1e-2, float(rng.choice([0.0, 1e-8, 1e-100])), table)
        table /= table.sum(axis=-1, keepdims=True)
    return np.broadcast_to(table, (horizon, n_states, n_actions)).copy()


def _walk(rng: Rng, n: int, horizon: int, d: int, act: Any) -> list[Episode]:
    """Episodes over vectors; ``act(state)`` gives an action and its density under both policies."""
    ends = float(rng.choice([0.0, 0.2]))
    episodes = []
    for _ in range(n):
        state, done = rng.normal(size=d), []
        ended = False
        while len(done) < horizon and not ended:
            state = np.round(state, 3)
            done.append((state.tolist(), *act(state)))
            state = 0.7 * state + 0.5 * rng.normal(size=d)
            ended = bool(rng.random() < ends)
        states, actions, b, e = (list(column) for column in zip(*done, strict=True))
        episodes.append(Episode([0.0] * len(done), b, e, ended, states, actions))
    return episodes


def _gaussian(rng: Rng, n: int, horizon: int, discount: float) -> tuple[Policy, Policy, list[Episode]]:
    d, k = int(rng.integers(1, 4)), int(rng.integers(1, 3))
    root = np.eye(k) + 0.3 * rng.normal(size=(k, k))
    behavior = Gaussian(rng.normal(size=(k, d)) * 0.5, rng.normal(size=k), root @ root.T + 0.1 * np.eye(k))
    candidate = Gaussian(
        behavior.slope + 0.1 * rng.normal(size=(k, d)), behavior.offset + 0.2, behavior.covariance * rng.uniform(0.5, 1)
    )

    def act(state: Any) -> tuple[Any, float, float]:
        action = np.round(rng.multivariate_normal(behavior.slope @ state + behavior.offset, behavior.covariance), 3)
        return action.tolist(), behavior.density(state, action), candidate.density(state, action)

    return behavior, candidate, _walk(rng, n, horizon, d, act)


def _features(rng: Rng, n: int, horizon: int, discount: float) -> tuple[Policy, Policy, list[Episode]]:
    d, k = int(rng.integers(1, 4)), int(rng.integers(2, 5))
    behavior = Softmax(0.7 * rng.normal(size=(k, d)), np.zeros(k, dtype=bool))
    candidate = Softmax(0.7 * rng.normal(size=(k, d)), np.arange(k) == (k - 1 if rng.random() < 0.3 else k))

    def act(state: Any) -> tuple[int, float, float]:
        b, e = behavior.probs(state[None])[0], candidate.probs(state[None])[0]
        action = int(rng.choice(k, p=b))
        return action, float(b[action]), float(e[action])

    return behavior, candidate, _walk(rng, n, horizon, d, act)


def _cut_off(rng: Rng, episodes: list[Episode]) -> list[Episode]:
    """Some episodes as a logger leaves them that stops before they end."""
    made = []
    for e in episodes:
        kept = int(rng.integers(1, len(e.rewards) + 1)) if rng.random() < 0.4 else len(e.rewards)
        if kept == len(e.rewards):
            made.append(e)
            continue
        parts = {name: getattr(e, name)[:kept] for name in ("rewards", "behavior", "candidate", "states", "actions")}
        final = e.states[kept] if isinstance(e.states[kept], int) else END  # type: ignore[index]
        made.append(Episode(**parts, terminated=False, final=final))
    return made


def _overlaps(episodes: list[Episode], horizon: int) -> bool:
    return any(prod(e.candidate) > 0 for e in episodes)
