"""Functions of states: probabilities, log-probabilities and distributions are told apart, and held to it."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tightrope
from tests.adapters.foreign import inverse, logs
from tightrope import PolicyError, StatePolicy
from tightrope.base.policy import CallablePolicy, DiscretePolicy, as_actor, as_policy, resolved
from tightrope.base.policy.base import CHUNK_ROWS

STATES = np.random.default_rng(3).normal(size=(12, 2))
ACTIONS = np.arange(12) % 3
TIMES = np.arange(12) % 4


def logits(states, t):
    return np.stack([states[:, 0], states[:, 1], 0.5 * t], axis=1)


def probs(states, t):
    likes = np.exp(logits(states, t))
    return likes / likes.sum(axis=1, keepdims=True)


def own(state, action, t):
    """By hand, one row at a time."""
    likes = [math.exp(state[0]), math.exp(state[1]), math.exp(0.5 * t)]
    return likes[action] / sum(likes)


FORMS = {
    "probabilities": probs,
    "log-probabilities": lambda s, t: np.log(probs(s, t)),
    "distribution": lambda s, t: torch.distributions.Categorical(logits=torch.as_tensor(logits(s, t))),
    "tensor": lambda s, t: torch.as_tensor(probs(s, t)).requires_grad_(),
    "declared logits": StatePolicy(logits, output="logits"),
}


@pytest.mark.parametrize("form", FORMS)
def test_all_forms_mean_the_same(form):
    policy = resolved(as_policy(FORMS[form]), STATES, TIMES)
    assert isinstance(policy, DiscretePolicy)
    expected = [math.log(own(*row)) for row in zip(STATES, ACTIONS, TIMES, strict=True)]
    np.testing.assert_allclose(policy.log_prob(STATES, ACTIONS, TIMES), expected, atol=1e-12)
    np.testing.assert_allclose(as_policy(FORMS[form]).log_prob(STATES, ACTIONS, TIMES), expected, atol=1e-12)
    uniforms = np.random.default_rng(1).random((12, 1))
    drawn = as_actor(policy).act(STATES, TIMES, uniforms)
    assert drawn.tolist() == [inverse(row, u) for row, u in zip(probs(STATES, TIMES), uniforms[:, 0], strict=True)]


def test_a_function_of_states_alone():
    policy = as_policy(lambda states: probs(states, np.zeros(len(states))))
    expected = [math.log(own(s, a, 0)) for s, a in zip(STATES, ACTIONS, strict=True)]
    np.testing.assert_allclose(policy.log_prob(STATES, ACTIONS, TIMES), expected, atol=1e-12)


def test_functions_of_actions_are_what_they_were():
    assert isinstance(as_policy(lambda states, actions, t: np.ones(len(states))), CallablePolicy)
    assert isinstance(as_policy(lambda *args: np.ones(len(args[0]))), CallablePolicy)


def test_mixtures_resolve_their_parts():
    mixture = tightrope.softened(as_policy(probs), epsilon=0.3, n_actions=3)
    known = resolved(mixture, STATES, TIMES)
    np.testing.assert_allclose(known.probs(STATES, TIMES), 0.7 * probs(STATES, TIMES) + 0.1, atol=1e-12)
    assert known.act(STATES, TIMES, np.full((12, 2), 0.5)).shape == (12,)
    data = logs(STATES, ACTIONS)
    ratio = 2 * (0.7 * probs(STATES, TIMES)[np.arange(12), ACTIONS] + 0.1)
    returns = np.arange(12.0).reshape(3, 4).sum(axis=1)
    expected = np.mean(ratio.reshape(3, 4).prod(axis=1) * returns)
    assert tightrope.estimate(data, mixture, estimator="is") == pytest.approx(expected)


def test_many_rows_are_asked_in_chunks():
    asked = []

    def even(states):
        asked.append(len(states))
        return np.full((len(states), 2), 0.5)

    n = CHUNK_ROWS + 5
    found = as_policy(even).log_prob(np.zeros((n, 1)), np.zeros(n, int), np.zeros(n, int))
    assert found.shape == (n,)
    assert max(asked) == CHUNK_ROWS


def test_a_wrong_row_far_down_is_named():
    n = CHUNK_ROWS + 8

    def broken(states):
        table = np.full((len(states), 2), 0.5)
        table[states[:, 0] == n - 2] = 0.6
        return table

    data = logs(np.arange(n, dtype=float)[:, None], np.zeros(n, int))
    with pytest.raises(PolicyError, match=rf"\[0.6 0.6\]; each must lie in \[0, 1\].*at {data.where(n - 2)}"):
        tightrope.estimate(data, broken)


REFUSED = [
    (logits, r"must return probabilities .* or log-probabilities .*output=\"logits\""),
    (lambda s: np.zeros(len(s), int), r"shape \(12,\) for 12 states.*DeterministicPolicy\(function, n_actions\)"),
    (lambda s: (probs(s, TIMES), None), "got 2 things"),
    (lambda s: s @ np.zeros((5, 2)), r"failed on states of shape \(12, 2\) \(float64\): ValueError"),
    (StatePolicy(logits, output="probabilities"), "policy's probabilities of one state are"),
    (StatePolicy(logits, output="log_probabilities"), "their exponentials must sum to one"),
    (
        lambda s: probs(s, TIMES)[:, :2] / probs(s, TIMES)[:, :2].sum(axis=1, keepdims=True),
        r"action must be one of .*; got 2",
    ),
    (lambda states, actions: None, r"takes \(states, actions\)"),
    (lambda: None, r"takes \(\)"),
    (StatePolicy, "policy must be an instance, .*; got the class StatePolicy"),
]


@pytest.mark.parametrize(("policy", "message"), REFUSED)
def test_refused(policy, message):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(logs(STATES, ACTIONS), policy)


def test_an_unknown_declaration():
    with pytest.raises(PolicyError, match=r"output must be .*; got 'odds'"):
        StatePolicy(probs, output="odds")
