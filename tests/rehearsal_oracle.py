"""Linear worlds as their definition reads: plain loops over steps and episodes, lists instead of arrays."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.base.dataset import TrajectoryDataset

WORST, REACH = 0.5, 0.5
KINDS = ("states", "states and time", "states and the worst case", "states and what came before")


@dataclass
class SlowWorld:
    """One world of logs with rows of numbers for states and learned rewards and ends."""

    data: TrajectoryDataset
    kind: str
    lowest: float
    highest: float

    def __post_init__(self) -> None:
        data = self.data
        self.levels = sorted(set(data.actions.tolist()))
        rows, self.steps = [], []
        for i in range(data.n_trajectories):
            first, stop = int(data.offsets[i]), int(data.offsets[i + 1])
            last_action, last_reward = None, 0.0
            for k in range(first, stop):
                state, action, reward = data.states[k].tolist(), int(data.actions[k]), float(data.rewards[k])
                over = k == stop - 1
                after = data.final_states[i].tolist() if over else data.states[k + 1].tolist()
                ended = bool(data.terminated[i]) and over
                rows.append(self.inputs(state, action, k - first, last_action, last_reward))
                self.steps.append({"t": k - first, "action": action, "reward": reward, "next": after, "ended": ended})
                last_action, last_reward = action, reward
        self.rows = np.array(rows)
        survivors = [k for k, step in enumerate(self.steps) if not step["ended"]]
        self.moves = least_squares(self.rows[survivors], [self.steps[k]["next"] for k in survivors])
        outcomes = [[step["reward"], float(step["ended"])] for step in self.steps]
        self.outcomes = least_squares(self.rows, outcomes)
        self.gram = np.linalg.inv(self.rows[survivors].T @ self.rows[survivors])
        for k, step in enumerate(self.steps):
            step["off"] = [y - x for y, x in zip(step["next"], self.rows[k] @ self.moves, strict=True)]
            step["luck"] = step["reward"] - float(self.rows[k] @ self.outcomes[:, 0])

    def inputs(self, state: Any, action: int, t: int, last_action: int | None, last_reward: float) -> list[float]:
        """1, the state, an indicator of every action but the first, and what else the world looks at."""
        row = [1.0, *state, *(float(action == level) for level in self.levels[1:])]
        if self.kind == "states and time":
            row += [t / self.data.horizon, (t / self.data.horizon) ** 2]
        if self.kind == "states and what came before":
            row += [*(float(last_action == level) for level in self.levels), last_reward]
        return row

    def step(
        self, state: Any, action: int, t: int, last: tuple[int | None, float], draws: Any
    ) -> tuple[Any, float, bool]:
        """The next state, the reward and whether the episode ended."""
        row = np.array(self.inputs(state, action, t, *last))
        reward, end = row @ self.outcomes
        ended = draws[0] < end
        pool = [step for step in self.steps if step["ended"] == ended]
        key, value = ("t", t) if self.kind == "states and time" else ("action", action)
        pool.sort(key=lambda step: step[key])
        near = [step for step in pool if step[key] == value]
        if draws[2] * (len(near) + 1) < len(near):
            chosen = near[math.floor(draws[3] * len(near))]
        else:
            chosen = pool[math.floor(draws[4] * len(pool))]
        after = []
        for j, mean in enumerate(row @ self.moves):
            low, high = self.data.states[:, j].min(), self.data.states[:, j].max()
            reach = REACH * (high - low)
            after.append(min(max(mean + chosen["off"][j], low - reach), high + reach))
        reward = min(max(reward + chosen["luck"], self.lowest), self.highest)
        if self.kind == "states and the worst case":
            count = 1.0 / (row @ self.gram @ row)  # one-hot features: how often the pair was logged
            if draws[1] < WORST / (count + 1.0 + WORST):
                reward, ended = self.lowest, True
        return after, reward, ended


def least_squares(rows: Any, targets: Any) -> Any:
    """Coefficients (p, q)."""
    return np.linalg.lstsq(rows, np.array(targets), rcond=None)[0]
