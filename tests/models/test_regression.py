"""Linear and polynomial models: coefficients and noise by hand and by least squares, values against exact ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression

from tests.models.systems import (
    CANDIDATE,
    CENTER,
    DISCOUNT,
    DRIFT,
    GAIN,
    NOISE,
    PLAIN,
    PUSH,
    UP,
    linear_reward,
    logs,
    problem,
    square_reward,
    walks,
)
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import DataError, PolicyError
from tightrope.base.policy import CallablePolicy, GaussianPolicy, UniformPolicy
from tightrope.base.problem import Problem
from tightrope.estimators import MB
from tightrope.models import gram
from tightrope.models.base import Model, PreparedModel
from tightrope.models.gram import clamped_cholesky
from tightrope.models.regression import LinearModel, PolynomialModel
from tightrope.models.simulator import RegressorModel


def rows(n, count=6, seed=5):
    return np.random.default_rng(seed).multinomial(n, np.full(n, 1 / n), size=count).astype(float)


def least_squares(x, y, weights):
    """Weighted coefficients and maximum-likelihood residual covariance, by a dense solver."""
    root = np.sqrt(weights)[:, None]
    found = np.linalg.lstsq(root * x, root * y, rcond=None)[0]
    left = y - x @ found
    return found, (left * weights[:, None]).T @ left / weights.sum()


def follow_means(coefficients, start, steps):
    """The candidate's discounted value where all is linear: noise drops out of the means. No code shared."""
    state, value = start, 0.0
    for t in range(steps):
        action = state @ GAIN[:, 0] + 0.1
        made = np.concatenate([[1.0], state, [action]]) @ coefficients
        value += DISCOUNT**t * made[2]
        state = made[:2]
    return value


def test_it_keeps_the_contract():
    model: Model = LinearModel()
    prepared: PreparedModel = model.prepare(problem(), anchor="low")
    assert (LinearModel().name, PolynomialModel().name) == ("linear", "polynomial")
    assert prepared.n_trajectories == 30


def test_a_known_system_is_recovered():
    prepared = LinearModel(n_rollouts=2).prepare(problem(800, 20), anchor="low")
    found = prepared.fit(np.ones((1, 800)))
    truth = np.vstack([CENTER, DRIFT, PUSH])
    tolerance = 5 * np.sqrt(0.09 / 16_000 / 0.2)  # five standard errors; every feature's own variance is above 0.2
    np.testing.assert_allclose(found.coefficients[0, :, :2], truth, atol=tolerance)
    np.testing.assert_allclose(found.coefficients[0, :, 2], [1.0, 1.0, -2.0, 0.5], atol=1e-9)  # rewards hold no noise
    covariance = found.factor[0] @ found.factor[0].T
    np.testing.assert_allclose(covariance, NOISE, atol=5 * 0.09 * np.sqrt(2 / 16_000))
    known = np.hstack([truth, [[1.0], [1.0], [-2.0], [0.5]]])
    expected = np.mean([follow_means(known, start, 20) for start in logs(800, 20).states[::20]])
    assert prepared.values(np.ones((1, 800)))[0] == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize("final", [True, False])
def test_refits_are_weighted_least_squares(final):
    data = logs(final=final)
    prepared = LinearModel().prepare(Problem(data, CANDIDATE), anchor="low")
    after = np.concatenate([data.states[1:], [[0.0, 0.0]]])
    known = np.arange(240) % 8 != 7
    if final:
        after[7::8], known = data.final_states, np.ones(240, bool)
    x = np.hstack([np.ones((240, 1)), data.states, data.actions])
    weights = rows(30)
    fit = prepared.fit(weights)
    for k, row in enumerate(weights):
        step = np.repeat(row, 8)
        expected, covariance = least_squares(x[known], after[known], step[known])
        np.testing.assert_allclose(fit.coefficients[k, :, :2], expected, atol=1e-10)
        np.testing.assert_allclose(fit.factor[k] @ fit.factor[k].T, covariance, atol=1e-12)
        reward, _ = least_squares(x, data.rewards[:, None], step)
        np.testing.assert_allclose(fit.coefficients[k, :, 2:], reward, atol=1e-10)


