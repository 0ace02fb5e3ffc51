"""Rehearsal where states are quantities: the worlds, the truth in them, and WDR in simulated logs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import ks_2samp

import tightrope
from tests.rehearsal_oracle import KINDS, SlowWorld
from tightrope import BoundError, TabularPolicy, TrajectoryDataset, UniformPolicy
from tightrope.base.policy.discrete import Discrete
from tightrope.base.problem import Problem
from tightrope.base.progress import watched
from tightrope.bounds import Rehearsed
from tightrope.bounds.rehearsal.linear import LinearStage
from tightrope.bounds.rehearsal.tabular import TabularStage
from tightrope.estimators import WDR
from tightrope.estimators.gain import gain
from tightrope.models import FittedQ, LinearModel, PolynomialModel


class Leaning(Discrete):
    """Action 1 the more likely the larger the first number of the state is."""

    def __init__(self, slope, shift=0.0):
        self.slope, self.shift = slope, shift

    def probs(self, states, t):
        one = 1.0 / (1.0 + np.exp(-self.slope * states[:, 0] - self.shift))
        return np.column_stack([1.0 - one, one])


BEHAVIOR, CANDIDATE = Leaning(0.3), Leaning(-0.5, 0.6)


def drift(n, rng, *, noise=0.3, horizon=6, behavior=BEHAVIOR, start=1.0):
    """s' = 0.7 s + (a − 1/2) (1, −1) + noise; r = s_0 + a + noise; ends the more often the larger s_1 is."""
    offsets, columns, ends, final = [0], [[], [], []], [], []
    for _ in range(n):
        state = start * rng.standard_normal(2)
        for t in range(horizon):
            action = int(rng.random() < behavior.probs(state[None], np.array([t]))[0, 1])
            reward = state[0] + action + noise * rng.standard_normal()
            ended = bool(noise and rng.random() < 0.15 + 0.05 * state[1])
            after = 0.7 * state + (action - 0.5) * np.array([1.0, -1.0]) + noise * rng.standard_normal(2)
            for column, value in zip(columns, (state, action, reward), strict=True):
                column.append(value)
            state = after
            if ended:
                break
        offsets.append(len(columns[0]))
        ends.append(ended)
        final.append(state)
    states, actions, rewards = (np.array(column) for column in columns)
    times = np.concatenate([np.arange(b - a) for a, b in itertools.pairwise(offsets)])
    return TrajectoryDataset(
        offsets=np.array(offsets), rewards=rewards, terminated=np.array(ends), horizon=horizon, discount=0.9,
        states=states, actions=actions, final_states=np.array(final), behavior=behavior, reward_range=(-6.0, 6.0),
        behavior_log_probs=np.log(behavior.probs(states, times)[np.arange(len(actions)), actions]),
    )  # fmt: skip


LOGS = drift(30, np.random.default_rng(5))
PROBLEM = Problem(LOGS, CANDIDATE)
FITTED = {"estimator": "wdr", "model": "fitted-q"}


def stage(problem=PROBLEM, side="lower", model="fitted-q", world="auto"):
    return LinearStage.of(problem, side, model, world)


@pytest.mark.parametrize("kind", range(4))
def test_worlds_are_their_slow_definition(kind):
    world, slow = stage().worlds[kind], SlowWorld(LOGS, KINDS[kind], -6.0, 6.0)
    assert world.name == slow.kind
    starts = LOGS.states[LOGS.offsets[:-1]]
    again, last = np.random.default_rng(8), dict.fromkeys(range(len(starts)), (None, 0.0))
    n_ended = 0
    for t, moment in enumerate(world.play(BEHAVIOR, starts, np.random.default_rng(8))):
        draws = again.random((len(moment.episodes), 6))
        for k, i in enumerate(moment.episodes.tolist()):
            chance = BEHAVIOR.probs(moment.states[k][None], np.array([t]))[0, 0]
            action = int(draws[k, 0] >= chance)
            after, reward, ended = slow.step(moment.states[k], action, t, last[i], draws[k, 1:])
            assert moment.actions[k] == action
            np.testing.assert_allclose(moment.following[k], after, atol=1e-8)
            assert moment.rewards[k] == pytest.approx(reward, abs=1e-8)
            assert moment.ended[k] == ended
            last[i] = (action, reward)
            n_ended += ended
    assert t == LOGS.horizon - 1
    assert n_ended > 5


