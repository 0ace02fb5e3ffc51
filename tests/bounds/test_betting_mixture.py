"""The mixture of bets is the place where wealth is just enough, found in a few steps and never overstepped."""

import math

import numpy as np
import pytest

from tightrope.bounds import BettingMixture
from tightrope.bounds.exact import betting_mixture
from tightrope.functional.values import TrajectoryValues

BETS = [*np.geomspace(1e-4, 0.5, 24), *(1 - np.geomspace(0.4, 0.01, 8))]


def log_wealth(values, m):
    """The mixture's wealth against a mean of m, by its definition and without rounding in the sums."""
    logs = [math.fsum(math.log1p(c * (x / m - 1)) for x in values) for c in BETS]
    top = max(logs)
    return top + math.log(math.fsum(math.exp(one - top) for one in logs) / len(BETS))


def lower(values, delta):
    return BettingMixture().lower(
        TrajectoryValues(np.asarray(values, dtype=float), 0.0, 1.0, None), delta=delta, seed=0
    )


DRAWS = {
    "uniform": lambda rng, n: rng.random(n),
    "equal": lambda rng, n: np.ones(n),
    "nearly equal": lambda rng, n: 1 + 1e-6 * rng.random(n),
    "heavy": lambda rng, n: rng.pareto(1.1, n) + 1e-3,
    "very heavy": lambda rng, n: rng.lognormal(0, 4, n),
    "zeros and ones": lambda rng, n: np.append((rng.random(n - 1) < 0.3).astype(float), 1.0),
    "one of them": lambda rng, n: (np.arange(n) == 0).astype(float),
    "denormal": lambda rng, n: 1e-300 * (1 + rng.random(n)),
}


@pytest.mark.parametrize("kind", DRAWS)
@pytest.mark.parametrize("n", [1, 2, 5, 20, 300])
def test_the_bound_is_where_wealth_is_just_enough(kind, n):
    values = DRAWS[kind](np.random.default_rng(n), n)
    for delta in (0.5, 0.05, 1e-6):
        bound = lower(values, delta)
        if bound == 0:  # below anything worth telling
            assert log_wealth(values, 1e-12 * values.mean()) < -math.log(delta)
            continue
        assert log_wealth(values, bound) >= -math.log(delta)
        assert log_wealth(values, bound * (1 + 1e-9)) < -math.log(delta)


@pytest.mark.parametrize("kind", DRAWS)
def test_few_looks_at_the_values_are_enough(kind, monkeypatch):
    """Each one takes a logarithm of every value for every bet."""
    looks, counted = [], betting_mixture._log_wealth
    monkeypatch.setattr(betting_mixture, "_log_wealth", lambda *given: looks.append(1) or counted(*given))
    for n in (2, 50, 20_000):
        looks.clear()
        lower(DRAWS[kind](np.random.default_rng(0), n), 0.05)
        assert len(looks) <= 10


def test_bets_left_out_for_having_lost_make_no_difference(monkeypatch):
    values = np.random.default_rng(0).lognormal(0, 1, 20_000)
    pruned = lower(values, 0.05)
    monkeypatch.setattr(betting_mixture, "_LOST", np.inf)
    assert lower(values, 0.05) == pytest.approx(pruned, rel=1e-12)