def test_far_away_features_lose_no_digits():
    data = logs()
    far = replace(data, states=data.states + 1e6, final_states=data.final_states + 1e6)
    policy = GaussianPolicy(lambda s, t: (s - 1e6) @ GAIN + 0.1, [[0.25]])
    near, shifted = (
        LinearModel(reward=lambda s, a, after, t: a[:, 0]).prepare(made, anchor="low").values(np.ones((1, 30)))
        for made in (Problem(data, CANDIDATE), Problem(far, policy))
    )
    np.testing.assert_allclose(shifted, near, rtol=1e-8)


def test_noise_by_hand():
    data = TrajectoryDataset(
        offsets=[0, 1, 2, 3],
        rewards=[0.0, 0.0, 0.0],
        terminated=[False] * 3,
        horizon=1,
        states=np.zeros((3, 2)),
        actions=np.zeros((3, 1)),
        final_states=np.array([[1.0, 0.0], [3.0, 2.0], [5.0, 1.0]]),
    )
    constant = PolynomialModel(features=lambda s, a: np.ones((len(s), 1)))
    fit = constant.prepare(Problem(data, CANDIDATE), anchor="low").fit(np.array([[1.0, 1.0, 2.0]]))
    # means (1 + 3 + 2·5)/4 = 3.5 and (0 + 2 + 2)/4 = 1; residuals (−2.5, −1), (−.5, 1), twice (1.5, 0)
    np.testing.assert_allclose(fit.coefficients[0, 0], [3.5, 1.0, 0.0], atol=1e-12)
    expected = [[(6.25 + 0.25 + 4.5) / 4, (2.5 - 0.5) / 4], [(2.5 - 0.5) / 4, 2.0 / 4]]
    np.testing.assert_allclose(fit.factor[0] @ fit.factor[0].T, expected, atol=1e-12)


def test_a_system_without_noise_is_simulated_without_noise():
    data = logs()
    actions, states = data.actions.reshape(30, 8, 1), np.repeat(data.states[::8], 9, axis=0).reshape(30, 9, 2)
    for t in range(8):
        states[:, t + 1] = states[:, t] @ DRIFT + actions[:, t] @ PUSH
    clean = replace(data, states=states[:, :8].reshape(-1, 2), final_states=states[:, 8])
    fit = LinearModel().prepare(Problem(clean, CANDIDATE), anchor="low").fit(np.ones((1, 30)))
    np.testing.assert_allclose(fit.coefficients[0, 1:, :2], np.vstack([DRIFT, PUSH]), atol=1e-9)
    assert (fit.factor == 0).all()


def test_clamped_roots_by_hand():
    matrices = np.array([[[4.0, 2.0], [2.0, 5.0]], [[4.0, 2.0], [2.0, 1.0 - 1e-13]], [[-1e-17, 0.0], [0.0, 9.0]]])
    factor, pivots = clamped_cholesky(matrices, floor=np.full(2, 1e-12))
    np.testing.assert_allclose(factor, [[[2, 0], [1, 2]], [[2, 0], [1, 0]], [[0, 0], [0, 3]]])
    np.testing.assert_allclose(pivots, [[4, 4], [4, 0], [0, 9]], atol=1e-12)


def test_polynomial_features_by_hand():
    data = replace(logs(), actions=np.tile([0, 2], 120))
    made = PolynomialModel().prepare(Problem(data, UniformPolicy(3)), anchor="low").fit.args[1]
    state, action = np.array([[2.0, -3.0], [0.5, 1.0]]), np.array([0, 2])
    prepared = PolynomialModel().prepare(Problem(data, UniformPolicy(3)), anchor="low")
    expected = [[1, 4, 9, 8, -27, 0], [1, 0.25, 1, 0.125, 1, 1]]  # 1, squares, cubes, whether the action is 2
    np.testing.assert_array_equal(made(prepared.transitions, state, action), expected)


