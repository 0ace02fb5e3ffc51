"""Weight rows: the weights of the episodes in each replicate.

A scheme fills blocks of (replicates, episodes) weights. Every weight is a function of the seed, the replicate
and the episode's global index (for the multinomial: of its block's), so any chunking gives the same weights and
more replicates extend the earlier ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from tightrope.base.checks import is_number
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import BoundError, TightropeError
from tightrope.base.names import must_be_one_of, suggests_keywords
from tightrope.base.poisson import CDF

Seed = int | np.random.Generator | np.random.SeedSequence

MOST_RESAMPLES = 10_000_000  # values of all replicates are kept: some 100 bytes each over all estimators
BLOCK = 1024  # schemes are filled from episode indices that are multiples of this


@runtime_checkable
class WeightScheme(Protocol):
    """How to draw rows of weights."""

    @property
    def integer(self) -> bool:
        """Whether weights are whole numbers, so that sums can be kept exact."""
        ...

    @property
    def second_order(self) -> bool:
        """Whether replicates have the estimate's skewness, so that corrections for it work."""
        ...

    def draws(self, n: int) -> int:
        """How many episodes a replicate draws."""
        ...

    def max_total(self, n: int) -> int:
        """The largest total a row of whole-number weights can have."""
        ...

    def scale(self, n: int) -> float:
        """How much less the replicates spread than the estimate itself: sqrt(m/n) for m draws out of n."""
        ...

    def shares(self, n: int, blocks: range, replicates: range, *, seed: int) -> IntArray:
        """What the blocks must know of each other: how many of a replicate's draws fall into each, (rows, blocks)."""
        ...

    def fill(self, out: Array, shares: IntArray, *, seed: int, block: int, replicate: int) -> None:
        """Fill ``out`` (rows, width) for replicates and blocks counted from the given ones, with their shares."""
        ...


@dataclass(frozen=True)
class Multinomial:
    """n draws with replacement (the paper's Algorithm 1), or ``size`` draws: the m-out-of-n bootstrap.

    >>> import tightrope
    >>> tightrope.draw_weights(5, 2, seed=0, resampling=tightrope.Multinomial(size=3)).sum(axis=1)
    array([3., 3.])
    """

    size: int | None = None
    integer = True

    def __post_init__(self) -> None:
        if self.size is not None and (not isinstance(self.size, (int, np.integer)) or self.size < 1):
            raise TightropeError(f"size must be a whole number of episodes, at least 1; got {self.size!r}")

    @property
    def second_order(self) -> bool:
        """Only with as many draws as episodes."""
        return self.size is None

    def draws(self, n: int) -> int:
        """The number of draws."""
        return n if self.size is None else self.size

    def max_total(self, n: int) -> int:
        """The number of draws."""
        return self.draws(n)

    def scale(self, n: int) -> float:
        """sqrt(m/n)."""
        return float(np.sqrt(self.draws(n) / n))

    def shares(self, n: int, blocks: range, replicates: range, *, seed: int) -> IntArray:
        """The draws of each block, from a tree of binomials: no other block is walked through."""
        from tightrope.base import kernels

        out = np.empty((len(replicates), len(blocks)), dtype=np.int64)
        kernels.block_draws(out, self.draws(n), n, blocks.start, replicates.start, *_key(seed))
        return out

    def fill(self, out: Array, shares: IntArray, *, seed: int, block: int, replicate: int) -> None:
        """Fill in the counts of each episode."""
        from tightrope.base import kernels

        kernels.fill_multinomial(out, shares, block, replicate, *_key(seed))


class _Independent:
    """Schemes whose weights of different episodes are independent: nothing to share out."""

    def draws(self, n: int) -> int:
        """As many as there are."""
        return n

    def max_total(self, n: int) -> int:
        """No weight drawn from 32 bits exceeds 13."""
        return 13 * n

    def scale(self, n: int) -> float:
        """One."""
        return 1.0

    def shares(self, n: int, blocks: range, replicates: range, *, seed: int) -> IntArray:
        """Nothing."""
        return np.zeros((len(replicates), len(blocks)), dtype=np.int64)


@dataclass(frozen=True)
class Poisson(_Independent):
    """Independent Poisson(1) counts: the bootstrap for streams, where n is not known in advance.

    >>> import tightrope
    >>> tightrope.draw_weights(5, 2, seed=0, resampling=tightrope.Poisson())
    array([[2., 1., 1., 0., 0.],
           [1., 1., 1., 0., 1.]])
    """

    integer = True
    second_order = True

    def fill(self, out: Array, shares: IntArray, *, seed: int, block: int, replicate: int) -> None:
        """Fill in the counts of each episode."""
        from tightrope.base import kernels

        kernels.fill_poisson(out, block * BLOCK, replicate, CDF, *_key(seed))


