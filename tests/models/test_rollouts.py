"""Roll-outs: frozen noise, mirrored pairs, blocks, blow-ups, and how far they can be trusted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tests.models.systems import CANDIDATE, DISCOUNT, UP, logs, problem, square_reward, walks
from tests.models.test_regression import rows
from tightrope.dataset import TrajectoryDataset
from tightrope.estimators.doubly_robust import cross_fitted
from tightrope.models import rollouts
from tightrope.models.lanes import Bank, trajectory_key
from tightrope.models.regression import LinearModel, PolynomialModel
from tightrope.models.simulator import SimulatorModel
from tightrope.policy import GaussianPolicy
from tightrope.problem import Problem

SQUARE = LinearModel(reward=square_reward)


@pytest.fixture(scope="module")
def prepared():
    return SQUARE.prepare(problem(reward=square_reward), anchor="low")


def test_a_batch_equals_its_rows(prepared):
    weights = rows(30, 9)
    alone = [prepared.values(row[None])[0] for row in weights]
    np.testing.assert_allclose(prepared.values(weights), alone, rtol=1e-11)


def test_equal_weights_have_equal_values(prepared):
    values = prepared.values(np.tile(rows(30, 1), (300, 1)))
    assert np.ptp(values) < 1e-11
    assert np.ptp(prepared.values(rows(30, 300))) > 1.0


def test_the_scale_of_weights_does_not_matter(prepared):
    weights = rows(30, 4)
    np.testing.assert_allclose(prepared.values(0.01 * weights), prepared.values(weights), rtol=1e-10)


def test_another_seed_is_other_noise(prepared):
    other = replace(SQUARE, seed=1).prepare(problem(reward=square_reward), anchor="low")
    again = SQUARE.prepare(problem(reward=square_reward), anchor="low")
    ones = np.ones((1, 30))
    assert again.values(ones) == prepared.values(ones)
    assert abs(other.values(ones) - prepared.values(ones)) > 1e-3


@pytest.mark.parametrize("made", [problem(reward=square_reward), Problem(walks(), UP)], ids=["full", "ended"])
def test_blocks_change_nothing(monkeypatch, made):
    model = SQUARE if made.policy is CANDIDATE else LinearModel()
    n = made.dataset.n_trajectories
    whole = model.prepare(made, anchor="low")
    weights, expected = rows(n), whole.values(rows(n))
    pairs = whole.control_variates(weights[0])
    for name, value in {"FIT_ROWS": 4, "LANES": 60, "CHUNK_LANES": 30}.items():
        monkeypatch.setattr(rollouts, name, value)
    parts = model.prepare(made, anchor="low")
    assert len(list(parts.start_returns(parts.fit(weights)))) > 10
    np.testing.assert_allclose(parts.values(weights), expected, rtol=1e-11)
    np.testing.assert_allclose(parts.control_variates(weights[0]), pairs, rtol=1e-9)


def test_a_bank_follows_its_trajectory_and_mirrors_its_pairs():
    keys = [trajectory_key(episode) for episode in (7, "left", 8)]
    bank = Bank.of(keys, 3, (5, 2, 4))
    swapped = Bank.of(keys[::-1], 3, (5, 2, 4))
    np.testing.assert_array_equal(bank.uniforms[:, ::-1], swapped.uniforms)
    longer = Bank.of(keys, 3, (9, 2, 4))
    np.testing.assert_array_equal(longer.uniforms[:5], bank.uniforms)
    noise = bank.at(2, np.array([1, 0, 1])).reshape(3, 2, 2, 4)
    np.testing.assert_allclose(noise[:, :, 0] + noise[:, :, 1], 1.0)
    np.testing.assert_array_equal(noise[0], noise[2])
    assert len(np.unique(bank.uniforms)) == bank.uniforms.size
    assert trajectory_key(np.str_("left")) == trajectory_key("left") != trajectory_key("right")


def test_equal_starts_have_noise_of_their_own():
    data = logs()
    states = data.states.copy()
    states[::8] = [0.5, 0.5]
    model = SQUARE.prepare(Problem(replace(data, states=states), CANDIDATE), anchor="low")
    ((_, _, returns),) = model.start_returns(model.fit(np.ones((1, 30))))
    assert len(np.unique(returns.round(9))) == 30 * 10


def test_noise_depends_on_time_alone():
    """Roll-outs from a logged step use the noise of that time: with one step left q̂ sees only the last noise."""
    seen = []

    def step(states, actions, uniforms):
        seen.append(uniforms.copy())
        return states, 0.0 * states

    data = replace(logs(2, 3), states=np.arange(6.0), actions=np.zeros(6), final_states=None)
    policy = GaussianPolicy(lambda s, t: 0.0 * s, [[1.0]])
    model = SimulatorModel(step, n_rollouts=2).prepare(Problem(data, policy), anchor="low")
    model.start_values  # noqa: B018
    from_start, seen[:] = [*seen], []
    model.control_variates(np.ones(2))
    assert [len(noise) for noise in seen] == [4, 8, 12] * 2  # v̂, then q̂: those begun so far, two roll-outs each
    for t in range(3):
        for begun in seen[t].reshape(t + 1, 4, 1):
            np.testing.assert_array_equal(begun, from_start[t])


@pytest.mark.parametrize("n_rollouts", [2, 4])
def test_the_standard_error_is_the_spread_over_seeds(n_rollouts):
    made, ones = problem(reward=square_reward), np.ones((1, 30))
    models = [replace(SQUARE, seed=s, n_rollouts=n_rollouts).prepare(made, anchor="low") for s in range(60)]
    spread = np.std([model.values(ones)[0] for model in models], ddof=1)
    claimed = np.mean([model.diagnostics()["monte_carlo_standard_error"] for model in models])
    assert spread < 1.35 * claimed  # 60 seeds know the spread to about 9 %
    if n_rollouts > 2:  # a single pair per start claims more: its spread over starts
        assert spread > 0.7 * claimed


def drifting(anchor, **settings):
    """Two episodes of four steps; the state grows tenfold from 1 and stays at 0; logged states lie in [0, 1]."""
    data = TrajectoryDataset(
        offsets=[0, 4, 8],
        rewards=np.array([0.5, 0.0, 1.0, 0.0, 0.0, 0.0, -0.5, 0.0]),
        terminated=[False, False],
        horizon=4,
        discount=0.5,
        states=np.array([1.0, 0.5, 0.5, 0.5, 0.0, 0.5, 0.5, 0.5]),
        actions=np.zeros(8),
        **settings,
    )
    policy = GaussianPolicy(lambda s, t: 0.0 * s, [[1.0]])
    model = SimulatorModel(lambda s, a, u: 10.0 * s, reward=lambda s, a, after, t: 1.0 + 0.0 * s, blow_up=50.0)
    return model.prepare(Problem(data, policy), anchor=anchor)


@pytest.mark.parametrize(
    ("anchor", "settings", "end"),
    [
        ("low", {"reward_range": (-2.0, 3.0)}, -2.0),
        ("high", {"reward_range": (-2.0, 3.0)}, 3.0),
        ("low", {"reward_range": (-0.5, None)}, -0.5),
        ("high", {"reward_range": (-0.5, None)}, 1.0),  # the highest logged
        ("low", {}, -0.5),
        ("high", {}, 1.0),
    ],
)
def test_blow_ups_end_with_the_unsafe_reward_and_are_counted(anchor, settings, end):
    model = drifting(anchor, **settings)
    # From 1: 10 at first, then 100, further than 50 from the middle: steps 1, 2 and 3 earn the end of the range.
    grown, still = 1.0 + end * (0.5 + 0.25 + 0.125), 1.875
    assert model.values(np.array([[1.0, 0.0], [0.0, 1.0], [3.0, 1.0]])) == pytest.approx(
        [grown, still, (3 * grown + still) / 4]
    )
    assert (model.rollouts.n_rolled, model.rollouts.n_blown_up) == (20, 10)
    q, v = model.control_variates(np.ones(2))
    assert v[0] == q[0] == pytest.approx(grown)
    assert v[1] == pytest.approx(1.0 + 0.5 + 0.25 * end)  # 0.5, 5, 50, then 500: of three steps the last blows up
    assert v[3] == pytest.approx(1.0)


def test_runaway_regressions_are_caught():
    data = walks()
    model = PolynomialModel(features=lambda s, a: np.stack([np.ones(len(s)), s, s**3], axis=1), blow_up=1e3)
    wild = GaussianPolicy(lambda s, t: 0.0 * s, [[1.0]])
    pushed = replace(data, actions=data.actions.astype(float), states=data.states * 3, final_states=None)
    far = model.prepare(Problem(pushed, wild), anchor="low")
    values = far.values(rows(40, 200))
    assert np.isfinite(values).all()
    calm = far.n_blown_up
    steep = replace(data, states=np.sign(data.states) * data.states**4, actions=pushed.actions, final_states=None)
    far = model.prepare(Problem(steep, wild), anchor="low")
    assert np.isfinite(far.values(rows(40, 200))).all()
    assert far.n_blown_up > calm
    assert far.diagnostics()["blown_up"] == far.n_blown_up


def test_the_mean_of_q_over_actions_is_v():
    made = Problem(walks(12), UP)
    model = LinearModel(n_rollouts=4000, reward=lambda s, a, after, t: np.abs(after) + a).prepare(made, anchor="low")
    weights, data = rows(12, 1)[0], made.dataset
    _, v = model.control_variates(weights)
    q = []
    for action in (0, 1):
        taken = replace(model.transitions, actions=np.full(data.n_steps, action))
        q.append(replace(model, transitions=taken).control_variates(weights)[0])
    mixed = (UP.probs(data.states, data.times) * np.stack(q, axis=1)).sum(axis=1)
    # Returns lie in an interval of width about 12: 4,000 roll-outs have a standard error below 6 / √4000.
    np.testing.assert_allclose(mixed, v, atol=4 * 6 / np.sqrt(4000))
    assert np.abs(q[0] - q[1]).mean() > 1.0  # or the mean over actions would say little
    last = data.times == data.horizon - 1
    assert last.any()
    np.testing.assert_allclose(mixed[last], v[last], atol=4 * 1.5 / np.sqrt(4000))


def test_the_discount_and_horizon_count_from_the_step():
    data = logs(2, 5)
    ones = LinearModel(reward=lambda s, a, after, t: np.ones(len(s))).prepare(Problem(data, CANDIDATE), anchor="low")
    q, v = ones.control_variates(np.ones(2))
    expected = [sum(DISCOUNT**k for k in range(5 - t)) for t in range(5)] * 2
    np.testing.assert_allclose(q, expected)
    np.testing.assert_allclose(v, expected)
    times = LinearModel(reward=lambda s, a, after, t: t).prepare(Problem(data, CANDIDATE), anchor="low")
    assert times.values(np.ones((1, 2)))[0] == pytest.approx(sum(t * DISCOUNT**t for t in range(5)))


@pytest.mark.parametrize("made", [problem(reward=square_reward), Problem(walks(), UP)], ids=["full", "ended"])
def test_only_the_wanted_trajectories_are_rolled_out(made):
    """Their values are those they would have had among all the others; the others are left out."""
    model = SQUARE if made.policy is CANDIDATE else LinearModel()
    n = made.dataset.n_trajectories
    whole, part = model.prepare(made, anchor="low"), model.prepare(made, anchor="low")
    wanted = np.arange(n) % 3 == 1
    steps = np.repeat(wanted, made.dataset.lengths)
    for every, some in zip(whole.control_variates(np.ones(n)), part.control_variates(np.ones(n), wanted), strict=True):
        np.testing.assert_allclose(some[steps], every[steps], rtol=1e-9)
        assert np.isnan(some[~steps]).all()
    assert part.n_rolled * made.dataset.n_steps == whole.n_rolled * steps.sum()


def test_cross_fitting_rolls_out_no_more_than_a_shared_model():
    made = problem(reward=square_reward)
    shared, cross = (SQUARE.prepare(made, anchor="low") for _ in range(2))
    shared.control_variates(np.ones(30))
    cross_fitted(made.dataset, cross, 5)
    assert cross.n_rolled == shared.n_rolled
