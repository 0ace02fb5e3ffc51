"""The difference of two values from the same episodes: unbiased, on its tether, and bounded by bets."""

from __future__ import annotations

import numpy as np
import pytest

from tightrope.base.problem import Problem
from tightrope.bounds.exact.betting import Betting, block_edges
from tightrope.decisions.differences import DifferenceValues
from tightrope.domains import small
from tightrope.estimators import TDR

BONUS = small("bonus")


def difference(n, seed=0):
    data = BONUS.logs(n, rng=np.random.default_rng(seed))
    low = TDR(anchor="low").sequential_values(Problem(data, BONUS.candidate))
    high = TDR(anchor="high").sequential_values(Problem(data, BONUS.behavior))
    return DifferenceValues(low, high)


def test_no_value_falls_below_its_tether():
    sample = difference(400)
    order, edges = np.random.default_rng(1).permutation(400), block_edges(400)
    tethers = np.array([0.0, 0.5, 2.0, 8.0])
    values = sample.along(order, edges, tethers)
    assert (values >= -tethers - 1e-9).all()


class Worst:
    """Values that are all as low as their tether lets them be."""

    origin, sign = 0.0, 1.0

    def along(self, order, edges, tethers):
        return np.tile(-tethers, (len(order), 1))


def test_the_two_parts_share_the_tether():
    tethers = np.array([0.0, 1.0, 4.0])
    worst = DifferenceValues(Worst(), Worst()).along(np.arange(5), [0, 5], tethers)
    np.testing.assert_array_equal(worst, np.tile(-tethers, (5, 1)))


@pytest.mark.parametrize("tether", [0.0, 4.0])
def test_the_mean_is_the_difference_of_the_values(tether):
    sample = difference(40_000)
    values = sample.along(np.arange(40_000), [0, 400, 40_000], np.array([tether]))[400:, 0] + sample.origin
    truth = BONUS.true_value - BONUS.behavior_value
    assert abs(values.mean() - truth) < 4 * values.std() / np.sqrt(len(values))
    assert abs(sample.estimate - truth) < 0.05


def test_a_bound_on_the_difference_lies_below_it_and_is_tighter_than_two_bounds():
    sample, delta = difference(2000), 0.05
    lower = sample.origin + Betting().lower(sample, delta=delta, seed=0)
    first = sample.of.origin + Betting().lower(sample.of, delta=delta / 2, seed=0)
    second = sample.less.origin - Betting().lower(sample.less, delta=delta / 2, seed=0)
    assert first - second < lower < BONUS.true_value - BONUS.behavior_value


def test_the_evidence_at_a_bound_is_that_bounds_level():
    sample, delta = difference(500), 0.02
    bet = Betting()
    lower = bet.lower(sample, delta=delta, seed=3)
    assert lower > 0
    assert bet.log_evidence(sample, lower, delta=delta, seed=3) == pytest.approx(np.log(1 / delta), rel=1e-6)
    nearer, further = (bet.log_evidence(sample, lower * x, delta=delta, seed=3) for x in (0.9, 1.1))
    assert nearer > np.log(1 / delta) > further


def test_evidence_against_what_is_true_averages_to_at_most_one():
    """Bernoulli values of mean 0.3, against a mean of at most 0.3: wealth of a game that is fair."""
    from tightrope.functional.values import TrajectoryValues

    rng = np.random.default_rng(0)
    wealth = [
        np.exp(
            Betting().log_evidence(
                TrajectoryValues((rng.random(30) < 0.3).astype(float), 0.0, 1.0, None), 0.3, delta=0.05, seed=k
            )
        )
        for k in range(600)
    ]
    assert 0.6 < np.mean(wealth) < 1 + 4 * np.std(wealth) / np.sqrt(len(wealth))
    assert np.mean(np.array(wealth) >= 20) < 0.05
