from __future__ import annotations

import numpy as np

from tightrope.statistic import TrajectoryValues


def sample(values, *, top=None, origin=0.0, sign=1.0):
    return TrajectoryValues(np.asarray(values, dtype=float), origin, sign, top, "a ceiling")


def law_approaches_mean(method):
    """The same values seen more often: the bound moves towards the mean, and stays below it."""
    values = np.random.default_rng(0).beta(2, 5, size=50)
    bounds = [method.lower(sample(np.tile(values, k), top=1.0), delta=0.05, seed=1) for k in (1, 4, 16, 64, 512)]
    assert all(low < high < values.mean() for low, high in zip(bounds, bounds[1:], strict=False)), bounds
    assert bounds[-1] > values.mean() - 0.05


def law_below_equal_values(method):
    """All values alike prove little about the mean: the bound stays strictly below them."""
    assert method.lower(sample(np.full(100, 0.5), top=1.0), delta=0.05, seed=1) < 0.5 - 1e-3


def law_ordered_with_negative_rewards(method):
    """Returns in [-10, 0]: the lower bound stays below the upper one, the mean between."""
    returns = np.random.default_rng(1).uniform(-6.0, -5.0, size=200)
    low = sample(returns + 10.0, origin=-10.0, top=10.0)
    high = sample(-returns, origin=0.0, sign=-1.0, top=10.0)
    lower = low.origin + low.sign * method.lower(low, delta=0.05, seed=1)
    upper = high.origin + high.sign * method.lower(high, delta=0.05, seed=1)
    assert lower < returns.mean() < upper
