"""Standard errors from what each episode does to first order: the infinitesimal jackknife."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.folder import summed, wide_parts


def standard_error(influence: Array) -> float:
    """√(Σ ψ_i² / n(n−1)): for a mean, s/√n."""
    n = len(influence)
    return float(np.sqrt(summed(influence, np.square) / (n * (n - 1)))) if n > 1 else float("inf")


def row_errors(weights: Array, effects: Array, draws: Sequence[int]) -> Array:
    """The standard error under each row of weights, (rows,), of so many draws from each stratum.

    From what each episode does to first order, (n,) or (rows, n).
    """
    squares, sums = np.zeros((2, len(draws), len(weights)))
    for stratum, (start, stop) in enumerate(pairwise([0, *np.cumsum(draws[:-1]), weights.shape[1]])):
        for part in wide_parts(int(stop - start)):
            some = slice(start + part.start, start + part.stop)
            effect = weights[:, some] * effects[..., some]
            sums[stratum] += effect.sum(axis=1)
            effect *= effects[..., some]
            squares[stratum] += effect.sum(axis=1)
    return drawn_errors(squares, sums, draws)


def drawn_errors(squares: Array, sums: Array | None, draws: Sequence[int]) -> Array:
    """The same, √ Σ_h d/(d − 1) (Σ w e² − (Σ w e)² / d), from the sums over each stratum, (strata, rows).

    Over all strata together Σ w e is 0; None stands for that.
    """
    counts = np.array(draws, dtype=np.float64)[:, None]
    spread = squares if sums is None else np.maximum(squares - np.square(sums) / counts, 0.0)
    result: Array = np.sqrt((spread * counts / np.maximum(counts - 1, 1)).sum(axis=0))
    return result
