"""One clear error for each declaration, policy and option that does not fit, told apart by its message."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tests.logs import POLICY, columns, dataset, refused
from tightrope import BoundError, DataError, PolicyError, TabularPolicy, TightropeError

nan, inf = np.nan, np.inf
AT = "episode 11, step 1"


# -- declarations ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"discount": 1.1}, r"discount must be a number from 0 to 1; got 1.1"),
        ({"discount": -0.1}, r"discount must be a number from 0 to 1; got -0.1"),
        ({"discount": nan}, r"discount must be a number from 0 to 1; got nan"),
        ({"discount": "1"}, r"discount must be a number from 0 to 1; got '1'"),
        ({"horizon": 2}, "episode 10 has 3 steps, more than horizon=2; raise the horizon, or drop the later steps"),
        ({"horizon": 0}, "horizon must be a whole number of steps, at least 1; got 0"),
        ({"horizon": 2.5}, "horizon must be a whole number of steps, at least 1; got 2.5"),
        ({"horizon": inf}, "horizon must be a whole number of steps, at least 1; got inf"),
        ({"horizon": "3"}, "horizon must be a whole number of steps, at least 1; got '3'"),
        ({"horizon": 10**12, "incomplete": "terminate"}, "horizon must be at most 10000000 steps; got 1000000000000"),
        ({"horizon": 10**400}, "horizon must be a whole number of steps, at least 1; got 10+"),
        ({"discount": 10**400}, "discount must be a number from 0 to 1; got 10+"),
        ({"reward_range": (0, 2)}, r"reward -1 at episode 11, step 0 lies outside the declared reward_range \(0, 2\)"),
        ({"reward_range": (None, 1)}, r"reward 2 at episode 11, step 2 lies outside .*\(-inf, 1\); correct the range"),
        ({"return_range": (1.2, 2)}, r"the return 1 of episode 11 lies outside the declared return_range \(1.2, 2\)"),
        ({"reward_range": (1, 0)}, r"reward_range must have its lowest number below its highest; got \(1, 0\)"),
        ({"return_range": (nan, 0)}, r"return_range must have .*; got \(nan, 0\)"),
        ({"reward_range": (0, 10**400)}, r"reward_range must be a pair .*; got \(0, 10+\)"),
        ({"reward_range": 3}, r"reward_range must be a pair .*; got 3"),
    ],
)
def test_declaration(options, message):
    refused(columns(), message, **options)


# -- policies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TabularPolicy([[0.5, 0.4]]), r"row \[0\] of probs must sum to 1; got 0.9"),
        (lambda: TabularPolicy([[[0.5, 0.5]], [[0.5, 0.6]]]), r"row \[1, 0\] of probs must sum to 1; got 1.1"),
        (lambda: TabularPolicy([[0.5, 0.5], [1.5, -0.5]]), r"probs\[1, 1\] must be a probability ≥ 0; got -0.5"),
        (lambda: TabularPolicy([[nan, 1.0]]), r"probs\[0, 0\] must be a probability ≥ 0; got nan"),
        (lambda: TabularPolicy([0.5, 0.5]), r"probs must have shape \(states, actions\), .*; got shape \(2,\)"),
        (lambda: TabularPolicy([["a", "b"]]), "probs must give numbers"),
    ],
)
def test_table(make, message):
    with pytest.raises(PolicyError, match=message):
        make()


def outside(rows, columns_):
    return np.full((rows, columns_), 1 / columns_)


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (outside(1, 2), r"state must lie between 0 and 0, .*; got 1 \(at episode 10, step 1\)"),
        (outside(2, 1), r"action must lie between 0 and 0, .*; got 1 \(at episode 10, step 1\)"),
        (np.full((2, 2, 2), 0.5), r"time must lie between 0 and 1, .*; got 2 \(at episode 10, step 2\)"),
        (lambda s, a, t: np.ones(3), r"one log-probability per step, shape \(9,\); got shape \(3,\)"),
        (
            lambda s, a, t: np.where(np.arange(9) == 4, nan, 0.5),
            rf"the policy's log-probability must be a number or -inf; got nan at {AT}",
        ),
        (
            lambda s, a, t: np.where(np.arange(9) == 4, 2, 0.5),
            rf"log-probability must be at most 0, .*; got 0.69.* at {AT}",
        ),
        (
            lambda s, a, t: np.log(np.full(9, 0.5)),
            r"must return probabilities ≥ 0; got -0.693147.*CallablePolicy\(function, log=True\)",
        ),
        ("uniform", "policy must be a file .*; got .uniform."),
        (tightrope.GaussianPolicy(lambda s, t: s, 1.0), "must be floats for a GaussianPolicy; the logs hold int64"),
        (None, "policy must be given, because the logs hold no eval_prob column"),
    ],
)
def test_policy_on_logs(policy, message):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(dataset(), policy)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": None}, r"the logs must have a column state \(or obs_\*\)"),
        ({"action": None}, r"the logs must have a column action \(or action_\*\)"),
        ({"state": np.ones(9) / 2}, "states must be one integer per step for a TabularPolicy; the logs hold float64"),
        ({"action": list("ababababa")}, "one integer per step for a policy over 2 discrete actions; got <U1"),
    ],
)
def test_table_does_not_fit_the_logs(changes, message):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(tightrope.read(columns(**changes)), POLICY)


def test_no_behavior_probabilities():
    with pytest.raises(DataError, match=r"no behaviour probabilities.*behavior=policy"):
        tightrope.estimate(tightrope.read(columns(behavior_prob=None)), POLICY)
    with pytest.raises(DataError, match=r"behavior_log_probs must be finite, .*; got -inf at episode 10, step 1"):
        tightrope.read(columns(behavior_prob=None), behavior=np.array([[0.5, 0.5], [1.0, 0.0]]))


# -- bounds ----------------------------------------------------------------------------------------------------------


def test_all_weights_zero():
    never = np.array([[1.0, 0.0], [1.0, 0.0]])  # every episode takes action 1 somewhere
    with pytest.raises(DataError, match="all importance weights are zero at step 1: in none of the 3 episodes would"):
        tightrope.lower_bound(dataset(), never)


@pytest.mark.parametrize("method", ["percentile", "bca", "basic", "studentized", "t"])
def test_one_episode(method):
    with pytest.raises(BoundError, match="a bootstrap needs at least two episodes; the logs hold 1"):
        tightrope.lower_bound(dataset().take([0]), POLICY, method=method)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_resamples": 19, "method": "percentile"}, r"n_resamples.*19.*(20|raise|at least)"),
        ({"n_resamples": 99, "confidence": 0.99, "method": "bca"}, r"n_resamples.*99"),
        ({"n_resamples": 0}, "n_resamples must be a whole number, at least 1; got 0"),
        ({"n_resamples": 10**12}, "n_resamples must be at most 10000000, .*; got 1000000000000"),
        ({"n_resamples": 10**400}, "n_resamples must be a whole number, .*; got 10+"),
        ({"confidence": 0.5}, "confidence must lie between 0.5 and 1, such as 0.95; got 0.5"),
        ({"confidence": 1.0}, "confidence .* got 1.0"),
        ({"confidence": 95}, "confidence .* such as 0.95; got 95"),
        ({"confidence": nan}, "confidence .* got nan"),
        ({"estimator": "magick"}, "estimator must be .*; got 'magick'"),
        ({"method": "bayes"}, "method must be .*; got 'bayes'"),
        ({"resampling": "block"}, "resampling must be .*; got 'block'"),
        ({"seed": -1}, "seed must be a whole number from 0 .*got -1"),
        ({"seed": None}, "seed must be a whole number from 0 .*got None"),
        ({"max_ratio": 0.0}, "max_ratio must be a positive number or None; got 0.0"),
    ],
)
def test_options(options, message):
    with pytest.raises(TightropeError, match=message):
        tightrope.lower_bound(dataset(), POLICY, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": "0.95"}, "confidence .* got '0.95'"),
        ({"n_resamples": nan}, "n_resamples must be .* got nan"),
        ({"n_resamples": "x"}, "n_resamples must be .* got 'x'"),
        ({"max_ratio": "a"}, "max_ratio must be .* got 'a'"),
        ({"method": 3}, "method must be .* got 3"),
        ({"resampling": None}, "resampling must be .* got None"),
        ({"seed": -1}, "seed must be .*got -1"),
        ({"precision": "float16"}, "precision must be .* got 'float16'"),
    ],
)
def test_settings_of_the_wrong_kind(options, message):
    with pytest.raises(tightrope.TightropeError, match=message):
        tightrope.lower_bound(dataset(), **options)


def test_weights_that_would_not_fit_into_memory():
    with pytest.raises(BoundError, match=r"n_resamples must be at most .*; got 1000000000000"):
        tightrope.draw_weights(3, 10**12, seed=0)


def test_a_path_is_no_dataset():
    with pytest.raises(tightrope.DataError, match=r"dataset must be a TrajectoryDataset, .*; got type str"):
        tightrope.lower_bound("logs.parquet")


def test_one_episode_still_gets_its_exact_bound():
    one = {name: np.asarray(values)[:1] for name, values in columns().items()} | {"t": [0]}
    data = tightrope.read(one, horizon=1, reward_range=(-10, 10))
    result = tightrope.evaluate(data, POLICY, methods=["percentile", "anderson"])
    assert {bound.method for bound in result} == {"anderson"}
    assert all("at least two episodes" in why for _, method, why in result.skipped if method == "percentile")


def broken(states, actions, t):
    raise ZeroDivisionError("no such luck")


def test_a_policy_that_fails_is_named_as_such():
    with pytest.raises(PolicyError, match=r"the policy failed on the logged states and actions: ZeroDivisionError"):
        tightrope.lower_bound(dataset(), broken)


def test_a_policy_of_other_arguments_is_told_which_are_expected():
    with pytest.raises(PolicyError, match=r"must take .*; it takes \(states, actions\)"):
        tightrope.lower_bound(dataset(), lambda states, actions: np.ones(9))


def test_an_undeclared_horizon_is_not_exact_for_unfinished_episodes():
    open_ended = tightrope.read(columns(), return_range=(-100, 100))
    with pytest.raises(BoundError, match="missing: horizon"):
        tightrope.lower_bound(open_ended, POLICY, estimator="is", method="betting")


def test_a_contradicted_max_ratio_is_refused_even_when_no_method_needs_it():
    with pytest.raises(BoundError, match=r"max_ratio is 0.001, but the logs hold a cumulative importance ratio"):
        tightrope.evaluate(dataset(), POLICY, methods=["percentile"], max_ratio=0.001)