def test_given_features_make_a_polynomial_model_linear():
    data = problem()
    weights = rows(30)
    given = PolynomialModel(features=lambda s, a: np.hstack([np.ones((len(s), 1)), s, a]))
    np.testing.assert_allclose(
        given.prepare(data, anchor="low").values(weights), LinearModel().prepare(data, anchor="low").values(weights)
    )


def test_a_feature_that_is_constant_in_most_steps_is_no_constant(monkeypatch):
    data = logs()
    given = PolynomialModel(features=lambda s, a: np.hstack([1.0 + (a > 2.2), s]))
    steps = np.flatnonzero(data.actions[:, 0] > 2.2)
    assert 0 < len(steps) < 10
    assert not np.isin(steps, np.arange(0, 240, 60)).any()
    monkeypatch.setattr(gram, "UNITS_FROM", 4)  # looks at steps 0, 60, 120 and 180, where it is 1
    fit = given.prepare(Problem(data, CANDIDATE), anchor="low").fit(np.ones((1, 30)))
    after = np.concatenate([data.states[1:], [[0.0, 0.0]]])
    after[7::8] = data.final_states
    x = np.hstack([1.0 + (data.actions > 2.2), data.states])
    np.testing.assert_allclose(fit.coefficients[0, :, :2], least_squares(x, after, np.ones(240))[0], atol=1e-10)


def test_features_without_a_constant():
    data = logs()
    given = PolynomialModel(features=lambda s, a: np.hstack([s, a]))
    fit = given.prepare(Problem(data, CANDIDATE), anchor="low").fit(np.ones((1, 30)))
    after = np.concatenate([data.states[1:], [[0.0, 0.0]]])
    after[7::8] = data.final_states
    expected, covariance = least_squares(np.hstack([data.states, data.actions]), after, np.ones(240))
    np.testing.assert_allclose(fit.coefficients[0, :, :2], expected, atol=1e-10)
    np.testing.assert_allclose(fit.factor[0] @ fit.factor[0].T, covariance, atol=1e-12)


def test_where_all_is_linear_mirrored_noise_gives_the_exact_value():
    prepared = LinearModel(n_rollouts=2).prepare(problem(), anchor="low")
    weights = rows(30)
    fits, starts = prepared.fit(weights).coefficients, logs().states[::8]
    expected = [
        np.average([follow_means(fit, s, 8) for s in starts], weights=row)
        for fit, row in zip(fits, weights, strict=True)
    ]
    np.testing.assert_allclose(prepared.values(weights), expected, rtol=1e-10)


def test_where_all_is_linear_control_variates_are_exact():
    data = logs()
    prepared = LinearModel(n_rollouts=2).prepare(Problem(data, CANDIDATE), anchor="low")
    weights = rows(30)[0]
    fit = prepared.fit(weights[None]).coefficients[0]
    q, v = prepared.control_variates(weights)
    for step in (0, 5, 7, 100, 239):
        left, state, action = 8 - step % 8, data.states[step], data.actions[step]
        made = np.concatenate([[1.0], state, action]) @ fit
        assert v[step] == pytest.approx(follow_means(fit, state, left), rel=1e-9)
        assert q[step] == pytest.approx(made[2] + DISCOUNT * follow_means(fit, made[:2], left - 1), rel=1e-9)


