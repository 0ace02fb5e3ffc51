"""Frozen noise, compiled by numba on first use: every number depends only on its episode, time, number and pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

from tightrope.base.compiled import compiled
from tightrope.base.kernels import philox

_u32, _u64 = np.uint32, np.uint64
_SHIFT, _HALF = np.uint64(11), np.uint64(32)
_EDGE = 2.0**-40  # kept off 0 and 1, where inverse distribution functions fail


@njit(inline="always")
def _open_unit(high: Any, low: Any) -> Any:
    uniform = ((_u64(high) << _HALF | _u64(low)) >> _SHIFT) * 2.0**-53
    return min(max(uniform, _EDGE), 1.0 - _EDGE)


@compiled
def fill_mirrored(out: Any, keys: Any, first_pairs: Any) -> None:
    """Uniforms by time, number, unit, pair and side, (T, width, m, pairs, 2); the second side mirrors the first.

    Philox keyed by the episode; the counter is (time, number, pair).
    """
    horizon, width, units, pairs, _ = out.shape
    for t in range(horizon):
        for j in range(0, width, 2):
            for i in range(units):
                k0, k1 = _u32(keys[i] >> _HALF), _u32(keys[i])
                for pair in range(pairs):
                    a, b, c, d = philox(_u32(t), _u32(j), _u32(first_pairs[i] + pair), _u32(0), k0, k1)
                    drawn = _open_unit(a, b)
                    out[t, j, i, pair, 0] = drawn
                    out[t, j, i, pair, 1] = 1.0 - drawn
                    if j + 1 < width:
                        drawn = _open_unit(c, d)
                        out[t, j + 1, i, pair, 0] = drawn
                        out[t, j + 1, i, pair, 1] = 1.0 - drawn
