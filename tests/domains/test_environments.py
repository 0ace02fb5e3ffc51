"""The Gymnasium environments keep Gymnasium's rules and step the domains' own dynamics."""

import subprocess
import sys

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from tightrope.domains import domain
from tightrope.domains.episodes import mean_return

IDS = {"tightrope/MountainCar-v0": "mountain-car", "tightrope/CliffWorld-v0": "cliff-world"}


@pytest.fixture(autouse=True)
def registered():
    import tightrope.domains.environments  # noqa: F401


# Actions in [-1, 1] are recommended; rescaled ones would not be those that the policies and the rewards speak of.
@pytest.mark.filterwarnings("ignore:.*we recommend using a symmetric and normalized space")
@pytest.mark.parametrize("name", IDS)
def test_gymnasium_finds_nothing_to_warn_of(name):
    check_env(gymnasium.make(name).unwrapped)  # warnings are errors here


def test_an_id_with_the_module_needs_no_import():
    code = (
        "import gymnasium; e = gymnasium.make('tightrope.domains.environments:tightrope/CliffWorld-v0', fall_cost=7.0);"
        "print(e.unwrapped.process.fall_cost)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "7.0"


@pytest.mark.parametrize(("name", "other"), IDS.items())
def test_one_environment_steps_the_domain(name, other):
    process, env = domain(other), gymnasium.make(name)
    first, _ = env.reset(seed=7)
    rng = np.random.default_rng()
    rng.bit_generator.state = env.unwrapped.np_random.bit_generator.state
    state = first
    for _ in range(20):
        action = env.action_space.sample()
        after, reward, ended = process.step(np.asarray(state)[None], np.asarray(action)[None], rng)
        state, got_reward, got_ended, _, _ = env.step(action)
        np.testing.assert_array_equal(state, after[0])
        assert (got_reward, got_ended) == (reward[0], ended[0])
        if got_ended:
            break


@pytest.mark.parametrize(("name", "other"), IDS.items())
def test_mean_returns_side_by_side_are_the_behaviour_value(name, other):
    """First episodes of 4,000 environments under the behaviour policy, stepped until all are over."""
    process, n = domain(other), 4000
    envs = gymnasium.make_vec(name, num_envs=n, vectorization_mode="vector_entry_point")
    states, _ = envs.reset(seed=1)
    rng, returns, going = np.random.default_rng(2), np.zeros(n), np.ones(n, dtype=bool)
    for t in range(process.horizon):
        actions = process.behavior.sample(states, np.full(n, t), rng=rng)
        states, rewards, ended, truncated, _ = envs.step(actions)
        returns += np.where(going, rewards, 0.0)
        going &= ~(ended | truncated)
    assert not going.any()
    _, error = mean_return(process, process.behavior, n, rng=rng)
    assert returns.mean() == pytest.approx(process.behavior_value, abs=4 * error)


def test_what_is_over_starts_anew_and_the_others_go_on():
    envs = gymnasium.make_vec(
        "tightrope/MountainCar-v0", num_envs=300, vectorization_mode="vector_entry_point", max_episode_steps=5
    )
    process, rng = envs.process, np.random.default_rng(3)
    states, _ = envs.reset(seed=4)
    over, steps = np.zeros(300, dtype=bool), np.zeros(300)
    for _ in range(20):
        actions = rng.integers(0, 3, 300)
        after, rewards, ended, truncated, _ = envs.step(actions)
        np.testing.assert_array_equal(after[~over], process.next_states[states[~over], actions[~over]])
        assert not process.at_goal[after[over]].any()
        np.testing.assert_array_equal(rewards, np.where(over, 0.0, -1.0))
        np.testing.assert_array_equal(ended, process.at_goal[after] & ~over)
        steps = np.where(over, 0, steps + 1)
        np.testing.assert_array_equal(truncated, steps == 5)
        states, over = after, ended | truncated
    assert over.any()


@pytest.mark.parametrize("name", IDS)
def test_the_horizon_cuts_episodes_off(name):
    env = gymnasium.make(name, max_episode_steps=3)
    env.reset(seed=12)
    actions = [1, 1, 1] if "Car" in name else np.zeros((3, 2))
    assert [env.step(action)[3] for action in actions] == [False, False, True]
