"""Logged episodes: the policy's own probabilities, how episodes end, environments of any kind, and refusals."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.wrappers import TimeLimit

import tightrope
from tests.adapters.test_stable_baselines import own_distribution, sac_parts, trained
from tests.studies.policies import Switch, bent, coin, firm, pushes
from tightrope import PolicyError, TightropeError


def test_the_models_own_probabilities_of_discrete_actions():
    model = trained("ppo", "CartPole-v1")
    logs = tightrope.log_episodes("CartPole-v1", model, episodes=40, horizon=30, seed=1)
    own = own_distribution(model, logs.states.copy()).log_prob(torch.as_tensor(logs.actions.copy())).numpy()
    np.testing.assert_allclose(logs.behavior_log_probs, own, atol=1e-6)
    assert len(np.unique(logs.actions)) == 2


def test_the_models_own_densities_of_continuous_actions():
    model = trained("ppo", "Pendulum-v1")
    logs = tightrope.log_episodes("Pendulum-v1", model, episodes=5, horizon=30, seed=1)
    actions = torch.as_tensor(logs.actions.copy(), dtype=torch.float32)
    own = own_distribution(model, logs.states.copy()).log_prob(actions).numpy()
    np.testing.assert_allclose(logs.behavior_log_probs, own, rtol=1e-6, atol=1e-6)
    assert np.abs(logs.actions).max() > 2.0  # as drawn, and not as the environment clips them


def test_the_models_own_densities_of_squashed_actions():
    """In the environment's units: log 2 less than in the scaled ones, since a torque spans four and not two."""
    model = trained("sac", "Pendulum-v1")
    logs = tightrope.log_episodes("Pendulum-v1", model, episodes=5, horizon=30, seed=1)
    mean, log_std = sac_parts(model, logs.states.copy())
    scaled = torch.as_tensor(model.policy.scale_action(logs.actions))
    own = model.actor.action_dist.proba_distribution(mean, log_std).log_prob(scaled).numpy() - np.log(2.0)
    np.testing.assert_allclose(logs.behavior_log_probs, own, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"epsilon": 0.2}, lambda chosen: np.where(chosen, 0.9, 0.1)),
        ({"deterministic": True}, lambda chosen: np.ones(len(chosen))),
        ({"deterministic": True, "epsilon": 0.5}, lambda chosen: np.where(chosen, 0.75, 0.25)),
    ],
    ids=["softened", "greedy", "greedy and softened"],
)
def test_the_form_of_a_learner_without_probabilities(options, expected):
    model = trained("dqn", "CartPole-v1")
    logs = tightrope.log_episodes("CartPole-v1", model, episodes=20, horizon=20, **options)
    chosen = model.predict(logs.states.astype(np.float32), deterministic=True)[0] == logs.actions
    np.testing.assert_allclose(np.exp(logs.behavior_log_probs), expected(chosen), atol=1e-12)


def test_a_greedy_form_with_noise_over_continuous_actions():
    model = trained("ppo", "Pendulum-v1")
    logs = tightrope.log_episodes("Pendulum-v1", model, episodes=2, horizon=20, deterministic=True, sigma=0.1)
    middle = own_distribution(model, logs.states.copy()).distribution.mean.numpy()
    assert np.abs(logs.actions - middle).max() < 0.5
    assert 0.05 < np.std(logs.actions - middle) < 0.2


def test_the_same_policy_evaluated_on_its_logs_has_ratios_of_one():
    logs = tightrope.log_episodes("CartPole-v1", firm, episodes=50, horizon=20)
    assert tightrope.estimate(logs, firm, estimator="is") == pytest.approx(logs.returns.mean(), rel=1e-9)


def test_the_same_seed_gives_the_same_logs():
    first, again, other = (tightrope.log_episodes("CartPole-v1", firm, episodes=9, seed=s) for s in (3, 3, 4))
    np.testing.assert_array_equal(first.states, again.states)
    assert first.states.shape != other.states.shape or (first.states != other.states).any()