@pytest.mark.parametrize("about", ["value", "gain"])
@pytest.mark.parametrize("side", ["lower", "upper"])
def test_wdr_is_that_of_the_library(side, about):
    sign = 1.0 if side == "lower" else -1.0
    estimator = WDR(model="fitted-q", anchor="low" if side == "lower" else "high")
    statistic = (gain(estimator) if about == "gain" else estimator)(PROBLEM)
    found = stage(side=side).wdr(about)
    assert found[0] == pytest.approx(sign * statistic.estimate, rel=1e-9)
    assert found[1] == pytest.approx(np.sqrt(np.var(statistic.leave_one_out()) * 29), rel=1e-7)


def test_pivots_are_those_of_each_log_by_itself():
    """Logs are simulated and fitted together, and yet each is its own: one fit for each, by the library's WDR."""
    one = stage()
    world = one.worlds[3]
    truth, error = one.truth(world, "value")
    assert 0 < error < 0.05
    together = one._played(world, np.random.default_rng([4, 3]), LOGS, 7)
    expected = []
    for m in range(7):
        log = together.take(np.arange(30 * m, 30 * m + 30))
        statistic = WDR(model=FittedQ())(Problem(log, CANDIDATE))
        spread = np.sqrt(np.var(statistic.leave_one_out()) * 29)
        expected.append((statistic.estimate - (truth - 2.0 * error)) / spread)
    np.testing.assert_allclose(one.pivots(world, 7, 4, "value"), expected, rtol=1e-7)


def test_models_without_a_form_for_many_rows_are_fitted_one_by_one():
    few = Problem(drift(12, np.random.default_rng(2), horizon=3), CANDIDATE)
    model = LinearModel(n_rollouts=2)
    one = stage(few, model=model)
    together = one._played(one.worlds[0], np.random.default_rng([0, 0]), few.dataset, 3)
    truth, error = one.truth(one.worlds[0], "value")
    expected = []
    for m in range(3):
        statistic = WDR(model=model)(Problem(together.take(np.arange(12 * m, 12 * m + 12)), CANDIDATE))
        spread = np.sqrt(np.var(statistic.leave_one_out()) * 11)
        expected.append((statistic.estimate - truth + 2.0 * error) / spread)
    np.testing.assert_allclose(one.pivots(one.worlds[0], 3, 0, "value"), expected, rtol=1e-6)


def test_without_residuals_the_truth_is_known():
    """Where nothing is random but the behaviour policy, a candidate without noise has one value from each start."""
    logs = drift(20, np.random.default_rng(1), noise=0.0)
    always = tightrope.DeterministicPolicy(lambda states, t: np.ones(len(states), dtype=np.int64), 2)
    one = stage(Problem(logs, always))
    expected = 0.0
    for start in logs.states[logs.offsets[:-1]]:
        state = start.copy()
        for t in range(6):
            expected += 0.9**t * (state[0] + 1.0) / 20
            state = 0.7 * state + np.array([0.5, -0.5])
    for place in (0, 1):  # the others know a worst case, or regress on rewards that are sums of the rest
        value, error = one.truth(one.worlds[place], "value")
        assert value == pytest.approx(expected, abs=1e-6)
        assert error < 1e-6
    simulated = one.logs(one.worlds[0], np.random.default_rng(0), logs)
    moves = 0.7 * simulated.states + (simulated.actions[:, None] - 0.5) * np.array([1.0, -1.0])
    inside = np.setdiff1d(np.arange(simulated.n_steps), simulated.offsets[1:] - 1)
    np.testing.assert_allclose(simulated.states[inside + 1], moves[inside], atol=1e-6)
    np.testing.assert_allclose(simulated.rewards, simulated.states[:, 0] + simulated.actions, atol=1e-6)


