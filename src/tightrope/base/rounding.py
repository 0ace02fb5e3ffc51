"""Numbers for people: a bound is never said to be better than it is."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Literal

NOISE = 12  # digits: what differs behind them is rounding of the computation itself


def outward(value: float, side: Literal["lower", "upper"], digits: int = 4) -> float:
    """So many significant digits: a lower bound rounded down, an upper bound up."""
    if value == 0 or not math.isfinite(value):
        return value
    number = Decimal(f"{value:.{NOISE}g}")
    unit = Decimal(1).scaleb(number.adjusted() - digits + 1)
    return float((number / unit).to_integral_value(ROUND_FLOOR if side == "lower" else ROUND_CEILING) * unit)
