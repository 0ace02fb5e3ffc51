"""Noise that the owner of a policy declares."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from tightrope import DeterministicControl, DeterministicPolicy, PolicyError, TabularPolicy, UniformPolicy, softened

STATES, TIMES = np.array([0, 1, 0]), np.zeros(3, int)
TABLE = np.array([[0.25, 0.75], [1.0, 0.0]])
CONTROL = DeterministicControl(lambda s, t: np.stack([s, 2.0 * s], axis=1), 2)


@pytest.mark.parametrize("policy", [TABLE, TabularPolicy(TABLE)])
def test_tables(policy):
    found = softened(policy, epsilon=0.4).probs(STATES, TIMES)
    np.testing.assert_allclose(found, 0.6 * TABLE[STATES] + 0.2, atol=1e-15)


def test_deterministic_policies():
    greedy = DeterministicPolicy(lambda s, t: s, 2)
    np.testing.assert_allclose(softened(greedy, epsilon=0.1).probs(STATES, TIMES)[0], [0.95, 0.05], atol=1e-15)
    assert softened(UniformPolicy(4), epsilon=0.1).probs(STATES, TIMES)[0].tolist() == pytest.approx([0.25] * 4)


def test_classes_with_gaps_share_epsilon_among_themselves():
    rows = np.random.default_rng(0).normal(size=(30, 2))
    model = LogisticRegression().fit(rows, np.array([2, 5, 7])[np.arange(30) % 3])
    found = softened(model, epsilon=0.3).probs(rows, np.zeros(30, int))
    np.testing.assert_allclose(found[:, [2, 5, 7]], 0.7 * model.predict_proba(rows) + 0.1, atol=1e-12)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


@pytest.mark.parametrize(("sigma", "deviations"), [(0.5, (0.5, 0.5)), ([0.5, 2.0], (0.5, 2.0))])
def test_continuous(sigma, deviations):
    states, actions = np.array([1.0, -1.0]), np.array([[1.5, 2.0], [0.0, 0.0]])
    found = softened(CONTROL, sigma=sigma).log_prob(states, actions, np.zeros(2, int))
    expected = [
        sum(
            -0.5 * ((action[k] - (1, 2)[k] * state) / deviations[k]) ** 2
            - math.log(deviations[k] * math.sqrt(2 * math.pi))
            for k in (0, 1)
        )
        for state, action in zip(states, actions, strict=True)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


REFUSED = [
    (lambda: softened(TABLE), "give either epsilon or sigma; got epsilon=None and sigma=None"),
    (lambda: softened(TABLE, epsilon=0.1, sigma=0.1), "give either epsilon or sigma"),
    (lambda: softened(TABLE, epsilon=1.5), "epsilon must lie between 0 and 1; got 1.5"),
    (
        lambda: softened(TABLE, sigma=0.5),
        "sigma is for a deterministic policy over continuous actions .*; got a TabularPolicy",
    ),
    (lambda: softened(CONTROL, epsilon=0.5), "epsilon is for discrete actions; .* takes sigma"),
    (lambda: softened(CONTROL, sigma=0.0), "sigma must be one positive number, or one for each of the 2 .*; got 0.0"),
    (lambda: softened(CONTROL, sigma=[1.0, 1.0, 1.0]), "one for each of the 2 action components"),
    (lambda: softened(CONTROL, sigma=math.inf), "got inf"),
    (lambda: softened(TABLE, epsilon=0.1, n_actions=7), "n_actions must be 2, as the policy has it; got 7"),
    (lambda: softened(lambda s: s, epsilon=0.1), "n_actions must be given, because StatePolicy does not say"),
]


@pytest.mark.parametrize(("call", "message"), REFUSED)
def test_refused(call, message):
    with pytest.raises(PolicyError, match=message):
        call()