def test_the_truth_is_the_mean_return_of_the_candidate():
    """Where the candidate made the logs, simulated logs have its value on average."""
    one = stage(Problem(LOGS, BEHAVIOR))
    for world in one.worlds:
        value, error = one.truth(world, "value")
        returns = one._played(world, np.random.default_rng(3), LOGS, 200).returns
        assert returns.mean() == pytest.approx(value, abs=4 * (error + returns.std() / np.sqrt(len(returns))))
        assert one.truth(world, "gain")[0] == pytest.approx(0.0, abs=4 * one.truth(world, "gain")[1])


# -- against tables ----------------------------------------------------------------------------------------------------

RING = np.array([[1, 2], [2, 0], [0, 1]])  # where each state leads under each action, for certain
TABLES = TabularPolicy([[0.5, 0.5], [0.4, 0.6], [0.6, 0.4]]), TabularPolicy([[0.3, 0.7], [0.6, 0.4], [0.5, 0.5]])


class OneHot(Discrete):
    """A table's policy for states that are rows of 0 and 1."""

    def __init__(self, policy):
        self.policy = policy

    def probs(self, states, t):
        return self.policy.probs(states.argmax(axis=1), t)


def pairs(states, actions):
    """A feature for every pair."""
    place = 2 * np.asarray(states).argmax(axis=1) + actions
    return (place[:, None] == np.arange(6)).astype(np.float64)


def rings(n, rng):
    """The same logs with numbered states, and with states that are rows of 0 and 1."""
    states, actions = np.zeros((n, 5), dtype=np.int64), np.zeros((n, 5), dtype=np.int64)
    state = rng.integers(3, size=n)
    for t in range(5):
        states[:, t] = state
        actions[:, t] = TABLES[0].sample(state, np.full(n, t), rng=rng)
        state = RING[state, actions[:, t]]
    rewards = states + 0.5 * actions + rng.choice([-1.0, 1.0], size=states.shape)  # the same noise in every pair
    shared = {
        "offsets": np.arange(0, 5 * n + 1, 5), "rewards": rewards.ravel(), "terminated": np.zeros(n, dtype=bool),
        "horizon": 5, "actions": actions.ravel(), "reward_range": (-1.0, 4.0),
        "behavior_log_probs": TABLES[0].log_prob(states.ravel(), actions.ravel(), np.tile(np.arange(5), n)),
    }  # fmt: skip
    one_hot = np.eye(3)
    return (
        TrajectoryDataset(**shared, states=states.ravel(), final_states=state, behavior=TABLES[0]),
        TrajectoryDataset(
            **shared, states=one_hot[states.ravel()], final_states=one_hot[state], behavior=OneHot(TABLES[0])
        ),
    )


def test_on_one_hot_features_worlds_agree_with_tables(monkeypatch):
    """Truths, and the distribution of pivots; tables have one pseudo-visit more for each pair, of some 100."""
    monkeypatch.setattr("tightrope.bounds.rehearsal.linear.SAFE", 0.0)  # tables need no margin: their truth is exact
    numbered, rows = rings(120, np.random.default_rng(0))
    table = TabularStage.of(Problem(numbered, TABLES[1]), "lower")
    model = FittedQ(features=pairs)
    linear = stage(Problem(rows, OneHot(TABLES[1])), model=model)
    assert linear.wdr("value") == pytest.approx(table.wdr("value"), rel=1e-6)
    for kind in (0, 2):
        ours, theirs = linear.worlds[kind], table.worlds[kind]
        value, error = linear.truth(ours, "value")
        assert value == pytest.approx(table.truth(theirs, "value")[0], abs=4 * error + 5 * 2.0 / 80)
        pivots = linear.pivots(ours, 400, 1, "value"), table.pivots(theirs, 400, 1, "value")
        assert ks_2samp(*pivots).pvalue > 0.01
        rng = np.random.default_rng(7)
        returns = linear.logs(ours, rng, rows).returns, table.logs(theirs, rng, numbered).returns
        assert ks_2samp(*returns).pvalue > 0.01


