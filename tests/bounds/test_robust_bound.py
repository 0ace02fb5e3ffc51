"""The robust bound: the worst case against linear programs, radii at all counts at once, and error rates."""

from __future__ import annotations

from dataclasses import replace
from math import log, sqrt

import numpy as np
import pytest
from scipy.optimize import linprog

from tests.random_mdps import blurred, random_mdp, random_policy
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import BoundError, DataError
from tightrope.base.policy import TabularPolicy
from tightrope.bounds.robust import (
    deviation,
    l1_worst_case,
    robust_bound,
    robust_value,
    start_radius,
    transition_radius,
)
from tightrope.domains import small


def test_the_worst_case_by_hand():
    p, values = np.array([0.2, 0.5, 0.3]), np.array([1.0, 3.0, 2.0])
    assert l1_worst_case(p, values, 0.0) == pytest.approx(2.3)
    assert l1_worst_case(p, values, 0.4) == pytest.approx(2.3 - 0.2 * 2)  # 0.2 from the value 3 to the value 1
    assert l1_worst_case(p, values, 1.2) == pytest.approx(1.2)  # 0.5 from 3 and 0.1 from 2: (0.8, 0, 0.2)
    assert l1_worst_case(p, values, 2.0) == pytest.approx(1.0)
    ruled_out = np.array([False, True, True])
    assert l1_worst_case(np.array([0.0, 0.5, 0.5]), values, 2.0, possible=ruled_out) == pytest.approx(2.0)


def _program(p, values, radius, possible):
    """min q·v with q ≥ 0, Σ q = 1, |q − p| ≤ u, Σ u ≤ radius, as a linear program in (q, u)."""
    k = len(p)
    one = np.eye(k)
    found = linprog(
        np.concatenate([values, np.zeros(k)]),
        A_ub=np.vstack([np.hstack([one, -one]), np.hstack([-one, -one]), np.append(np.zeros(k), np.ones(k))[None]]),
        b_ub=np.concatenate([p, -p, [radius]]),
        A_eq=np.append(np.ones(k), np.zeros(k))[None],
        b_eq=[1.0],
        bounds=[(0, None if allowed else 0) for allowed in possible] + [(0, None)] * k,
    )
    assert found.success
    return found.fun


def test_the_worst_case_against_linear_programs():
    rng = np.random.default_rng(12)
    for _ in range(150):
        k = int(rng.integers(2, 7))
        possible = rng.random((3, k)) < 0.7
        possible[np.arange(3), rng.integers(k, size=3)] = True
        p = rng.dirichlet(np.full(k, 0.5), size=3) * possible + 1e-9 * possible
        p /= p.sum(axis=1, keepdims=True)
        values, radius = np.round(rng.normal(size=(3, k)), 1), rng.uniform(0, 2, 3)  # rounding makes ties
        wanted = [_program(*row) for row in zip(p, values, radius, possible, strict=True)]
        assert l1_worst_case(p, values, radius, possible=possible) == pytest.approx(wanted, abs=1e-9)
        shared = [_program(p[i], values[0], radius[i], np.ones(k, bool)) for i in range(3)]
        assert l1_worst_case(p, values[0], radius) == pytest.approx(shared, abs=1e-9)


@pytest.mark.parametrize("outcome_rewards", [False, True])
def test_with_the_true_distances_as_radii_never_above_the_value_and_with_none_equal(outcome_rewards):
    rng = np.random.default_rng(13)
    for _ in range(150):
        mdp = random_mdp(rng, horizon=5, discount=0.9, outcome_rewards=outcome_rewards)
        model = blurred(mdp, rng, 0.3)
        policy = random_policy(rng, 5, 3, 2)
        rewards = mdp.rewards if outcome_rewards else mdp.rewards[..., 0]
        distance = np.abs(mdp.transition_probs - model.transition_probs).sum(axis=2)
        start = np.abs(mdp.start_probs - model.start_probs).sum()
        value = mdp.value(TabularPolicy(policy))

        def worst(process, radii, radius, rewards=rewards, policy=policy):
            return robust_value(
                process.transition_probs,
                process.start_probs,
                rewards,
                policy,
                transition_radii=radii,
                start_radius=radius,
                discount=0.9,
            )

        assert worst(mdp, np.zeros((3, 2)), 0.0) == pytest.approx(value)
        assert worst(model, distance, start) <= value + 1e-12
        assert worst(model, distance, start) < worst(model, 0.5 * distance, 0.5 * start)


