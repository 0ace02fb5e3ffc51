"""Corners of the bounds: where BCa has no level left, mixtures of bets piece by piece, and wide jackknives."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import tightrope
from tightrope.base.problem import Problem
from tightrope.bounds import BCa, BettingMixture
from tightrope.estimators import MB
from tightrope.functional.engines import Replicates
from tightrope.functional.values import TrajectoryValues
from tightrope.models import GivenValues


def test_bca_without_a_level_takes_the_lowest_replicate():
    """All replicates above the estimate and one heavy trajectory: z0 = −3.29, z = −3.09, and an acceleration of −1/6
    leave 1 − a (z0 + z) below 0. The nominal level would take the second lowest of 2,000.
    """
    others = np.append(np.zeros(400), 1.0)
    found = Replicates(401, 0.0, np.arange(1.0, 2001.0), leave_one_out=others)
    value, told = BCa().lower(found, delta=0.001)
    assert value == 1.0
    assert [one.code for one in told] == ["bca-clipped", "bca-degenerate", "few-resamples"]


def test_bca_leaves_no_bound_above_undefined_replicates():
    """An estimate above nearly all replicates lifts the level from 0.1 to 0.8, past the twelve that have no value."""
    values = np.where(np.arange(100) < 12, np.nan, 1.0 + np.arange(100) / 100)
    found = Replicates(9, 1.9, values, leave_one_out=np.linspace(0.0, 1.0, 9))
    assert BCa().lower(found, delta=0.1)[0] == -np.inf
    assert BCa().lower(replace(found, values=np.nan_to_num(values, nan=0.9)), delta=0.1)[0] > 1.7


@pytest.mark.parametrize("size", [1, 7, 64])
def test_a_mixture_of_bets_is_the_same_in_any_pieces(size, monkeypatch):
    sample = TrajectoryValues(np.random.default_rng(0).gamma(0.7, size=100), 0.0, 1.0, None)
    whole = BettingMixture().lower(sample, delta=0.05, seed=0)
    monkeypatch.setattr(import_module(BettingMixture.__module__), "_PIECE", size)
    assert BettingMixture().lower(sample, delta=0.05, seed=0) == pytest.approx(whole, rel=1e-9)


@pytest.mark.parametrize("n", [50, 2500])
def test_leaving_one_of_many_out_of_a_mean_is_exact(n):
    """Values given for each start: leaving one out is the mean of the others, whether by a fit or to first order."""
    values = np.random.default_rng(1).exponential(size=n)
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1),
        rewards=np.zeros(n),
        terminated=np.ones(n, dtype=bool),
        horizon=1,
        states=np.arange(n),
        actions=np.zeros(n, dtype=int),
    )
    statistic = MB(GivenValues(values[:, None]))(Problem(data, np.ones((n, 1))))
    np.testing.assert_allclose(statistic.leave_one_out(), (values.sum() - values) / (n - 1), rtol=1e-12)
    np.testing.assert_allclose(statistic.influence(), values - values.mean(), rtol=1e-9, atol=1e-12)
