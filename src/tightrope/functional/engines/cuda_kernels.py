"""Weights made on a GPU, by Triton: draw for draw those of ``tightrope.base.kernels``.

One Philox counter for each draw, so every weight can be made by itself. Floating-point steps of the binomial draws are
not fused, as they are not on a CPU.
"""

# mypy: ignore-errors

from __future__ import annotations

import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice

from tightrope.base.poisson import CDF

BLOCK = 1024
LANES = 32  # replicates whose binomials one warp draws side by side
WORDS = 512  # random words that one program makes at a time, three balls each
TAIL = 1024  # balls that one program looks at together in a block that is not full


def block_draws(whole, n, rows, seed):
    """(replicates, blocks) int32: how many of the ``whole`` draws fall into each block, level by level of the tree."""
    blocks = -(-n // BLOCK)
    span = triton.next_power_of_2(blocks)
    counts = torch.full((len(rows), 1), whole, dtype=torch.int32, device="cuda")
    size = span
    while size > 1:
        nodes = -(-blocks // size)
        below = torch.empty((len(rows), 2 * nodes), dtype=torch.int32, device="cuda")
        cells = len(rows) * nodes
        _halve[(triton.cdiv(cells, LANES),)](
            counts, below, cells, nodes, size, span // size, n, rows.start, *_key(seed), LANES, num_warps=1,
            enable_fp_fusion=False,
        )  # fmt: skip
        size //= 2
        counts = below[:, : -(-blocks // size)].contiguous()
    return counts


def fill_multinomial(weights, draws, first_block, first_replicate, seed):
    """Counts of consecutive blocks; the last one may be shorter than others."""
    weights.zero_()
    rows, width = weights.shape
    full, rest = divmod(width, BLOCK)
    blocks = draws.shape[1]
    common = (weights, draws, blocks, first_block, first_replicate, width, *_key(seed))
    if full:
        _scatter[(rows, full)](*common, WORDS, num_warps=4)
    if rest:
        reach = triton.next_power_of_2(rest)
        _scatter_tail[(rows,)](*common, full, rest, reach - 1, TAIL, num_warps=4)


def fill_poisson(weights, first_episode, first_replicate, seed):
    """Poisson(1) counts; four replicates of one episode share a Philox call."""
    rows, width = weights.shape
    steps = torch.tensor(CDF.astype("int64"), device="cuda")
    _poisson[(rows, triton.cdiv(width, BLOCK))](
        weights, steps, len(CDF), first_episode, first_replicate, width, *_key(seed), BLOCK, num_warps=4
    )


def _key(seed):
    return seed & 0xFFFFFFFF, seed >> 32


@triton.jit
def _philox(c0, c1, c2, c3, k0, k1):
    m0 = tl.full(c0.shape, 0xD2511F53, tl.uint32)
    m1 = tl.full(c0.shape, 0xCD9E8D57, tl.uint32)
    for _ in tl.static_range(10):
        high0, low0 = tl.umulhi(c0, m0), c0 * m0
        high1, low1 = tl.umulhi(c2, m1), c2 * m1
        c0, c1, c2, c3 = high1 ^ c1 ^ k0, low1, high0 ^ c3 ^ k1, low0
        k0 = k0 + tl.full(c0.shape, 0x9E3779B9, tl.uint32)
        k1 = k1 + tl.full(c0.shape, 0xBB67AE85, tl.uint32)
    return c0, c1, c2, c3


@triton.jit
def _unit(high, low):
    word = (high.to(tl.uint64) << 32) | low.to(tl.uint64)
    return (word >> 11).to(tl.float64) * 1.1102230246251565e-16 + 5.551115123125783e-17


@triton.jit
def _stirling(k):
    x = k + 1.0
    square = 1.0 / (x * x)
    return (1.0 / 12 - (1.0 / 360 - (1.0 / 1260 - 1.0 / 1680 * square) * square) * square) / x


@triton.jit
def _binomial(n, p, block, replicate, k0, k1, active):
    """Hörmann's BTRS for p ≤ 1/2 and n·p far above 10, in float64, one draw a lane."""
    zero = tl.zeros(n.shape, tl.uint32)
    stream = zero + 1
    a, b, c, d = _philox(zero, block, replicate, stream, k0, k1)
    spread = libdevice.sqrt(n * p * (1.0 - p))
    hat_b = 1.15 + 2.53 * spread
    hat_a = -0.0873 + 0.0248 * hat_b + 0.01 * p
    center = n * p + 0.5
    squeeze = 0.92 - 4.2 / hat_b
    odds = p / (1.0 - p)
    alpha = (2.83 + 5.1 / hat_b) * spread
    mode = libdevice.floor((n + 1) * p)
    result = tl.zeros(n.shape, tl.float64)
    waiting = active
    tries = 0
    while tl.max(waiting.to(tl.int32), 0) > 0:
        u = _unit(a, b) - 0.5
        v = _unit(c, d)
        us = 0.5 - tl.abs(u)
        k = libdevice.floor((2.0 * hat_a / us + hat_b) * u + center)
        inside = (k >= 0) & (k <= n)
        safe = tl.where(inside, k, mode)
        level = libdevice.log(v * alpha / (hat_a / (us * us) + hat_b))
        limit = (
            (mode + 0.5) * libdevice.log((mode + 1.0) / (odds * (n - mode + 1.0)))
            + (n + 1.0) * libdevice.log((n - mode + 1.0) / (n - safe + 1.0))
            + (safe + 0.5) * libdevice.log(odds * (n - safe + 1.0) / (safe + 1.0))
            + _stirling(mode)
            + _stirling(n - mode)
            - _stirling(safe)
            - _stirling(n - safe)
        )
        accepted = waiting & (((us >= 0.07) & (v <= squeeze)) | (inside & (level <= limit)))
        result = tl.where(accepted, k, result)
        waiting = waiting & (accepted == 0)
        tries += 1
        a, b, c, d = _philox(zero + tries, block, replicate, stream, k0, k1)
    return result


@triton.jit
def _inverted(n, p, node, replicate, k0, k1, active):
    """The quantile of a binomial of small n·p, by adding up probabilities from 0, one a lane."""
    zero = tl.zeros(n.shape, tl.uint32)
    a, b, _, _ = _philox(zero, node, replicate, zero + 1, k0, k1)
    u = _unit(a, b)
    odds = p / (1.0 - p)
    mass = libdevice.exp(n * libdevice.log1p(-p))
    k = tl.zeros(n.shape, tl.float64)
    waiting = active & (u > mass) & (k < n)
    while tl.max(waiting.to(tl.int32), 0) > 0:
        u = tl.where(waiting, u - mass, u)
        k = tl.where(waiting, k + 1.0, k)
        mass = tl.where(waiting, mass * (odds * (n - k + 1.0) / tl.where(k > 0, k, 1.0)), mass)
        waiting = waiting & (u > mass) & (k < n)
    return k


@triton.jit
def _halve(counts, below, cells, nodes, size, first_node, n, first, key0, key1, SIZE: tl.constexpr):
    """Of each node of a level the draws of its two halves."""
    cell = tl.program_id(0) * SIZE + tl.arange(0, SIZE)
    active = cell < cells
    row, node = cell // nodes, cell % nodes
    replicate = (first + row).to(tl.uint32)
    k0 = tl.zeros([SIZE], tl.uint32) + key0.to(tl.uint32)
    k1 = tl.zeros([SIZE], tl.uint32) + key1.to(tl.uint32)
    count = tl.load(counts + cell, mask=active, other=0).to(tl.float64)
    start = node.to(tl.int64) * size * 1024
    half = tl.zeros([SIZE], tl.int64) + size.to(tl.int64) * 512
    episodes = tl.minimum(start + 2 * half, n.to(tl.int64)) - start
    p = half.to(tl.float64) / episodes.to(tl.float64)
    split = active & (episodes > half) & (count > 0)
    high = p > 0.5
    q = tl.where(split, tl.where(high, 1.0 - p, p), 0.25)
    number = (first_node + node).to(tl.uint32)
    few = count * q < 10.0
    drawn = _binomial(tl.where(split & (few == 0), count, 100.0), q, number, replicate, k0, k1, split & (few == 0))
    seldom = _inverted(tl.where(split & few, count, 1.0), q, number, replicate, k0, k1, split & few)
    drawn = tl.where(few, seldom, drawn)
    left = tl.where(split, tl.where(high, count - drawn, drawn), count)
    place = below + row.to(tl.int64) * (2 * nodes) + 2 * node
    tl.store(place, left.to(tl.int32), mask=active)
    tl.store(place + 1, (count - left).to(tl.int32), mask=active)


@triton.jit
def _scatter(out, draws, blocks, first_block, first, width, key0, key1, SIZE: tl.constexpr):
    """The balls of one full block of one replicate: ball 3 w + s is the s-th slice of word w."""
    row = tl.program_id(0).to(tl.int64)
    b = tl.program_id(1)
    count = tl.load(draws + row * blocks + first_block + b)
    base = out + row * width + b * 1024
    word = tl.arange(0, SIZE)
    zero = tl.zeros([SIZE], tl.uint32)
    k0, k1 = zero + key0.to(tl.uint32), zero + key1.to(tl.uint32)
    block, replicate = zero + (first_block + b), zero + (first + row).to(tl.uint32)
    done = 0
    while done * 3 < count:
        index = done + word
        x, y, z, w = _philox((index // 4).to(tl.uint32), block, replicate, zero, k0, k1)
        lane = index % 4
        bits = tl.where(lane == 0, x, tl.where(lane == 1, y, tl.where(lane == 2, z, w)))
        for s in tl.static_range(3):
            slot = ((bits >> (10 * s)) & 1023).to(tl.int32)
            tl.atomic_add(base + slot, 1.0, mask=index * 3 + s < count, sem="relaxed", scope="cta")
        done += SIZE


@triton.jit
def _scatter_tail(out, draws, blocks, first_block, first, width, key0, key1, b, rest, mask, SIZE: tl.constexpr):
    """The balls of a last, shorter block: those beyond its end are thrown again, in the order of their counters."""
    row = tl.program_id(0).to(tl.int64)
    count = tl.load(draws + row * blocks + first_block + b)
    base = out + row * width + b * 1024
    zero = tl.zeros([SIZE], tl.uint32)
    k0, k1 = zero + key0.to(tl.uint32), zero + key1.to(tl.uint32)
    block, replicate = zero + (first_block + b), zero + (first + row).to(tl.uint32)
    done = 0
    start = 0
    while done < count:
        ball = start + tl.arange(0, SIZE)
        x, y, z, w = _philox((ball // 12).to(tl.uint32), block, replicate, zero, k0, k1)
        lane = (ball % 12) // 3
        bits = tl.where(lane == 0, x, tl.where(lane == 1, y, tl.where(lane == 2, z, w)))
        slot = ((bits >> (10 * (ball % 3)).to(tl.uint32)) & mask).to(tl.int32)
        inside = slot < rest
        order = tl.cumsum(inside.to(tl.int32), 0)
        tl.atomic_add(base + slot, 1.0, mask=inside & (done + order <= count), sem="relaxed", scope="cta")
        done += tl.sum(inside.to(tl.int32), 0)
        start += SIZE


@triton.jit
def _poisson(out, steps, count, first_episode, first_replicate, width, key0, key1, SIZE: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    column = tl.program_id(1) * SIZE + tl.arange(0, SIZE)
    zero = tl.zeros([SIZE], tl.uint32)
    k0, k1 = zero + key0.to(tl.uint32), zero + key1.to(tl.uint32)
    replicate = first_replicate + row
    quarter = zero + (replicate // 4).to(tl.uint32)
    x, y, z, w = _philox((first_episode + column).to(tl.uint32), quarter, zero, zero + 2, k0, k1)
    lane = replicate % 4
    bits = x if lane == 0 else (y if lane == 1 else (z if lane == 2 else w))
    value = tl.zeros([SIZE], tl.int32)
    for k in range(count):
        value += (bits.to(tl.int64) >= tl.load(steps + k)).to(tl.int32)
    tl.store(out + row * width + column, value.to(out.dtype.element_ty), mask=column < width)
