"""Estimated behaviour policies on logs that determine little: constant and redundant features, states seen once."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope import TightropeError


def features(rng, n):
    """Columns of which some are constant, 0, copies, sums of others, tiny or huge, or set in one row only."""
    width = int(rng.integers(1, 5))
    made = rng.normal(size=(n, width)) * 10.0 ** rng.integers(-9, 9)
    for k, kind in enumerate(rng.integers(0, 9, width)):
        made[:, k] = {
            0: lambda: np.zeros(n),
            1: lambda: np.full(n, rng.normal()),
            2: lambda: made[:, 0],
            3: lambda k=k: made[:, :k].sum(axis=1),
            4: lambda: rng.integers(0, 2, n),
            5: lambda: 1e6 + 1e-3 * rng.normal(size=n),
            6: lambda: np.arange(n) == 0,
        }.get(int(kind), lambda k=k: made[:, k])()
    return made


def random_logs(seed):
    """A few short episodes over numbered states (recurring or seen once) or such features."""
    rng = np.random.default_rng(seed)
    n, length = int(rng.integers(2, 12)), int(rng.integers(1, 5))
    size = n * length
    made = {
        "episode": np.repeat(np.arange(n), length),
        "t": np.tile(np.arange(length), n),
        "reward": rng.normal(size=size),
        "eval_prob": rng.uniform(0.1, 1, size),
    }
    states = features(rng, size)
    if seed % 4 == 0:
        made["state"] = rng.integers(0, 3, size) if seed % 8 else rng.permutation(size)
    else:
        made |= {f"obs_{k}": column for k, column in enumerate(states.T)}
    kind = rng.integers(0, 4)
    if kind < 2:
        made["action"] = rng.integers(0, rng.integers(2, 4), size)
    elif kind == 2:
        made["action"] = rng.normal(size=size)
    else:
        noise = 10.0 ** rng.integers(-12, 2)
        made |= {"action_0": rng.normal(size=size), "action_1": states[:, 0] + noise * rng.normal(size=size)}
    return tightrope.read(made)


def test_small_random_logs_are_answered_or_refused():
    """Of 120 small random logs none ends in anything but an answer or an error of ours."""
    answered = 0
    for seed in range(120):
        data = random_logs(seed)
        for behavior in ("auto", "logistic") if data.discrete_actions else ("auto",):
            try:
                result = tightrope.evaluate(data, behavior=behavior, estimators=["is", "pdwis"], n_resamples=20)
            except TightropeError:
                continue
            answered += all(np.isfinite(bound.estimate) for bound in result.bounds)
    assert answered > 120  # most are answered, by two ways of estimating: refusing everything would be no mend


@pytest.mark.parametrize("continuous", [False, True])
@pytest.mark.parametrize(
    "extra",
    [
        {"obs_9": np.zeros(90)},
        {"obs_9": np.full(90, 0.1)},
        {"obs_9": np.full(90, 7.5e8)},
        {"obs_00": np.full(90, 3.0), "obs_9": np.ones(90)},
    ],
)
def test_constant_features_change_nothing(continuous, extra):
    compare(continuous, lambda x: extra)


@pytest.mark.parametrize("continuous", [False, True])
def test_redundant_features_change_nothing(continuous):
    compare(continuous, lambda x: {"obs_9": x[:, 0]})
    compare(continuous, lambda x: {"obs_9": 3 * x[:, 0] - 0.5 * x[:, 1] + 2})


def compare(continuous, more):
    rng = np.random.default_rng(5)
    x = rng.normal(size=(90, 2)) * [1.0, 1e4]
    made = {
        "episode": np.repeat(np.arange(30), 3),
        "t": np.tile(np.arange(3), 30),
        "reward": rng.normal(size=90),
        "eval_prob": rng.uniform(0.1, 1, 90),
        "action": x[:, 0] + rng.normal(size=90) if continuous else (x[:, 0] + rng.normal(size=90) > 0).astype(int),
        "obs_1": x[:, 0],
        "obs_2": x[:, 1],
    }
    weights = tightrope.draw_weights(30, 40, seed=1)
    value, other = (
        tightrope.statistic(tightrope.read(source), estimator="pdwis", behavior="auto")
        for source in (made, made | more(x))
    )
    np.testing.assert_allclose(value(weights), other(weights), rtol=1e-6)
    np.testing.assert_allclose(value.influence(), other.influence(), rtol=1e-5, atol=1e-8)
    np.testing.assert_allclose(value.standard_errors(weights, (30,)), other.standard_errors(weights, (30,)), rtol=1e-5)


def test_a_feature_that_a_resample_does_not_hold():
    """A column that is set in one episode only: without that episode nothing is known of it, and nothing is needed."""
    rng = np.random.default_rng(2)
    made = {
        "episode": np.repeat(np.arange(12), 2),
        "t": np.tile([0, 1], 12),
        "reward": rng.normal(size=24),
        "eval_prob": np.full(24, 0.5),
        "action": rng.integers(0, 3, 24),
        "obs_0": rng.normal(size=24),
        "obs_1": (np.arange(24) < 2).astype(float),
    }
    value = tightrope.statistic(tightrope.read(made), estimator="wis", behavior="logistic")
    without = {name: column[2:] for name, column in made.items() if name != "obs_1"}
    expected = tightrope.statistic(tightrope.read(without), estimator="wis", behavior="logistic")
    rows = np.array([[0.0] + [1.0] * 11, [0.0] + [2.0, 1.0] * 5 + [3.0]])
    np.testing.assert_allclose(value(rows), expected(rows[:, 1:]), rtol=1e-6)
    np.testing.assert_allclose(
        value.standard_errors(rows, (11,)), expected.standard_errors(rows[:, 1:], (11,)), rtol=1e-5
    )