def test_on_one_hot_features_the_leverage_is_one_over_the_visits():
    _, rows = rings(40, np.random.default_rng(1))
    world = stage(Problem(rows, OneHot(TABLES[1])), model=FittedQ(features=pairs)).worlds[2]
    visits = np.bincount(2 * rows.states.argmax(axis=1) + rows.actions, minlength=6)
    leverages = np.square(np.eye(6) @ world.half).sum(axis=1)
    np.testing.assert_allclose(1.0 / leverages, visits, rtol=1e-9)


# -- what is declared, and what is refused -----------------------------------------------------------------------------


def test_known_rewards_and_ends_are_used():
    def reward(states, actions, next_states, t):
        return next_states[:, 0] - 0.1 * t

    def terminated(states, actions, next_states, t):
        return next_states[:, 1] > 0.8

    one = stage(world=LinearModel(reward=reward, terminated=terminated))
    logs = one.logs(one.worlds[0], np.random.default_rng(0), LOGS)
    last = np.zeros(logs.n_steps, dtype=bool)
    last[logs.offsets[1:] - 1] = True
    following = np.empty_like(logs.states)
    following[~last], following[last] = logs.states[1:][~last[:-1]], logs.final_states
    np.testing.assert_allclose(logs.rewards, following[:, 0] - 0.1 * logs.times)
    np.testing.assert_array_equal(logs.terminated, logs.final_states[:, 1] > 0.8)
    assert not (following[~last, 1] > 0.8).any()


def test_bounds_bracket_the_estimate_and_are_the_same_bits_on_any_number_of_threads():
    values = {
        tightrope.lower_bound(LOGS, CANDIDATE, **FITTED, method=Rehearsed(39, jobs)).value for jobs in (1, 2, None)
    }
    assert len(values) == 1
    lower = values.pop()
    upper = tightrope.upper_bound(LOGS, CANDIDATE, **FITTED, method=Rehearsed(39)).value
    other = tightrope.lower_bound(LOGS, CANDIDATE, **FITTED, method=Rehearsed(39), seed=1).value
    assert lower < tightrope.estimate(LOGS, CANDIDATE, **FITTED) < upper
    assert lower != other
    assert lower == pytest.approx(other, abs=0.3 * (upper - lower))


def test_progress_is_told_and_rises():
    told = []
    with watched(lambda what, share: told.append((what, share))):
        tightrope.lower_bound(LOGS, CANDIDATE, **FITTED, method=Rehearsed(19))
    assert {what for what, _ in told} == {"the candidate's value in a linear world", "WDR in simulated logs"}
    for name in dict(told):
        shares = [share for what, share in told if what == name]
        assert shares == sorted(shares)
        assert shares[0] == 0
        assert 0.7 < shares[-1] < 1


def test_it_is_not_recommended_where_another_bound_speaks():
    """Measured to err where lines are wrong (docs/tether.md): it comes with a warning against itself."""
    result = tightrope.evaluate(
        LOGS, CANDIDATE, estimators="wdr", model="fitted-q", methods=[Rehearsed(19), "percentile"]
    )
    assert "linear-worlds" in [one.code for one in result["wdr", "rehearsed"].warnings]
    assert "rehearsed" not in [one.method for one in result.believed]
    usual = tightrope.evaluate(LOGS, CANDIDATE)
    assert not any("rehearsed" in one.method for one in usual.bounds)


