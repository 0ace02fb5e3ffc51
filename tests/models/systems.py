"""Small continuous systems with known answers, and logs of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.policy import GaussianPolicy, SoftmaxPolicy
from tightrope.base.problem import Problem

CENTER = np.array([0.3, -0.2])
DRIFT = np.array([[0.8, 0.1], [-0.2, 0.7]])  # s @ DRIFT
PUSH = np.array([[0.5, -0.4]])  # a @ PUSH
NOISE = np.array([[0.09, 0.03], [0.03, 0.05]])
GAIN = np.array([[0.4], [-0.3]])  # the candidate's mean action is s @ GAIN + 0.1
DISCOUNT = 0.9
PLAIN = {"point_rollouts": 0, "replicate_rollouts": 10**9}  # V̂ is Σ w_i v̂_w(s_i) / Σ w_i: laws hold to rounding
CANDIDATE = GaussianPolicy(lambda s, t: s @ GAIN + 0.1, [[0.25]])


def linear_reward(s, a, after, t):
    return 1.0 + s[:, 0] - 2.0 * s[:, 1] + 0.5 * a[:, 0]


def square_reward(s, a, after, t):
    return -(after**2).sum(axis=1) - 0.1 * a[:, 0] ** 2


def logs(n: int = 30, horizon: int = 8, *, seed: int = 0, reward: Any = linear_reward, final: bool = True, **settings):
    """Episodes of the linear-Gaussian system under standard normal actions, all of full length."""
    rng = np.random.default_rng(seed)
    states, actions, rewards = np.empty((n, horizon, 2)), rng.normal(size=(n, horizon, 1)), np.empty((n, horizon))
    s = rng.normal(size=(n, 2))
    for t in range(horizon):
        states[:, t] = s
        after = CENTER + s @ DRIFT + actions[:, t] @ PUSH + rng.multivariate_normal(np.zeros(2), NOISE, size=n)
        rewards[:, t] = reward(s, actions[:, t], after, np.full(n, t))
        s = after
    made = {
        "offsets": np.arange(n + 1) * horizon,
        "rewards": rewards.ravel(),
        "terminated": np.zeros(n, bool),
        "horizon": horizon,
        "discount": DISCOUNT,
        "states": states.reshape(-1, 2),
        "actions": actions.reshape(-1, 1),
        "final_states": s if final else None,
    }
    return TrajectoryDataset(**made | settings)


def problem(*args: Any, policy: Any = CANDIDATE, **settings: Any) -> Problem:
    return Problem(logs(*args, **settings), policy)


def walks(n: int = 40, horizon: int = 6, *, seed: int = 0, final: bool = True) -> TrajectoryDataset:
    """Two actions, one number as state; an episode ends with probability 0.15 at every step."""
    rng = np.random.default_rng(seed)
    states, actions, rewards, lengths, last, ended = [], [], [], [], [], []
    for _ in range(n):
        s = rng.normal()
        for t in range(horizon):
            a = rng.integers(2)
            after = 0.9 * s + (0.5 if a else -0.3) + 0.2 * rng.normal()
            over = rng.random() < 0.15
            states.append(s)
            actions.append(a)
            rewards.append(s + a)
            s = after
            if over or t == horizon - 1:
                lengths.append(t + 1)
                last.append(s)
                ended.append(over)
                break
    return TrajectoryDataset(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        rewards=np.array(rewards),
        terminated=np.array(ended),
        horizon=horizon,
        discount=DISCOUNT,
        states=np.array(states),
        actions=np.array(actions),
        final_states=np.array(last) if final else None,
    )


UP = SoftmaxPolicy(lambda s, t: np.stack([0.0 * s, 0.5 - 0.3 * s], axis=1))