def test_radii_by_hand():
    assert deviation(3, log(20)) == pytest.approx(sqrt(4 * (2 * log(20) + log(4))) / 6)
    assert np.isinf(deviation(0, log(20)))
    # Two outcomes can be split in one way, three in three.
    assert transition_radius(400, 2, 0.05) == pytest.approx(2 * deviation(400, log(1 / 0.05)))
    assert transition_radius(400, 3, 0.05) == pytest.approx(2 * deviation(400, log(3 / 0.05)))
    assert transition_radius([0, 0, 9], [4, 1, 1], 0.05).tolist() == [2.0, 0.0, 0.0]
    assert start_radius(100, 3, 0.05) == pytest.approx(sqrt(2 * log(6 / 0.05) / 100))
    assert (start_radius(100, 1, 0.05), start_radius(1, 3, 0.05)) == (0.0, 2.0)
    assert np.isfinite(transition_radius(1e6, 5000, 0.05))  # 2^4999 splits


def test_deviations_hold_at_all_counts_at_once():
    """Fair coins watched for 3,000 throws: a radius for one count is left far more often than it says, ours is not."""
    rng = np.random.default_rng(14)
    n = np.arange(1, 3001)
    apart = np.abs(np.cumsum(rng.random((2000, 3000)) < 0.5, axis=1) / n - 0.5)
    ever = (apart > deviation(n, log(1 / 0.1))).any(axis=1).mean()
    assert 0.01 < ever <= 0.1
    assert (apart > np.sqrt(log(2 / 0.1) / (2 * n))).any(axis=1).mean() > 0.2


def _problem(name="bonus"):
    problem = small(name)
    n_states, n_actions, _ = problem.mdp.transition_probs.shape
    table = np.broadcast_to(problem.candidate.table, (problem.mdp.horizon, n_states, n_actions))
    return problem, table


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_error_rate_and_convergence(side):
    """At most 5 % of 300 data sets err (counts alone err about half the time), and the gap closes with n."""
    problem, table = _problem()
    rng = np.random.default_rng(15)
    logs = problem.mdp.simulate(problem.behavior, 300 * 40, rng=rng)
    sign = 1 if side == "lower" else -1
    found = [robust_bound(logs.take(np.arange(40 * i, 40 * i + 40)), table, side=side) for i in range(300)]
    assert sum(sign * bound.value > sign * problem.true_value for bound in found) <= 15
    assert sum(sign * bound.estimate > sign * problem.true_value for bound in found) > 100
    gaps = []
    for n in (400, 40_000):
        found = robust_bound(problem.mdp.simulate(problem.behavior, n, rng=rng), table, side=side)
        assert found.guarantee == "exact"
        assert sign * found.value < sign * found.estimate
        assert found.estimate == pytest.approx(problem.true_value, abs=4 / sqrt(n))
        gaps.append(sign * (problem.true_value - found.value))
    assert 0 < gaps[1] < 0.3 * gaps[0]
    assert gaps[1] < 0.5


def test_the_bound_by_hand():
    """One state, one action, two steps paid 0 or 1, then 30 of 100 first steps end the episode.

    Shares of δ: start, row, reward. The row's known transitions are those of step 0; the worst case ends radius/2 more
    often.
    """
    going_on = np.arange(100) >= 30
    lengths = 1 + going_on
    rewards = np.tile([1.0, 0.0, 1.0, 1.0], 50)[: lengths.sum()]
    logs = TrajectoryDataset(
        offsets=np.append(0, np.cumsum(lengths)),
        rewards=rewards,
        terminated=~going_on,
        horizon=2,
        states=np.zeros(170, int),
        actions=np.zeros(170, int),
        reward_range=(0.0, 1.0),
    )
    found = robust_bound(logs, np.ones((2, 1, 1)))
    mean = rewards.mean()
    least = mean - deviation(170, log(3 / 0.05))
    assert found.estimate == pytest.approx(mean * 1.7)
    assert found.value == pytest.approx(least * (1.7 - deviation(100, log(3 / 0.05))))
    upper = robust_bound(logs, np.ones((2, 1, 1)), side="upper")
    most = mean + deviation(170, log(3 / 0.05))
    assert upper.value == pytest.approx(most * (1.7 + deviation(100, log(3 / 0.05))))


