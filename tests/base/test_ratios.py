"""Importance ratios: against a plain loop, with impossible actions, and far beyond what a float holds."""

from __future__ import annotations

import math

import numpy as np
import pytest

import tightrope.base.dataset
from tightrope import DataError, TrajectoryDataset
from tightrope.base.ratios import ratios


def made(steps, horizon, **changes):
    """Episodes given as lists of (candidate's, behaviour's) log-probabilities; short ones have ended."""
    flat = [pair for episode in steps for pair in episode]
    return TrajectoryDataset(
        offsets=np.r_[0, np.cumsum([len(episode) for episode in steps])],
        rewards=np.zeros(len(flat)),
        terminated=[len(episode) < horizon for episode in steps],
        horizon=horizon,
        eval_log_probs=[pair[0] for pair in flat],
        behavior_log_probs=[pair[1] for pair in flat],
        **changes,
    )


def loop(steps, horizon):
    """log of the product of step ratios of actions 0..t; a finished episode keeps its last one."""
    return [[sum(e - b for e, b in episode[: t + 1]) if episode else 0.0 for t in range(horizon)] for episode in steps]


@pytest.mark.parametrize("chunk", [1, 400, 10**7])
def test_cumulative_ratios_against_a_loop(monkeypatch, chunk):
    monkeypatch.setattr(tightrope.base.dataset, "CHUNK_BYTES", chunk)
    rng = np.random.default_rng(5)
    lengths = rng.integers(1, 8, size=40)
    steps = [[tuple(np.log(rng.uniform(0.05, 1, 2))) for _ in range(length)] for length in lengths]
    data = made(steps, 7)
    found, slow = ratios(data), np.array(loop(steps, 7))
    np.testing.assert_allclose(found.log(0, 40), slow, atol=1e-12)
    np.testing.assert_allclose(found.log(13, 21), slow[13:21], atol=1e-12)
    np.testing.assert_allclose(found.log_max, slow.max(axis=0), atol=1e-12)


def test_by_hand():
    log = math.log
    steps = [[(log(0.5), log(0.25)), (log(0.3), log(0.6))], [(log(0.9), log(0.3))], [(log(0.1), log(0.4))] * 3]
    expected = [[2, 1, 1], [3, 3, 3], [1 / 4, 1 / 16, 1 / 64]]
    found = ratios(made(steps, 3))
    np.testing.assert_allclose(np.exp(found.log(0, 3)), expected, rtol=1e-14)
    np.testing.assert_allclose(np.exp(found.log_max), [3, 3, 3], rtol=1e-14)


def test_impossible_actions_stay_impossible():
    steps = [[(-1.0, -1.0), (-math.inf, -1.0), (-0.1, -2.0)], [(-math.inf, -1.0)], [(-1.0, -1.0)] * 3]
    found = ratios(made(steps, 3))
    assert found.log(0, 3).tolist() == [[0, -math.inf, -math.inf], [-math.inf] * 3, [0, 0, 0]]
    assert found.log_max.tolist() == [0, 0, 0]


def test_all_zero_from_some_step_on():
    steps = [[(-1.0, -1.0), (-1.0, -1.0), (-math.inf, -1.0)], [(-1.0, -1.0), (-math.inf, -1.0)]]
    with pytest.raises(DataError, match="all importance weights are zero at step 2: in none of the 2 episodes"):
        ratios(made(steps, 3))


def test_long_horizon():
    """3^10000 and 3^-10000: no overflow, no NaN, in the ratios or in what is made of them."""
    horizon = 10_000
    up, down = [(0.0, -math.log(3))] * horizon, [(-math.log(3), 0.0)] * horizon
    lost = [(0.0, -math.log(3))] * 5 + [(-math.inf, 0.0)] * (horizon - 5)
    data = made([up, down, lost, up[:7]], horizon)
    found = ratios(data)
    logs = found.log(0, 4)
    assert not np.isnan(logs).any()
    np.testing.assert_allclose(logs[:, -1], [horizon * math.log(3), -horizon * math.log(3), -math.inf, 7 * math.log(3)])
    np.testing.assert_allclose(found.log_max, np.arange(1, horizon + 1) * math.log(3), rtol=1e-10)
    bound = tightrope.lower_bound(data, estimator="pdwis", method="percentile", n_resamples=40)
    assert bound.estimate == 0  # all rewards are
    effective = tightrope.evaluate(data, estimators=["wis"], n_resamples=40).overlap.effective_sample_size
    assert np.isfinite(effective).all()
    assert effective[-1] == pytest.approx(1)


def test_policy_or_logged_column():
    table = np.array([[0.2, 0.8]])
    data = TrajectoryDataset(
        offsets=[0, 2],
        rewards=[0.0, 0.0],
        terminated=[False],
        horizon=2,
        states=[0, 0],
        actions=[0, 1],
        behavior_log_probs=np.log([0.4, 0.4]),
        eval_log_probs=np.log([0.4, 0.1]),
    )
    np.testing.assert_allclose(np.exp(ratios(data).log(0, 1)), [[1, 0.25]])
    np.testing.assert_allclose(np.exp(ratios(data, table).log(0, 1)), [[0.5, 1]])
