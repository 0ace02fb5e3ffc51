"""Episodes that the logger cut off: what exact bounds make of them, however the logger chose where to cut.

By hand on two episodes, and by error rates: logs cut after two steps, at random, and with malice (whenever what follows
is about to be bad, or good).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope.base.problem import Problem
from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.domains import small
from tightrope.estimators import estimator
from tightrope.estimators.gain import gain

EXACT = [name for name, method in METHODS.items() if is_exact(method)]


def two_episodes(**declared):
    """Episode 0 runs three steps and ends; episode 1 is cut off after two of four."""
    return tightrope.read(
        {
            "episode": [0, 0, 0, 1, 1],
            "t": [0, 1, 2, 0, 1],
            "reward": [1.0, 0.0, 2.0, 3.0, 1.0],
            "behavior_prob": [0.5] * 5,
            "eval_prob": [1.0, 0.5, 0.25, 0.75, 1.0],
            "terminated": [False, False, True, False, False],
        },
        horizon=4,
        discount=0.5,
        incomplete="terminate",
        **declared,
    )


def test_the_dataset_knows_what_was_cut():
    data = two_episodes(reward_range=(0, 4))
    assert data.cut.tolist() == [False, True]
    assert data.any_cut
    assert data.take([0]).cut.tolist() == [False]
    assert not data.take([0]).any_cut
    assert data.take([1, 0]).cut.tolist() == [True, False]
    assert "exact bounds" in data.notes[0].text


@pytest.mark.parametrize(
    ("name", "anchor", "expected"),
    [
        # Lower: what was not seen counts 0 above the floor. Ratios 2, 2, 1 (then 1), and 1.5, 3.
        ("is", "low", [1 * (1 + 0 + 0.5), 0.0]),
        ("pdis", "low", [2 * 1 + 0 + 0.25 * 2, 1.5 * 3 + 0.5 * 3 * 1]),
        # Upper: rewards of at most 4, counted from the ceiling; after the end of episode 0 each step lies 4 below it.
        ("is", "high", [1 * (7.5 - 1.5), 0.0]),
        ("pdis", "high", [2 * 3 + 0.5 * 2 * 4 + 0.25 * 2 + 0.125 * 4, 1.5 * 1 + 0.5 * 3 * 3]),
    ],
)
def test_by_hand(name, anchor, expected):
    data = two_episodes(reward_range=(0, 4))
    sample = estimator(name).anchored(anchor).trajectory_values(Problem(data), max_ratio=None)
    np.testing.assert_allclose(sample.values, expected, rtol=1e-12)


def test_the_gain_by_hand():
    """The behaviour policy's return of episode 1 is 3.5, and at most 3.5 + (0.25 + 0.125) · 4 = 5; at least 3.5."""
    data = two_episodes(reward_range=(0, 4))
    low = gain(estimator("is")).anchored("low").trajectory_values(Problem(data), max_ratio=None)
    np.testing.assert_allclose(low.values, [1.5 + (7.5 - 1.5), 0.0 + (7.5 - 5.0)])
    high = gain(estimator("is")).anchored("high").trajectory_values(Problem(data), max_ratio=None)
    np.testing.assert_allclose(high.values, [6.0 + 1.5, 0.0 + 3.5])
    ranged = two_episodes(return_range=(0, 6))
    low = gain(estimator("is")).anchored("low").trajectory_values(Problem(ranged), max_ratio=None)
    np.testing.assert_allclose(low.values, [1.5 + (6 - 1.5), 0.0])  # nothing is known of a step


def test_the_longest_episode_is_no_horizon_where_some_were_cut():
    columns = {"episode": [0, 1], "t": [0, 0], "reward": [1.0, 1.0], "behavior_prob": [0.5] * 2, "eval_prob": [0.5] * 2}
    ended = tightrope.TrajectoryDataset(
        offsets=[0, 1, 2], rewards=[1.0, 1.0], terminated=[True, True], horizon=1, horizon_declared=False,
        behavior_log_probs=np.log([0.5, 0.5]), eval_log_probs=np.log([0.5, 0.5]), return_range=(0, 9),
    )  # fmt: skip
    assert estimator("is").trajectory_values(Problem(ended), max_ratio=None).values.tolist() == [1.0, 1.0]
    cut = tightrope.read(columns, incomplete="terminate", horizon=3, return_range=(0, 9))
    assert cut.any_cut
    undeclared = replace(ended, cut=np.array([True, False]))
    with pytest.raises(tightrope.BoundError, match="horizon"):
        estimator("is").trajectory_values(Problem(undeclared), max_ratio=None)


def cut_logs(made, how, rng, n=100):
    """Logs of a small problem, cut off in one of several ways."""
    whole = made.logs(n, rng=rng)
    keep = whole.lengths.copy()
    if how == "after two steps":
        keep = np.minimum(keep, 2)
    elif how == "at random":
        keep = np.minimum(keep, rng.integers(1, whole.horizon + 1, n))
    else:
        worst, returns = how == "before the bad", whole.returns
        spoiled = returns < np.median(returns) if worst else returns > np.median(returns)
        keep = np.where(spoiled, np.maximum(1, keep // 2), keep)
    steps = np.arange(whole.n_steps)[whole.times < np.repeat(keep, whole.lengths)]
    short = keep < whole.lengths
    return tightrope.TrajectoryDataset(
        offsets=np.append(0, np.cumsum(keep)),
        rewards=whole.rewards[steps],
        terminated=whole.terminated | short,
        cut=short,
        horizon=whole.horizon,
        discount=whole.discount,
        behavior_log_probs=whole.behavior_log_probs[steps],
        eval_log_probs=whole.eval_log_probs[steps],
        reward_range=whole.reward_range,
        return_range=whole.return_range,
    )


@pytest.mark.parametrize("how", ["after two steps", "at random", "before the bad", "before the good"])
@pytest.mark.parametrize("name", ["walker", "bonus", "decline"])
def test_exact_bounds_hold_however_logs_were_cut(name, how):
    """Thirty logs, values and gains, both sides: more than 5 errors of 30 at 5 % have probability 0.3 %."""
    made = small(name)
    truths = {"value": made.true_value, "gain": made.true_value - made.behavior_value}
    errors: dict[tuple[str, ...], int] = {}
    for seed in range(30):
        data = cut_logs(made, how, np.random.default_rng([seed, 17]))
        result = tightrope.evaluate(
            data, estimators=["is", "pdis"], methods=EXACT, baseline="behavior", max_ratio=made.max_ratio
        )
        for bound in (*result.bounds, *result.gains):
            truth = truths[bound.about]
            wrong = bound.value > truth + 1e-9 if bound.side == "lower" else bound.value < truth - 1e-9
            key = (bound.about, bound.side, bound.estimator, bound.method)
            errors[key] = errors.get(key, 0) + bool(wrong)
    assert len(errors) == 2 * 2 * 2 * len(EXACT)
    assert max(errors.values()) <= 5, errors


def test_a_robust_bound_on_cut_logs_is_not_called_exact():
    made = small("bonus")
    logs = made.logs(50, rng=np.random.default_rng(0))
    whole = tightrope.lower_bound(logs, made.candidate, estimator="mb", method="robust")
    assert whole.guarantee == "exact"
    cut = replace(logs, cut=np.arange(50) == 3)
    assert tightrope.lower_bound(cut, made.candidate, estimator="mb", method="robust").guarantee == "approximate"
