"""Replicates: what the statistic says on the drawn rows, in bounded memory, at any horizon and any spread of ratios."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

import tightrope
from tests.laws.laws import CUTS, logs
from tests.laws.laws import SAMPLING as ESTIMATORS
from tests.oracle import Episode, random_episodes
from tightrope.base.errors import BoundError
from tightrope.base.kernels import add_weighted_squares
from tightrope.base.problem import Problem
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import Bayesian, Multinomial, Poisson, draw_weights

SCHEMES = [Multinomial(), Multinomial(size=40), Poisson(), Bayesian()]


def arrays(lengths, horizon, *, seed, spread=0.3, discount=1.0, step=None):
    """Logs made by whole arrays, for sizes where lists would be slow; densities, so that any ratio may occur."""
    rng = np.random.default_rng(seed)
    steps = int(np.sum(lengths))
    candidate = spread * rng.standard_normal(steps) - spread**2 / 2 if step is None else np.full(steps, step)
    return tightrope.TrajectoryDataset(
        offsets=np.cumsum([0, *lengths]),
        rewards=rng.uniform(-1.0, 2.0, steps),
        terminated=np.ones(len(lengths), dtype=bool),
        horizon=horizon,
        discount=discount,
        behavior_log_probs=np.zeros(steps),
        eval_log_probs=candidate,
        actions=np.zeros((steps, 1)),
        reward_range=(-1.0, 2.0),
    )


def dominated(spread, n=40):
    """One step each, with log ratios of a wide spread: many rows miss the few trajectories that dominate."""
    return arrays(np.ones(n, dtype=int), 1, seed=3, spread=spread)


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_replicates_are_the_statistic_on_drawn_rows(name, scheme):
    statistic = tightrope.statistic(logs(random_episodes(60, 5, seed=2), horizon=5, discount=0.9), estimator=name)
    (result,) = replicate([statistic], scheme, n_resamples=500, seed=11)
    expected = statistic(draw_weights(60, 500, seed=11, resampling=scheme))
    expected = statistic.estimate + scheme.scale(60) * (expected - statistic.estimate)
    # Columns rounded to a grid that makes sums exact: some n·2^-52 of the largest value, far below 1e-11 here.
    np.testing.assert_allclose(result.values, expected, rtol=1e-12, atol=1e-11)
    assert result.estimate == statistic.estimate
    assert result.n_trajectories == 60


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("spread", [5.0, 15.0, 40.0, 200.0])
@pytest.mark.parametrize("name", ["wis", "pdwis"])
def test_rows_without_the_dominant_trajectories(name, spread, precision):
    """A row with too little weight for the grid (or for float32) is undefined, never a rounding error."""
    statistic = tightrope.statistic(dominated(spread), estimator=name)
    (result,) = replicate(
        [statistic], Multinomial(), n_resamples=400, seed=1, precision=precision, standard_errors=True
    )
    weights, columns = draw_weights(40, 400, seed=1), statistic.make_columns(0, 40)
    expected = statistic(weights)
    assert np.isfinite(expected).all()
    defined = np.isfinite(result.values)
    assert result.n_undefined == (~defined).sum()
    np.testing.assert_allclose(result.values[defined], expected[defined], atol=1e-6 if precision == "float64" else 3e-5)
    # Undefined only below a millionth of the heaviest trajectory (float64) or a hundredth of the average (float32).
    below, average = weights @ columns[:, 0], columns[:, 0].sum()
    assert below[~defined].max(initial=0.0) < (1e-6 if precision == "float64" else 0.0101 * average)
    assert defined[below > (1e-6 if precision == "float64" else 0.0102 * average)].all()
    # And their standard errors: Σ w (g · x)², by the gradient of a plain sum.
    effects = statistic.combine.gradient(weights @ columns) @ columns.T
    effects[weights == 0] = 0.0  # the effect of a trajectory that was not drawn may not fit a float
    errors = np.sqrt(np.sum(weights * effects**2, axis=1) * 40 / 39)
    np.testing.assert_allclose(result.standard_errors[defined], errors[defined], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize("horizon", [1, 12, 150])
def test_standard_errors_by_their_definition(horizon):
    """√(Σ w (g · x)² B/(B − 1)), whatever the tiles: rows that fill none, and blocks too wide for one chunk."""
    statistic = tightrope.statistic(arrays(np.full(2100, horizon), horizon, seed=1, spread=0.05))
    (result,) = replicate([statistic], Multinomial(), n_resamples=300, seed=1, standard_errors=True)
    weights, columns = draw_weights(2100, 300, seed=1), statistic.make_columns(0, 2100)
    effects = statistic.combine.gradient(weights @ columns) @ columns.T
    expected = np.sqrt(np.sum(weights * effects**2, axis=1) * 2100 / 2099)
    np.testing.assert_allclose(result.standard_errors, expected, rtol=1e-9)


def test_a_trajectory_that_was_not_drawn_adds_nothing_however_large_its_effect():
    weights, effects, squares = np.array([[0.0, 2.0, 1.0]] * 5), np.array([[1e200, 3.0, -1.0]] * 5), np.zeros(5)
    for effects[:, 0] in (1e200, np.inf, np.nan):
        squares[:] = 0.5
        add_weighted_squares(weights, effects, squares)
        assert squares.tolist() == [19.5] * 5


def test_dominated_rows_keep_their_bits(monkeypatch):
    def run():
        return replicate([tightrope.statistic(dominated(40.0, 1500))], Multinomial(), n_resamples=300, seed=1)[0].values

    plain = run()
    for module, name, size in CUTS:
        with monkeypatch.context() as patch:
            patch.setattr(import_module(module), name, size)
            np.testing.assert_array_equal(run(), plain)


class Median:
    """A statistic that no sum gives: the weighted median return."""

    def __init__(self, returns):
        self.order = np.argsort(returns)
        self.returns = np.sort(returns)
        self.n_trajectories = len(returns)

    def __call__(self, weights):
        weights = np.asarray(weights)[..., self.order]
        cumulative = np.cumsum(weights, axis=-1)
        return self.returns[np.argmax(cumulative >= 0.5 * cumulative[..., -1:], axis=-1)]


@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
@pytest.mark.parametrize("n", [30, 2100])
def test_any_statistic(scheme, n):
    """A plain callable goes through the same call, alone or beside one that reduces to sums."""
    data = logs(random_episodes(n, 3, seed=5), horizon=3)
    median, wis = Median(data.returns), tightrope.statistic(data, estimator="wis")
    alone, beside = (replicate(list(s), scheme, n_resamples=300, seed=4) for s in ([median], [median, wis]))
    rows = draw_weights(n, 300, seed=4, resampling=scheme)
    expected = median.returns[n // 2 - 1] + scheme.scale(n) * (median(rows) - median.returns[n // 2 - 1])
    np.testing.assert_allclose(alone[0].values, expected, rtol=1e-12)
    np.testing.assert_array_equal(beside[0].values, alone[0].values)
    np.testing.assert_array_equal(beside[1].values, replicate([wis], scheme, n_resamples=300, seed=4)[0].values)


@pytest.mark.parametrize("standard_errors", [False, True])
def test_together_equals_alone(standard_errors):
    problem = Problem(logs(random_episodes(1100, 4, seed=6), horizon=4, discount=0.9))
    statistics = [make()(problem) for make in ESTIMATORS.values()]
    options = {"n_resamples": 300, "seed": 2, "standard_errors": standard_errors}
    together = replicate(statistics, Multinomial(), **options)
    for statistic, result in zip(statistics, together, strict=True):
        (alone,) = replicate([statistic], Multinomial(), **options)
        np.testing.assert_array_equal(result.values, alone.values)
        if standard_errors:
            np.testing.assert_allclose(result.standard_errors, alone.standard_errors, rtol=1e-12)


FLOAT32 = {
    "ordinary": lambda: arrays(np.random.default_rng(0).integers(1, 9, size=1500), 8, seed=1),
    "heavy ratios": lambda: arrays(np.full(1000, 30), 30, seed=2, spread=0.5),
    # A large constant in every reward is what plain float32 sums lose.
    "far from zero": lambda: _raised(arrays(np.full(1200, 10), 10, seed=3), 1e5),
    "few": lambda: arrays(np.full(12, 5), 5, seed=4),
}


def _raised(data, c):
    return replace(data, rewards=data.rewards + c, reward_range=None)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("kind", FLOAT32)
def test_float32(kind, name):
    """It loses less than 1e-4 of the bootstrap's own standard error."""
    statistic = tightrope.statistic(FLOAT32[kind](), estimator=name)
    options = {"n_resamples": 400, "seed": 3, "standard_errors": True}
    (double,) = replicate([statistic], Multinomial(), precision="float64", **options)
    (single,) = replicate([statistic], Multinomial(), precision="float32", **options)
    assert np.any(single.values != double.values), "float32 was not used: nothing was tested"
    assert np.abs(single.values - double.values).max() < 1e-4 * double.values.std()
    np.testing.assert_allclose(single.standard_errors, double.standard_errors, rtol=1e-3)


