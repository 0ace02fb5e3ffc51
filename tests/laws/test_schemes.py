"""Laws of every way to resample: blocks are independent, seeds count, and standard errors fit their replicates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import tightrope
from tests.laws.laws import logs
from tests.oracle import Episode
from tightrope.domains import small
from tightrope.estimators import IS, MB
from tightrope.functional.resampling import BLOCK, SCHEMES, Bayesian, ModelBootstrap, Multinomial, Poisson, draw_weights
from tightrope.models import GivenValues

WEIGHTS = [scheme for scheme in SCHEMES.values() if not isinstance(scheme, ModelBootstrap)]
WEIGHTS += [Multinomial(size=500), Multinomial(size=9000)]


@pytest.mark.parametrize("scheme", WEIGHTS, ids=str)
def test_blocks_of_trajectories_are_drawn_apart(scheme):
    """Trajectories at the same place of two blocks have nothing to do with each other, as little as any other two.

    Multinomial counts of two trajectories have the covariance −m/n², others none.
    """
    n, rows = 3 * BLOCK, 200
    weights = draw_weights(n, rows, seed=3, resampling=scheme)
    weights = weights - weights.mean(axis=1, keepdims=True)
    expected = -weights.var() / (n - 1)  # centred rows sum to zero
    for shift in (BLOCK, 2 * BLOCK, 1):
        product = (weights[:, shift:] * weights[:, :-shift]).mean()
        assert abs(product - expected) < 5 * weights.var() / np.sqrt(rows * (n - shift)), shift


@pytest.mark.parametrize("name", SCHEMES)
def test_bounds_follow_the_seed(name):
    """The same seed gives the same bits, another one another bound."""
    problem = small("bonus")
    data = problem.logs(80, rng=np.random.default_rng(0))

    def bound(seed):
        options = {"estimator": "mb", "method": "percentile", "n_resamples": 200, "resampling": name}
        return tightrope.lower_bound(data, problem.candidate, seed=seed, **options).value

    assert bound(1) == bound(1)
    assert len({bound(seed) for seed in range(4)}) == 4


VALUES = np.random.default_rng(3).exponential(size=20)


def logged_means():
    """A candidate that is the behaviour policy: IS is the mean of the values, a sum of columns."""
    data = logs([Episode([v], [0.5], [0.5], True) for v in VALUES], horizon=1)
    return data, None, IS(normalize=False)


def given_means():
    """Values given for each start: MB is their mean, evaluated row by row."""
    data = tightrope.TrajectoryDataset(
        offsets=np.arange(21),
        rewards=np.zeros(20),
        terminated=np.ones(20, dtype=bool),
        horizon=1,
        states=np.arange(20),
        actions=np.zeros(20, dtype=int),
        behavior_log_probs=np.zeros(20),
    )
    return data, np.ones((20, 1)), MB(GivenValues(VALUES[:, None]))


@pytest.mark.parametrize("size", [None, 8, 60])
@pytest.mark.parametrize("means", [logged_means, given_means])
def test_studentized_pivots_do_not_hang_on_the_size_of_a_resample(means, size):
    """A loop over resamples of m of n values, each studentized by its own s/√m; replicates and their errors are both
    drawn in by √(m/n), which leaves their quotient alone.
    """
    draws = size or 20
    scheme = Multinomial(size=size)
    pivots = []
    for row in draw_weights(20, 1000, seed=6, resampling=scheme).astype(int):
        again = np.repeat(VALUES, row)
        pivots.append((again.mean() - VALUES.mean()) / (again.std(ddof=1) / np.sqrt(draws)))
    error = VALUES.std(ddof=1) / np.sqrt(20)
    data, policy, estimator = means()
    options = {"estimator": estimator, "method": "studentized", "resampling": scheme, "n_resamples": 1000, "seed": 6}
    lower, upper = (call(data, policy, **options) for call in (tightrope.lower_bound, tightrope.upper_bound))
    assert lower.value == pytest.approx(VALUES.mean() - sorted(pivots)[-50] * error, rel=1e-9)
    assert upper.value == pytest.approx(VALUES.mean() - sorted(pivots)[49] * error, rel=1e-9)


@pytest.mark.parametrize("scheme", [Multinomial(), Poisson(), Bayesian(), Multinomial(size=50)], ids=str)
def test_who_is_skewed_as_the_estimate_is(scheme):
    """Methods that correct for skewness rely on replicates as skewed as the mean: by the values' skewness / √n."""
    values = np.random.default_rng(1).exponential(size=200)
    weights = draw_weights(200, 40_000, seed=2, resampling=scheme)
    replicates = weights @ values / weights.sum(axis=1)
    ratio = stats.skew(replicates) / (stats.skew(values) / np.sqrt(200))
    assert scheme.second_order == (abs(ratio - 1) < 0.35), ratio
