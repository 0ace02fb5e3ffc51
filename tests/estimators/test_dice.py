"""Linear ratios of visits: what they equal, where they are right, and systems that have no single solution."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

import tightrope
from tests.field.dice import one_hot
from tests.laws.laws import logs, same
from tests.laws.test_models import DATA, EPISODES, POLICY, REPEATS
from tests.oracle import Episode
from tightrope import TrajectoryDataset
from tightrope.base.errors import DataError, NoOverlapError
from tightrope.base.problem import Problem
from tightrope.behaviors import TabularBehavior
from tightrope.domains import small
from tightrope.estimators import DICE, MIS, PDIS
from tightrope.functional.standard_errors import standard_error

N = DATA.n_trajectories
ROWS = np.array([np.ones(N), REPEATS, np.random.default_rng(1).exponential(size=N)])
PLACES = np.random.default_rng(3).normal(size=(DATA.n_steps, 2))
CONTINUOUS = replace(DATA, states=PLACES, final_states=None)


# -- what it equals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("behavior", [None, TabularBehavior(), TabularBehavior(timed=True)])
def test_with_a_feature_for_each_state_it_is_mis(behavior):
    problem = Problem(DATA, POLICY, behavior=behavior)
    marginal = MIS()(problem)
    for features in (None, one_hot, lambda states: one_hot(states) @ np.random.default_rng(2).normal(size=(8, 8))):
        statistic = DICE(features)(problem)
        same(statistic(ROWS), marginal(ROWS), 1e-10)
        same(statistic.influence(), marginal.influence(), 1e-10)
        same(statistic.standard_errors(ROWS, (N,)), marginal.standard_errors(ROWS, (N,)), 1e-10)


def test_with_features_that_tell_all_episodes_apart_it_is_pdis():
    rich = DICE(lambda states: np.random.default_rng(5).normal(size=(len(states), N)))
    same(rich(Problem(CONTINUOUS))(ROWS), PDIS()(Problem(CONTINUOUS))(ROWS), 1e-9)


def test_a_constant_feature_alone_is_weighed_by_mean_ratios():
    """w_t is the same for all episodes that go on: the mean of w_{t-1} ρ_{t-1} over those."""
    value, now = 0.0, [(e, 1.0) for e in EPISODES]
    for t in range(DATA.horizon):
        mean = sum(u for _, u in now) / len(now)
        moved = [(e, mean * e.candidate[t] / e.behavior[t]) for e, _ in now]
        value += DATA.discount**t * sum(u * e.rewards[t] for e, u in moved) / N
        now = [(e, u) for e, u in moved if len(e.rewards) > t + 1]
        if not now:
            break
    same(DICE(lambda states: np.ones((len(states), 1)))(Problem(DATA)).estimate, value)


def backwards(data, features, weights):
    """The same number as a fitted evaluation: v_t is the regression of ρ_t (r_t + γ v_{t+1}) on the features."""
    ratios = np.exp(data.eval_log_probs - data.behavior_log_probs)
    ahead = np.zeros(data.n_steps + 1)
    for t in reversed(range(data.horizon)):
        steps = np.flatnonzero(data.times == t)
        last = np.isin(steps, data.offsets[1:] - 1)
        targets = ratios[steps] * (data.rewards[steps] + data.discount * np.where(last, 0.0, ahead[steps + 1]))
        root = np.sqrt(weights[np.searchsorted(data.offsets, steps, side="right") - 1])
        coefficients = np.linalg.lstsq(root[:, None] * features[steps], root * targets, rcond=None)[0]
        ahead[steps] = features[steps] @ coefficients
    return weights @ ahead[data.offsets[:-1]] / weights.sum()


@pytest.mark.parametrize("row", range(3))
def test_forwards_and_backwards_are_the_same(row):
    """Ratios carried forwards and values carried backwards meet in one number, by lstsq and by the default features."""
    features = np.column_stack([np.ones(DATA.n_steps), PLACES])
    same(DICE()(Problem(CONTINUOUS))(ROWS[row]), backwards(CONTINUOUS, features, ROWS[row]), 1e-10)
    given = DICE(lambda states: np.column_stack([np.ones(len(states)), states, states**2]))
    squares = np.column_stack([features, PLACES**2])
    same(given(Problem(CONTINUOUS))(ROWS[row]), backwards(CONTINUOUS, squares, ROWS[row]), 1e-10)


# -- continuous states: every integral is exact by Gauss and Legendre ------------------------------------------------

NODES, MASSES = (np.polynomial.legendre.leggauss(5)[0] + 1) / 2, np.polynomial.legendre.leggauss(5)[1] / 2
LINE, STEPS, GAMMA = 0.6, 3, 0.9


def candidate_up(s):
    return 0.2 + LINE * s


def line(behavior_up, reward):
    """Logs of a state in [0, 1], and weights by which sums are integrals.

    Action 1 leads to a state of density 2s, action 0 to 2(1 − s), wherever one is; the start is uniform.
    """
    episodes, weights = [], []
    for nodes in product(range(len(NODES)), repeat=STEPS):
        for actions in product(range(2), repeat=STEPS):
            mass, states = MASSES[nodes[0]], NODES[list(nodes)]
            for t in range(1, STEPS):
                mass *= MASSES[nodes[t]] * 2 * (states[t] if actions[t - 1] else 1 - states[t])
            over, under = (
                [p if a else 1 - p for p, a in zip(up(states), actions, strict=True)]
                for up in (candidate_up, behavior_up)
            )
            rewards = [reward(s, a) for s, a in zip(states, actions, strict=True)]
            episodes.append(Episode(rewards, under, over, True, states.tolist(), list(actions)))
            weights.append(mass * np.prod(under))
    return logs(episodes, horizon=STEPS, discount=GAMMA), np.array(weights)


def line_value(reward, steps):
    """The candidate's value, by the same integrals, backwards."""
    value, chance = np.zeros(len(NODES)), candidate_up(NODES)
    for _ in range(steps):
        up, down = MASSES @ (2 * NODES * value), MASSES @ (2 * (1 - NODES) * value)
        value = chance * (reward(NODES, 1) + GAMMA * up) + (1 - chance) * (reward(NODES, 0) + GAMMA * down)
    return float(MASSES @ value)


