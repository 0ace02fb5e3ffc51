"""The loops that NumPy cannot do fast, compiled by numba on first use: ratios, resampling weights, squares.

Weights come from a counter-based generator, Philox 4x32-10.

Philox: Salmon, Moraes, Dror, Shaw, "Parallel Random Numbers: As Easy as 1, 2, 3" (2011). Each draw is a function of
(seed, stream, replicate, episode or block of episodes) and of nothing else, so weights do not depend on
chunking, partitions, threads or on how many replicates were drawn before.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numba import njit

from tightrope.base.compiled import compiled

BLOCK = 1024  # episodes per block of the exact multinomial: a draw within a block is a 10-bit slice
_BITS = 10

_M0, _M1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_W0, _W1 = np.uint32(0x9E3779B9), np.uint32(0xBB67AE85)
_u32, _u64 = np.uint32, np.uint64
_HALF = np.uint64(32)

# One stream of draws per purpose.
_INSIDE, _TOTALS, _POISSON, _EXPONENTIAL = (np.uint32(i) for i in range(4))


@njit(inline="always")
def philox(c0: Any, c1: Any, c2: Any, c3: Any, k0: Any, k1: Any) -> Any:
    """Ten rounds: 128 random bits for one counter and key."""
    for _ in range(10):
        p0 = _u64(c0) * _M0
        p1 = _u64(c2) * _M1
        c0, c1, c2, c3 = (
            _u32(p1 >> _HALF) ^ c1 ^ k0,
            _u32(p1),
            _u32(p0 >> _HALF) ^ c3 ^ k1,
            _u32(p0),
        )
        k0 = _u32(k0 + _W0)
        k1 = _u32(k1 + _W1)
    return c0, c1, c2, c3


@njit(inline="always")
def _unit(high: Any, low: Any) -> Any:
    """Two words to a double in (0, 1): 53 bits, never 0."""
    return ((_u64(high) << _HALF | _u64(low)) >> _u64(11)) * 2.0**-53 + 2.0**-54


@njit
def _stirling(k: Any) -> Any:
    """log k! minus Stirling's formula at k, to double precision."""
    if k < 10:
        exact = 0.0
        for j in range(2, k + 1):
            exact += math.log(j)
        return exact - (0.5 * math.log(2 * math.pi) + (k + 0.5) * math.log(k + 1.0) - (k + 1.0))
    x = k + 1.0
    square = 1.0 / (x * x)
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / 1680 * square) * square) * square) / x


@njit
def _inverted(n: Any, p: Any, u: Any) -> Any:
    """The Binomial(n, p) quantile at u, by adding up probabilities from 0: for small n·p."""
    odds = p / (1.0 - p)
    mass = math.exp(n * math.log1p(-p))
    k = 0
    while u > mass and k < n:
        u -= mass
        k += 1
        mass *= odds * (n - k + 1) / k
    return k


@njit
def _binomial(n: Any, p: Any, c1: Any, c2: Any, k0: Any, k1: Any) -> Any:
    """One Binomial(n, p) draw for p ≤ 1/2: inversion for small n·p, else transformed rejection.

    Hörmann, "The generation of binomial random variates" (1993), algorithm BTRS.
    """
    if n == 0 or p <= 0.0:
        return 0
    a, b, c, d = philox(_u32(0), c1, c2, _TOTALS, k0, k1)
    if n * p < 10.0:
        return _inverted(n, p, _unit(a, b))
    spread = math.sqrt(n * p * (1.0 - p))
    hat_b = 1.15 + 2.53 * spread
    hat_a = -0.0873 + 0.0248 * hat_b + 0.01 * p
    center = n * p + 0.5
    squeeze = 0.92 - 4.2 / hat_b
    odds = p / (1.0 - p)
    alpha = (2.83 + 5.1 / hat_b) * spread
    mode = math.floor((n + 1) * p)
    tries = 0
    while True:
        u = _unit(a, b) - 0.5
        v = _unit(c, d)
        us = 0.5 - abs(u)
        k = math.floor((2.0 * hat_a / us + hat_b) * u + center)
        if us >= 0.07 and v <= squeeze:
            return int(k)
        if 0 <= k <= n:
            v = math.log(v * alpha / (hat_a / (us * us) + hat_b))
            limit = (
                (mode + 0.5) * math.log((mode + 1.0) / (odds * (n - mode + 1.0)))
                + (n + 1.0) * math.log((n - mode + 1.0) / (n - k + 1.0))
                + (k + 0.5) * math.log(odds * (n - k + 1.0) / (k + 1.0))
                + _stirling(int(mode))
                + _stirling(int(n - mode))
                - _stirling(int(k))
                - _stirling(int(n - k))
            )
            if v <= limit:
                return int(k)
        tries += 1
        a, b, c, d = philox(_u32(tries), c1, c2, _TOTALS, k0, k1)


