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
        ({"discount": 1.1}, r"discount is 1.1; it must be a number in \[0, 1\]"),
        ({"discount": -0.1}, r"discount is -0.1"),
        ({"discount": nan}, r"discount is nan"),
        ({"discount": "1"}, r"discount is '1'"),
        ({"horizon": 2}, "episode 10 has 3 steps, more than horizon=2; raise the horizon, or drop the later steps"),
        ({"horizon": 0}, "horizon is 0; it must be a whole number of steps, at least 1"),
        ({"horizon": 2.5}, "horizon is 2.5"),
        ({"horizon": inf}, "horizon is inf"),
        ({"horizon": "3"}, "horizon is '3'"),
        ({"horizon": 10**12, "incomplete": "terminate"}, "horizon is 1000000000000; at most 10000000 steps"),
        ({"horizon": 10**400}, "horizon is 10+; it must be a whole number"),
        ({"discount": 10**400}, "discount is 10+; it must be a number in"),
        ({"reward_range": (0, 2)}, r"reward -1 at episode 11, step 0 lies outside the declared reward_range \(0, 2\)"),
        ({"reward_range": (None, 1)}, r"reward 2 at episode 11, step 2 lies outside .*\(-inf, 1\); correct the range"),
        ({"return_range": (1.2, 2)}, r"the return 1 of episode 11 lies outside the declared return_range \(1.2, 2\)"),
        ({"reward_range": (1, 0)}, r"reward_range is \(1, 0\); the lowest must be below the highest"),
        ({"return_range": (nan, 0)}, r"return_range is \(nan, 0\)"),
        ({"reward_range": (0, 10**400)}, r"reward_range is \(0, 10+\); give a pair"),
        ({"reward_range": 3}, r"reward_range is 3; give a pair \(lowest, highest\)"),
    ],
)
def test_declaration(options, message):
    refused(columns(), message, **options)


# -- policies --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: TabularPolicy([[0.5, 0.4]]), r"row \[0\] of probs sums to 0.9; each row must sum to one"),
        (lambda: TabularPolicy([[[0.5, 0.5]], [[0.5, 0.6]]]), r"row \[1, 0\] of probs sums to 1.1"),
        (lambda: TabularPolicy([[0.5, 0.5], [1.5, -0.5]]), r"probs\[1, 1\] is -0.5; probabilities must be numbers ≥ 0"),
        (lambda: TabularPolicy([[nan, 1.0]]), r"probs\[0, 0\] is nan"),
        (lambda: TabularPolicy([0.5, 0.5]), r"probs has shape \(2,\); give \(states, actions\)"),
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
        (outside(1, 2), r"state 1 is outside 0..0: .* \(at episode 10, step 1\)"),
        (outside(2, 1), r"action 1 is outside 0..0: .* \(at episode 10, step 1\)"),
        (np.full((2, 2, 2), 0.5), r"time 2 is outside 0..1: .* \(at episode 10, step 2\)"),
        (lambda s, a, t: np.ones(3), r"log-probabilities of shape \(3,\); one per step, \(9,\), expected"),
        (lambda s, a, t: np.where(np.arange(9) == 4, nan, 0.5), rf"the policy's log-probability is nan at {AT}"),
        (
            lambda s, a, t: np.where(np.arange(9) == 4, 2, 0.5),
            rf"log-probability is 0.69.* at {AT}, a probability above",
        ),
        (lambda s, a, t: np.log(np.full(9, 0.5)), r"returned -0.693147, below 0.*CallablePolicy\(function, log=True\)"),
        ("uniform", "policy is .uniform.; give a file"),
        (tightrope.GaussianPolicy(lambda s, t: s, 1.0), "needs float actions; the logs hold int64"),
        (None, "no policy was given and the logs hold no eval_prob column"),
    ],
)
def test_policy_on_logs(policy, message):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(dataset(), policy)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"state": None}, r"the logs have no state \(or obs_\*\) column"),
        ({"action": None}, r"the logs have no action \(or action_\*\) column"),
        ({"state": np.ones(9) / 2}, "a TabularPolicy needs one integer state per step; the logs hold float64"),
        ({"action": list("ababababa")}, "discrete actions needs one integer action per step; got <U1"),
    ],
)
def test_table_does_not_fit_the_logs(changes, message):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(tightrope.read(columns(**changes)), POLICY)


