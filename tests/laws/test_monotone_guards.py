"""A law of guards: inflate a fault of the logs, and the answer never becomes more confident.

What is refused at some severity of a fault is refused at every greater one, far beyond what a float can hold.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.evaluation.overlap import overlap

SEVERITIES = (0.0, 0.05, 0.2, 0.7, 2.0, 4.0, 10.0, 60.0, 120.0, 700.0, 1e4, 1e6)


def lowered(data, severity):
    """All logged densities too low by one factor a step; the longest episodes suffer most."""
    return replace(data, behavior_log_probs=data.behavior_log_probs - severity)


def raised(data, severity):
    """The candidate's probabilities too low by one factor a step: ratios that are too small."""
    return replace(data, eval_log_probs=data.eval_log_probs - severity)


def one_episode(data, severity):
    """One step of one episode with a propensity next to nothing."""
    logs = data.behavior_log_probs.copy()
    logs[3] -= severity
    return replace(data, behavior_log_probs=logs)


def some_episodes(data, severity):
    """The same in every tenth episode."""
    logs = data.behavior_log_probs.copy()
    logs[data.offsets[:-1][::10]] -= severity
    return replace(data, behavior_log_probs=logs)


def wrong_base(data, severity):
    """Logarithms of another base."""
    return replace(data, behavior_log_probs=data.behavior_log_probs * (1 + severity))


FAULTS = [lowered, raised, one_episode, some_episodes, wrong_base]


@pytest.mark.parametrize("name", ["walker", "bonus", "clinic"])
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_a_worse_fault_is_never_answered_with_more_confidence(fault, name):
    made = small(name)
    data = made.logs(200, rng=np.random.default_rng(5))
    refused_at: dict[bool, float] = {}
    noticed_at = None
    for severity in SEVERITIES:
        broken = fault(data, severity)
        noticed = bool(overlap(Problem(broken)).warnings)
        assert noticed or noticed_at is None, f"noticed at {noticed_at}, not at {severity}"
        noticed_at = severity if noticed and noticed_at is None else noticed_at
        for strict in (False, True):
            try:
                believed = tightrope.evaluate(broken, n_resamples=100, strict=strict).believed
            except tightrope.BoundError:
                believed = ()
            answered = f"refused at {refused_at.get(strict)}, believed at {severity}"
            assert not (believed and strict in refused_at), answered
            if not believed:
                refused_at.setdefault(strict, severity)
    assert noticed_at is not None
    if fault is not raised:  # ratios that vanish make exact lower bounds vacuous or lower, never wrong
        assert set(refused_at) == {False, True}


def test_the_guard_does_not_end_where_floats_do():
    """Densities too low by a constant a step: the value is 83, and PDWIS took the longest episodes for all."""
    rng = np.random.default_rng(0)
    for horizon in (150, 190, 192, 400):
        lengths = rng.integers(horizon // 3, horizon + 1, 200)
        data = tightrope.TrajectoryDataset(
            offsets=np.append(0, np.cumsum(lengths)),
            rewards=np.ones(lengths.sum()),
            terminated=np.ones(200, bool),
            horizon=horizon,
            behavior_log_probs=np.full(lengths.sum(), np.log(0.5) - 3.7),
            eval_log_probs=np.full(lengths.sum(), np.log(0.5)),
            reward_range=(0, 1),
        )
        result = tightrope.evaluate(data, n_resamples=100)
        assert result.believed == (), horizon
        assert any(one.code == "mean-ratio" for one in result.overlap.warnings)


def test_true_propensities_are_rarely_called_wrong():
    """The guard's own error rate: at most 1 in 10,000 for ratios too high, and rare for those too low."""
    alarms = 0
    for name in ("walker", "bonus", "decline", "clinic"):
        made = small(name)
        for seed in range(25):
            data = made.logs(100, rng=np.random.default_rng([seed, 11]))
            warnings = overlap(Problem(data)).warnings
            alarms += any(one.code == "mean-ratio" for one in warnings)
    assert alarms <= 3