def even(s):
    return np.full(len(s), 0.5)


def uneven(s):
    return 0.8 - 0.5 * s


def straight(s, a):
    return 2 * s - 1 + a


def curved(s, a):
    return 4 * s**2 * (1 + a) - 1


@pytest.mark.parametrize(
    ("behavior_up", "reward", "right"),
    [
        (even, straight, True),
        (even, curved, True),  # the ratio of visits is linear: w_{t+1}(s) = 2 m s + 2 (1 − m)(1 − s), m = P(A_t = 1)
        (uneven, straight, True),  # the candidate's values are linear
        (uneven, curved, False),  # neither is
    ],
)
def test_enumeration_of_a_continuous_state(behavior_up, reward, right):
    (data, weights), value = line(behavior_up, reward), line_value(reward, STEPS)
    same(weights.sum(), 1.0)
    error = abs(float(DICE()(Problem(data))(weights)) - value)
    assert error < 1e-12 if right else error > 1e-3
    # With enough features it is right again: the ratios of finitely many nodes are in their span.
    powers = DICE(lambda states: np.stack([states**k for k in range(len(NODES))], axis=1))
    same(powers(Problem(data))(weights), value, 1e-9)


def simulated(n, steps, rng):
    """Episodes of the same process, drawn step by step, logged by the even policy."""
    states, actions, state = [], [], rng.random(n)
    for _ in range(steps):
        action = (rng.random(n) < 0.5).astype(int)
        states.append(state)
        actions.append(action)
        state = np.where(action == 1, np.sqrt(rng.random(n)), 1 - np.sqrt(rng.random(n)))
    s, a = np.stack(states, axis=1).ravel(), np.stack(actions, axis=1).ravel()
    return TrajectoryDataset(
        offsets=np.arange(n + 1) * steps,
        rewards=curved(s, a),
        terminated=np.ones(n, dtype=bool),
        horizon=steps,
        discount=GAMMA,
        behavior_log_probs=np.full(n * steps, np.log(0.5)),
        eval_log_probs=np.log(np.where(a == 1, candidate_up(s), 1 - candidate_up(s))),
        states=s,
        actions=a,
    )


def test_simulated_logs_of_a_continuous_state():
    """Within its standard errors of the exact value, and these are smaller than those of PDIS."""
    problem = Problem(simulated(10_000, 40, np.random.default_rng(8)))
    statistic, plain = DICE()(problem), PDIS()(problem)
    error = standard_error(statistic.influence())
    assert abs(statistic.estimate - line_value(curved, 40)) < 4 * error
    assert 0 < error < 0.8 * standard_error(plain.influence())


# -- systems without a single solution -----------------------------------------------------------------------------


def test_features_that_say_the_same_twice():
    """Repeated, scaled and constant features change nothing, however large their unit is."""
    plain = DICE()(Problem(CONTINUOUS))
    more = DICE(lambda s: np.column_stack([1e8 + 0 * s[:, 0], s * 1e-6, 5 + s[:, 0] - 3 * s[:, 1], np.zeros(len(s))]))
    same(more(Problem(CONTINUOUS))(ROWS), plain(ROWS), 1e-9)