def test_value_against_plain_simulation_of_the_fit():
    prepared = LinearModel(reward=square_reward, n_rollouts=200).prepare(problem(reward=square_reward), anchor="low")
    fit, rng = prepared.fit(np.ones((1, 30))), np.random.default_rng(11)
    states, total = np.repeat(logs().states[::8], 2000, axis=0), 0.0
    for t in range(8):
        actions = states @ GAIN + 0.1 + 0.5 * rng.standard_normal((len(states), 1))
        mean = np.hstack([np.ones((len(states), 1)), states, actions]) @ fit.coefficients[0]
        after = mean + rng.standard_normal((len(states), 2)) @ fit.factor[0].T
        total = total + DISCOUNT**t * square_reward(states, actions, after, t)
        states = after
    spread = total.reshape(30, 2000).std(axis=1).mean() / np.sqrt(60_000)
    error = np.hypot(spread, prepared.diagnostics()["monte_carlo_standard_error"])
    assert error < 0.2  # of a value of −53
    assert abs(prepared.values(np.ones((1, 30)))[0] - total.mean()) < 4 * error


@pytest.mark.parametrize(
    ("model", "made"),
    [
        (LinearModel(reward=square_reward, **PLAIN), problem(reward=square_reward)),
        (LinearModel(**PLAIN), Problem(walks(), UP)),
        # A seed without blow-ups: where roll-outs end for them hangs on the range of all logs, weighted or not.
        (PolynomialModel(seed=1, **PLAIN), Problem(walks(final=False), UP)),
        (LinearModel(reward=lambda s, a, after, t: after * a + t, **PLAIN), Problem(walks(), UP)),
    ],
    ids=["gaussian", "discrete", "polynomial", "known-reward"],
)
def test_weights_equal_repeats_refit_included(model, made):
    n = made.dataset.n_trajectories
    weights = rows(n, 1)[0]
    again = Problem(made.dataset.take(np.repeat(np.arange(n), weights.astype(int))), made.policy)
    whole, repeated = model.prepare(made, anchor="low"), model.prepare(again, anchor="low")
    ones = np.ones(again.dataset.n_trajectories)
    np.testing.assert_allclose(whole.values(weights[None]), repeated.values(ones[None]), rtol=1e-9)
    offsets = made.dataset.offsets
    steps = np.concatenate([np.tile(np.arange(*offsets[i : i + 2]), int(weights[i])) for i in range(n)]).astype(int)
    for one, other in zip(whole.control_variates(weights), repeated.control_variates(ones), strict=True):
        np.testing.assert_allclose(one[steps], other, rtol=1e-8, atol=1e-10)


def test_order_and_duplication_change_nothing():
    made = Problem(walks(), UP)
    ones = LinearModel(**PLAIN).prepare(made, anchor="low").values(np.ones((1, 40)))
    shuffled = made.dataset.take(np.random.default_rng(0).permutation(40))
    doubled = made.dataset.take(np.tile(np.arange(40), 2))
    for data in (shuffled, doubled):
        prepared = LinearModel(**PLAIN).prepare(Problem(data, UP), anchor="low")
        np.testing.assert_allclose(prepared.values(np.ones((1, data.n_trajectories))), ones, rtol=1e-10)


def test_learned_ends_are_a_share_of_the_steps():
    data = walks(200)
    constant = PolynomialModel(features=lambda s, a: np.ones((len(s), 1)), reward=lambda *x: np.ones(len(x[0])))
    prepared = constant.prepare(Problem(data, UP), anchor="low")
    share = data.terminated.sum() / data.n_steps
    fit = prepared.fit(np.ones((1, 200)))
    assert fit.coefficients[0, 0, 1] == pytest.approx(share, rel=1e-10)
    expected = sum((DISCOUNT * (1 - share)) ** t for t in range(6))
    assert prepared.values(np.ones((1, 200)))[0] == pytest.approx(expected, rel=1e-12)  # ends are not drawn


def test_known_ends():
    model = LinearModel(reward=lambda s, a, after, t: -np.ones(len(s)), terminated=lambda s, a, after, t: t == 2)
    value = model.prepare(Problem(walks(), UP), anchor="low").values(np.ones((1, 40)))
    assert value[0] == pytest.approx(-(1 + DISCOUNT + DISCOUNT**2))  # steps 0, 1 and 2 count


