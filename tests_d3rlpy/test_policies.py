"""Algorithms of d3rlpy: what ``predict`` does, with the noise that their owner declares."""

from __future__ import annotations

import d3rlpy
import numpy as np
import pytest
from scipy.stats import norm

import tightrope
from tightrope import NoOverlapError, PolicyError, softened
from tightrope.base.policy import as_policy

RNG = np.random.default_rng(0)
N = 24
STATES = RNG.normal(size=(N, 3)).astype(np.float32).astype(float)
CHOICES, MOVES = np.arange(N) % 2, RNG.uniform(-0.9, 0.9, size=(N, 2))
TIMES = np.arange(N) % 4
DISCRETE = {"dqn": d3rlpy.algos.DQNConfig, "cql": d3rlpy.algos.DiscreteCQLConfig}
CONTINUOUS = {"td3": d3rlpy.algos.TD3Config, "cql": d3rlpy.algos.CQLConfig}


def built(config, action_size, **options):
    d3rlpy.seed(0)
    algo = config(batch_size=8, **options).create(device=False)
    algo.create_impl((3,), action_size)
    return algo


def logs(actions):
    source = {
        "episode": np.arange(N) // 4,
        "t": TIMES,
        "reward": np.arange(N, dtype=float),
        "behavior_prob": np.full(N, 0.5),
        "terminated": TIMES == 3,
        **{f"obs_{k}": STATES[:, k] for k in range(3)},
    }
    parts = {"action": actions} if actions.ndim == 1 else {f"action_{k}": actions[:, k] for k in range(2)}
    return tightrope.read(source | parts)


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
@pytest.mark.parametrize("name", DISCRETE)
def test_discrete_with_epsilon(name, epsilon):
    algo = built(DISCRETE[name], 2)
    greedy = algo.predict(STATES.astype(np.float32))
    policy = softened(algo, epsilon=epsilon)
    np.testing.assert_allclose(policy.probs(STATES, TIMES), (1 - epsilon) * np.eye(2)[greedy] + epsilon / 2, atol=1e-12)
    uniforms = np.stack([np.full(N, 0.5), np.full(N, 0.7)], axis=1)  # the first picks the greedy part
    assert policy.act(STATES, TIMES, uniforms).tolist() == greedy.tolist()


@pytest.mark.parametrize("name", CONTINUOUS)
def test_continuous_with_sigma(name):
    algo = built(CONTINUOUS[name], 2)
    chosen = algo.predict(STATES.astype(np.float32))
    found = softened(algo, sigma=[0.2, 0.4]).log_prob(STATES, MOVES, TIMES)
    np.testing.assert_allclose(found, norm(chosen, [0.2, 0.4]).logpdf(MOVES).sum(axis=1), rtol=1e-6, atol=1e-6)


def test_trained_on_a_dataset_with_scalers():
    terminals = (TIMES == 3).astype(float)
    data = d3rlpy.dataset.MDPDataset(
        STATES.astype(np.float32), MOVES.astype(np.float32), TIMES.astype(float), terminals
    )
    config = d3rlpy.algos.TD3Config(
        batch_size=8,
        observation_scaler=d3rlpy.preprocessing.StandardObservationScaler(),
        action_scaler=d3rlpy.preprocessing.MinMaxActionScaler(),
    )
    algo = config.create(device=False)
    algo.fit(
        data, n_steps=5, n_steps_per_epoch=5, show_progress=False, logger_adapter=d3rlpy.logging.NoopAdapterFactory()
    )
    chosen = algo.predict(STATES.astype(np.float32))
    np.testing.assert_allclose(as_policy(algo).act(STATES, TIMES, np.zeros((N, 0))), chosen, atol=1e-6)


def test_continuous_without_noise_is_for_models_only():
    algo, data = built(CONTINUOUS["td3"], 2), logs(MOVES)
    with pytest.raises(NoOverlapError, match="it has no density"):
        tightrope.estimate(data, algo, estimator="is")
    assert np.isfinite(tightrope.estimate(data, algo, estimator="mb"))


def test_refused():
    with pytest.raises(PolicyError, match=r"DQN has no action probabilities.*softened\(model, epsilon=0.05\)"):
        tightrope.estimate(logs(CHOICES), built(DISCRETE["dqn"], 2))
    with pytest.raises(PolicyError, match="the DQN must be built first"):
        as_policy(d3rlpy.algos.DQNConfig().create(device=False))
    with pytest.raises(PolicyError, match=r"states must have shape \(3,\) per step .*; the logs hold \(2,\)"):
        softened(built(DISCRETE["dqn"], 2), epsilon=0.1).log_prob(STATES[:, :2], CHOICES, TIMES)
    with pytest.raises(PolicyError, match="does not choose by the current state alone"):
        as_policy(d3rlpy.algos.DecisionTransformerConfig().create(device=False))
