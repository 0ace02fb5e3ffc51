"""Dynamics against Gymnasium's, exact values against a plain recursion, logs against the table."""

import math
from functools import cache

import gymnasium
import numpy as np
import pytest

import tightrope
from tightrope.domains import MountainCar, domain
from tightrope.estimators import MB
from tightrope.models import TabularModel

COARSE = MountainCar(position_cells=4, velocity_cells=40, horizon=6, held_updates=8)


def test_updates_agree_with_gymnasium():
    rng = np.random.default_rng(0)
    car, theirs = MountainCar(), gymnasium.make("MountainCar-v0").unwrapped
    position, velocity = rng.uniform(-1.2, 0.6, 5000), rng.uniform(-0.07, 0.07, 5000)
    position[:500] = rng.uniform(-1.2, -1.15, 500)  # near the wall
    actions = rng.integers(0, 3, 5000)
    moved, speed = car.update(position, velocity, actions)
    for i in range(5000):
        theirs.state = (position[i], velocity[i])
        theirs.step(int(actions[i]))
        assert theirs.state == (pytest.approx(moved[i], abs=1e-15), pytest.approx(speed[i], abs=1e-15))
    assert (moved == -1.2).sum() > 50
    assert (speed[moved == -1.2] == 0).all()


def slow_move(car, state, action):
    """One decision by hand: held updates, stopping at the goal, then the nearest cell."""
    x, v = car.positions[state], car.velocities[state]
    for _ in range(car.held_updates):
        v = min(max(v + 0.001 * (action - 1) - 0.0025 * math.cos(3 * x), -0.07), 0.07)
        x = min(max(x + v, -1.2), 0.6)
        if x == -1.2 and v < 0:
            v = 0.0
        if x >= 0.5:
            break
    close = (car.positions - x) ** 2 * car.position_cells**2 + (car.velocities - v) ** 2 * car.velocity_cells**2
    return int(np.argmin(close))


@pytest.mark.parametrize("car", [MountainCar(), COARSE], ids=["paper", "coarse"])
def test_the_table_holds_held_and_snapped_moves(car):
    for state in np.flatnonzero(~car.at_goal)[:: max(1, len(car.positions) // 300)]:
        for action in range(3):
            assert car.next_states[state, action] == slow_move(car, state, action)


def test_values_agree_with_a_plain_recursion():
    car = COARSE

    @cache
    def slow_value(state, t):
        if t == car.horizon or car.positions[state] >= 0.5:
            return 0.0
        chances = car.candidate.table[state]
        return sum(chances[a] * (-1.0 + slow_value(slow_move(car, state, a), t + 1)) for a in range(3))

    @cache
    def slow_ratio(state, t):
        if t == car.horizon or car.positions[state] >= 0.5:
            return 1.0
        return max(3 * car.candidate.table[state, a] * slow_ratio(slow_move(car, state, a), t + 1) for a in range(3))

    starts = [s for s in range(len(car.positions)) if car.positions[s] < 0.5]
    assert car.true_value == pytest.approx(np.mean([slow_value(s, 0) for s in starts]), abs=1e-12)
    assert car.max_ratio == pytest.approx(max(slow_ratio(s, 0) for s in starts), rel=1e-12)


def test_the_candidate_is_soft_optimal_mixed_with_uniform():
    """exp V(s) is the uniform policy's mean of exp(-decisions to the goal), and the soft policy tilts by it."""
    car = COARSE

    @cache
    def desirability(state, left):
        if car.positions[state] >= 0.5 or left == 0:
            return 1.0
        return sum(math.exp(-1) * desirability(slow_move(car, state, a), left - 1) for a in range(3)) / 3

    for state in np.flatnonzero(~car.at_goal)[::5]:
        tilted = np.array([desirability(slow_move(car, state, a), car.horizon - 1) for a in range(3)])
        np.testing.assert_allclose(car.candidate.table[state], 0.324 * tilted / tilted.sum() + 0.676 / 3, rtol=1e-10)


def test_the_paper_sized_car():
    car = domain("mountain-car")
    assert len(car.positions) == 1102
    assert car.true_value == pytest.approx(-35.0257, abs=1e-3)
    assert car.true_value_error == 0.0
    second_moment = np.ones(1102)  # E_b[ρ²] by backward induction
    for _ in range(100):
        after = np.where(car.at_goal, 1.0, second_moment)[car.next_states]
        second_moment = (3 * car.candidate.table**2 * after).sum(axis=1)
    assert second_moment[~car.at_goal].mean() == pytest.approx(7.9, abs=0.05)


def test_logs_are_what_the_table_says():
    car = MountainCar()
    logs = car.logs(20_000, rng=np.random.default_rng(3))
    spread = logs.returns.std() / np.sqrt(20_000)
    assert logs.returns.mean() == pytest.approx(car.behavior_value, abs=4 * spread)
    following = np.append(logs.states[1:], -1)
    following[logs.offsets[1:] - 1] = logs.final_states
    np.testing.assert_array_equal(following, car.next_states[logs.states, logs.actions])
    ends = np.zeros(logs.n_steps, dtype=bool)
    ends[logs.offsets[1:] - 1] = logs.terminated
    np.testing.assert_array_equal(ends, car.terminated(logs.states, logs.actions, following, logs.times))
    np.testing.assert_array_equal(logs.rewards, car.reward(logs.states, logs.actions, following, logs.times))
    assert not car.at_goal[logs.states].any()
    ratios = np.exp(np.add.reduceat(logs.eval_log_probs - logs.behavior_log_probs, logs.offsets[:-1]))
    assert ratios.mean() == pytest.approx(1.0, abs=4 * np.sqrt(7 / 20_000))
    assert ratios.max() <= car.max_ratio


def test_a_tabular_model_takes_the_logs():
    car = MountainCar()
    logs = car.logs(2000, rng=np.random.default_rng(4))
    record = tightrope.lower_bound(logs, car.candidate, estimator=MB(TabularModel()), n_resamples=100, seed=0)
    assert car.true_value - 6 < record.value < car.true_value + 1


def test_one_seed_gives_the_same_logs():
    first, second = (MountainCar().logs(50, rng=np.random.default_rng(5)) for _ in range(2))
    for name in ("states", "actions", "rewards", "final_states", "behavior_log_probs"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
