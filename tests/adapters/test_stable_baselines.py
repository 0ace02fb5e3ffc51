"""Models trained for a moment with Stable-Baselines3: its own log-probabilities, densities that integrate to one."""

from __future__ import annotations

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium import spaces
from scipy.integrate import quad
from scipy.special import ndtri
from scipy.stats import norm
from stable_baselines3 import A2C, DQN, PPO, SAC, TD3
from stable_baselines3.common.policies import ActorCriticPolicy
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

import tightrope
from tests.adapters.foreign import inverse, logs
from tightrope import NoOverlapError, PolicyError, softened
from tightrope.base.policy import DiscretePolicy, as_policy

SHORT = {
    "ppo": {"n_steps": 64, "batch_size": 32, "n_epochs": 1},
    "a2c": {},
    "sac": {"learning_starts": 20, "policy_kwargs": {"net_arch": [16]}},
    "dqn": {"learning_starts": 20},
    "td3": {"learning_starts": 20, "policy_kwargs": {"net_arch": [16]}},
}
CLASSES = {"ppo": PPO, "a2c": A2C, "sac": SAC, "dqn": DQN, "td3": TD3}
_trained = {}


def trained(kind, env, seed=0):
    """A model trained for a moment, once per test run."""
    if (kind, env, seed) not in _trained:
        model = CLASSES[kind]("MlpPolicy", env, device="cpu", seed=seed, **SHORT[kind])
        _trained[kind, env, seed] = model.learn(128)
    return _trained[kind, env, seed]


RNG = np.random.default_rng(0)
N = 40
CART = RNG.uniform(-0.1, 0.1, size=(N, 4)).astype(np.float32).astype(float)
ANGLE = RNG.uniform(-np.pi, np.pi, size=N)
PENDULUM = np.stack([np.cos(ANGLE), np.sin(ANGLE), RNG.normal(size=N)], axis=1).astype(np.float32).astype(float)
PUSH = RNG.integers(0, 2, size=N)
TORQUE = RNG.uniform(-1.9, 1.9, size=(N, 1)).astype(np.float32).astype(float)
TIMES = np.arange(N) % 4
UNIFORMS = RNG.uniform(0.01, 0.99, size=(N, 1))


def own_distribution(model, states):
    with torch.no_grad():
        return model.policy.get_distribution(torch.as_tensor(states, dtype=torch.float32))


@pytest.mark.parametrize("form", ["model", "policy"])
@pytest.mark.parametrize("kind", ["ppo", "a2c"])
def test_discrete_actions(kind, form):
    model = trained(kind, "CartPole-v1")
    own = own_distribution(model, CART)
    policy = as_policy(model if form == "model" else model.policy)
    assert isinstance(policy, DiscretePolicy)
    found = policy.log_prob(CART, PUSH, TIMES)
    np.testing.assert_allclose(found, own.log_prob(torch.as_tensor(PUSH)).numpy(), atol=1e-6)
    chances = own.distribution.probs.numpy()
    np.testing.assert_allclose(policy.probs(CART, TIMES), chances, atol=1e-6)
    expected = [inverse(row, u) for row, u in zip(chances, UNIFORMS[:, 0], strict=True)]
    assert policy.act(CART, TIMES, UNIFORMS).tolist() == expected


@pytest.mark.parametrize("kind", ["ppo", "a2c"])
def test_gaussian_actions(kind):
    model = trained(kind, "Pendulum-v1")
    own = own_distribution(model, PENDULUM)
    policy = as_policy(model)
    expected = own.log_prob(torch.as_tensor(TORQUE, dtype=torch.float32)).numpy()
    np.testing.assert_allclose(policy.log_prob(PENDULUM, TORQUE, TIMES), expected, rtol=1e-6, atol=1e-6)
    normal = own.distribution
    made = normal.mean.numpy() + normal.stddev.numpy() * ndtri(UNIFORMS)
    np.testing.assert_allclose(policy.act(PENDULUM, TIMES, UNIFORMS), made, atol=1e-6)


def sac_parts(model, states):
    with torch.no_grad():
        mean, log_std, _ = model.actor.get_action_dist_params(torch.as_tensor(states, dtype=torch.float32))
    return mean.double(), log_std.double()


