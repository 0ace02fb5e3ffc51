"""Replay and rollout buffers: d3rlpy's by their shape, Stable-Baselines3's by a short training."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import numpy as np
import pytest
import torch
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import BaseCallback

import tightrope
from tests.logs import refused

STEPS, ENVIRONMENTS = 64, 2
ENDED = {"terminated": "done"}


class Watch(BaseCallback):
    """What happened in the last rollout, step by step, as the environments saw it; and the buffer before it is used."""

    def _on_rollout_start(self):
        self.steps = []
        self.before = self.model._last_obs
        self.fresh = self.model._last_episode_starts.copy()

    def _on_step(self):
        seen = self.locals
        self.steps.append(
            (self.before, seen["actions"], seen["rewards"].copy(), seen["dones"], seen["log_probs"].numpy())
        )
        self.before = seen["new_obs"]
        return True

    def _on_rollout_end(self):
        self.unused = tightrope.read(self.model.rollout_buffer, columns=ENDED, incomplete="terminate")


def trained(name, **options):
    torch.manual_seed(0)
    model = PPO(
        "MlpPolicy",
        gym_vector(name, **options),
        n_steps=STEPS,
        batch_size=STEPS,
        n_epochs=1,
        seed=0,
        device="cpu",
        policy_kwargs={"net_arch": [8]},
    )
    watch = Watch()
    model.learn(2 * STEPS * ENVIRONMENTS, callback=watch)
    return model, watch


def gym_vector(name, **options):
    from stable_baselines3.common.env_util import make_vec_env

    return make_vec_env(lambda: gym.make(name, **options), n_envs=ENVIRONMENTS, seed=0)


def by_hand(watch):
    """The episodes of the last rollout that started within it, and which are known to be over: another follows."""
    episodes, over = [], []
    for env in range(ENVIRONMENTS):
        current = [] if watch.fresh[env] else None
        for time, step in enumerate(watch.steps):
            if current is not None:
                current.append([part[env] for part in step])
            if step[3][env] or time == STEPS - 1:
                episodes += [current] if current else []
                over += [time < STEPS - 1] if current else []
                current = []
    return episodes, over


@pytest.fixture(scope="module")
def cart():
    return trained("CartPole-v1", max_episode_steps=1000)


@pytest.fixture(scope="module")
def pendulum():
    return trained("Pendulum-v1", max_episode_steps=20)


@pytest.mark.parametrize("task", ["cart", "pendulum"])
def test_rollout_buffer(task, request):
    model, watch = request.getfixturevalue(task)
    episodes, _ = by_hand(watch)
    steps = [step for episode in episodes for step in episode]
    for data in (
        watch.unused,
        tightrope.read(model.rollout_buffer, columns=ENDED, incomplete="terminate"),
    ):  # training flattens it
        assert data.lengths.tolist() == [len(episode) for episode in episodes]
        np.testing.assert_array_equal(data.states, np.array([step[0] for step in steps], dtype=np.float32))
        np.testing.assert_array_equal(data.actions, np.array([step[1] for step in steps]))
        rewards = np.array([step[2] for step in steps], dtype=np.float32)
        as_seen = data.rewards == rewards
        assert (as_seen | [step[3] for step in steps]).all()
        assert as_seen.all() == (task == "cart")  # the critic's value, where the time limit struck
        np.testing.assert_array_equal(data.behavior_log_probs, np.array([step[4] for step in steps]))
    assert data.discrete_actions == (task == "cart")
    assert data.actions.ndim == (1 if task == "cart" else 2)
    assert "behavior: 'log_probs', read as a logarithm" in data.reading


def test_both_edges_of_a_rollout(cart):
    """An episode under way at the start is left out; one under way at the end is incomplete, the others are done."""
    model, watch = cart
    episodes, over = by_hand(watch)
    assert not watch.fresh.all()  # else this test shows nothing
    assert any(part.startswith(f"{(~watch.fresh).sum()} episodes already under way") for part in watch.unused.reading)
    assert over.count(False) == ENVIRONMENTS
    data = tightrope.read(model.rollout_buffer, horizon=STEPS + 1, columns=ENDED, incomplete="drop")
    assert data.lengths.tolist() == [len(episode) for episode, done in zip(episodes, over, strict=True) if done]
    assert data.terminated.all()


@pytest.mark.parametrize("task", ["cart", "pendulum"])
def test_time_limits_are_asked_about(task, request):
    model, _ = request.getfixturevalue(task)
    refused(model.rollout_buffer, "critic's value to its last reward.*--column terminated=done", incomplete="terminate")


def rollout(**changes):
    """Two environments, four steps; in the first an episode ends after two steps, the second was under way."""
    made = {
        "observations": np.arange(8.0).reshape(4, 2, 1),
        "actions": np.arange(8).reshape(4, 2, 1) % 2,
        "rewards": np.arange(8.0).reshape(4, 2) * 10,
        "log_probs": -np.arange(8.0).reshape(4, 2) / 8,
        "episode_starts": np.array([[1, 0], [0, 0], [1, 0], [0, 1]], dtype=np.float32),
        "full": True,
        "pos": 4,
    }
    return SimpleNamespace(**(made | changes))


def test_small_rollout_by_hand():
    data = tightrope.read(rollout(), columns=ENDED, incomplete="terminate")
    assert data.lengths.tolist() == [2, 2, 1]
    assert data.rewards.tolist() == [0, 20, 40, 60, 70]
    assert data.actions.tolist() == [0, 0, 0, 0, 1]
    assert data.behavior_log_probs.tolist() == [0, -0.25, -0.5, -0.75, -0.875]
    ended = tightrope.read(rollout(), horizon=3, columns=ENDED, incomplete="drop")
    assert ended.rewards.tolist() == [0, 20]
    parts = {"b": np.arange(8.0).reshape(4, 2, 1), "a": np.arange(16.0).reshape(4, 2, 2)}
    states = tightrope.read(rollout(observations=parts), columns=ENDED, incomplete="terminate").states
    assert states.tolist() == [[0, 1, 0], [4, 5, 2], [8, 9, 4], [12, 13, 6], [14, 15, 7]]


def test_rollout_not_yet_full():
    data = tightrope.read(rollout(full=False, pos=2), incomplete="terminate")
    assert data.rewards.tolist() == [0, 20]
    refused(rollout(full=False, pos=0), "the rollout buffer is empty")


def test_bad_rollout():
    refused(rollout(rewards=np.zeros(3)), r"every array of the rollout buffer must have shape \(4, 2\); got \(3,\)")
    refused(rollout(episode_starts=np.zeros(8)), r"episode_starts must have shape .*; got \(8,\)")
    refused(rollout(episode_starts=np.zeros((4, 2))), "no episode starts within the rollout buffer")


# -- d3rlpy ------------------------------------------------------------------------------------------------------------


def episode(number, steps, terminated, **changes):
    made = {
        "observations": (number + np.arange(2.0 * steps).reshape(steps, 2)).astype(np.float32),
        "actions": np.arange(steps)[:, None] % 2,
        "rewards": number * 10 + np.arange(steps, dtype=np.float32)[:, None],
        "terminated": terminated,
    }
    return SimpleNamespace(**(made | changes))


EPISODES = [episode(0, 3, False), episode(1, 2, True)]
HALF = tightrope.UniformPolicy(2)


@pytest.mark.parametrize("source", [EPISODES, SimpleNamespace(episodes=EPISODES)])
def test_d3rlpy_episodes(source):
    data = tightrope.read(source, behavior=HALF)
    assert data.lengths.tolist() == [3, 2]
    assert data.terminated.tolist() == [False, True]
    assert data.rewards.tolist() == [0, 1, 2, 10, 11]
    assert data.actions.tolist() == [0, 1, 0, 0, 1]
    assert data.states.tolist() == [[0, 1], [2, 3], [4, 5], [1, 2], [3, 4]]
    np.testing.assert_allclose(data.behavior_log_probs, np.log(0.5), rtol=1e-15)
    assert not any(line.startswith("behavior") for line in data.reading)  # they came from the policy
    refused(source, "episode 0 stops after step 2 without being flagged", horizon=4)


def test_d3rlpy_observations_in_parts():
    parts = (np.ones((2, 1)), np.arange(4.0).reshape(2, 2))
    data = tightrope.read([episode(0, 2, True, observations=parts)])
    assert data.states.tolist() == [[1, 0, 1], [1, 2, 3]]


def test_bad_episodes():
    refused([episode(0, 2, True, actions=np.zeros((3, 1)))], "episode 0 must have as many actions as rewards, 2; got 3")
    different = [episode(0, 2, True), episode(1, 2, True, observations=np.zeros((2, 5)))]
    refused(different, "observations must have the same shape in all episodes")
    refused(
        [episode(0, 2, True, observations=np.zeros((2, 8, 8)))],
        r"'observations' must have shape .*; got shape \(2, 8, 8\)",
    )
    uneven = (np.ones((2, 1)), np.ones((3, 1)))
    refused(
        [episode(0, 2, True, observations=uneven)],
        r"parts of an observation must have the same length; got \[2, 3\]",
    )