def test_learned_rewards_stay_in_the_declared_range():
    data = logs(reward_range=(-20.0, 20.0))
    shifted = replace(data, rewards=np.clip(data.rewards, 3.0, 20.0), reward_range=(3.0, 20.0))
    low = LinearModel().prepare(Problem(shifted, GaussianPolicy(lambda s, t: s @ GAIN - 40.0, [[1.0]])), anchor="low")
    made = low.fit(np.ones((1, 30))).step(np.zeros((2, 1, 1)), np.array([[-50.0]]), np.zeros((2, 1)))[1]
    assert made[0, 0] == 3.0


def test_a_row_without_a_fit_is_undefined():
    data = logs(3, 3)  # three transitions of one episode: fewer than four features
    prepared = LinearModel().prepare(Problem(data, CANDIDATE), anchor="low")
    values = prepared.values(np.array([[1.0, 0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 0.0, 0.0]]))
    assert np.isnan(values).tolist() == [True, False, True]
    assert np.isnan(prepared.control_variates(np.array([0.0, 1.0, 0.0]))[0]).all()


BAD = {
    "too few": (
        LinearModel(),
        lambda: problem(1, 3),
        r"3 transitions cannot determine 4 features \(1, state 0, state 1, action 0\); log more",
    ),
    "singular": (
        LinearModel(),
        lambda: Problem(replace(logs(), states=np.ones((240, 2)), final_states=None), CANDIDATE),
        "singular: 'state 0' is constant or a combination of the features before it.*leave it out",
    ),
    "twice": (
        PolynomialModel(features=lambda s, a: np.hstack([s, s])),
        problem,
        "singular: 'feature 2' is constant or a combination",
    ),
    "reward shape": (
        LinearModel(reward=lambda s, a, after, t: s),
        problem,
        r"reward must return one number per transition, \(300,\); got shape \(300, 2\)",
    ),
    "reward nan": (
        LinearModel(reward=lambda s, a, after, t: np.full(len(s), np.nan)),
        problem,
        "reward must return finite numbers; got nan for state",
    ),
    "reward text": (LinearModel(reward=lambda s, a, after, t: "high"), problem, "reward must give numbers; got <U4"),
    "ended shape": (
        LinearModel(terminated=lambda s, a, after, t: True),
        problem,
        r"terminated must return one number per transition, .*; got shape \(\)",
    ),
    "text states": (
        LinearModel(),
        lambda: Problem(replace(logs(), states=np.full(240, "left"), final_states=None), CANDIDATE),
        r"states must be numbers .*; got <U4 of shape \(240,\). Use a tabular model",
    ),
    "integer states": (
        LinearModel(),
        lambda: Problem(replace(logs(), states=np.zeros(240, int), final_states=None), CANDIDATE),
        "states must be floats for this model; got one int64 per step. Use a tabular model",
    ),
    "no states": (
        LinearModel(),
        lambda: Problem(replace(logs(), states=None, final_states=None), CANDIDATE),
        "the logs must hold states",
    ),
    "text actions": (
        LinearModel(),
        lambda: Problem(replace(logs(), actions=np.full(240, "left")), CANDIDATE),
        r"actions must be integers \(N,\) or floats \(N, k\) for this model; the logs hold <U4",
    ),
    "action pairs": (
        LinearModel(),
        lambda: Problem(replace(logs(), actions=np.zeros((240, 2), int)), CANDIDATE),
        r"discrete actions must be one integer per step; got shape \(240, 2\)",
    ),
    "unlogged action": (
        LinearModel(),
        lambda: Problem(walks(), UniformPolicy(3)),
        r"the candidate's actions must be among the logged ones \(0, 1\), .*; it takes action 2",
    ),
    "action shape": (
        LinearModel(),
        lambda: problem(policy=GaussianPolicy(lambda s, t: s, np.eye(2))),
        r"the policy's actions must have shape \(300, 1\), as in the logs; got shape \(300, 2\)",
    ),
    "final states": (
        LinearModel(),
        lambda: Problem(replace(logs(), final_states=np.zeros((30, 3))), CANDIDATE),
        r"final_states must have rows like those of states; got float64 of shape \(30, 3\)",
    ),
    "features shape": (
        PolynomialModel(features=lambda s, a: s[:, 0]),
        problem,
        r"features must return shape \(N, p\) with N=1; got shape \(1,\)",
    ),
    "features nan": (
        PolynomialModel(features=lambda s, a: np.hstack([s, np.full((len(s), 1), np.inf)])),
        problem,
        "features must be finite numbers; got .*inf.* at episode 0, step 0",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case):
    model, made, message = BAD[case]
    with pytest.raises(DataError, match=message):
        replace(model, point_rollouts=0).prepare(made(), anchor="low").values(
            np.ones((1, made().dataset.n_trajectories))
        )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_rollouts": 5}, "n_rollouts must be an even number, at least 2, .*; got 5"),
        ({"n_rollouts": 0}, "n_rollouts must be an even number, at least 2, .*; got 0"),
        ({"seed": -1}, "seed must be a whole number .*; got -1"),
        ({"point_rollouts": -1}, "point_rollouts must be a whole number, 0 or more; got -1"),
        ({"replicate_rollouts": 1.5}, "replicate_rollouts must be a whole number, 0 or more; got 1.5"),
        ({"blow_up": 0.0}, "blow_up must be a positive number of ranges; got 0.0"),
    ],
)
def test_settings_that_are_refused(settings, message):
    with pytest.raises(DataError, match=message):
        LinearModel(**settings)


