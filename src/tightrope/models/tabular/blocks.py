"""Replicates side by side, as many as a vector of the machine holds: how their arrays lie in memory."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tightrope.base import folder
from tightrope.base.dataset import Array
from tightrope.base.folder import Scratch

LANES = 8  # one AVX-512 register; wider rows leave the second-level cache, narrower ones the machine idle


def lanes(count: int, scratch: Scratch | None = None) -> Array:
    """Zeros (count, LANES), each row in a cache line of its own: a row across two takes twice as long to load.

    Many of them lie in a file where the scratch is one of files, which begins on a page.
    """
    if scratch is None or scratch.folder is None or count <= folder.FEW:
        return several(count)[0]
    return scratch.full((count, LANES), 0.0)


def several(*counts: int) -> list[Array]:
    """Zeros (count, LANES) of each count, side by side: to make room once is most of the work of small models."""
    raw, total = np.zeros((sum(counts) + 1) * LANES), 0
    skip, result = -raw.ctypes.data % (8 * LANES) // 8, []
    for count in counts:
        first = skip + total * LANES
        result.append(raw[first : first + count * LANES].reshape(count, LANES))
        total += count
    return result


def blocks(weights: Array, scratch: Scratch | None = None) -> Iterator[tuple[slice, Array]]:
    """Weights (rows, n) as blocks (n, LANES); the last one is padded with its last row."""
    for first in range(0, len(weights), LANES):
        rows = slice(first, min(first + LANES, len(weights)))
        block = lanes(weights.shape[1], scratch)
        block[:, : rows.stop - first] = weights[rows].T
        block[:, rows.stop - first :] = weights[rows.stop - 1][:, None]
        yield rows, block
