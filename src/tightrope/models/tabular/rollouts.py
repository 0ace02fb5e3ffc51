"""Monte Carlo evaluation of tabular models, as in the paper, to compare it with the exact evaluation."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Literal

import numpy as np

from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import DataError

if TYPE_CHECKING:
    from tightrope.models.tabular.fit import TabularFit

Noise = Literal["frozen", "fresh"]


@dataclass(frozen=True)
class Rollouts:
    """V̂ as the mean return of ``n_rollouts`` episodes simulated in the fitted model; rewards are the model's means.

    ``noise`` is "frozen" (the same uniform numbers for every replicate: replicates differ by their models alone) or
    "fresh" (each replicate its own, which adds the variance of the simulation to the bootstrap's, once more than the
    estimate has it: docs/errata.md). Frozen noise shifts all replicates alike, which no bootstrap sees; and as paths of
    a discrete chain that part once seldom meet again, it leaves much of that variance where there are many states.
    """

    n_rollouts: int = 100
    noise: Noise = "frozen"
    seed: int = 0  # of the frozen noise

    def __post_init__(self) -> None:
        if not isinstance(self.n_rollouts, int) or self.n_rollouts < 1:
            raise DataError(f"n_rollouts must be a whole number, at least 1; got {self.n_rollouts!r}")
        if self.noise not in ("frozen", "fresh"):
            raise DataError(f'noise must be "frozen" or "fresh"; got {self.noise!r}')
        if not isinstance(self.seed, int) or not 0 <= self.seed < 2**64:
            raise DataError(f"seed must be a whole number from 0 to 2**64 - 1; got {self.seed!r}")

    def value(self, fit: TabularFit) -> Array:
        """V̂ of each lane, (lanes,); NaN where there is no weight."""
        result: Array = self.returns(fit).mean(axis=1)
        return result

    def returns(self, fit: TabularFit) -> Array:
        """The discounted return of every roll-out, (lanes, n_rollouts)."""
        from tightrope.models.tabular import rollout_kernels as kernels

        data = fit.data
        result = np.full((fit.arcs.shape[1], self.n_rollouts), np.nan)
        by_lane = [np.ascontiguousarray(part.T) for part in (fit.arcs, fit.arc_totals, fit.rewards, fit.start_counts)]
        rest = np.append(np.cumsum(data.discount ** np.arange(len(data.probs) - 1))[::-1], 0.0)
        for arcs, arc_totals, rewards, starts, visits, out in zip(*by_lane, fit.visits.T, result, strict=True):
            if not starts.any():
                continue
            uniforms = self._uniforms(len(data.probs), starts, visits)
            kernels.roll_out(
                arcs,
                data.arc_next,
                data.pair_arcs,
                arc_totals,
                rewards,
                data.probs,
                _drawn(starts, uniforms[:, -1, 0]),
                uniforms,
                data.discount,
                data.unseen,
                data.unseen_reward * data.discount * rest,
                out,
            )
        return result

    def _uniforms(self, horizon: int, *resample: Array) -> Array:
        """(n_rollouts, horizon + 1, 2): action and next state of every time; the last for the start."""
        shape = (self.n_rollouts, horizon + 1, 2)
        if self.noise == "frozen":
            return _frozen(self.seed, shape)
        digest = hashlib.blake2b(b"".join(part.tobytes() for part in resample), digest_size=8).digest()
        return _uniforms(self.seed, int.from_bytes(digest, "big"), shape)


def _uniforms(seed: int, stream: int, shape: tuple[int, int, int]) -> Array:
    return np.random.Generator(np.random.Philox(key=np.array([seed, stream], dtype=np.uint64))).random(shape)


@lru_cache(maxsize=2)
def _frozen(seed: int, shape: tuple[int, int, int]) -> Array:
    return _uniforms(seed, 0, shape)


def _drawn(counts: Array, uniforms: Array) -> IntArray:
    """States by the inverse of their distribution."""
    below = np.cumsum(counts)
    return np.asarray(np.searchsorted(below, uniforms * below[-1], side="right"), dtype=np.int64)