def test_one_start_state_and_fewer_episodes_than_features():
    """All states of the first time are one; the last times have one or two episodes for three features."""
    places = PLACES.copy()
    places[DATA.times == 0] = [0.3, -2.0]
    data = replace(CONTINUOUS, states=places)
    alive = [(DATA.lengths > t).sum() for t in range(DATA.horizon)]
    assert min(alive) < 3
    statistic = DICE()(Problem(data))
    features = np.column_stack([np.ones(DATA.n_steps), places])
    for row in ROWS:
        same(statistic(row), backwards(data, features, row), 1e-9)
    assert np.isfinite(statistic.leave_one_out()).all()


def test_weight_on_few_episodes():
    """A row that leaves one episode is that episode's PDIS, whatever the features are."""
    alone = np.eye(N)
    same(DICE()(Problem(CONTINUOUS))(alone), PDIS()(Problem(CONTINUOUS))(alone), 1e-9)


def test_far_from_the_origin():
    """States around a million: the constant and the state are nearly one direction, and still two."""
    far = replace(CONTINUOUS, states=PLACES + 1e6)
    same(DICE()(Problem(far))(ROWS), DICE()(Problem(CONTINUOUS))(ROWS), 1e-6)


# -- derivatives, batches, refusals --------------------------------------------------------------------------------


def squared(states):
    return np.column_stack([np.ones(len(states)), states, states**2])


@pytest.mark.parametrize(
    ("features", "data", "behavior"),
    [(None, CONTINUOUS, None), (squared, CONTINUOUS, None), (squared, DATA, TabularBehavior())],
)
def test_influences_are_derivatives(features, data, behavior):
    statistic = DICE(features)(Problem(data, behavior=behavior))
    rows = np.array([ROWS[0], ROWS[1] + 0.5, ROWS[2]])
    influences = statistic.model.influences(rows)
    step = 1e-6 * np.eye(N)
    slopes = np.array([(statistic(row + step) - statistic(row - step)) / 2e-6 for row in rows])
    np.testing.assert_allclose(influences, slopes, rtol=1e-5, atol=1e-7)
    same((rows * influences).sum(axis=1), np.zeros(3), 1e-10)


def test_the_same_bits_in_any_batch():
    statistic = DICE()(Problem(CONTINUOUS))
    rows = np.random.default_rng(2).poisson(1.0, (37, N)).astype(float)
    rows[5] = 0.0
    together = statistic(rows)
    assert np.isnan(together[5])
    assert np.isfinite(np.delete(together, 5)).all()
    np.testing.assert_array_equal(together, [statistic(row) for row in rows])
    np.testing.assert_array_equal(together[20:], statistic(rows[20:]))
    errors = statistic.standard_errors(np.delete(rows, 5, axis=0), (N,))
    np.testing.assert_array_equal(errors[7:30], statistic.standard_errors(np.delete(rows, 5, axis=0)[7:30], (N,)))


@pytest.mark.parametrize(
    ("features", "message"),
    [
        (lambda states: np.ones(len(states)), r"features must return shape \(N, p\) with N=\d+; got shape \(\d+,\)"),
        (lambda states: np.ones((3, 2)), r"features must return shape \(N, p\).*got shape \(3, 2\)"),
        (lambda states: np.full((len(states), 2), np.nan), "features must be finite numbers; got .* at episode 0, st"),
        (lambda states: "many", "features must give numbers"),
    ],
)
def test_features_that_are_none(features, message):
    with pytest.raises(DataError, match=message):
        DICE(features)(Problem(CONTINUOUS))


def test_states_without_features():
    with pytest.raises(DataError, match="dice needs states"):
        DICE()(Problem(replace(DATA, states=None, final_states=None)))
    pictures = replace(DATA, states=np.zeros((DATA.n_steps, 2, 2)), final_states=None)
    with pytest.raises(DataError, match=r"Give DICE\(features=\.\.\.\)"):
        DICE()(Problem(pictures))
    assert np.isfinite(DICE(lambda states: states.reshape(len(states), 4) + 1)(Problem(pictures)).estimate)


def test_no_way_through_the_logs():
    never = replace(CONTINUOUS, eval_log_probs=np.where(DATA.times == 0, -np.inf, DATA.eval_log_probs))
    with pytest.raises(NoOverlapError, match="dice finds no way through the logs"):
        DICE()(Problem(never))


@pytest.mark.parametrize("method", ["percentile", "bca", "studentized", "t"])
def test_bounds(method):
    walker = small("walker")
    data = walker.logs(60, rng=np.random.default_rng(3))
    features = DICE(lambda states: np.stack([states**k for k in range(3)], axis=1))
    settings = {"estimator": features, "method": method, "n_resamples": 200, "seed": 1}
    low = tightrope.lower_bound(data, walker.candidate, **settings)
    high = tightrope.upper_bound(data, walker.candidate, **settings)
    assert low.value < low.estimate == high.estimate < high.value
