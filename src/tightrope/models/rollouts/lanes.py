"""The parts of roll-outs: where they begin, their frozen noise, and their current state.

Arrays keep one number of all lanes together (the lanes are the last axis), so that whatever works on a component of the
states, users' functions included, reads memory in order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array, BoolArray, IntArray

Anything = npt.NDArray[Any]
Shape = Callable[[Array], Array]  # uniforms (K, width) to noise (K, ...)


@dataclass(frozen=True, eq=False)
class Starts:
    """Where roll-outs begin: K states at their times, rising, each with the noise of one unit of a bank."""

    states: Array  # (K, d)
    times: IntArray  # (K,)
    banks: IntArray  # (K,): which unit of the bank
    actions: Anything | None = None  # (K, ...): the first action; None: the candidate's own


@dataclass(frozen=True, eq=False)
class Bank:
    """Noise of some units (an episode and some pairs of its roll-outs) by absolute time, for m units of R roll-outs.

    In each unit a roll-out is followed by its mirror image (u to 1 − u).
    """

    to_act: Array  # (T, a, m · R)
    to_move: Array  # (T, w, m · R)
    size: int  # R

    @classmethod
    def of(
        cls, keys: Anything, first_pairs: IntArray, shape: tuple[int, int, int, int], act: Shape | None, *, normal: bool
    ) -> Bank:
        """The noise of units with these keys (m,) and pairs; ``shape`` is (T, R, uniforms to act, numbers to move).

        ``act`` turns uniforms into the policy's noise; with ``normal`` the model's noise is normal, else uniform.
        """
        from scipy.special import ndtri

        from tightrope.models.rollouts.noise_kernels import fill_mirrored

        horizon, size, acting, moving = shape
        drawn = np.empty((horizon, acting + moving, len(keys), size // 2, 2))
        fill_mirrored(drawn, keys, first_pairs)
        to_move = drawn[:, acting:]
        if normal:
            to_move[..., 0] = ndtri(to_move[..., 0])
            np.negative(to_move[..., 0], out=to_move[..., 1])
        noise = drawn.reshape(horizon, acting + moving, len(keys) * size)
        to_act = noise[:, :acting]
        if act is not None:
            acts = act(to_act.transpose(0, 2, 1).reshape(-1, acting))
            to_act = np.ascontiguousarray(acts.reshape(horizon, noise.shape[2], -1).transpose(0, 2, 1))
        return cls(to_act, noise[:, acting:], size)


def trajectory_key(episode: Any, seed: int) -> int:
    """64 bits from a seed and an episode's id: an episode keeps its noise wherever it stands in the logs."""
    return int.from_bytes(hashlib.blake2b(f"{seed}:{episode}".encode(), digest_size=8).digest(), "big")


@dataclass(eq=False)
class Lanes:
    """Roll-outs under way, K for every row."""

    states: Array  # (d, rows, K)
    share: Array  # (rows, K): the probability that it has come this far; 0 when it has ended for good
    total: Array  # (rows, K): the discounted reward so far
    place: IntArray  # (K,): which roll-out each is

    @classmethod
    def none(cls, width: int, rows: int) -> Lanes:
        """No roll-outs yet."""
        shape = (rows, 0)
        return cls(np.zeros((width, *shape)), np.zeros(shape), np.zeros(shape), np.zeros(0, np.int64))

    def begin(self, states: Array, place: IntArray) -> None:
        """Add roll-outs from states (K, d), the same for every row."""
        rows, count = len(self.share), len(place)
        added = np.broadcast_to(states.T[:, None], (states.shape[1], rows, count))
        self.states = np.concatenate([self.states, added], axis=2)
        self.share = np.concatenate([self.share, np.ones((rows, count))], axis=1)
        self.total = np.concatenate([self.total, np.zeros((rows, count))], axis=1)
        self.place = np.concatenate([self.place, place])

    def drop(self, keep: BoolArray, totals: Array) -> None:
        """Go on with some of the K only; what all have earned so far is written down."""
        totals[:, self.place] = self.total
        self.states, self.share = self.states[:, :, keep], self.share[:, keep]
        self.total, self.place = self.total[:, keep], self.place[keep]
