"""Geometry by hand, logs against the known functions, stored values against fresh roll-outs."""

import json
from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope.base.errors import TightropeError
from tightrope.domains import DOMAINS, CliffWorld, domain, mean_return
from tightrope.estimators import MB
from tightrope.models import LinearModel

WORLD = CliffWorld(origin=(0.0, 0.0))
NOW = np.zeros(1, dtype=np.int64)


def at(x, y, vx=0.0, vy=0.0):
    return np.array([[x, y, vx, vy]])


@pytest.mark.parametrize(
    ("x", "y", "fallen"),
    [
        (0.5, 0.5, False),
        (-0.01, 1, True),
        (5.01, 1, True),
        (1, -0.01, True),
        (1, 5.01, True),
        (2, 2.0, True),
        (2, 2.5, False),
        (2, 3.0, True),
        (1.4, 1, False),
        (2.6, 4, False),
    ],
)
def test_cliffs_and_edges(x, y, fallen):
    assert WORLD.fallen(at(x, y))[0] == fallen
    assert WORLD.terminated(at(1, 1), None, at(x, y), NOW)[0] == fallen


def test_the_goal_ends_the_episode():
    assert WORLD.terminated(at(4, 4), None, at(4.25, 4.75), NOW)[0]
    assert not WORLD.terminated(at(4, 4), None, at(4.15, 4.5), NOW)[0]


def test_rewards_by_hand():
    """From (1, 2) the goal (4.5, 4.5) is 3.5 + 2.5 away; the push (0.5, -1) costs 1.5; a fall 100 more."""
    push = np.array([[0.5, -1.0]])
    assert WORLD.reward(at(1, 2), push, at(1.1, 2), NOW)[0] == pytest.approx(-7.5)
    assert WORLD.reward(at(1, 2), push, at(2.0, 1), NOW)[0] == pytest.approx(-107.5)


def test_the_controller_by_hand():
    """Towards (0.75, 2.5), then (2.75, 2.5), then the goal, damped by 1.8 v, at most 2."""
    np.testing.assert_allclose(WORLD.controller(at(0.5, 1.0), NOW), [[0.25, 1.5]])
    np.testing.assert_allclose(WORLD.controller(at(1.0, 2.3, 0.5, 0.1), NOW), [[1.75 - 0.9, 0.2 - 0.18]])
    np.testing.assert_allclose(WORLD.controller(at(2.6, 2.5), NOW), [[1.9, 2.0]])


def test_a_step_by_hand():
    quiet = replace(WORLD, position_noise=0.0, velocity_noise=0.0)
    after, reward, ended = quiet.step(at(1, 2, 0.5, -0.5), np.array([[1.0, 2.0]]), np.random.default_rng(0))
    np.testing.assert_allclose(after, at(1.1, 1.9, 0.7, -0.1))
    assert reward[0] == pytest.approx(-9.0)
    assert not ended[0]


def test_side_by_side_is_one_by_one():
    quiet = replace(WORLD, position_noise=0.0, velocity_noise=0.0)
    rng = np.random.default_rng(1)
    states, actions = rng.uniform([0, 0, -1, -1], [5, 5, 1, 1], (200, 4)), rng.normal(0, 1, (200, 2))
    together = quiet.step(states, actions, rng)
    for i in range(200):
        for part, alone in zip(together, quiet.step(states[i : i + 1], actions[i : i + 1], rng), strict=True):
            np.testing.assert_array_equal(part[i : i + 1], alone)


def test_the_noise_has_the_stated_size():
    n = 100_000
    after, _, _ = WORLD.step(np.repeat(at(1, 1), n, axis=0), np.zeros((n, 2)), np.random.default_rng(2))
    np.testing.assert_allclose((after - at(1, 1)).std(axis=0), [0.01, 0.01, 0.02, 0.02], rtol=0.02)


