"""What roll-outs are made of: where they begin, their frozen noise, and their state as they go."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.dataset import Array, BoolArray, IntArray
from tightrope.policy import open_uniforms

Anything = npt.NDArray[Any]


@dataclass(frozen=True, eq=False)
class Starts:
    """Where roll-outs begin: K states at their times, rising, each with the noise of its trajectory."""

    states: Array  # (K, d)
    times: IntArray  # (K,)
    banks: IntArray  # (K,): which trajectory of the bank
    actions: Anything | None = None  # (K, ...): the first action; None: the candidate's own


@dataclass(frozen=True, eq=False)
class Bank:
    """Uniform numbers of some trajectories, by absolute time and pair of roll-outs."""

    uniforms: Array  # (T, m, pairs, width)

    @classmethod
    def of(cls, keys: list[int], seed: int, shape: tuple[int, int, int]) -> Bank:
        """Philox keyed by seed and trajectory; ``shape`` is (T, pairs, width)."""
        horizon, pairs, width = shape
        uniforms = np.empty((horizon, len(keys), pairs, width))
        for i, key in enumerate(keys):
            rng = np.random.Generator(np.random.Philox(key=np.array([seed, key], dtype=np.uint64)))
            uniforms[:, i] = open_uniforms(rng, shape)
        return cls(uniforms)

    def at(self, t: int, trajectories: IntArray) -> Array:
        """The noise of all roll-outs at time t, (K · 2 · pairs, width): each pair, then its mirror image."""
        drawn = self.uniforms[t][trajectories]
        return np.stack([drawn, 1.0 - drawn], axis=2).reshape(-1, drawn.shape[-1])


def trajectory_key(episode: Any) -> int:
    """64 bits of an episode's id: its noise follows it wherever it stands in the logs."""
    return int.from_bytes(hashlib.blake2b(str(episode).encode(), digest_size=8).digest(), "big")


@dataclass(frozen=True, eq=False)
class Lanes:
    """Roll-outs under way, K for every row."""

    states: Array  # (rows, K, d)
    alive: BoolArray  # (rows, K)
    total: Array  # (rows, K): the discounted reward so far

    @classmethod
    def at(cls, states: Array, rows: int) -> Lanes:
        """Every row starts from the same states (K, d)."""
        shape = (rows, len(states))
        return cls(np.tile(states, (rows, 1, 1)), np.ones(shape, dtype=np.bool_), np.zeros(shape))

    def begun(self, count: int) -> tuple[Array, BoolArray, Array]:
        """The first ``count`` of every row, to be written to."""
        return self.states[:, :count], self.alive[:, :count], self.total[:, :count]
