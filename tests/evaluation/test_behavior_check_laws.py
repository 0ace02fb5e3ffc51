"""Laws of the check of an estimated behaviour policy."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest
from scipy import stats

from tightrope import TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.behaviors import LogisticBehavior
from tightrope.evaluation.behavior_check import _distance, check_behavior


@pytest.mark.parametrize("shift", [-5.0, -0.3, 0.0, 0.3, 5.0])
def test_the_distance_is_kolmogorovs_to_either_side(shift):
    residuals = np.random.default_rng(0).normal(shift, 1.0, size=300)
    distance, noise, square = _distance(residuals)
    assert distance == pytest.approx(stats.kstest(residuals, "norm").statistic)
    assert noise == pytest.approx(0.87 / np.sqrt(300))
    assert square == pytest.approx(np.mean(residuals**2))


def test_the_smallest_p_value_of_the_shape_is_multiplied_by_their_number(monkeypatch):
    """Three actions are three tests of shape."""
    rng = np.random.default_rng(0)
    data = TrajectoryDataset(
        offsets=np.arange(61),
        rewards=np.zeros(60),
        terminated=np.ones(60, dtype=bool),
        horizon=1,
        states=rng.normal(size=(60, 1)),
        actions=rng.integers(3, size=60),
        eval_log_probs=np.full(60, np.log(1 / 3)),
    )
    tails = iter([0.4, 0.03, 0.5])
    monkeypatch.setattr(import_module(check_behavior.__module__), "score_test", lambda *_: next(tails))
    assert check_behavior(Problem(data, None, LogisticBehavior())).misfit == pytest.approx(3 * 0.03)