@pytest.mark.parametrize("name", ["cliff-world", "cliff-world-shifted"])
def test_logs_are_what_the_known_functions_say(name):
    world = domain(name)
    logs = world.logs(3000, rng=np.random.default_rng(3))
    following = np.concatenate([logs.states[1:], logs.states[:1]])
    following[logs.offsets[1:] - 1] = logs.final_states
    assert np.isfinite(logs.final_states).all()
    ends = np.zeros(logs.n_steps, dtype=bool)
    ends[logs.offsets[1:] - 1] = logs.terminated
    np.testing.assert_array_equal(ends, world.terminated(logs.states, logs.actions, following, logs.times))
    np.testing.assert_array_equal(logs.rewards, world.reward(logs.states, logs.actions, following, logs.times))
    step_ratios = np.exp(logs.eval_log_probs - logs.behavior_log_probs)
    assert step_ratios.mean() == pytest.approx(1.0, abs=4 * step_ratios.std() / np.sqrt(logs.n_steps))
    assert step_ratios.max() <= 1.5 * (1 + 1e-12)
    assert logs.value_range == (-np.inf, 0.0)


def test_the_origin_changes_coordinates_only():
    first, second = (domain(name).logs(200, rng=np.random.default_rng(4)) for name in list(DOMAINS)[-2:])
    np.testing.assert_allclose(first.rewards, second.rewards, atol=1e-9)
    np.testing.assert_allclose(first.states + np.array([4.5, 4.5, 0, 0]), second.states, atol=1e-9)
    assert first.states[first.offsets[:-1]].mean(axis=0) == pytest.approx([-2, -2, 0, 0], abs=0.02)


@pytest.mark.parametrize("policy", ["candidate", "behavior"])
def test_stored_values_agree_with_fresh_roll_outs(policy):
    world = domain("cliff-world")
    stored = world.true_value if policy == "candidate" else world.behavior_value
    error = world.true_value_error if policy == "candidate" else world.behavior_value_error
    value, spread = mean_return(world, getattr(world, policy), 20_000, rng=np.random.default_rng(9))
    assert 0 < error < 0.03
    assert value == pytest.approx(stored, abs=4 * np.hypot(spread, error))


def test_values_of_other_configurations_are_simulated():
    steeper = CliffWorld(fall_cost=1000.0, horizon=3)
    assert steeper.true_value != CliffWorld().true_value
    assert 0 < steeper.true_value_error < 1


def test_ratios_without_a_bound_are_said_to_have_none():
    assert CliffWorld(variance_ratio=0.9).max_ratio is None
    assert CliffWorld().max_ratio == pytest.approx(1.5**60)


def test_a_linear_model_takes_the_logs():
    world = domain("cliff-world")
    logs = world.logs(30, rng=np.random.default_rng(6))
    model = LinearModel(reward=world.reward, terminated=world.terminated)
    record = tightrope.lower_bound(
        logs, world.candidate, estimator=MB(model), method="percentile", n_resamples=40, seed=0
    )
    assert world.true_value - 10 < record.value < world.true_value + 5


def test_one_seed_gives_the_same_logs():
    first, second = (CliffWorld().logs(50, rng=np.random.default_rng(5)) for _ in range(2))
    for name in ("states", "actions", "rewards", "final_states", "behavior_log_probs"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))


@pytest.mark.parametrize("name", list(DOMAINS))
def test_every_domain_keeps_the_contract(name):
    made = domain(name)
    assert made.name == name
    assert json.loads(json.dumps(made.configuration()))
    logs = made.logs(4, rng=np.random.default_rng(0))
    assert (logs.final_states is None) == (made.configuration().get("observe") is not None)  # nor are others shown
    assert logs.reward_range is not None
    assert logs.horizon == made.configuration()["horizon"]
    assert np.isfinite([made.true_value, made.behavior_value]).all()
    assert (made.true_value_error == 0) == (made.behavior_value_error == 0)


def test_an_unknown_domain_lists_the_known():
    with pytest.raises(TightropeError, match=r"domain must be .*walker.*mountain-car.*cliff-world.*; got 'moon'"):
        domain("moon")
