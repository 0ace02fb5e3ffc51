"""Rows of lanes in compiled code do what NumPy does with each lane."""

import numpy as np
import pytest
from numba import njit
from numba.core.errors import TypingError

from tightrope.models.tabular.blocks import LANES, lanes
from tightrope.models.tabular.rows import is_zero, load, splat, store


@njit
def work(left, right, factor, out):
    a, b = load(left, 1), load(right, 2)
    store(out, 0, a + b)
    store(out, 1, a - b)
    store(out, 2, a * b)
    store(out, 3, a / b)
    store(out, 4, factor * a)
    store(out, 5, a / factor)
    store(out, 6, factor - a)
    store(out, 7, splat(factor))
    store(out, 8, is_zero(a))


def test_operations():
    rng = np.random.default_rng(0)
    left, right, out = lanes(3), lanes(3), lanes(9)
    left[:], right[:] = rng.normal(size=(2, 3, LANES))
    left[1, 3] = 0.0
    work(left, right, 1.7, out)
    a, b = left[1], right[2]
    expected = [a + b, a - b, a * b, a / b, 1.7 * a, a / 1.7, 1.7 - a, np.full(LANES, 1.7), a == 0]
    np.testing.assert_array_equal(out, np.array(expected, dtype=float))


def test_rows_need_not_be_aligned_but_are():
    made = lanes(5)
    assert made.shape == (5, LANES)
    assert made.ctypes.data % (8 * LANES) == 0
    assert not made.any()
    loose = np.arange(9.0 * LANES + 1)[1:].reshape(9, LANES)
    out = np.empty((9 * LANES + 1,))[1:].reshape(9, LANES)
    work(loose, loose, 2.0, out)
    np.testing.assert_array_equal(out[0], loose[1] + loose[2])


@pytest.mark.parametrize("array", [np.zeros((LANES, 2)).T, np.zeros((2, LANES), dtype=np.float32), np.zeros(LANES)])
def test_other_arrays_are_refused(array):
    with pytest.raises(TypingError, match="contiguous float64"):
        work(array, array, 1.0, lanes(9))
