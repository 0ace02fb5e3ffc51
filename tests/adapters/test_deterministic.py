"""Policies without noise over continuous actions: a model evaluates them, importance sampling says why it cannot."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope import DeterministicControl, NoOverlapError, PolicyError
from tightrope.base.policy import as_policy

T = 3
CONTROL = DeterministicControl(lambda s, t: -0.25 * s[:, :1])


@pytest.fixture(scope="module")
def logs():
    """s' = 0.5 s + a without noise, reward s: under a = -0.25 s the return from s is s (1 + 1/4 + 1/16)."""
    rng = np.random.default_rng(1)
    n, state = 40, rng.normal(2.0, 1.0, size=40)
    rows = {name: [] for name in ("episode", "t", "obs_0", "action_0", "reward", "next_obs_0", "behavior_log_prob")}
    for t in range(T):
        noise = rng.normal(size=n)
        following = 0.5 * state + noise
        density = -0.5 * noise**2 - 0.5 * np.log(2 * np.pi)
        for name, values in zip(
            rows, (np.arange(n), np.full(n, t), state, noise, state, following, density), strict=True
        ):
            rows[name].append(values)
        state = following
    return tightrope.read({name: np.concatenate(parts) for name, parts in rows.items()}, horizon=T)


def test_a_model_evaluates_it(logs):
    starts = logs.states[logs.offsets[:-1], 0]
    found = tightrope.estimate(logs, CONTROL, estimator="mb")
    assert found == pytest.approx(starts.mean() * (1 + 1 / 4 + 1 / 16), rel=1e-4)  # the noise fitted is a floor near 0


def test_importance_sampling_refuses_it(logs):
    with pytest.raises(NoOverlapError, match=r"deterministic over continuous actions, so it has no density.*MB.*sigma"):
        tightrope.estimate(logs, CONTROL, estimator="is")


def test_evaluate_computes_the_model_and_says_why_the_rest_is_skipped(logs):
    result = tightrope.evaluate(logs, CONTROL, n_resamples=200)
    assert {bound.estimator for bound in result.bounds} == {"mb"}
    why = {estimator: text for estimator, _, text in result.skipped}
    assert {"is", "pdis", "wis", "pdwis", "dr", "wdr"} <= why.keys()
    assert all("it has no density" in why[name] for name in ("is", "pdis", "wis", "pdwis", "dr", "wdr"))
    assert "it has no density" in result.reasons[0]
    assert "acts as the candidate does" in result.advice  # no declared range would help here


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: DeterministicControl(lambda s, t: s, 0), "width must be .*; got 0"),
        (
            lambda: DeterministicControl(lambda s, t: s, 2).act(np.zeros((3, 1)), np.zeros(3, int), np.zeros((3, 0))),
            r"choose must return shape \(3, 2\), .*; got shape \(3, 1\)",
        ),
    ],
)
def test_refused(call, message):
    with pytest.raises(PolicyError, match=message):
        call()


def test_a_discrete_deterministic_candidate_keeps_importance_sampling():
    """Half the episodes acted as the candidate does, each with ratio 2: IS is the mean of 2 x return over them."""
    actions, rewards = np.array([0, 1, 0, 1]), np.array([1.0, 10.0, 3.0, 20.0])
    source = {
        "episode": np.arange(4),
        "t": np.zeros(4, int),
        "state": np.zeros(4, int),
        "action": actions,
        "reward": rewards,
        "behavior_prob": np.full(4, 0.5),
        "terminated": np.ones(4, bool),
    }
    table = np.array([[1.0, 0.0]])
    assert tightrope.estimate(tightrope.read(source), table, estimator="is") == pytest.approx((2 * 1 + 2 * 3) / 4)


class Acting:
    """Acts without noise, and says nothing about probabilities."""

    noise_width = 0

    def __init__(self, act, **declared):
        self.act = act
        vars(self).update(declared)


def test_an_object_that_only_acts_is_recognised(logs):
    acting = Acting(lambda s, t, u: -0.25 * s[:, :1])
    expected = tightrope.estimate(logs, CONTROL, estimator="mb")
    assert tightrope.estimate(logs, acting, estimator="mb") == pytest.approx(expected)
    with pytest.raises(NoOverlapError, match="it has no density"):
        as_policy(acting).log_prob(logs.states, logs.actions, logs.times)
    discrete = as_policy(Acting(lambda s, t, u: (s[:, 0] > 0).astype(int), n_actions=2))
    assert discrete.probs(np.array([[1.0], [-1.0]]), np.zeros(2, int)).tolist() == [[0, 1], [1, 0]]


def test_what_only_acts_must_declare_what_it_chooses_from(logs):
    with pytest.raises(PolicyError, match=r"Acting must have n_actions, .*acts without noise and returns int64"):
        tightrope.estimate(logs, Acting(lambda s, t, u: np.zeros(len(s), int)), estimator="mb")
    with pytest.raises(PolicyError, match=r"must have log_prob.*, because it acts with noise"):
        as_policy(Acting(lambda s, t, u: u, noise_width=1))