def test_sac_undoes_its_scaling():
    """The library's log-density in [-1, 1] less log 2, since a torque spans four where the scaled action spans two."""
    model = trained("sac", "Pendulum-v1")
    mean, log_std = sac_parts(model, PENDULUM)
    scaled = torch.as_tensor(model.policy.scale_action(TORQUE))
    own = model.actor.action_dist.proba_distribution(mean, log_std).log_prob(scaled).numpy()
    found = as_policy(model).log_prob(PENDULUM, TORQUE, TIMES)
    np.testing.assert_allclose(found, own - np.log(2.0), rtol=1e-6, atol=1e-6)


def test_sac_density_integrates_to_one_over_the_environments_actions():
    policy = as_policy(trained("sac", "Pendulum-v1"))
    for state in PENDULUM[:3]:

        def density(action, state=state):
            return float(np.exp(policy.log_prob(state[None], np.array([[action]]), np.zeros(1, int)))[0])

        assert quad(density, -2, 2, limit=200)[0] == pytest.approx(1.0, abs=1e-4)  # the library's 1e-6 inside the log


def test_sac_density_is_the_slope_of_its_distribution_function():
    """P(a ≤ x) = Φ((artanh(x/2) − mean)/std), differentiated numerically."""
    model = trained("sac", "Pendulum-v1")
    mean, log_std = (part.numpy() for part in sac_parts(model, PENDULUM))
    step = 1e-5

    def below(x):
        return norm.cdf((np.arctanh(x / 2) - mean) / np.exp(log_std))

    slope = ((below(TORQUE + step) - below(TORQUE - step)) / (2 * step))[:, 0]
    found = as_policy(model).log_prob(PENDULUM, TORQUE, TIMES)
    np.testing.assert_allclose(np.exp(found), slope, rtol=1e-4, atol=1e-7)


def test_sac_acts_in_the_environments_units():
    model = trained("sac", "Pendulum-v1")
    mean, log_std = (part.numpy() for part in sac_parts(model, PENDULUM))
    made = 2 * np.tanh(mean + np.exp(log_std) * ndtri(UNIFORMS))
    policy = as_policy(model)
    np.testing.assert_allclose(policy.act(PENDULUM, TIMES, UNIFORMS), made, atol=1e-6)
    assert np.isneginf(policy.log_prob(PENDULUM, np.full((N, 1), 2.5), TIMES)).all()
    assert np.isfinite(policy.log_prob(PENDULUM, np.full((N, 1), 2.0), TIMES)).all()  # float32 rounds onto the bound


@pytest.mark.parametrize("epsilon", [0.0, 0.2])
def test_dqn_with_an_explicit_epsilon(epsilon):
    model = trained("dqn", "CartPole-v1")
    greedy = model.predict(CART.astype(np.float32), deterministic=True)[0]
    found = softened(model, epsilon=epsilon).probs(CART, TIMES)
    np.testing.assert_allclose(found, (1 - epsilon) * np.eye(2)[greedy] + epsilon / 2, atol=1e-12)


def test_td3_with_an_explicit_sigma():
    model = trained("td3", "Pendulum-v1")
    chosen = model.predict(PENDULUM.astype(np.float32), deterministic=True)[0]
    found = softened(model, sigma=0.3).log_prob(PENDULUM, TORQUE, TIMES)
    np.testing.assert_allclose(found, norm(chosen, 0.3).logpdf(TORQUE)[:, 0], atol=1e-6)


def test_td3_without_noise_is_for_models_only():
    model, data = trained("td3", "Pendulum-v1"), logs(PENDULUM, TORQUE)
    chosen = model.predict(PENDULUM.astype(np.float32), deterministic=True)[0]
    np.testing.assert_allclose(as_policy(model).act(PENDULUM, TIMES, UNIFORMS[:, :0]), chosen, atol=1e-6)
    with pytest.raises(NoOverlapError, match="it has no density"):
        tightrope.estimate(data, model, estimator="is")
    assert np.isfinite(tightrope.estimate(data, model, estimator="mb"))


@pytest.mark.parametrize(
    ("space", "actions"),
    [
        (spaces.MultiDiscrete([2, 3]), np.stack([PUSH, np.arange(N) % 3], axis=1)),
        (spaces.MultiBinary(2), np.stack([PUSH, 1 - PUSH], axis=1)),
    ],
)
def test_several_discrete_actions_at_once(space, actions):
    torch.manual_seed(0)
    policy = ActorCriticPolicy(spaces.Box(-1, 1, (4,)), space, lambda progress: 1e-3)
    with torch.no_grad():
        own = policy.get_distribution(torch.as_tensor(CART, dtype=torch.float32)).log_prob(
            torch.as_tensor(actions).float()
        )
    np.testing.assert_allclose(as_policy(policy).log_prob(CART, actions, TIMES), own.numpy(), atol=1e-6)