def test_knowing_rewards_and_next_states_helps():
    problem, table = _problem()
    mdp = problem.mdp
    logs = mdp.simulate(problem.behavior, 2000, rng=np.random.default_rng(16))
    possible, starts = mdp.transition_probs > 0, mdp.start_probs > 0
    plain = robust_bound(logs, table).value
    known = robust_bound(logs, table, rewards=mdp.rewards).value
    narrow = robust_bound(logs, table, rewards=mdp.rewards, possible=possible, possible_starts=starts).value
    assert plain < known < narrow < problem.true_value
    assert robust_bound(logs, table, rewards=mdp.rewards[..., 0]).value == pytest.approx(known)


def test_unvisited_pairs_are_the_worst():
    """One state, two actions, one step: action 1 was never logged and counts as the lowest reward."""
    problem, _ = _problem("clinic")
    logs = problem.mdp.simulate(TabularPolicy(np.tile([1.0, 0.0], (5, 1))), 5000, rng=np.random.default_rng(17))
    table = np.tile([0.25, 0.75], (1, 5, 1))
    found = robust_bound(logs, table)
    cured = problem.mdp.transition_probs[:, 0, 5]
    assert found.estimate == pytest.approx(0.25 * problem.mdp.start_probs @ cured, abs=0.01)
    assert 0 < found.value < found.estimate
    (warning,) = found.warnings
    assert str(warning) == (
        "unvisited: 5 of the 10 state-action pairs that the candidate may take were never logged; they count as "
        "the worst possible"
    )
    assert warning.numbers == {"missing": 5, "possible": 10}
    upper = robust_bound(logs, table, side="upper")
    assert upper.estimate == pytest.approx(0.25 * problem.mdp.start_probs @ cured + 0.75, abs=0.01)
    assert upper.estimate < upper.value < 1.0


def test_no_bound_leaves_the_declared_range():
    problem, table = _problem("walker")
    logs = problem.mdp.simulate(problem.behavior, 3, rng=np.random.default_rng(18))
    low, high = problem.mdp.return_range
    assert robust_bound(logs, table).value == low
    assert robust_bound(logs, table, side="upper").value == pytest.approx(high, abs=1e-9)


@pytest.mark.parametrize(
    ("changes", "options", "guarantee"),
    [
        ({}, {}, "exact"),
        ({"horizon_declared": False}, {}, "approximate"),
        ({"reward_range": None, "return_range": None}, {}, "approximate"),
        ({"reward_range": (0, None), "return_range": None}, {}, "approximate"),
        ({"reward_range": None}, {"rewards": np.zeros((3, 2))}, "exact"),
        ({"n_dropped": 2}, {}, "approximate"),
        ({}, {"states_declared": False}, "approximate"),
    ],
)
def test_what_is_called_exact(changes, options, guarantee):
    problem, table = _problem()
    logs = replace(problem.mdp.simulate(problem.behavior, 30, rng=np.random.default_rng(19)), **changes)
    assert robust_bound(logs, table, **options).guarantee == guarantee


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"confidence": 0.0}, BoundError, "confidence is 0.0; it must lie between 0 and 1"),
        ({"side": "left"}, BoundError, 'side is \'left\'; "lower" or "upper"'),
        ({"policy": np.ones((3, 2))}, BoundError, r"policy has shape \(3, 2\); a table \(8, states, actions\)"),
        ({"policy": np.ones((8, 2, 2))}, DataError, "state 2 at episode .* is not among 0..1"),
        ({"rewards": np.ones(3)}, BoundError, r"rewards has shape \(3,\); \(3, 2\) or \(3, 2, 4\) is expected"),
        ({"possible": np.ones((3, 2), bool)}, BoundError, r"possible is bool of shape \(3, 2\)"),
        ({"possible": np.zeros((3, 2, 4), bool)}, BoundError, r"possible rules out \(0, 0, 0\), which is in the logs"),
        ({"possible_starts": np.zeros(3, bool)}, BoundError, r"possible_starts rules out \(0,\)"),
    ],
)
def test_refusals(options, error, message):
    problem, table = _problem()
    logs = problem.mdp.simulate(problem.behavior, 30, rng=np.random.default_rng(20))
    with pytest.raises(error, match=message):
        robust_bound(logs, **({"policy": table} | options))