def test_the_side_must_be_known():
    with pytest.raises(DataError, match=r'anchor must be "low" .* or "high" .*; got .middle.'):
        LinearModel().prepare(problem(), anchor="middle")


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (None, "policy must be the policy itself here, not None"),
        (CallablePolicy(lambda s, a, t: np.ones(len(s))), "policy must be able to act, and CallablePolicy"),
    ],
)
def test_policies_that_cannot_act(policy, message):
    with pytest.raises(PolicyError, match=message):
        LinearModel(reward=linear_reward).prepare(problem(policy=policy), anchor="low")


def test_a_known_end_needs_the_states_in_which_episodes_ended():
    """Fitted to survivors alone, a walk that ends below zero would seem to drift upwards."""
    data = TrajectoryDataset(
        offsets=np.array([0, 2, 3, 6]),
        rewards=np.ones(6),
        terminated=np.array([True, True, False]),
        horizon=3,
        states=np.arange(6.0)[:, None],
        actions=np.linspace(-1, 1, 6)[:, None],
    )
    policy = GaussianPolicy(lambda states, t: 0 * states, [[1.0]])
    model = LinearModel(terminated=lambda states, actions, after, t: after[:, 0] < 0)
    with pytest.raises(DataError, match="the model would end too seldom"):
        model.prepare(Problem(data, policy), anchor="low")


@pytest.mark.parametrize("model", [LinearModel(), RegressorModel(LinearRegression())], ids=lambda model: model.name)
def test_where_ends_are_learned_the_state_they_ended_in_is_not_gone_on_from(model):
    """Episodes that crash are logged at 100. Nobody acts there: the model is the one without those states."""
    data = logs()
    crashed = np.arange(data.n_trajectories) % 3 == 0
    final = np.where(crashed[:, None], 100.0, data.final_states)
    data = replace(data, terminated=crashed, final_states=final)
    unlogged = np.where(crashed[:, None], np.nan, final)
    values = [MB(model)(Problem(replace(data, final_states=end), CANDIDATE)).estimate for end in (final, unlogged)]
    assert values[0] == pytest.approx(values[1], rel=1e-9)
