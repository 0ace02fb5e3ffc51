"""The distribution function of Poisson(1) in steps of 2^-32, as all engines draw from it."""

from __future__ import annotations

import math

import numpy as np

STEPS = 13  # P(Poisson(1) > 12) is 6e-11, below the 2^-32 resolution of a draw
CDF = np.array(
    [min(round(2**32 * sum(math.exp(-1) / math.factorial(j) for j in range(k + 1))), 2**32 - 1) for k in range(STEPS)],
    dtype=np.uint32,
)
