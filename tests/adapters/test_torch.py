"""Modules that return distributions or numbers: torch's own log-probabilities, and actions by inversion."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.special import ndtri
from torch import nn
from torch.distributions import (
    AffineTransform,
    Bernoulli,
    Beta,
    Categorical,
    Independent,
    Laplace,
    MultivariateNormal,
    Normal,
    Poisson,
    TanhTransform,
    TransformedDistribution,
)

import tightrope
from tests.adapters.foreign import inverse, logs
from tightrope import PolicyError
from tightrope.adapters import torch_policy
from tightrope.base.policy import DiscretePolicy, as_policy, resolved

RNG = np.random.default_rng(5)
STATES = RNG.normal(size=(20, 3))
TIMES = np.arange(20) % 4
CHOICES = np.arange(20) % 2
MOVES = RNG.uniform(-0.9, 0.9, size=(20, 2))
UNIFORMS = RNG.uniform(0.01, 0.99, size=(20, 2))


class Net(nn.Module):
    """A small network whose outputs become a distribution."""

    def __init__(self, head, width=2):
        super().__init__()
        torch.manual_seed(0)
        self.body, self.head = nn.Sequential(nn.Linear(3, 8), nn.Dropout(0.5), nn.Tanh(), nn.Linear(8, width)), head

    def forward(self, states):
        return self.head(self.body(states))


def squashed(x):
    return Independent(TransformedDistribution(Normal(x, 0.7), [TanhTransform(), AffineTransform(0.0, 2.0)]), 1)


def correlated(x):
    return MultivariateNormal(x, scale_tril=torch.tensor([[0.5, 0.0], [0.3, 0.9]]))


CONTINUOUS = {
    "independent normal": lambda x: Independent(Normal(x, 0.5), 1),
    "correlated normal": correlated,
    "squashed normal": squashed,
    "transformed independent": lambda x: TransformedDistribution(
        Independent(Normal(x, 0.7), 1), [TanhTransform(cache_size=1)]
    ),
    "laplace": lambda x: Independent(Laplace(x, 0.5), 1),
}


def own(net, states=STATES):
    net.eval()
    with torch.no_grad():
        return net(torch.as_tensor(states, dtype=torch.float32))


@pytest.mark.parametrize("name", CONTINUOUS)
def test_log_densities_are_torchs_own(name):
    net = Net(CONTINUOUS[name])
    expected = own(net).log_prob(torch.as_tensor(MOVES, dtype=torch.float32)).numpy()
    net.train()
    policy = resolved(as_policy(net), STATES, TIMES)
    np.testing.assert_allclose(policy.log_prob(STATES, MOVES, TIMES), expected, rtol=1e-6, atol=2e-6)
    assert net.training
    assert all(part.training for part in net.modules())


@pytest.mark.parametrize("name", CONTINUOUS)
def test_acting_inverts_the_distribution(name):
    """Against formulas of each kind, from the same uniforms."""
    net = Net(CONTINUOUS[name])
    center, z = own(Net(lambda x: x)).numpy(), ndtri(UNIFORMS)
    expected = {
        "independent normal": center + 0.5 * z,
        "correlated normal": center + z @ np.array([[0.5, 0.3], [0.0, 0.9]]),
        "squashed normal": 2 * np.tanh(center + 0.7 * z),
        "transformed independent": np.tanh(center + 0.7 * z),
        "laplace": center - 0.5 * np.sign(UNIFORMS - 0.5) * np.log1p(-2 * np.abs(UNIFORMS - 0.5)),
    }[name]
    policy = resolved(as_policy(net), STATES, TIMES)
    assert policy.noise_width == 2
    np.testing.assert_allclose(policy.act(STATES, TIMES, UNIFORMS), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("shape", ["(N,)", "(N, 1)"])
def test_one_number_per_action(shape):
    net = Net(lambda x: Normal(x[:, 0] if shape == "(N,)" else x, 0.3), width=1)
    expected = own(net).log_prob(torch.as_tensor(MOVES[:, 0]).reshape(own(net).batch_shape)).numpy().reshape(20)
    policy = resolved(as_policy(net), STATES, TIMES)
    for actions in (MOVES[:, 0], MOVES[:, :1]):
        np.testing.assert_allclose(policy.log_prob(STATES, actions, TIMES), expected, rtol=1e-6, atol=1e-6)
    assert policy.act(STATES, TIMES, UNIFORMS[:, :1]).shape == (20, 1)


DISCRETE = {
    "categorical": (lambda x: Categorical(logits=x), 2, None),
    "bernoulli": (lambda x: Bernoulli(logits=x[:, 0]), 1, None),
    "probabilities": (lambda x: torch.softmax(x, dim=1), 2, None),
    "log-probabilities": (lambda x: torch.log_softmax(x, dim=1), 2, None),
    "logits": (lambda x: x, 2, "logits"),
}


@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_modules(name):
    head, width, declared = DISCRETE[name]
    net = Net(head, width)
    policy = resolved(torch_policy(net, output=declared), STATES, TIMES)
    assert isinstance(policy, DiscretePolicy)
    raw = own(Net(lambda x: x, width))
    if width == 1:
        raw = torch.cat([torch.zeros_like(raw), raw], dim=1)
    chances = torch.softmax(raw, dim=1).numpy()
    np.testing.assert_allclose(
        policy.log_prob(STATES, CHOICES, TIMES), np.log(chances[np.arange(20), CHOICES]), atol=1e-6
    )
    np.testing.assert_allclose(policy.probs(STATES, TIMES), chances, atol=1e-6)
    uniforms = UNIFORMS[:, :1]
    expected = [inverse(row, u) for row, u in zip(chances, uniforms[:, 0], strict=True)]
    assert policy.act(STATES, TIMES, uniforms).tolist() == expected


def test_numbered_states_and_time():
    class Timed(nn.Module):
        def __init__(self):
            super().__init__()
            torch.manual_seed(1)
            self.table = nn.Embedding(5, 2)

        def forward(self, states, t):
            return Categorical(logits=self.table(states) * t[:, None])

    net, states = Timed(), np.arange(20) % 5
    with torch.no_grad():
        expected = net(torch.as_tensor(states), torch.as_tensor(TIMES)).log_prob(torch.as_tensor(CHOICES)).numpy()
    np.testing.assert_allclose(as_policy(net).log_prob(states, CHOICES, TIMES), expected, atol=1e-6)
    assert np.isfinite(tightrope.estimate(logs(states, CHOICES), net, estimator="mb"))  # acts, and is tabular


def test_a_module_in_a_linear_model():
    data = logs(np.random.default_rng(0).normal(size=(80, 3)), np.random.default_rng(1).normal(size=(80, 2)))
    assert np.isfinite(tightrope.estimate(data, Net(CONTINUOUS["independent normal"]), estimator="mb"))


REFUSED = [
    (
        Net(lambda x: Normal(x, 0.5)),
        MOVES,
        r"batch shape \(20, 2\).*torch.distributions.Independent\(distribution, 1\)",
    ),
    (
        Net(lambda x: Poisson(x[:, 0].exp())),
        CHOICES,
        "must return a Categorical or a Bernoulli .*; it returns a Poisson",
    ),
    (Net(lambda x: x), CHOICES, r"must return probabilities .* logits"),
    (nn.Linear(7, 2), CHOICES, r"failed on states of shape \(20, 3\) \(float64\): RuntimeError"),
    (
        Net(CONTINUOUS["laplace"]),
        MOVES[:, :1],
        r"actions must be 2 floats per step .*; the logs hold float64 of shape \(20, 1\)",
    ),
]


@pytest.mark.parametrize(("net", "actions", "message"), REFUSED)
def test_refused(net, actions, message):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(logs(STATES, actions), net)


def test_a_distribution_without_an_inverse_still_has_densities():
    net = Net(lambda x: Independent(Beta(x.exp(), 1.0), 1))
    policy = resolved(as_policy(net), STATES, TIMES)
    actions = np.abs(MOVES)
    expected = own(net).log_prob(torch.as_tensor(actions)).numpy()
    np.testing.assert_allclose(policy.log_prob(STATES, actions, TIMES), expected, atol=1e-6)
    with pytest.raises(PolicyError, match="torch cannot invert a Beta"):
        policy.act(STATES, TIMES, UNIFORMS)
