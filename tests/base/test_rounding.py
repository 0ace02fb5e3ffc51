"""A bound in few digits is never better than the bound itself."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tightrope.base.rounding import outward


@pytest.mark.parametrize(
    ("value", "side", "digits", "expected"),
    [
        (-11.931, "lower", 4, -11.94),
        (-11.931, "upper", 4, -11.93),
        (2.03147, "upper", 4, 2.032),
        (2.03147, "lower", 4, 2.031),
        (0.25, "upper", 4, 0.25),
        (0.1 + 0.2, "upper", 4, 0.3),  # noise of the computation is no digit
        (9.9999, "upper", 4, 10.0),
        (1.23456e-8, "lower", 3, 1.23e-8),
        (0.0, "lower", 4, 0.0),
        (-math.inf, "lower", 4, -math.inf),
    ],
)
def test_by_hand(value, side, digits, expected):
    assert outward(value, side, digits) == expected


@given(st.floats(-1e12, 1e12), st.integers(2, 8))
def test_never_better_and_never_far(value, digits):
    low, high = outward(value, "lower", digits), outward(value, "upper", digits)
    slack = 1e-11 * abs(value)
    assert low <= value + slack
    assert high >= value - slack
    assert high - low <= 1.0001 * 10.0 ** (1 - digits) * abs(value) * 10 or value == 0