@njit
def binomial(n: Any, p: Any, c1: Any, c2: Any, k0: Any, k1: Any) -> Any:
    """One Binomial(n, p) draw."""
    if p > 0.5:
        return n - _binomial(n, 1.0 - p, c1, c2, k0, k1)
    return _binomial(n, p, c1, c2, k0, k1)


@njit
def _scatter(row: Any, width: Any, draws: Any, words: Any, block: Any, replicate: Any, k0: Any, k1: Any) -> None:
    """Throw ``draws`` balls into row[:width]: each is a 10-bit slice of a random word, three to a word.

    For a width below BLOCK a slice is cut to the fewest bits that reach it, and a ball beyond it is thrown again;
    ``row`` must be long enough for those too.
    """
    reach = 1
    while reach < width:
        reach *= 2
    mask = _u32(reach - 1)
    done = 0
    first = 0
    while done < draws:
        whole = (draws - done) // 12  # a Philox call makes four words, twelve balls
        calls = min(words.shape[1], max(whole, 1))
        for j in range(calls):  # vectorised: one lane per counter
            a, b, c, d = philox(_u32(first + j), _u32(block), _u32(replicate), _INSIDE, k0, k1)
            words[0, j] = a
            words[1, j] = b
            words[2, j] = c
            words[3, j] = d
        first += calls
        if whole == 0:  # the last few: stop at the right one
            for lane in range(4):
                w = words[lane, 0]
                for _ in range(3):
                    if w & mask < width and done < draws:
                        row[w & mask] += 1.0
                        done += 1
                    w >>= _u32(_BITS)
        elif width == BLOCK:
            for lane in range(4):
                for j in range(calls):
                    w = words[lane, j]
                    row[w & mask] += 1.0
                    row[(w >> _u32(_BITS)) & mask] += 1.0
                    row[(w >> _u32(2 * _BITS)) & mask] += 1.0
            done += 12 * calls
        else:
            for lane in range(4):
                for j in range(calls):
                    w = words[lane, j]
                    for shift in range(0, 3 * _BITS, _BITS):
                        index = (w >> _u32(shift)) & mask
                        row[index] += 1.0
                        done += index < width


@compiled
def block_draws(out: Any, draws: Any, n: Any, first_block: Any, first_replicate: Any, k0: Any, k1: Any) -> None:
    """How many of each replicate's draws fall into each of some consecutive blocks, (replicates, blocks).

    A binary tree over all blocks: each node gives its left half a binomial share, keyed by the node. Whoever wants
    a few blocks walks down to them alone, and any way of asking gives the same numbers.
    """
    blocks, last = (n + BLOCK - 1) // BLOCK, first_block + out.shape[1]
    span = 1
    while span < blocks:
        span *= 2
    starts, sizes, counts = np.empty(64, np.int64), np.empty(64, np.int64), np.empty(64, np.int64)
    for r in range(out.shape[0]):
        starts[0], sizes[0], counts[0] = 0, span, draws
        waiting = 1
        while waiting:
            waiting -= 1
            at, size, count = starts[waiting], sizes[waiting], counts[waiting]
            if size == 1:
                out[r, at - first_block] = count
                continue
            half = size // 2
            left = count
            if at + half < blocks:
                share = (half * BLOCK) / (min((at + size) * BLOCK, n) - at * BLOCK)
                node = span // size + at // size
                left = binomial(count, share, _u32(node), _u32(first_replicate + r), k0, k1)
                if at + half < last and at + size > first_block:
                    starts[waiting], sizes[waiting], counts[waiting] = at + half, half, count - left
                    waiting += 1
            if at < last and at + half > first_block:
                starts[waiting], sizes[waiting], counts[waiting] = at, half, left
                waiting += 1