def test_no_behavior_probabilities():
    with pytest.raises(DataError, match=r"no behaviour probabilities.*behavior=policy"):
        tightrope.estimate(tightrope.read(columns(behavior_prob=None)), POLICY)
    with pytest.raises(DataError, match=r"behavior_log_probs is -inf at episode 10, step 1"):
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
        ({"n_resamples": 0}, "n_resamples is 0; it must be a whole number, at least 1"),
        ({"n_resamples": 10**12}, "n_resamples is 1000000000000; at most 10000000 are drawn"),
        ({"n_resamples": 10**400}, "n_resamples is 10+; it must be a whole number"),
        ({"confidence": 0.5}, "confidence is 0.5; it must lie between 0.5 and 1"),
        ({"confidence": 1.0}, "confidence is 1.0"),
        ({"confidence": 95}, "confidence is 95; .* such as 0.95"),
        ({"confidence": nan}, "confidence is nan"),
        ({"estimator": "magic"}, "estimator is 'magic'; known: is, pdis, wis, pdwis"),
        ({"method": "bayes"}, "method is 'bayes'; known: percentile, bca, basic, studentized, t, hoeffding"),
        ({"resampling": "block"}, "resampling is 'block'; known: multinomial, bayesian, poisson"),
        ({"rng": -1}, "rng is -1; give a whole number"),
        ({"rng": None}, "rng is None; give a whole number"),
        ({"max_ratio": 0.0}, "max_ratio is 0.0; it must be positive"),
    ],
)
def test_options(options, message):
    with pytest.raises(TightropeError, match=message):
        tightrope.lower_bound(dataset(), POLICY, **options)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"confidence": "0.95"}, "confidence is '0.95'"),
        ({"n_resamples": nan}, "n_resamples is nan"),
        ({"n_resamples": "x"}, "n_resamples is 'x'"),
        ({"max_ratio": "a"}, "max_ratio is 'a'"),
        ({"estimator": None}, "estimator is None; known: is, pdis"),
        ({"method": 3}, "method is 3; known: percentile"),
        ({"resampling": None}, "resampling is None; known: multinomial"),
        ({"rng": -1}, "rng is -1"),
        ({"precision": "float16"}, "precision is 'float16'"),
    ],
)
def test_settings_of_the_wrong_kind(options, message):
    with pytest.raises(tightrope.TightropeError, match=message):
        tightrope.lower_bound(dataset(), **options)


def test_weights_that_would_not_fit_into_memory():
    with pytest.raises(BoundError, match="n_resamples is 1000000000000; at most"):
        tightrope.draw_weights(3, 10**12, rng=0)


def test_a_path_is_no_dataset():
    with pytest.raises(tightrope.DataError, match=r"dataset is a str; read it first: tightrope\.read"):
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
    with pytest.raises(PolicyError, match=r"takes \(states, actions\); \(states\), \(states, t\) or"):
        tightrope.lower_bound(dataset(), lambda states, actions: np.ones(9))


def test_an_undeclared_horizon_is_not_exact_for_unfinished_episodes():
    open_ended = tightrope.read(columns(), return_range=(-100, 100))
    with pytest.raises(BoundError, match="missing: horizon"):
        tightrope.lower_bound(open_ended, POLICY, estimator="is", method="betting")


def test_a_contradicted_max_ratio_is_refused_even_when_no_method_needs_it():
    with pytest.raises(BoundError, match=r"max_ratio is 0.001, but the logs hold a cumulative importance ratio"):
        tightrope.evaluate(dataset(), POLICY, methods=["percentile"], max_ratio=0.001)
