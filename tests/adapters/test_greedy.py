"""The greedy form of every kind of policy, and of those that have none."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

import tightrope
from tests.adapters.foreign import logs
from tests.adapters.test_stable_baselines import CART, PENDULUM, PUSH, TIMES, TORQUE, trained
from tightrope import NoOverlapError, PolicyError, greedy
from tightrope.base.policy import as_actor, resolved

NOTHING = np.empty((len(CART), 0))
CLASSIFIER = LogisticRegression().fit(CART, np.array(["left", "right"])[PUSH])


def action(policy, states):
    actor = as_actor(resolved(policy, states, TIMES))
    return actor.act(states, TIMES, np.full((len(states), actor.noise_width), 0.7))


@pytest.mark.parametrize("kind", ["ppo", "a2c", "dqn"])
def test_discrete_learners_choose_as_their_library_does(kind):
    model = trained(kind, "CartPole-v1")
    expected = model.predict(CART.astype(np.float32), deterministic=True)[0]
    np.testing.assert_array_equal(action(greedy(model), CART), expected)
    chances = np.exp(greedy(model).log_prob(CART, PUSH, TIMES))
    np.testing.assert_array_equal(chances, expected == PUSH)


@pytest.mark.parametrize("kind", ["ppo", "a2c", "sac", "td3"])
def test_continuous_learners_act_as_their_library_does_without_noise(kind):
    model = trained(kind, "Pendulum-v1")
    expected = model.predict(PENDULUM.astype(np.float32), deterministic=True)[0]
    found = action(greedy(model), PENDULUM)
    np.testing.assert_allclose(np.clip(found, -2, 2), expected, atol=1e-6)
    with pytest.raises(NoOverlapError, match="no density"):
        tightrope.estimate(logs(PENDULUM, TORQUE), greedy(model), estimator="is")
    assert np.isfinite(tightrope.estimate(logs(PENDULUM, TORQUE), greedy(model), estimator="mb"))


def test_labels_of_a_classifier():
    expected = CLASSIFIER.predict(CART)
    np.testing.assert_array_equal(action(greedy(CLASSIFIER), CART), expected)
    found = greedy(CLASSIFIER).log_prob(CART, np.full(len(CART), "left"), TIMES)
    np.testing.assert_array_equal(np.exp(found), expected == "left")


def test_a_module_shows_its_kind_when_asked():
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.Softmax(dim=1))
    expected = net(torch.as_tensor(CART, dtype=torch.float32)).argmax(dim=1).numpy()
    np.testing.assert_array_equal(action(greedy(net), CART), expected)

    def normal(states):
        return torch.distributions.Independent(torch.distributions.Normal(torch.as_tensor(states[:, :2]), 3.0), 1)

    np.testing.assert_allclose(action(greedy(normal), CART), CART[:, :2])


def test_our_own_policies():
    table = tightrope.TabularPolicy([[0.5, 0.5, 0.0], [0.1, 0.2, 0.7]])
    states, t = np.array([0, 1]), np.zeros(2, int)
    np.testing.assert_array_equal(greedy(table).probs(states, t), [[1, 0, 0], [0, 0, 1]])  # the first of equals
    mixed = tightrope.softened(table, epsilon=0.5)
    np.testing.assert_array_equal(action(greedy(mixed), np.zeros(40, int)), np.zeros(40))
    push = tightrope.GaussianPolicy(lambda s, t: s[:, :1], 4.0)
    np.testing.assert_array_equal(action(greedy(push), PENDULUM), PENDULUM[:, :1])
    assert greedy(greedy(push)).act(PENDULUM, TIMES, NOTHING).tolist() == PENDULUM[:, :1].tolist()


@pytest.mark.parametrize(
    "policy",
    [
        tightrope.CallablePolicy(lambda states, actions, t: actions * 0.5),
        tightrope.MixturePolicy([tightrope.GaussianPolicy(lambda s, t: s[:, :1], 4.0)], [1.0]),
    ],
)
def test_what_has_no_greedy_form(policy):
    with pytest.raises(PolicyError, match=r"policy must list its probabilities.*DeterministicPolicy"):
        greedy(policy).log_prob(PENDULUM, TORQUE, TIMES)
