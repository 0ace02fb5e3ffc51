"""Tabular models evaluated by Monte Carlo: towards the exact value, with the same bits however rows are cut up."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tests.laws.laws import same
from tests.model_oracle import arbitrary
from tests.models.test_tabular import LONE, episode, random_case, tilted, tilted_policy, with_finals
from tightrope import TabularPolicy
from tightrope.base.errors import DataError
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import MB
from tightrope.models import Rollouts, TabularModel
from tightrope.models.tabular.blocks import blocks


@pytest.mark.parametrize("noise", ["frozen", "fresh"])
@pytest.mark.parametrize("seed", range(12))
def test_towards_the_exact_value(seed, noise):
    """Arbitrary logs with unseen pairs, discounts, early ends and a policy that changes with time."""
    made, slow, data, _ = random_case(seed)
    rollouts = Rollouts(20_000, noise, seed=seed)
    rng = np.random.default_rng(seed)
    weights = rng.choice([0.0, 1.0, 3.0], (3, data.n_trajectories))
    weights[:, 0] += 1.0
    ((_, block),) = blocks(weights)
    returns = rollouts.returns(made._fit(block))[:3]
    exact = [slow(row)[0] for row in weights.tolist()]
    error = returns.std(axis=1) / np.sqrt(returns.shape[1])
    assert (np.abs(returns.mean(axis=1) - exact) <= 4 * error + 1e-9).all()
    assert error.max() > 1e-3 or data.discount == 0.0, "without noise this would test little"


@pytest.mark.parametrize(("unseen", "value"), [("worst", -6.75), ("self-loop", -3.0), ("terminate", -1.75)])
def test_unseen_pairs(unseen, value):
    """By hand in test_tabular: one state, of which one action of two was logged."""
    data = with_finals(LONE, horizon=3, reward_range=(-4.0, 10.0))
    model = TabularModel(n_actions=2, unseen=unseen, rollouts=Rollouts(100_000))
    made = model.prepare(Problem(data, TabularPolicy([[0.5, 0.5]])), anchor="low")
    assert made.values(np.ones((1, 1)))[0] == pytest.approx(value, abs=0.06)  # at most 4 standard errors


def test_without_chance_it_is_exact():
    """A deterministic candidate in deterministic dynamics: 1, then 2 halved, then the end."""
    data = with_finals([episode([(0, 1, 1.0), (1, 0, 2.0)], terminated=True)], horizon=4, discount=0.5)
    policy = TabularPolicy([[0.0, 1.0], [1.0, 0.0]])
    made = TabularModel(rollouts=Rollouts(3)).prepare(Problem(data, policy), anchor="low")
    same(made.values(np.ones((2, 1))), [2.0, 2.0])


def rows_of(noise, **more):
    data = with_finals(arbitrary(9, 5, 4, tilted, seed=3), horizon=5)
    model = TabularModel(rollouts=Rollouts(50, noise, **more))
    made = model.prepare(Problem(data, tilted_policy(4, 5)), anchor="low")
    return made, np.random.default_rng(0).multinomial(9, np.full(9, 1 / 9), size=21).astype(float)


@pytest.mark.parametrize("noise", ["frozen", "fresh"])
def test_the_same_bits_however_rows_are_cut_up(noise):
    made, weights = rows_of(noise)
    whole = made.values(weights)
    np.testing.assert_array_equal(np.concatenate([made.values(weights[:5]), made.values(weights[5:])]), whole)
    np.testing.assert_array_equal(made.values(weights[::-1])[::-1], whole)
    again, _ = rows_of(noise)
    np.testing.assert_array_equal(again.values(weights), whole)
    other, _ = rows_of(noise, seed=1)
    assert (other.values(weights) != whole).all()


def test_fresh_noise_widens_the_replicates():
    """Twenty almost equal models: frozen noise gives them almost equal values, fresh noise does not."""
    spread = {}
    for noise in ("frozen", "fresh"):
        made, _ = rows_of(noise)
        weights = np.ones((20, 9)) + 1e-9 * np.arange(20)[:, None] * np.eye(9)[0]
        spread[noise] = np.std(made.values(weights))
    assert spread["frozen"] < 1e-6
    assert spread["fresh"] > 0.05


def test_no_weight_is_no_value():
    made, weights = rows_of("frozen")
    weights[2] = 0.0
    assert np.flatnonzero(np.isnan(made.values(weights))).tolist() == [2]


def test_bounds_with_either_bootstrap():
    problem = small("bonus")
    data = problem.logs(100, rng=np.random.default_rng(1))
    for resampling in ("multinomial", "model"):
        exact, rolled = (
            tightrope.lower_bound(
                data,
                problem.candidate,
                estimator=MB(model),
                method="percentile",
                resampling=resampling,
                n_resamples=200,
            )
            for model in (TabularModel(), TabularModel(rollouts=Rollouts(2000)))
        )
        assert rolled.value != exact.value
        assert rolled.value == pytest.approx(exact.value, abs=0.5 * exact.standard_error)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_rollouts": 0}, "n_rollouts must be a whole number, at least 1; got 0"),
        ({"n_rollouts": 2.5}, r"n_rollouts must be .*; got 2\.5"),
        ({"noise": "none"}, 'noise must be "frozen" or "fresh"; got .none.'),
        ({"seed": -1}, "seed must be a whole number .*; got -1"),
    ],
)
def test_refusals(settings, message):
    with pytest.raises(DataError, match=message):
        Rollouts(**settings)
