"""The tabular model and given value functions: by hand on tiny logs, by slow recursion on arbitrary ones."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from tests.laws.laws import logs, same
from tests.model_oracle import arbitrary, counted, sampled, values
from tests.oracle import END, Episode, mdps
from tightrope import TabularPolicy
from tightrope.base.errors import DataError, PolicyError, TightropeError
from tightrope.base.policy import CallablePolicy
from tightrope.base.problem import Problem
from tightrope.models import GivenValues, TabularModel, model
from tightrope.models.tabular.fit import TabularFit

EVEN = TabularPolicy([[0.5, 0.5]] * 3)


def episode(steps, *, terminated, final=END):
    """Steps of (state, action, reward); probabilities do not matter to a model."""
    states, actions, rewards = (list(column) for column in zip(*steps, strict=True))
    half = [0.5] * len(steps)
    return Episode(rewards, half, half, terminated, states, actions, final)


def with_finals(episodes, **more):
    """Logs that also hold the state after the last step; a terminated episode's is not looked at."""
    return logs(episodes, final_states=[-1 if e.final is END else e.final for e in episodes], **more)


def prepared(data, policy=EVEN, anchor="low", **settings):
    return TabularModel(**settings).prepare(Problem(data, policy), anchor=anchor)


# -- by hand -------------------------------------------------------------------------------------------------------

# Horizon 3, discount 1/2, the candidate takes both actions alike.
FOUR = [
    episode([(0, 0, 1.0), (1, 1, 2.0), (0, 0, 3.0)], terminated=False, final=2),  # cut off by the horizon
    episode([(0, 0, 5.0)], terminated=True),
    episode([(1, 1, 0.0), (1, 1, -2.0)], terminated=True),
    episode([(0, 1, 4.0), (1, 0, 6.0), (0, 0, -1.0)], terminated=True),  # ends in the horizon's last step
]


