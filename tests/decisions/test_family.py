"""Claims that hold together: bands, steps down, and e-values, against slow and obvious oracles."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope import BoundError
from tightrope.bounds.replicates.percentile import Percentile
from tightrope.decisions.family import band, surely_above, surely_refuted
from tightrope.functional.engines import Replicates


def slow_band(values, delta):
    """Give up one replicate more in every column while not too many are given up by any."""
    values = np.where(np.isnan(values), -np.inf, values)
    orders = [sorted(range(len(values)), key=lambda b, c=c: (values[b, c], b)) for c in range(values.shape[1])]
    most = 0
    for count in range(1, len(values) + 1):
        lost = {b for order in orders for b in order[:count]}
        if len(lost) > delta * len(values) + 1e-9:
            break
        most = count
    return [values[order[most - 1], c] for c, order in enumerate(orders)]


def test_one_column_has_the_percentile_bound():
    values = np.random.default_rng(0).normal(size=400)
    values[:7] = np.nan
    (alone,) = band(values[:, None], 0.05)
    assert alone == Percentile().lower(Replicates(10, 0.0, values), delta=0.05)[0]


def test_columns_that_are_alike_cost_nothing_and_opposite_ones_cost_half():
    """Of 100 replicates 1..100 at 10 %: ten are given up alone, and five each by two columns that mirror each other."""
    values = np.arange(1.0, 101.0)
    assert band(np.column_stack([values, values]), 0.1).tolist() == [10.0, 10.0]
    assert band(np.column_stack([values, -values]), 0.1).tolist() == [5.0, -96.0]


@pytest.mark.parametrize("seed", range(6))
def test_a_band_is_what_the_slow_one_is(seed):
    rng = np.random.default_rng(seed)
    shared = rng.normal(size=(200, 1))
    values = np.round(shared + rng.gamma(1.0, 1.0, (200, 5)), 1)  # with ties
    values[rng.random(values.shape) < 0.005] = np.nan
    assert band(values, 0.15).tolist() == slow_band(values, 0.15)


def test_undefined_replicates_count_as_the_lowest():
    values = np.arange(1.0, 101.0)
    values[50:60] = np.nan
    assert band(values[:, None], 0.1).tolist() == [-np.inf]
    assert not surely_above(values[:, None], 0.1).any()


def test_too_few_replicates_are_refused_and_enough_are_named():
    values = np.random.default_rng(0).normal(size=(100, 30))
    with pytest.raises(BoundError, match=r"n_resamples is 100, too few for 30 bounds .*; 600 are enough"):
        band(values, 0.05)
    band(np.random.default_rng(0).normal(size=(600, 30)), 0.05)


def test_steps_down_settle_what_the_band_settles_and_more():
    """A column that is settled at once leaves its share of the error to the others."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(2000, 3)) + np.array([9.0, 1.9, -9.0])
    assert (band(values, 0.05) > 0).tolist() == [True, False, False]
    assert surely_above(values, 0.05).tolist() == [True, False, False]
    values = rng.normal(size=(2000, 2)) + np.array([9.0, 1.8])
    assert (band(values, 0.05) > 0).tolist() == [True, False]  # 1.8 < 1.96
    assert surely_above(values, 0.05).tolist() == [True, True]  # 1.8 > 1.645


def holm(pvalues, delta):
    order, rejected = np.argsort(pvalues), np.zeros(len(pvalues), dtype=bool)
    for place, index in enumerate(order):
        if pvalues[index] > delta / (len(pvalues) - place):
            break
        rejected[index] = True
    return rejected


def test_evidence_is_adjusted_in_steps():
    """What the strongest leaves is shared by the others, however they come."""
    needed = np.log(np.array([3, 2, 1]) / 0.05)
    assert surely_refuted(needed[[1, 2, 0]] + 1e-9, 0.05).tolist() == [True, True, True]
    assert surely_refuted(needed - [0, 1e-9, 0], 0.05).tolist() == [True, False, False]
    assert surely_refuted(needed - 1e-9, 0.05).tolist() == [False, False, False]
    rng = np.random.default_rng(3)
    some = 0
    for _ in range(300):
        evidence = rng.normal(2.5, 3, 5)
        ours = surely_refuted(evidence, 0.05)
        assert ours.tolist() == holm(np.exp(-evidence), 0.05).tolist()
        assert (ours | (evidence < np.log(5 / 0.05))).all(), "what each at its share rejects"
        some += (ours & (evidence < np.log(5 / 0.05))).any()
    assert some


@pytest.mark.parametrize(("count", "delta"), [(7, 0.05), (11, 0.05), (11, 0.1), (22, 0.1), (23, 0.01), (40, 0.1)])
def test_evidence_that_is_just_enough_is_enough(count, delta):
    """As a bound at δ/k has it where half of its orders reach the goal."""
    evidence = np.full(count, -np.inf)
    evidence[3] = np.log(1.0 / (delta / count))
    assert surely_refuted(evidence, delta).nonzero()[0].tolist() == [3]


def test_no_evidence_and_certainty_are_numbers_like_others():
    assert surely_refuted(np.array([-np.inf, np.inf, 0.0]), 0.05).tolist() == [False, True, False]
