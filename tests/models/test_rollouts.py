"""Roll-outs: frozen noise, mirrored pairs, blocks, blow-ups, and how far they can be trusted."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

import tightrope
from tests.models.systems import CANDIDATE, DISCOUNT, GAIN, PLAIN, UP, logs, problem, square_reward, walks
from tests.models.test_regression import rows
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.policy import GaussianPolicy
from tightrope.base.problem import Problem
from tightrope.estimators import MB
from tightrope.estimators.doubly_robust import cross_fitted
from tightrope.models.regression import LinearModel, PolynomialModel
from tightrope.models.rollouts import model as rollouts
from tightrope.models.rollouts import stepping
from tightrope.models.rollouts.lanes import Bank, trajectory_key
from tightrope.models.simulator import SimulatorModel

SQUARE = LinearModel(reward=square_reward, **PLAIN)


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
    model = SQUARE if made.policy is CANDIDATE else LinearModel(**PLAIN)
    n = made.dataset.n_trajectories
    whole = model.prepare(made, anchor="low")
    weights, expected = rows(n), whole.values(rows(n))
    pairs = whole.control_variates(weights[0])
    for name, value in {"FIT_ROWS": 4, "LANES": 60}.items():
        monkeypatch.setattr(rollouts, name, value)
    parts = model.prepare(made, anchor="low")
    every = np.arange(n)
    assert len(list(parts.start_returns(parts.fit(weights), every, 0 * every))) > 10
    np.testing.assert_allclose(parts.values(weights), expected, rtol=1e-11)
    np.testing.assert_allclose(parts.control_variates(weights[0]), pairs, rtol=1e-9)


def bank(episodes, horizon=5, *, first_pairs=0, rollouts=4, **how):
    seed = how.pop("seed", 3)
    keys = np.array([trajectory_key(episode, seed) for episode in episodes], dtype=np.uint64)
    shape = (horizon, rollouts, how.pop("acting", 1), 2)
    settings = {"act": None, "normal": False} | how
    return Bank.of(keys, np.full(len(keys), first_pairs), shape, **settings)


def test_a_bank_follows_its_trajectory_and_mirrors_its_pairs():
    """Noise hangs on the trajectory, the roll-out and the time: not on what else is drawn."""
    whole = bank([7, "left", 8])
    parts = [(whole.to_act, 1), (whole.to_move, 2)]
    for noise, width in parts:
        assert noise.size == 5 * width * 3 * 4
        pairs = noise.reshape(-1, 2)
        np.testing.assert_allclose(pairs.sum(axis=1), 1.0)
        assert ((noise > 0) & (noise < 1)).all()
    drawn = np.concatenate([noise.ravel() for noise, _ in parts])
    assert len(np.unique(drawn)) == drawn.size
    others = {
        "swapped": bank([8, "left", 7]),
        "longer": bank([7, "left", 8], 9),
        "more": bank([7, "left", 8], rollouts=8),
    }
    for name in ("to_act", "to_move"):
        one = getattr(whole, name).reshape(5, -1, 3, 4)
        np.testing.assert_array_equal(getattr(others["swapped"], name).reshape(5, -1, 3, 4)[:, :, ::-1], one)
        np.testing.assert_array_equal(getattr(others["longer"], name)[:5].reshape(one.shape), one)
        more = getattr(others["more"], name).reshape(5, -1, 3, 8)
        np.testing.assert_array_equal(more[..., :4], one)
        later = getattr(bank([7, "left", 8], first_pairs=2), name).reshape(one.shape)
        np.testing.assert_array_equal(more[..., 4:], later)
    assert trajectory_key(np.str_("left"), 3) == trajectory_key("left", 3) != trajectory_key("right", 3)
    assert trajectory_key("left", 3) != trajectory_key("left", 4)


def test_a_bank_is_uniform_or_normal_and_turned_into_the_policys_noise():
    many = bank(range(500), 10, rollouts=8, acting=2)
    for noise in (
        many.to_act,
        many.to_move,
    ):  # standard errors are below 0.29 / √20,000 for the means of pairs apart: all else mirrors
        assert np.abs(noise[..., ::2].mean() - 0.5) < 5 * 0.29 / np.sqrt(noise.size / 2)
        assert np.abs(noise.var() - 1 / 12) < 5 * 0.08 / np.sqrt(noise.size / 2)
        assert np.abs(np.corrcoef(noise[0].ravel()[::2], noise[1].ravel()[::2])[0, 1]) < 5 / np.sqrt(noise[0].size / 2)
    policy = GaussianPolicy(lambda s, t: s, [[4.0, 1.0], [1.0, 1.0]])
    shaped = bank(range(500), 10, rollouts=8, acting=2, act=policy.noise, normal=True)
    np.testing.assert_allclose(shaped.to_move, ndtri(many.to_move), atol=1e-9)
    for t, lane in ((0, 0), (3, 17), (9, 3999)):
        expected = policy.act(np.zeros((1, 2)), np.zeros(1, int), many.to_act[t, :, lane][None])[0]
        np.testing.assert_allclose(shaped.to_act[t, :, lane], expected, atol=1e-12)


def test_equal_starts_have_noise_of_their_own():
    data = logs()
    states = data.states.copy()
    states[::8] = [0.5, 0.5]
    model = SQUARE.prepare(Problem(replace(data, states=states), CANDIDATE), anchor="low")
    every = np.arange(30)
    ((_, _, returns),) = model.start_returns(model.fit(np.ones((1, 30))), every, 0 * every)
    assert len(np.unique(returns.round(9))) == 30 * 10


def test_noise_depends_on_time_alone():
    """Roll-outs from a logged step use the noise of that time: with one step left q̂ sees only the last noise."""
    seen = []

    def step(states, actions, uniforms):
        seen.append(uniforms.copy())
        return states, 0.0 * states

    data = replace(logs(2, 3), states=np.arange(6.0), actions=np.zeros(6), final_states=None)
    policy = GaussianPolicy(lambda s, t: 0.0 * s, [[1.0]])
    model = SimulatorModel(step, n_rollouts=2, point_rollouts=0).prepare(Problem(data, policy), anchor="low")
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
    model = SimulatorModel(
        lambda s, a, u: 10.0 * s, blow_up=50.0, point_rollouts=0, reward=lambda s, a, after, t: 1.0 + 0.0 * s
    )
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
    assert (model.rollouts.stepper.n_rolled, model.rollouts.stepper.n_blown_up) == (20, 10)
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
    calm = far.stepper.n_blown_up
    steep = replace(data, states=np.sign(data.states) * data.states**4, actions=pushed.actions, final_states=None)
    far = model.prepare(Problem(steep, wild), anchor="low")
    assert np.isfinite(far.values(rows(40, 200))).all()
    assert far.stepper.n_blown_up > calm
    assert far.diagnostics()["blown_up"] == far.stepper.n_blown_up


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
    model = SQUARE if made.policy is CANDIDATE else LinearModel(**PLAIN)
    n = made.dataset.n_trajectories
    whole, part = model.prepare(made, anchor="low"), model.prepare(made, anchor="low")
    wanted = np.arange(n) % 3 == 1
    steps = np.repeat(wanted, made.dataset.lengths)
    for every, some in zip(whole.control_variates(np.ones(n)), part.control_variates(np.ones(n), wanted), strict=True):
        np.testing.assert_allclose(some[steps], every[steps], rtol=1e-9)
        assert np.isnan(some[~steps]).all()
    assert part.stepper.n_rolled * made.dataset.n_steps == whole.stepper.n_rolled * steps.sum()


def test_cross_fitting_rolls_out_no_more_than_a_shared_model():
    made = problem(reward=square_reward)
    shared, cross = (SQUARE.prepare(made, anchor="low") for _ in range(2))
    shared.control_variates(np.ones(30))
    cross_fitted(made.dataset, cross, 5)
    assert cross.stepper.n_rolled == shared.stepper.n_rolled


# -- the estimate and what refitting changes -------------------------------------------------------------------------


def start_values(model, weights, rollouts):
    """v̂ of every start by the definition, roll-out by roll-out, in the model fitted under weights; (n,)."""
    fit, data = model.fit(weights[None]), model.transitions.data
    values = []
    for i in range(data.n_trajectories):
        noise = bank([i], data.horizon, rollouts=rollouts, acting=1, act=CANDIDATE.noise, normal=True, seed=0)
        total = np.zeros(rollouts)
        for k in range(rollouts):
            state = data.states[data.offsets[i]]
            for t in range(data.horizon):
                action = state @ GAIN[:, 0] + 0.1 + noise.to_act[t, :, k]
                mean = np.concatenate([[1.0], state, action]) @ fit.coefficients[0]
                after = mean + fit.factor[0] @ noise.to_move[t, :, k]
                total[k] += DISCOUNT**t * square_reward(state[None], action[None], after[None], t)[0]
                state = after
        values.append(total.mean())
    return np.array(values)


def test_the_value_by_its_definition():
    """Six starts with 8 roll-outs for the estimate; replicates use 2 roll-outs of some three starts."""
    made = problem(6, 4, reward=square_reward)
    model = LinearModel(reward=square_reward, n_rollouts=2, point_rollouts=48, replicate_rollouts=7)
    model = model.prepare(made, anchor="low")
    keys = [trajectory_key(i, 0) for i in range(6)]
    some = np.sort(np.argsort(keys)[:3])
    weights = np.array([[1.0] * 6, [2, 0, 1, 3, 0, 0], [0, 1, 1, 0, 3, 1], [0.0] * 6])
    weights[2, some] = 0.0  # none of the three drawn
    precise, few = start_values(model, weights[0], 8), start_values(model, weights[0], 2)
    changes = [start_values(model, row, 2)[some] - few[some] for row in weights[:3]]
    expected = [
        precise.mean(),
        np.average(precise, weights=weights[1]) + np.average(changes[1], weights=weights[1, some]),
        np.average(precise, weights=weights[2]) + changes[2].mean(),
        np.nan,
    ]
    np.testing.assert_allclose(model.values(weights), expected, rtol=1e-9)
    assert np.abs(changes[1]).max() > 0.1  # or the second part would show nothing
    assert np.abs(precise - few).max() > 0.1


def test_where_every_start_is_used_the_value_is_the_plain_mean():
    made = problem(5, 4, reward=square_reward)
    model = LinearModel(reward=square_reward, n_rollouts=4, **PLAIN).prepare(made, anchor="low")
    weights = rows(5, 1)[0] + 0.5
    expected = np.average(start_values(model, weights, 4), weights=weights)
    np.testing.assert_allclose(model.values(weights[None]), expected, rtol=1e-9)


def test_few_roll_outs_of_a_replicate_know_what_many_know():
    """Refits move the value by common random numbers: 80 roll-outs from 40 starts see what 4,000 from 200 see."""
    made, weights = problem(200, reward=square_reward), rows(200, 60)
    settings = {"reward": square_reward, "n_rollouts": 2}
    few = LinearModel(**settings, replicate_rollouts=80, point_rollouts=20_000).prepare(made, anchor="low")
    old = LinearModel(**settings, **PLAIN).prepare(made, anchor="low")
    many = LinearModel(reward=square_reward, n_rollouts=20, **PLAIN).prepare(made, anchor="low")
    truth = many.values(weights)
    assert np.corrcoef(few.values(weights), truth)[0, 1] > 0.95
    assert few.values(weights).std() == pytest.approx(truth.std(), rel=0.15)
    assert few.diagnostics()["monte_carlo_standard_error"] < old.diagnostics()["monte_carlo_standard_error"] / 5
    off = (few.values(weights) - truth).std()  # the estimate's own error moves all alike
    assert off < 2 * few.diagnostics()["refit_standard_error"] < truth.std()


def test_starts_are_chosen_by_their_episodes_not_their_places():
    data = logs(30, reward=square_reward)
    settings = LinearModel(reward=square_reward, n_rollouts=2, replicate_rollouts=20, point_rollouts=0)
    order = np.random.default_rng(1).permutation(30)
    here = settings.prepare(Problem(data, CANDIDATE), anchor="low")
    there = settings.prepare(Problem(data.take(order), CANDIDATE), anchor="low")
    weights = rows(30)
    np.testing.assert_allclose(there.values(weights[:, order]), here.values(weights), rtol=1e-9)
    twice = settings.prepare(Problem(data.take(np.repeat(np.arange(30), 2)), CANDIDATE), anchor="low")
    some = set(twice.transitions.data.episode_ids[twice._some].tolist())
    assert len(twice._some) == 10  # copies stay together
    assert len(some) == 5
    assert some <= set(data.episode_ids[here._some].tolist())


def test_finished_roll_outs_are_dropped_and_change_nothing(monkeypatch):
    made, weights = Problem(walks(), UP), rows(40)
    dropping = LinearModel(**PLAIN).prepare(made, anchor="low")
    expected, pairs = dropping.values(weights), dropping.control_variates(weights[0])
    monkeypatch.setattr(stepping, "FINISHED", 2.0)  # never
    keeping = LinearModel(**PLAIN).prepare(made, anchor="low")
    np.testing.assert_allclose(keeping.values(weights), expected, rtol=1e-12)
    np.testing.assert_allclose(keeping.control_variates(weights[0]), pairs, rtol=1e-12)


def test_users_functions_get_the_shapes_of_the_logs():
    seen = []

    def reward(states, actions, after, t):
        seen.append((states.shape, actions.shape, after.shape, t.shape))
        return states[:, 0]

    model = LinearModel(reward=reward, n_rollouts=2, **PLAIN).prepare(problem(6, 3), anchor="low")
    model.values(rows(6, 5))
    shapes = {shape for shape in seen if shape[3] == (60,)}
    assert shapes == {((60, 2), (60, 1), (60, 2), (60,))}


@pytest.mark.parametrize(("point_rollouts", "told"), [(0, True), (50_000, False)])
def test_simulation_noise_is_told(point_rollouts, told):
    model = LinearModel(reward=square_reward, n_rollouts=2, point_rollouts=point_rollouts)
    found = tightrope.lower_bound(
        logs(200, reward=square_reward), CANDIDATE, estimator=MB(model), method="percentile", n_resamples=100
    )
    texts = [one.text for one in found.warnings if one.code == "simulation-noise"]
    assert bool(texts) == told
    assert not told or re.search(r"standard error of [\d.]+ where the bootstrap has .*point_rollouts", texts[0])