def fitted(data, weights=None, **settings):
    """The model of some logs in dictionaries: start, mean rewards and next-state probabilities (END is None)."""
    made = prepared(data, **settings)
    weights = np.ones((data.n_trajectories, 1)) if weights is None else weights
    fit = TabularFit.of(made.data, np.repeat(weights, 8, axis=1))
    _, n_states, n_actions = made.data.probs.shape
    start = fit.start_counts[:, 3] / fit.start_counts[:, 3].sum()
    rewards = {(p // n_actions, p % n_actions): fit.rewards[p, 3] for p in range(n_states * n_actions)}
    following = {
        (int(p) // n_actions, int(p) % n_actions, END if after == n_states else int(after)): fit.arcs[j, 3]
        for j, (p, after) in enumerate(zip(made.data.arc_pair, made.data.arc_next, strict=True))
    }
    return start.tolist(), rewards, following


def test_counts_by_hand():
    """Without final states nobody knows what follows the third steps, so both of them tell of rewards only."""
    start, rewards, following = fitted(logs(FOUR, horizon=3), unseen_reward=-8.0)
    assert start == [3 / 4, 1 / 4]
    assert rewards == {(0, 0): (1 + 3 + 5 - 1) / 4, (0, 1): 4.0, (1, 0): 6.0, (1, 1): 0.0}
    third = 1 / 3
    expected = {(0, 0, 1): 1 / 2, (0, 0, END): 1 / 2, (0, 1, 1): 1.0, (1, 0, 0): 1.0}
    assert following == {**expected, (1, 1, 0): third, (1, 1, 1): third, (1, 1, END): third}


def test_counts_with_final_states_by_hand():
    """Now the third steps lead somewhere: one to state 2, which was never acted in, one to the end."""
    start, rewards, following = fitted(with_finals(FOUR, horizon=3), unseen_reward=-8.0)
    assert start == [3 / 4, 1 / 4, 0.0]
    assert rewards[0, 0] == 2.0
    assert rewards[2, 0] == rewards[2, 1] == -8.0
    row = {after: p for (s, a, after), p in following.items() if (s, a) == (0, 0)}
    assert row == {1: 1 / 4, 2: 1 / 4, END: 1 / 2}


def test_weighted_counts_by_hand():
    """Weights 2, 0, 1, 1: the second episode might as well not be there."""
    start, rewards, following = fitted(logs(FOUR, horizon=3), np.array([[2.0], [0.0], [1.0], [1.0]]))
    assert start == [3 / 4, 1 / 4]
    assert rewards[0, 0] == (2 * 1 + 2 * 3 - 1) / 5
    assert rewards[1, 1] == (2 * 2 + 0 - 2) / 4
    assert following[0, 0, 1] == 1.0
    assert following[0, 0, END] == 0.0
    assert [following[1, 1, after] for after in (0, 1, END)] == [2 / 4, 1 / 4, 1 / 4]


# In the model of the four episodes without final states, from the last step to the first:
#   q_2(0,0) = 2, q_2(0,1) = 4                                 v_2(0) = 3
#   q_2(1,0) = 6, q_2(1,1) = 0                                 v_2(1) = 3
#   q_1(0,0) = 2 + ½(½·3) = 11/4, q_1(0,1) = 4 + ½·3 = 11/2    v_1(0) = 33/8
#   q_1(1,0) = 6 + ½·3 = 15/2, q_1(1,1) = ½(3 + 3)/3 = 1       v_1(1) = 17/4
#   q_0(0,0) = 2 + ½(½·17/4) = 49/16, q_0(0,1) = 49/8          v_0(0) = 147/32
#   q_0(1,0) = 6 + ½·33/8 = 129/16, q_0(1,1) = ½(33/8 + 17/4)/3 = 67/48   v_0(1) = 227/48
Q_BY_HAND = [["49/16", "1", "2"], ["49/16"], ["67/48", "1"], ["49/8", "15/2", "2"]]
V_BY_HAND = [["147/32", "17/4", "3"], ["147/32"], ["227/48", "17/4"], ["147/32", "17/4", "3"]]


def test_value_by_hand():
    made = prepared(logs(FOUR, horizon=3, discount=0.5))
    expected = Fraction(3, 4) * Fraction(147, 32) + Fraction(1, 4) * Fraction(227, 48)
    same(made.values(np.ones((1, 4))), float(expected), 1e-15)


def test_control_variates_by_hand():
    q, v = prepared(logs(FOUR, horizon=3, discount=0.5)).control_variates(np.ones(4))
    same(q, [float(Fraction(x)) for part in Q_BY_HAND for x in part], 1e-15)
    same(v, [float(Fraction(x)) for part in V_BY_HAND for x in part], 1e-15)


# One state, of which action 0 is logged three times, with a reward of 2 on average, and leads back; action 1 never is.
# The candidate takes both alike, horizon 3. With u the reward of the unseen pair, at discount 1:
#   worst      v_2 = 1 + u/2,  v_1 = (2 + v_2)/2 + 2u/2,      v_0 = (2 + v_1)/2 + 3u/2
#   self-loop  v_2 = 1 + u/2,  v_1 = (2 + v_2)/2 + (u + v_2)/2, v_0 = (2 + v_1)/2 + (u + v_1)/2
#   terminate  v_2 = 1 + u/2,  v_1 = (2 + v_2)/2 + u/2,       v_0 = (2 + v_1)/2 + u/2
LONE = [episode([(0, 0, 1.0), (0, 0, 2.0), (0, 0, 3.0)], terminated=False, final=0)]
WIDE = (-4.0, 10.0)
UNSEEN = [  # unseen, unseen_reward, reward_range, anchor, discount, value
    ("worst", None, WIDE, "low", 1.0, -6.75),
    ("self-loop", None, WIDE, "low", 1.0, -3.0),
    ("terminate", None, WIDE, "low", 1.0, -1.75),
    ("worst", None, WIDE, "high", 1.0, 23.0),
    ("self-loop", None, WIDE, "high", 1.0, 18.0),
    ("terminate", None, WIDE, "high", 1.0, 10.5),
    ("worst", 0.0, WIDE, "low", 1.0, 1.75),
    ("self-loop", 0.0, WIDE, "low", 1.0, 3.0),
    ("terminate", 0.0, WIDE, "high", 1.0, 1.75),
    ("worst", -4.0, WIDE, "high", 1.0, -6.75),
    # v_2 = -1, v_1 = (2 - ½)/2 - (4 + 2)/2 = -9/4, v_0 = (2 - 9/8)/2 - (4 + 2 + 1)/2
    ("worst", None, WIDE, "low", 0.5, -49 / 16),
    # v_2 = -1, v_1 = (2 - ½)/2 + (-4 - ½)/2 = -3/2, v_0 = (2 - 3/4)/2 + (-4 - 3/4)/2
    ("self-loop", None, WIDE, "low", 0.5, -7 / 4),
    # Rewards of 1 to 3 declared: an episode that ends early earns 0, below them all.
    ("worst", None, (1.0, 3.0), "low", 1.0, 1.75),
    ("worst", None, (1.0, 3.0), "high", 1.0, 8.125),
    # Nothing declared, or no end on this side: the lowest and the highest reward seen.
    ("worst", None, None, "low", 1.0, 3.875),
    ("worst", None, None, "high", 1.0, 8.125),
    ("worst", None, (None, 10.0), "low", 1.0, 3.875),
]


@pytest.mark.parametrize(("unseen", "reward", "declared", "anchor", "discount", "value"), UNSEEN)
def test_unseen_pairs_by_hand(unseen, reward, declared, anchor, discount, value):
    data = with_finals(LONE, horizon=3, discount=discount, reward_range=declared)
    made = prepared(data, anchor=anchor, n_actions=2, unseen=unseen, unseen_reward=reward)
    same(made.values(np.ones((1, 1))), [value], 1e-15)


def test_reward_seen_but_nothing_after_it():
    """A pair logged in the horizon's last step only: its own reward, then what ``unseen`` says."""
    two = [
        episode([(0, 0, 0.0), (1, 0, 7.0)], terminated=False),  # nobody knows where (1, 0) led
        episode([(1, 1, 3.0), (0, 0, 0.0)], terminated=False),
    ]
    always = TabularPolicy([[1.0, 0.0], [1.0, 0.0]])
    # With (nearly) no weight the first episode shows (1, 0) but hardly counts as a start: all start in state 1.
    weights = np.array([[1e-300, 1.0]])
    for unseen, after in {"worst": -5.0, "self-loop": 7.0, "terminate": 0.0}.items():
        made = prepared(logs(two, horizon=2), always, unseen=unseen, unseen_reward=-5.0)
        same(made.values(weights), [7.0 + after])
        same(made.values(np.array([[1.0, 0.0]])), [0.0 + 7.0])


def test_ends_are_not_counted_more_often_than_they_happen():
    """Half the episodes end in each step. Counting ends, but not survivals, in the horizon's step gives 2/3."""
    stay, leave = (0, 0, 1.0), (0, 0, 1.0)
    four = [
        episode([leave], terminated=True),
        episode([leave], terminated=True),
        episode([stay, leave], terminated=True),
        episode([stay, stay], terminated=False, final=0),
    ]
    policy = TabularPolicy([[1.0]])
    for data in (logs(four, horizon=2), with_finals(four, horizon=2)):
        same(prepared(data, policy).values(np.ones((1, 4))), [1 + 1 / 2])
    partly = replace(with_finals(four, horizon=2), final_states=np.array([-1, -1, -1, -1]))
    same(prepared(partly, policy).values(np.ones((1, 4))), [1 + 1 / 2])


def test_time_dependent_policy_by_hand():
    """Action 0 earns 1 and stays, action 1 earns 10 and ends: first 0, then either, then 1."""
    policy = TabularPolicy([[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]])
    data = logs([episode([(0, 0, 1.0), (0, 0, 1.0), (0, 1, 10.0)], terminated=True)] * 2, horizon=4)
    policy = TabularPolicy([*policy.table, [[0.5, 0.5]]])
    same(prepared(data, policy).values(np.ones((1, 2))), [1 + 10 / 2 + (1 + 10) / 2])


def test_unseen_mass_by_hand():
    """First the logged action, then either, then the unseen one; a step on an unseen pair is the last counted."""
    policy = TabularPolicy([[[1.0, 0.0]], [[0.5, 0.5]], [[0.0, 1.0]]])
    for unseen in ("worst", "self-loop", "terminate"):
        made = prepared(with_finals(LONE, horizon=3), policy, unseen=unseen)
        assert made.unseen_mass() == pytest.approx((1 / 2 + 1 / 2) / (1 + 1 + 1 / 2), abs=1e-15)
    seen = prepared(with_finals(LONE, horizon=3), TabularPolicy([[1.0, 0.0]]))
    assert seen.unseen_mass() == 0.0


# -- by slow recursion ---------------------------------------------------------------------------------------------


def tilted(state, t):
    """A candidate that changes with state and time, and at times never takes an action."""
    p = [0.2, 0.9, 0.5, 1.0, 0.0][(2 * state + t) % 5]
    return [p, 1 - p]


def tilted_policy(n_states, horizon):
    return TabularPolicy([[tilted(s, t) for s in range(n_states)] for t in range(horizon)])


def random_case(seed, **settings):
    """Prepared model, slow model of given weights, and the logs, of arbitrary episodes in four states."""
    horizon, discount = 2 + seed % 4, [1.0, 0.9, 0.0, 0.5][seed % 4]
    episodes = arbitrary(6 + seed % 7, horizon, 4, tilted, seed=seed)
    finals = seed % 2 == 1
    data = (with_finals if finals else logs)(episodes, horizon=horizon, discount=discount)
    settings = {"unseen": ["worst", "self-loop", "terminate"][seed % 3], "unseen_reward": -1.3, **settings}
    made = prepared(data, tilted_policy(4, horizon), **settings)

    def slow(weights):
        return values(counted(episodes, horizon, weights, finals=finals), tilted, horizon, discount, **settings)

    return made, slow, data, episodes


@pytest.mark.parametrize("rows", [1, 7, 8, 9, 17])
def test_rows_of_weights(rows):
    """Eight replicates are fitted side by side; any number of rows gives each its own value."""
    rng = np.random.default_rng(rows)
    for seed in range(12):
        made, slow, *_ = random_case(seed)
        weights = rng.integers(0, 3, (rows, made.n_trajectories)) * rng.choice([1.0, 0.37], (rows, 1))
        weights[:, 0] += 0.5  # not all zero
        same(made.values(weights), [slow(row)[0] for row in weights.tolist()])


def by_state(state, t):
    """The same at all times; state 0 always takes action 1, state 1 action 0."""
    p = [0.0, 1.0, 0.4, 0.7][state]
    return [p, 1 - p]


def two_phases(state, t):
    """One table for two steps, another for the rest."""
    return by_state(state, t) if t < 2 else by_state(state, t)[::-1]


@pytest.mark.parametrize("policy", [by_state, two_phases])
@pytest.mark.parametrize("unseen", ["worst", "self-loop", "terminate"])
@pytest.mark.parametrize("seed", range(6))
def test_policies_that_keep_their_table(seed, unseen, policy):
    """Equal tables are folded into one Markov chain, over the states that the candidate can reach."""
    horizon, discount = 5, [1.0, 0.9][seed % 2]
    episodes = arbitrary(8, horizon, 4, policy, seed=seed)
    data = with_finals(episodes, horizon=horizon, discount=discount)
    table = TabularPolicy([[policy(s, t) for s in range(4)] for t in range(horizon)])
    made = prepared(data, table, unseen=unseen, unseen_reward=-1.3)
    assert len(made.data.chain.runs) == (1 if policy is by_state else 2)
    weights = np.random.default_rng(seed).choice([0.0, 0.3, 1.0, 2.0], (9, 8))
    weights[:, 0] += 1.0
    for row, value in zip(weights.tolist(), made.values(weights), strict=True):
        model = counted(episodes, horizon, row, finals=True)
        same(value, values(model, policy, horizon, discount, unseen, -1.3)[0])


def test_states_out_of_reach_are_left_out():
    """The candidate only ever takes action 0, which never leaves states 0 and 1; state 2 earns a fortune."""
    episodes = [
        episode([(0, 0, 1.0), (1, 0, 2.0)], terminated=False, final=0),
        episode([(0, 1, 5.0), (2, 0, 1e6)], terminated=True),
    ]
    made = prepared(with_finals(episodes, horizon=2), TabularPolicy([[1.0, 0.0]] * 3))
    assert made.data.chain.states.tolist() == [0, 1]
    same(made.values(np.ones((1, 2))), [1.0 + 2.0])


@pytest.mark.parametrize("seed", range(24))
def test_control_variates(seed):
    made, slow, _, episodes = random_case(seed)
    weights = np.random.default_rng(seed).choice([0.0, 0.3, 1.0, 2.0], made.n_trajectories)
    weights[0] = 1.0
    q, v = made.control_variates(weights)
    _, slow_q, slow_v = slow(weights.tolist())
    steps = [(s, a, t) for e in episodes for t, (s, a) in enumerate(zip(e.states, e.actions, strict=True))]
    same(q, [slow_q(s, a, t) for s, a, t in steps])
    same(v, [slow_v(s, t) for s, _, t in steps])


@pytest.mark.parametrize("seed", range(6))
def test_state_values_are_averages_of_action_values(seed):
    """Each episode's twin, of weight 0, took the other action all along: between them they show q̂ of both."""
    *_, data, episodes = random_case(seed)
    twins = [replace(e, actions=[1 - a for a in e.actions]) for e in episodes]
    both = logs([*episodes, *twins], horizon=data.horizon, discount=data.discount)
    weights = np.repeat([1.0, 0.0], len(episodes))
    q, v = prepared(both, tilted_policy(4, data.horizon)).control_variates(weights)
    (q, other), (v, again) = q.reshape(2, -1), v.reshape(2, -1)
    chance = np.array([tilted(s, t)[a] for s, a, t in zip(data.states, data.actions, data.times, strict=True)])
    same(v, chance * q + (1 - chance) * other)
    same(again, v)
    assert np.abs(q - other).max() > 0.1


def test_no_weight_is_no_value():
    made, *_ = random_case(3)
    rows = np.stack([np.zeros(made.n_trajectories), np.ones(made.n_trajectories)])
    assert np.isnan(made.values(rows)).tolist() == [True, False]
    slopes = made.influences(rows)
    assert np.isnan(slopes[0]).all()
    assert np.isfinite(slopes[1]).all()


def slope(made, weights, i, step=1e-6):
    up, down = weights.copy(), weights.copy()
    up[i] += step
    down[i] = max(down[i] - step, 0.0)
    high, low = made.values(np.stack([up, down]))
    return (high - low) / (up[i] - down[i])


@pytest.mark.parametrize("unseen", ["worst", "self-loop", "terminate"])
@pytest.mark.parametrize("seed", range(8))
def test_gradient(seed, unseen):
    """Against central differences; where a weight is 0, against one-sided ones, unless a pair would first appear."""
    made, _, data, episodes = random_case(seed, unseen=unseen)
    rows = np.random.default_rng(seed).choice([0.0, 0.4, 1.0, 3.0], (9, data.n_trajectories))
    rows[:, 0] = 1.0
    slopes = made.influences(rows)
    assert np.abs(slopes).max() > 0.01
    for weights, found in zip(rows, slopes, strict=True):
        assert abs(weights @ found) < 1e-10, "doubling all weights must change nothing"
        for i in np.flatnonzero(differentiable(weights, episodes, data)):
            assert found[i] == pytest.approx(slope(made, weights, i), rel=1e-4, abs=1e-5)


def differentiable(weights, episodes, data):
    """Whose weight can be raised from 0 without a pair, or what follows it, appearing for the first time."""
    held = [e for e, w in zip(episodes, weights, strict=True) if w > 0]
    known = set(counted(held, data.horizon, finals=data.final_states is not None).following)
    return [set(zip(e.states, e.actions, strict=True)) <= known or e in held for e in episodes]


def test_gradient_meets_weights_of_zero():
    """The test above does differentiate at zero."""
    *_, data, episodes = random_case(4)
    rows = np.random.default_rng(4).choice([0.0, 0.4, 1.0, 3.0], (9, data.n_trajectories))
    rows[:, 0] = 1.0
    assert sum(np.sum((row == 0) & differentiable(row, episodes, data)) for row in rows) > 3


@pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))
def test_drawn_logs(mdp):
    """Logs of a process rather than of nothing, as many rows as it takes to meet pairs a resample did not draw."""
    episodes = sampled(mdp, 12, seed=4)
    states = sorted({s for s, _ in mdp.outcomes})
    policy = TabularPolicy([[mdp.candidate(s, t) for s in states] for t in range(mdp.horizon)])
    weights = np.random.default_rng(5).multinomial(12, np.full(12, 1 / 12), size=20).astype(float)
    for finals, read in ((False, logs), (True, with_finals)):
        data = read(episodes, horizon=mdp.horizon, discount=mdp.discount)
        made = prepared(data, policy, unseen="worst", unseen_reward=-9.0)
        models = [counted(episodes, mdp.horizon, row, finals=finals) for row in weights.tolist()]
        expected = [values(one, mdp.candidate, mdp.horizon, mdp.discount, "worst", -9.0)[0] for one in models]
        same(made.values(weights), expected)


def test_more_states_and_actions_than_logged():
    """Declared but never met: nothing changes."""
    made, slow, data, _ = random_case(1)
    wider = np.zeros((data.horizon, 6, 3))
    wider[:, :4, :2] = tilted_policy(4, data.horizon).table
    wider[:, 4:, 0] = 1.0
    more = prepared(data, TabularPolicy(wider), n_states=6, n_actions=3, unseen="self-loop", unseen_reward=-1.3)
    ones = np.ones((1, data.n_trajectories))
    same(more.values(ones), [slow(None)[0]])
    same(more.values(ones), made.values(ones))


# -- bad input -----------------------------------------------------------------------------------------------------

GOOD = logs(FOUR, horizon=3)


def changed(**fields):
    return replace(GOOD, **fields)


def states_with(step, value):
    states = GOOD.states.copy()
    states[step] = value
    return states


BAD_LOGS = [
    (changed(states=states_with(3, -1)), {}, "states must be numbered from 0 for a table; got -1"),
    (
        changed(states=states_with(3, 2)),
        {"n_states": 2},
        r"n_states must be at least 3, because the logs hold state 2; got 2",
    ),
    (
        changed(final_states=np.array([2, 0, 0, 0])),
        {"n_states": 2},
        "n_states must be at least 3, because the logs hold state 2; got 2",
    ),
    (
        changed(states=GOOD.states.astype(float)),
        {},
        "states must be one integer per step for a table; the logs hold float64",
    ),
    (
        changed(states=np.stack([GOOD.states] * 2, axis=1)),
        {},
        r"states must be one integer per step for a table.*shape \(9, 2\)",
    ),
    (changed(states=None), {}, "states must be one integer per step for a table; the logs hold none"),
    (
        changed(actions=GOOD.actions.astype(str)),
        {},
        "actions must be one integer per step for a table whose columns are numbers; the logs hold <U",
    ),
    (
        changed(actions=GOOD.actions + 1),
        {"n_actions": 2},
        "n_actions must be at least 3, because the logs hold action 2; got 2",
    ),
    (changed(actions=-GOOD.actions), {}, "actions must be numbered from 0 for a table; got -1"),
]


@pytest.mark.parametrize(("data", "settings", "message"), BAD_LOGS, ids=lambda value: str(value)[:30])
def test_bad_logs(data, settings, message):
    assert np.isfinite(prepared(GOOD).values(np.ones((1, 4)))).all()
    with pytest.raises(DataError, match=message):
        prepared(data, **settings)


@pytest.mark.parametrize("policy", [None, CallablePolicy(lambda states, actions, t: np.full(len(states), 0.5))])
def test_logged_only_policy(policy):
    with pytest.raises(PolicyError, match=r"must have the policy itself \(probs\(states, t\)\)"):
        TabularModel().prepare(Problem(GOOD, policy), anchor="low")
    with pytest.raises(PolicyError, match="q_values need a policy with probs"):
        GivenValues(np.zeros((2, 2))).prepare(Problem(GOOD, policy), anchor="low")


def test_policy_that_does_not_know_a_state():
    with pytest.raises(PolicyError, match=r"state must lie between 0 and 0, .*; got 1"):
        prepared(GOOD, TabularPolicy([[0.5, 0.5]]))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"unseen": "loop"}, "unseen must be .*; got 'loop'"),
        ({"unseen_reward": np.nan}, "unseen_reward must be a finite number or None; got nan"),
        ({"unseen_reward": -np.inf}, "unseen_reward must be a finite number or None; got -inf"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(DataError, match=message):
        TabularModel(**settings)


def test_unknown_model():
    with pytest.raises(TightropeError, match=r"model must be .*; got 'tabulra'"):
        model("tabulra", Problem(GOOD, EVEN))


# -- given values --------------------------------------------------------------------------------------------------


def test_given_values_by_hand():
    """Times × states × actions; the candidate takes action 0 with 1/4 in state 0 and 3/4 in state 1."""
    table = [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]], [[9.0, 10.0], [11.0, 12.0]]]
    policy = TabularPolicy([[0.25, 0.75], [0.75, 0.25]])
    made = GivenValues(table).prepare(Problem(GOOD, policy), anchor="low")
    q, v = made.control_variates(np.zeros(4))
    assert q.tolist() == [1.0, 8.0, 9.0, 1.0, 4.0, 8.0, 2.0, 7.0, 9.0]
    assert v.tolist() == [1.75, 7.25, 9.75, 1.75, 3.25, 7.25, 1.75, 7.25, 9.75]
    rows = np.array([[1.0, 1.0, 1.0, 1.0], [0.0, 1.0, 3.0, 0.0]])
    same(made.values(rows), [(3 * 1.75 + 3.25) / 4, (1.75 + 3 * 3.25) / 4])
    step = 1e-6
    for i in range(4):
        moved = rows + step * np.eye(4)[i], rows - step * np.eye(4)[i] * (rows > 0)
        run = (moved[0] - moved[1])[:, i]
        same(made.influences(rows)[:, i], (made.values(moved[0]) - made.values(moved[1])) / run, 1e-5)
    assert np.isnan(made.values(np.zeros((1, 4)))).all()
    assert np.isnan(made.influences(np.zeros((1, 4)))).all()