@compiled
def fill_multinomial(out: Any, shares: Any, first_block: Any, first_replicate: Any, k0: Any, k1: Any) -> None:
    """Exact multinomial counts for consecutive whole blocks, whose draws are given, (replicates, blocks)."""
    words = np.empty((4, 128), np.uint32)
    scratch = np.empty(BLOCK)
    for r in range(out.shape[0]):
        replicate = first_replicate + r
        for b in range(shares.shape[1]):
            start = b * BLOCK
            width = min(BLOCK, out.shape[1] - start)
            if width == BLOCK:
                row = out[r, start : start + width]
                row[:] = 0.0
                _scatter(row, width, shares[r, b], words, first_block + b, replicate, k0, k1)
            else:
                scratch[:] = 0.0
                _scatter(scratch, width, shares[r, b], words, first_block + b, replicate, k0, k1)
                out[r, start : start + width] = scratch[:width]


@compiled
def fill_poisson(out: Any, first_trajectory: Any, first_replicate: Any, cdf: Any, k0: Any, k1: Any) -> None:
    """Poisson(1) counts; four replicates of one episode share a Philox call."""
    rows, width = out.shape
    words = np.empty((4, width), np.uint32)
    last = -1
    for r in range(rows):
        replicate = first_replicate + r
        if replicate // 4 != last:
            last = replicate // 4
            for i in range(width):
                a, b, c, d = philox(_u32(first_trajectory + i), _u32(last), _u32(0), _POISSON, k0, k1)
                words[0, i] = a
                words[1, i] = b
                words[2, i] = c
                words[3, i] = d
        lane = words[replicate % 4]
        for i in range(width):
            count = 0
            for k in range(len(cdf)):
                count += lane[i] >= cdf[k]
            out[r, i] = count


@compiled
def fill_exponential(out: Any, first_trajectory: Any, first_replicate: Any, k0: Any, k1: Any) -> None:
    """Exp(1) weights: a Dirichlet(1, ..., 1) row up to its total, which every statistic divides by."""
    rows, width = out.shape
    for r in range(rows):
        replicate = first_replicate + r
        for i in range(width):
            a, b, _, _ = philox(_u32(first_trajectory + i), _u32(replicate), _u32(0), _EXPONENTIAL, k0, k1)
            out[r, i] = -math.log(_unit(a, b))


@compiled(fastmath={"reassoc", "contract"})
def add_weighted_squares(weights: Any, effect: Any, out: Any) -> None:
    """out[b] += Σ_i weights[b, i] effect[b, i]², in any order; where a weight is 0 the effect may be anything."""
    for b in range(len(effect)):
        row, effects = weights[b], effect[b]
        total = 0.0
        for i in range(len(effects)):
            one = effects[i] if row[i] > 0.0 else 0.0
            total += row[i] * one * one
        out[b] += total


@compiled
def cumulate(over: Any, under: Any, lengths: Any, out: Any) -> None:
    """out[i, t] = Σ_{k ≤ t} over − under along episode i, its last value repeated after its end."""
    step = 0
    for i in range(len(lengths)):
        total = 0.0
        for t in range(lengths[i]):
            total += over[step] - under[step]
            out[i, t] = total
            step += 1
        out[i, lengths[i] :] = total