def made():
    return TimeLimit(Switch(), 4)


@pytest.mark.parametrize(
    ("env", "horizon"),
    [("tests.studies.policies:Switch-v0", 3), (made, 4), (made(), 4), (TimeLimit(Switch(), 2), 2)],
    ids=["id", "function", "environment", "another"],
)
def test_environments_of_any_kind(env, horizon):
    logs = tightrope.log_episodes(env, bent, episodes=70)
    assert (logs.n_trajectories, logs.horizon) == (70, horizon)
    assert (logs.lengths[~logs.terminated] == horizon).all()
    assert logs.terminated.any()
    assert not logs.terminated.all()
    np.testing.assert_allclose(np.exp(logs.behavior_log_probs), np.where(logs.actions, 0.8, 0.2))
    assert (logs.final_states == logs.actions[logs.offsets[1:] - 1]).all()


def test_progress_goes_from_little_to_all():
    seen = []
    tightrope.log_episodes("CartPole-v1", firm, episodes=70, horizon=3, progress=seen.append)
    assert seen == [32 / 70, 64 / 70, 1.0]


class Rough(gymnasium.Env):
    """Takes two numbers at once."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.MultiDiscrete([2, 2])

    def reset(self, *, seed=None, options=None):
        return 0, {}


@pytest.mark.parametrize(
    ("env", "policy", "options", "message"),
    [
        ("CartPole-v1", firm, {"episodes": 0}, "episodes must be a whole number, at least 1; got 0"),
        ("CartPole-v1", firm, {"episodes": 2.5}, "episodes must be a whole number, at least 1; got 2.5"),
        ("CartPole-v1", firm, {"horizon": 501}, "horizon must be at most 500, because CartPole-v1 cuts .*; got 501"),
        ("CartPole-v1", firm, {"seed": -1}, "seed must be a whole number, 0 or more, or a generator; got -1"),
        ("CartPole-v1", firm, {"epsilon": 2}, "epsilon must lie between 0 and 1; got 2"),
        ("NoSuch-v0", firm, {}, "environment 'NoSuch-v0' cannot be made"),
        (lambda: 1 / 0, firm, {}, "environment .* cannot be made: division by zero"),
        (3, firm, {}, "env must be the id of a Gymnasium environment.*; got int"),
        (Switch, coin, {}, r"horizon must be given \(--horizon\), because Switch does not say when an episode ends"),
        (made, tightrope.UniformPolicy(5), {}, r"must take actions 0 to 1, whole numbers, in made; it took .*int64"),
        (made, pushes, {}, r"must take actions 0 to 1, whole numbers, in made; it took .*\(float64\)"),
        ("Pendulum-v1", firm, {}, "the policy failed on states of shape"),
        ("Pendulum-v1", tightrope.UniformPolicy(2), {}, "must take actions of Box.* in Pendulum-v1"),
        (Rough(), coin, {"horizon": 2}, "must take actions of MultiDiscrete.* in Rough, .*numbered or boxes"),
        ("Pendulum-v1", pushes, {"deterministic": True}, r"must have a density to be logged.*--sigma 0.1"),
        ("CartPole-v1", lambda states, actions, t: actions * 0.5, {}, "policy must be able to act"),
    ],
)
def test_what_cannot_be_logged_is_refused(env, policy, options, message):
    with pytest.raises(TightropeError, match=message):
        tightrope.log_episodes(env, policy, **({"episodes": 2} | options))


def test_a_policy_without_a_density_is_refused_at_once():
    class Counted(type(gymnasium.make("Pendulum-v1").unwrapped)):
        steps = 0

        def step(self, action):
            Counted.steps += 1
            return super().step(action)

    with pytest.raises(PolicyError, match="must have a density"):
        tightrope.log_episodes(
            TimeLimit(Counted(), 5), tightrope.DeterministicControl(lambda s, t: s[:, :1]), episodes=50
        )
    assert Counted.steps <= 5
