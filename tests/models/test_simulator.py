"""Simulators given by the user, and regressors of other libraries."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.tree import DecisionTreeRegressor

from tests.models.systems import CANDIDATE, CENTER, DISCOUNT, UP, logs, problem, square_reward, walks
from tests.models.test_regression import rows
from tightrope.base.errors import DataError, PolicyError
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.models.base import SmoothModel
from tightrope.models.regression import LinearModel
from tightrope.models.simulator import RegressorModel, SimulatorModel

# -- a simulator given -------------------------------------------------------------------------------------------------


def still(states, actions, uniforms):
    return 0.5 * states


def first(states, actions, after, t):
    return states[:, 0]


def test_a_simulator_by_hand():
    model = SimulatorModel(still, reward=first).prepare(problem(4, 3), anchor="low")
    starts = logs(4, 3).states[::3, 0] * (1 + 0.5 * DISCOUNT + 0.25 * DISCOUNT**2)
    weights = np.array([[1.0, 1.0, 1.0, 1.0], [2.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]])
    values = model.values(weights)
    assert values[:2] == pytest.approx([starts.mean(), (2 * starts[0] + starts[2]) / 3])
    assert np.isnan(values[2])
    assert model.n_trajectories == 4
    assert isinstance(model, SmoothModel)
    np.testing.assert_allclose(model.influences(weights[1:2])[0], (starts - values[1]) / 3)
    assert model.diagnostics()["monte_carlo_standard_error"] == pytest.approx(0.0, abs=1e-12)


def test_a_simulator_may_say_rewards_and_ends():
    def step(states, actions, uniforms):
        return states, np.full(len(states), 2.0), uniforms[:, 0] < 0.25

    model = SimulatorModel(step, n_rollouts=400, point_rollouts=0).prepare(problem(20, 4), anchor="low")
    expected = 2 * sum((0.75 * DISCOUNT) ** t for t in range(4))
    error = model.diagnostics()["monte_carlo_standard_error"]
    assert 0 < error < 0.03
    assert abs(model.values(np.ones((1, 20)))[0] - expected) < 4 * error


def test_a_simulator_over_discrete_states_against_exact_values():
    moves = np.array([[[0.8, 0.2], [0.3, 0.7]], [[0.5, 0.5], [0.1, 0.9]]])  # (action, state, next state)
    earned = np.array([[1.0, 0.0], [-1.0, 2.0]])  # (state, action)
    policy = TabularPolicy([[0.3, 0.7], [0.6, 0.4]])

    def step(states, actions, uniforms):
        assert states.dtype.kind == "i"
        return (uniforms[:, 0] >= moves[actions, states, 0]).astype(int)

    n, horizon = 6, 3
    data = replace(
        logs(n, horizon),
        states=np.arange(n * horizon) % 2,
        actions=np.arange(n * horizon) // 2 % 2,
        final_states=None,
    )
    given = SimulatorModel(step, reward=lambda s, a, after, t: earned[s, a], n_rollouts=4000)
    q, v = given.prepare(Problem(data, policy), anchor="low").control_variates(np.ones(n))
    exact_v = np.zeros((horizon + 1, 2))
    exact_q = np.zeros((horizon, 2, 2))
    for t in reversed(range(horizon)):
        exact_q[t] = earned + DISCOUNT * np.einsum("asz,z->sa", moves, exact_v[t + 1])
        exact_v[t] = (policy.table * exact_q[t]).sum(axis=1)
    tolerance = 5 * 2.5 / np.sqrt(4000)  # returns spread by less than 2.5
    np.testing.assert_allclose(v, exact_v[data.times, data.states], atol=tolerance)
    np.testing.assert_allclose(q, exact_q[data.times, data.states, data.actions], atol=tolerance)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (SimulatorModel(lambda s, a, u: np.full_like(s, np.nan), reward=first), r"finite next states; got \[nan nan\]"),
        (SimulatorModel(lambda s, a, u: s + np.inf, reward=first), r"finite next states; got \[inf inf\]"),
        (SimulatorModel(lambda s, a, u: s[:, 0], reward=first), r"next states of shape \(40, 2\); got shape \(40,\)"),
        (SimulatorModel(still), "reward must be a function, .*, because step returns next states only"),
        (SimulatorModel(lambda s, a, u: (s, s)), r"rewards of shape \(40,\); got shape \(40, 2\)"),
        (SimulatorModel(lambda s, a, u: (s, s[:, 0], s)), r"ends of shape \(40,\); got shape \(40, 2\)"),
        (
            SimulatorModel(still, reward=lambda s, a, after, t: 1.0),
            r"reward must return one number per transition, .*; got shape \(\)",
        ),
    ],
)
def test_simulators_that_are_refused(model, message):
    with pytest.raises(DataError, match=message):
        replace(model, point_rollouts=0).prepare(problem(4, 3), anchor="low").values(np.ones((1, 4)))


def test_noise_is_counted_in_whole_numbers():
    with pytest.raises(DataError, match="noise_width must be a whole number, 0 or more; got -1"):
        SimulatorModel(still, noise_width=-1)
    calm = SimulatorModel(still, reward=first, noise_width=0).prepare(problem(4, 3), anchor="low")
    assert calm.values(np.ones((1, 4))) == SimulatorModel(still, reward=first).prepare(
        problem(4, 3), anchor="low"
    ).values(np.ones((1, 4)))


def test_a_logged_candidate_cannot_be_simulated():
    with pytest.raises(PolicyError, match=r"policy must be the policy itself here, not None"):
        SimulatorModel(still, reward=first).prepare(problem(policy=None), anchor="low")


# -- regressors of other libraries -------------------------------------------------------------------------------------


@pytest.mark.parametrize("final", [True, False])
@pytest.mark.parametrize("known", [True, False])
def test_a_linear_regressor_is_the_linear_model(final, known):
    made = Problem(walks(final=final), UP)
    settings = {"reward": lambda s, a, after, t: np.abs(after)} if known else {}
    weights = rows(40, 4)
    theirs = RegressorModel(LinearRegression(), **settings).prepare(made, anchor="low")
    ours = LinearModel(**settings).prepare(made, anchor="low")
    np.testing.assert_allclose(theirs.values(weights), ours.values(weights), rtol=1e-8)
    pairs = zip(theirs.control_variates(weights[0]), ours.control_variates(weights[0]), strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)


def test_several_numbers_per_state():
    made = problem(reward=square_reward)
    weights = rows(30, 2)
    theirs = RegressorModel(LinearRegression(), reward=square_reward).prepare(made, anchor="low").values(weights)
    ours = LinearModel(reward=square_reward).prepare(made, anchor="low").values(weights)
    np.testing.assert_allclose(theirs, ours, rtol=1e-8)


@pytest.mark.parametrize(
    "regressor", [DecisionTreeRegressor(max_depth=3), RandomForestRegressor(n_estimators=3, max_depth=3)]
)
def test_the_training_seed_is_frozen(regressor):
    model = RegressorModel(regressor, n_rollouts=2)
    prepared = model.prepare(Problem(walks(), UP), anchor="low")
    weights = rows(40, 2)
    values = prepared.values(weights[[0, 1, 0]])
    assert values[0] == values[2] != values[1]
    assert prepared.values(weights[:1])[0] == pytest.approx(values[0], rel=1e-12)
    assert not hasattr(regressor, "tree_")
    assert not hasattr(regressor, "estimators_")
    assert regressor.random_state is None


def test_a_row_of_zeros_is_undefined():
    prepared = RegressorModel(LinearRegression(), n_rollouts=2).prepare(Problem(walks(), UP), anchor="low")
    assert np.isnan(prepared.values(np.stack([np.zeros(40), np.ones(40)]))).tolist() == [True, False]


class Mean:
    """A regressor that is none of scikit-learn's: the weighted mean."""

    def fit(self, inputs, targets, sample_weight):
        self.mean = np.average(targets, axis=0, weights=sample_weight)

    def predict(self, inputs):
        return np.tile(self.mean, (len(inputs), 1))