def test_a_state_may_be_a_single_number():
    logs = TrajectoryDataset(
        offsets=LOGS.offsets, rewards=LOGS.rewards, terminated=LOGS.terminated, horizon=6, discount=0.9,
        states=LOGS.states[:, 0].copy(), actions=LOGS.actions, behavior_log_probs=np.full(LOGS.n_steps, np.log(0.5)),
        reward_range=(-6.0, 6.0), behavior=UniformPolicy(2),
    )  # fmt: skip
    bound = tightrope.lower_bound(logs, UniformPolicy(2), **FITTED, method=Rehearsed(19))
    assert -36 < bound.value < bound.estimate


def test_errors_of_every_bound_are_counted_in_a_linear_world():
    result = tightrope.evaluate(
        LOGS, CANDIDATE, estimators=["pdis", "wdr"], model="fitted-q", methods="t", rehearsals=30
    )
    assert [(one.estimator, one.trials) for one in result.rehearsal] == [("pdis", 30), ("wdr", 30)]
    assert all(0 <= one.errors < 20 for one in result.rehearsal)


def changed(**fields):
    given = {name: getattr(LOGS, name) for name in (
        "offsets", "rewards", "terminated", "horizon", "discount", "behavior_log_probs", "states", "actions",
        "final_states", "reward_range", "behavior")}  # fmt: skip
    return TrajectoryDataset(**(given | fields))


@pytest.mark.parametrize(
    ("fields", "asked", "message"),
    [
        ({"behavior": None}, {}, r"read\(behavior=policy\)"),
        ({"reward_range": None}, {}, r"reward_range=\(\.\.\.\)"),
        ({}, {"model": "linear"}, r'model="fitted-q" \(--model fitted-q\)'),
        ({}, {"method": Rehearsed(world="tabular")}, 'world must be "auto", "linear"'),
        ({}, {"method": Rehearsed(10)}, "n_rehearsals must be at least 19 for confidence 0.95; got 10"),
        ({"final_states": None}, {"method": Rehearsed(world=LinearModel(terminated=lambda s, a, n, t: n[:, 0] > 9))},
         "needs the states in which episodes ended"),
    ],
)  # fmt: skip
def test_what_cannot_be_rehearsed_is_refused(fields, asked, message, monkeypatch):
    monkeypatch.setattr("tightrope.bounds.rehearsal.linear.MOST_SIMULATED", 10**5)
    with pytest.raises(tightrope.TightropeError, match=message):
        tightrope.lower_bound(changed(**fields), CANDIDATE, **(FITTED | {"method": "rehearsed"} | asked))


def test_continuous_actions_are_refused():
    logs = changed(actions=LOGS.actions.astype(float)[:, None])
    with pytest.raises(BoundError, match=r"needs states, and discrete actions, .* use tdr with percentile"):
        stage(Problem(logs, CANDIDATE))


def test_a_policy_that_only_rates_actions_is_refused():
    policy = tightrope.CallablePolicy(lambda states, actions, t: np.full(len(actions), 0.5))
    with pytest.raises(BoundError, match=r"the policy itself with probs\(states, t\)"):
        tightrope.lower_bound(LOGS, policy, **FITTED, method="rehearsed")


def test_actions_that_nobody_logged_are_refused():
    with pytest.raises(BoundError, match="policy takes action 2 in a logged state, and the logs hold no step with it"):
        tightrope.lower_bound(LOGS, UniformPolicy(3), **FITTED, method="rehearsed")


def test_polynomial_worlds_have_their_features():
    one = stage(world=PolynomialModel(features=lambda s, a: np.column_stack([np.ones(len(s)), s[:, 0], a])))
    assert one.worlds[0].coefficients.shape == (3, 4)
    assert stage(model=FittedQ(features=pairs_of_signs)).worlds[0].coefficients.shape == (4, 4)
    assert stage(world="polynomial").worlds[0].coefficients.shape == (6, 4)


def pairs_of_signs(states, actions):
    """A feature for every sign of the first number with every action."""
    place = 2 * (states[:, 0] > 0) + actions
    return (place[:, None] == np.arange(4)).astype(np.float64)