def test_given_values_without_time():
    made = GivenValues([[1.0, 2.0], [3.0, 4.0]]).prepare(Problem(GOOD, EVEN), anchor="low")
    q, v = made.control_variates(np.ones(4))
    assert q.tolist() == [1.0, 4.0, 1.0, 1.0, 4.0, 4.0, 2.0, 3.0, 1.0]
    assert v.tolist() == [1.5, 3.5, 1.5, 1.5, 3.5, 3.5, 1.5, 3.5, 1.5]


@pytest.mark.parametrize("table", [np.zeros(3), np.zeros((1, 1, 1, 1)), [[np.nan, 0.0]], [[np.inf, 0.0]]])
def test_bad_tables(table):
    with pytest.raises(DataError, match=r"q_values must be finite numbers of shape \(states, actions\)"):
        GivenValues(table)


@pytest.mark.parametrize(
    ("shape", "data", "message"),
    [
        ((2, 2, 2), GOOD, r"q_values must cover horizon 3, .*; got shape \(2, 2, 2\)"),
        ((1, 2), GOOD, "states up to 1 and actions up to 1"),
        ((2, 1), GOOD, "states up to 1 and actions up to 1"),
        ((2, 3), GOOD, "as many actions as the policy, 2; got 3"),
        ((2, 2), changed(states=states_with(3, -1)), "states must be numbered from 0 for a table; got -1"),
        ((2, 2), changed(actions=-GOOD.actions), "actions must be numbered from 0 for a table; got -1"),
        (
            (2, 2),
            changed(states=GOOD.states.astype(float)),
            "states must be one integer per step for a table; the logs hold float64",
        ),
        (
            (2, 2),
            changed(actions=GOOD.actions.astype(str)),
            "actions must be one integer per step for a table; the logs hold <U",
        ),
        ((2, 2), changed(actions=None), "actions must be one integer per step for a table; the logs hold none"),
    ],
)
def test_tables_that_do_not_fit(shape, data, message):
    with pytest.raises(DataError, match=message):
        GivenValues(np.zeros(shape)).prepare(Problem(data, EVEN), anchor="low")