@dataclass(frozen=True)
class Bayesian(_Independent):
    """Dirichlet(1, ..., 1) rows up to their total (Rubin 1981): no replicate leaves an episode out.

    >>> import tightrope
    >>> tightrope.draw_weights(5, 2, seed=0, resampling=tightrope.Bayesian()).round(2)
    array([[1.2 , 0.64, 2.7 , 0.14, 1.86],
           [1.22, 0.24, 0.23, 0.91, 0.23]])
    """

    integer = False
    second_order = False  # exponential weights have skewness 2, counts 1

    def fill(self, out: Array, shares: IntArray, *, seed: int, block: int, replicate: int) -> None:
        """Exponential weights of mean one."""
        from tightrope.base import kernels

        kernels.fill_exponential(out, block * BLOCK, replicate, *_key(seed))


@dataclass(frozen=True)
class ModelBootstrap(_Independent):
    """No weights: data are simulated from the fitted model, transition by transition, and the model is refitted.

    The parametric bootstrap, for the model-based estimator with a tabular model.
    """

    integer = False
    second_order = False

    def fill(self, out: Array, shares: IntArray, *, seed: int, block: int, replicate: int) -> None:
        """There are no weights to fill."""
        raise TightropeError('resampling="model" simulates from a model instead of weighting episodes')


SCHEMES: dict[str, WeightScheme] = {
    "multinomial": Multinomial(),
    "bayesian": Bayesian(),
    "poisson": Poisson(),
    "model": ModelBootstrap(),
}


def scheme(resampling: str | WeightScheme) -> WeightScheme:
    """A scheme by name, or as it is."""
    if isinstance(resampling, WeightScheme):
        return resampling
    if resampling not in SCHEMES:
        raise TightropeError(must_be_one_of("resampling", resampling, SCHEMES, "a weight scheme"))
    return SCHEMES[str(resampling)]


@suggests_keywords
def draw_weights(
    n: int, n_resamples: int, *, seed: Seed, resampling: str | WeightScheme = "multinomial", first: int = 0
) -> Array:
    """The weights that a bound uses, (n_resamples, n), for replicates ``first``, ``first + 1``, ...

    - ``n``: how many episodes.
    - ``n_resamples``: how many replicates.
    - ``seed``: a whole number or a numpy Generator, as for ``lower_bound``.
    - ``resampling``: "multinomial", "bayesian", "poisson" or an object such as ``Multinomial(size=m)``.

    >>> import tightrope
    >>> tightrope.draw_weights(5, 2, seed=0)
    array([[0., 1., 2., 1., 1.],
           [1., 1., 1., 1., 1.]])
    """
    chosen = scheme(resampling)
    check_resamples(n_resamples)
    out = np.empty((n_resamples, n))
    key, replicates = seed_of(seed), range(first, first + n_resamples)
    chosen.fill(out, chosen.shares(n, blocks_of(n), replicates, seed=key), seed=key, block=0, replicate=first)
    return out


def blocks_of(n: int) -> range:
    """All blocks of so many episodes."""
    return range(-(-n // BLOCK))


def check_resamples(n_resamples: Any) -> None:
    """Refuse a number of replicates that is not a whole number, or too large for the memory."""
    if not (is_number(n_resamples) and n_resamples % 1 == 0 and n_resamples >= 1):
        raise BoundError(f"n_resamples must be a whole number, at least 1; got {n_resamples!r}")
    if n_resamples > MOST_RESAMPLES:
        raise BoundError(
            f"n_resamples must be at most {MOST_RESAMPLES}, because all replicates are kept in memory; got "
            f"{n_resamples!r}. 2000 are usual, and beyond 100000 hardly anything changes"
        )


def leave_one_out_weights(n: int) -> Array:
    """The jackknife's rows, 1 − I, (n, n)."""
    return 1.0 - np.eye(n)


def seed_of(seed: Seed) -> int:
    """A 64-bit number: a whole number as it is; a generator or seed sequence is asked for one."""
    if isinstance(seed, np.random.Generator):
        return int(seed.integers(2**64, dtype=np.uint64))
    if isinstance(seed, np.random.SeedSequence):
        return int(seed.generate_state(1, np.uint64)[0])
    if isinstance(seed, (int, np.integer)) and not isinstance(seed, bool) and 0 <= seed < 2**64:
        return int(seed)
    raise TightropeError(f"seed must be a whole number from 0 to 2**64 - 1 or a numpy Generator; got {seed!r}")


def _key(seed: int) -> tuple[Any, Any]:
    return np.uint32(seed & 0xFFFFFFFF), np.uint32(seed >> 32)