def collect(model, episodes=60, horizon=12):
    """Logs as a user makes them: the environment, the model's own sample, the library's log-probability of it."""
    env, rows = gymnasium.make("CartPole-v1"), []
    for episode in range(episodes):
        state, _ = env.reset(seed=episode)
        for t in range(horizon):
            with torch.no_grad():
                action, _, log_prob = model.policy(torch.as_tensor(state)[None])
            following, reward, ended, _, _ = env.step(int(action))
            rows.append((episode, t, *state, int(action), reward - abs(state[2]), float(log_prob), ended))
            state = following
            if ended:
                break
    names = ("episode", "t", "obs_0", "obs_1", "obs_2", "obs_3", "action", "reward", "behavior_log_prob", "terminated")
    return dict(zip(names, map(np.array, zip(*rows, strict=True)), strict=True))


def test_from_a_gymnasium_task_to_a_bound():
    torch.manual_seed(0)
    behavior, candidate = trained("ppo", "CartPole-v1"), trained("a2c", "CartPole-v1")
    data = tightrope.read(collect(behavior), horizon=12, reward_range=(-1, 1))
    own = tightrope.estimate(data, behavior, estimator="is")
    assert own == pytest.approx(data.returns.mean(), rel=1e-5)  # the policy that logged them: all ratios one
    result = tightrope.evaluate(data, candidate, n_resamples=400)
    assert result.believed
    assert all(np.isfinite(bound.value) for bound in result.believed)


def test_it_acts_in_a_model():
    torch.manual_seed(0)
    data = tightrope.read(collect(trained("ppo", "CartPole-v1"), episodes=20), horizon=12)
    assert 0 < tightrope.estimate(data, trained("a2c", "CartPole-v1"), estimator="mb") < 12


# -- refusals --------------------------------------------------------------------------------------------------------


def refused(policy, message, states=CART, actions=PUSH):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(logs(states, actions), policy)


def test_dqn_without_epsilon():
    refused(
        trained("dqn", "CartPole-v1"), r"DQN has no action probabilities.*softened\(model, epsilon=0.05\), --epsilon"
    )


def test_states_of_another_width():
    for kind in ("ppo", "a2c"):
        refused(
            trained(kind, "CartPole-v1"),
            r"states must have shape \(4,\) per step .*; the logs hold \(3,\)",
            CART[:, :3],
        )


def test_actions_it_does_not_have():
    refused(
        trained("ppo", "CartPole-v1"),
        r"action must be one of the policy's actions \(0, 1\); got 2 \(at episode",
        CART,
        PUSH + 1,
    )
    refused(trained("ppo", "Pendulum-v1"), r"actions must be 1 floats per step .*; the logs hold int64", PENDULUM, PUSH)


def test_clipped_actions():
    clipped = TORQUE.copy()
    clipped[6] = 2.0
    refused(
        trained("ppo", "Pendulum-v1"),
        r"exactly on the bounds.*before they are clipped \(at episode 1, step 2\)",
        PENDULUM,
        clipped,
    )


def test_noise_held_over_steps():
    model = PPO("MlpPolicy", "Pendulum-v1", use_sde=True, device="cpu")
    refused(model, "PPO was trained with state-dependent exploration", PENDULUM, TORQUE)


def test_normalised_observations():
    env = VecNormalize(DummyVecEnv([lambda: gymnasium.make("CartPole-v1")]))
    model = PPO("MlpPolicy", env, device="cpu", **SHORT["ppo"])
    refused(model, "trained on normalised observations.*model.policy")
    assert np.isfinite(as_policy(model.policy).log_prob(CART, PUSH, TIMES)).all()


def test_observations_in_parts():
    space = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Box(-1, 1, (2,))})
    from stable_baselines3.common.policies import MultiInputActorCriticPolicy

    policy = MultiInputActorCriticPolicy(space, spaces.Discrete(2), lambda progress: 1e-3)
    refused(policy, "must observe one array of numbers per step, .*; it observes a Dict")