class Broken(Mean):
    def __init__(self, value):
        self.value = value

    def predict(self, inputs):
        return self.value(inputs)


def test_any_object_that_fits_and_predicts():
    data = logs(4, 3)
    model = RegressorModel(Mean(), reward=lambda s, a, after, t: s[:, 0], n_rollouts=2)
    value = model.prepare(Problem(data, CANDIDATE), anchor="low").values(np.ones((1, 4)))[0]
    after = np.concatenate([data.states[np.arange(12) % 3 > 0, 0], data.final_states[:, 0]]).mean()
    assert value == pytest.approx(data.states[::3, 0].mean() + (DISCOUNT + DISCOUNT**2) * after)
    assert abs(after - CENTER[0]) < 2.0


@pytest.mark.parametrize(
    ("regressor", "message"),
    [
        (KNeighborsRegressor(), "a fit that takes sample_weight, .*; KNeighborsRegressor does not"),
        (object(), r"regressor must have fit\(\); object has none"),
        (Broken(lambda x: np.zeros((len(x), 5))), r"regressor must predict shape \(32, 2\); got shape \(32, 5\)"),
        (Broken(lambda x: np.full((len(x), 2), np.nan)), "regressor Broken must predict finite numbers; got nan"),
    ],
)
def test_regressors_that_are_refused(regressor, message):
    model = RegressorModel(regressor, reward=square_reward)
    with pytest.raises(DataError, match=message):
        model.prepare(problem(4, 8), anchor="low").values(np.ones((1, 4)))


def test_a_fit_that_fails_says_whose():
    class Picky(Mean):
        def fit(self, inputs, targets, sample_weight):
            raise ValueError("too few samples")

    with pytest.raises(DataError, match="regressor Picky does not fit these logs: too few samples"):
        RegressorModel(Picky(), reward=square_reward).prepare(problem(), anchor="low").values(np.ones((1, 30)))


def test_logs_without_a_single_transition():
    with pytest.raises(DataError, match=r"a transition whose next state is known; they hold none. Give final_states"):
        RegressorModel(Mean()).prepare(problem(5, 1, final=False), anchor="low")