def test_standard_error_of_a_mean():
    """With π_e = π_b and one step, IS is the sample mean: its standard errors are s/√n, of every row too."""
    values = np.random.default_rng(0).exponential(size=25)
    data = logs([Episode([v], [0.5], [0.5], True) for v in values], horizon=1)
    (result,) = replicate(
        [tightrope.statistic(data, estimator="is")], Multinomial(), n_resamples=50, seed=0, standard_errors=True
    )
    assert result.standard_error == pytest.approx(values.std(ddof=1) / 5)
    rows = draw_weights(25, 50, seed=0).astype(int)
    expected = [np.repeat(values, row).std(ddof=1) / 5 for row in rows]
    np.testing.assert_allclose(result.standard_errors, expected, rtol=1e-9)


@pytest.mark.parametrize("precision", ["float64", "float32"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_memory(name, precision):
    """Beyond the dataset, a bootstrap takes under 128 MB; all columns at once would take 320 MB for pdwis."""
    data = arrays(np.full(20_000, 100), 100, seed=0, spread=0.05)
    small = tightrope.statistic(data.take(np.arange(50)), estimator=name)
    replicate([small], Multinomial(), n_resamples=10, seed=0, precision=precision)  # compiles outside the count
    tracemalloc.start()
    try:
        statistic = tightrope.statistic(data, estimator=name)
        replicate([statistic], Multinomial(), n_resamples=300, seed=0, precision=precision, standard_errors=True)
        statistic.leave_one_out()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 128 << 20


@pytest.mark.parametrize("name", ESTIMATORS)
def test_long_horizon(name):
    """10,000 steps: on-policy exactly the mean, near it a finite number, and a bootstrap of either."""
    lengths = np.full(30, 10_000)
    same = arrays(lengths, 10_000, seed=1, step=0.0)
    assert tightrope.estimate(same, estimator=name) == pytest.approx(same.returns.mean(), rel=1e-10)
    mild = arrays(lengths, 10_000, seed=1, spread=0.002)
    (result,) = replicate([tightrope.statistic(mild, estimator=name)], Multinomial(), n_resamples=100, seed=0)
    assert np.isfinite(result.values).all()
    assert np.isfinite(result.estimate)
    # Log ratios of sd 0.2 by the end: the estimate stays within a few hundred of the mean of some 5,000.
    assert abs(result.estimate - mild.returns.mean()) < 0.2 * abs(mild.returns.mean())


@pytest.mark.parametrize("name", ["wis", "pdwis"])
@pytest.mark.parametrize("step", [np.log(3.0), -np.log(3.0)])
def test_long_horizon_with_large_ratios(name, step):
    """3^10000 fits no float, but only relative ratios matter: all alike, so the plain mean is the answer."""
    data = arrays(np.full(8, 10_000), 10_000, seed=1, step=step)
    assert tightrope.estimate(data, estimator=name) == pytest.approx(data.returns.mean(), rel=1e-9)
    (result,) = replicate([tightrope.statistic(data, estimator=name)], Multinomial(), n_resamples=50, seed=0)
    assert np.isfinite(result.values).all()


@pytest.mark.parametrize("name", ["is", "pdis"])
def test_overflow_is_an_error(name):
    """Where no average survives, is and pdis say so and name what works."""
    data = arrays(np.full(8, 10_000), 10_000, seed=1, step=np.log(3.0))
    with pytest.raises(BoundError, match="use wis or pdwis"):
        tightrope.estimate(data, estimator=name)


def test_undefined_rows_are_counted():
    """One trajectory in a hundred has weight: rows without it are undefined, (1 - 1/100)^100 = 37 % of them."""
    episodes = [Episode([1.0], [0.5], [0.5 if i == 7 else 0.0], True) for i in range(100)]
    statistic = tightrope.statistic(logs(episodes, horizon=1), estimator="wis")
    for precision in ("float64", "float32"):
        (result,) = replicate(
            [statistic], Multinomial(), n_resamples=1000, seed=0, precision=precision, standard_errors=True
        )
        assert result.n_undefined == (draw_weights(100, 1000, seed=0)[:, 7] == 0).sum()
        assert abs(result.n_undefined - 366) < 5 * np.sqrt(1000 * 0.366 * 0.634)
        assert (result.values[~np.isnan(result.values)] == 1.0).all()


def test_progress_reaches_one():
    seen = []
    statistic = tightrope.statistic(logs(random_episodes(30, 3, seed=1), horizon=3))
    replicate([statistic], Multinomial(), n_resamples=100, seed=0, progress=seen.append)
    assert seen == sorted(seen)
    assert seen[-1] == pytest.approx(1.0)


def test_one_episode_is_refused():
    one = tightrope.statistic(logs(random_episodes(1, 3, seed=1), horizon=3))
    with pytest.raises(BoundError, match="at least two episodes; the logs hold 1"):
        replicate([one], Multinomial(), n_resamples=10, seed=0)


@pytest.mark.parametrize("scheme", [Multinomial(size=1), *SCHEMES], ids=str)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_negated_rewards_give_negated_replicates(name, scheme):
    """To the bit: an upper bound is minus the lower bound of the negated rewards."""
    data = dominated(0.8)
    made = []
    for sign in (1.0, -1.0):
        low, high = sorted((sign * -1.0, sign * 2.0))
        problem = Problem(replace(data, rewards=sign * data.rewards, reward_range=(low, high)))
        estimator = ESTIMATORS[name]().anchored("low" if sign > 0 else "high")
        (result,) = replicate([estimator(problem)], scheme, n_resamples=100, seed=3, standard_errors=True)
        made.append(result)
    np.testing.assert_array_equal(made[0].values, -made[1].values)
    np.testing.assert_array_equal(made[0].standard_errors, made[1].standard_errors)


@pytest.mark.parametrize("exponent", [-300, -160, 0, 160, 300])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_float32_does_not_care_about_the_unit_of_rewards(name, exponent):
    """To the bit, by a power of two: rewards of 1e-46 or 1e46 are no numbers of single precision."""
    data, factor = dominated(0.3), 2.0**exponent
    made = []
    for scaled in (
        data,
        replace(data, rewards=factor * data.rewards, reward_range=(-factor, 2 * factor)),
    ):
        statistic = ESTIMATORS[name]()(Problem(scaled))
        options = {"n_resamples": 100, "seed": 3, "precision": "float32", "standard_errors": True}
        made += replicate([statistic], Multinomial(), **options)
    np.testing.assert_array_equal(factor * made[0].values, made[1].values)
    np.testing.assert_array_equal(factor * made[0].standard_errors, made[1].standard_errors)
    assert np.unique(made[1].values).size > 50
