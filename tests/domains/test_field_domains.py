"""The problems of the field: exact values against other ways to compute them, ratios, ranges, and what is logged."""

from __future__ import annotations

from itertools import product

import gymnasium
import numpy as np
import pytest

import tightrope
from tightrope.base.errors import TightropeError
from tightrope.domains import FIELD, domain, drawn_problem
from tightrope.domains.overlap import effective_share, largest_ratio
from tightrope.studies.problems import problem as of_study

DRAWN = {
    "drawn": drawn_problem(4, states=3, actions=2, horizon=3, overlap=0.6),
    "drawn, hidden": drawn_problem(5, states=2, actions=2, horizon=3, overlap=0.5, hidden=2),
    "drawn, skewed": drawn_problem(6, states=3, actions=2, horizon=3, overlap=0.4, skew=-2.0),
}


def made(name):
    return DRAWN[name] if name in DRAWN else domain(name)


def forward_value(problem, policy):
    """Where the policy is at each time, and what it earns there: forwards, in plain loops."""
    mdp = problem.mdp
    n_states = len(mdp.start_probs)
    seen = range(n_states) if problem.observe is None else problem.observe
    here, total = list(mdp.start_probs), 0.0
    for t in range(mdp.horizon):
        following = [0.0] * n_states
        for state, action in product(range(n_states), range(policy.table.shape[1])):
            chance = here[state] * policy.table[seen[state], action]
            if chance == 0:
                continue
            for after in np.flatnonzero(mdp.transition_probs[state, action]):
                p = chance * mdp.transition_probs[state, action, after]
                total += p * mdp.discount**t * mdp.rewards[state, action, after]
                if after < n_states:
                    following[after] += p
        here = following
    return total


def episodes(problem):
    """Every possible episode of a short process: its probability under the behaviour policy and its ratios."""
    mdp = problem.mdp
    seen = range(len(mdp.start_probs)) if problem.observe is None else problem.observe

    def after(state, t, p, ratios):
        if t == mdp.horizon or state == len(mdp.start_probs):
            yield p, ratios
            return
        for action in range(problem.behavior.table.shape[1]):
            chance = problem.behavior.table[seen[state], action]
            step = problem.candidate.table[seen[state], action] / chance
            for following in np.flatnonzero(mdp.transition_probs[state, action]):
                q = p * chance * mdp.transition_probs[state, action, following]
                yield from after(following, t + 1, q, [*ratios, (ratios or [1.0])[-1] * step])

    for state in np.flatnonzero(mdp.start_probs):
        yield from after(state, 0, mdp.start_probs[state], [])


@pytest.mark.parametrize("name", [*FIELD, *DRAWN])
def test_values_agree_with_forward_sums(name):
    problem = made(name)
    assert problem.true_value == pytest.approx(forward_value(problem, problem.candidate), abs=1e-9)
    assert problem.behavior_value == pytest.approx(forward_value(problem, problem.behavior), abs=1e-9)


@pytest.mark.parametrize("name", [*FIELD, *DRAWN])
def test_logs_agree_with_the_value_the_ranges_and_the_ratio(name):
    problem = made(name)
    data = problem.logs(3000, rng=np.random.default_rng(1))
    error = data.returns.std() / np.sqrt(data.n_trajectories)
    assert data.returns.mean() == pytest.approx(problem.behavior_value, abs=4 * error)
    low, high = problem.mdp.return_range
    assert low - 1e-9 <= data.returns.min() <= data.returns.max() <= high + 1e-9
    steps = data.eval_log_probs - data.behavior_log_probs
    sums = np.concatenate([np.cumsum(part) for part in np.split(steps, data.offsets[1:-1])])
    assert sums.max() <= np.log(problem.max_ratio) + 1e-9


@pytest.mark.parametrize("name", ["model-fail", "catalogue", *DRAWN])
def test_overlap_agrees_with_enumeration(name):
    problem = made(name)
    every = list(episodes(problem))
    assert sum(p for p, _ in every) == pytest.approx(1)
    assert problem.max_ratio == pytest.approx(max(1.0, *(max(ratios) for _, ratios in every)))
    squares = sum(p * ratios[-1] ** 2 for p, ratios in every)
    policies = problem._seen(problem.behavior), problem._seen(problem.candidate)
    assert effective_share(problem.mdp, *policies) == pytest.approx(1 / squares)
    assert largest_ratio(problem.mdp, *policies) == pytest.approx(problem.max_ratio)


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("model-win", (0.73 / 0.27) ** 10),  # every other step decides
        ("model-fail", (0.88 / 0.12) ** 2),
        ("graph", (0.8 / 0.6) ** 16),
        ("graph-hidden", (0.8 / 0.6) ** 16),
        ("lake", (0.775 / 0.7) ** 100),  # 1 − 3/4 · 0.3 over 1 − 3/4 · 0.4; walls allow any number of steps
        ("chain", (0.8 / 0.6) ** 200),
    ],
)
def test_largest_ratios_by_hand(name, ratio):
    assert domain(name).max_ratio == pytest.approx(ratio)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("model-win", 10 * (2 * (0.27 * 0.4 + 0.73 * 0.6) - 1)),  # ten decisions, each worth P(up) − P(down)
        ("model-fail", 0.12 - 0.88),
        ("graph", 0.3 * (1 - 0.98**16) / 0.02),  # up with 0.8 · 3/4 + 0.2 · 1/4 = 0.65, sixteen rewards
        ("graph-hidden", 0.3 * (1 - 0.98**16) / 0.02),
    ],
)
def test_values_by_hand(name, value):
    assert domain(name).true_value == pytest.approx(value, abs=1e-12)


def test_the_chain_in_the_long_run():
    """On with 0.8 · 0.8 + 0.2 · 0.2 = 0.68: the last link holds 0.68⁴, and the other moves pay 2."""
    long = 10 * 0.68**5 + 2 * 0.32
    assert domain("chain").true_value / 200 == pytest.approx(long, rel=0.02)


def test_the_lake_is_gymnasiums():
    table = gymnasium.make("FrozenLake-v1", map_name="4x4", is_slippery=True).unwrapped.P
    mdp = domain("lake").mdp
    for cell, action in product(range(16), range(4)):
        if cell in (5, 7, 11, 12, 15):  # holes and the goal: nobody acts there
            continue
        expected, paid = np.zeros(17), 0.0
        for p, after, reward, ended in table[cell][action]:
            expected[16 if ended else after] += p
            paid += p * reward
        np.testing.assert_allclose(mdp.transition_probs[cell, action], expected, atol=1e-12)
        assert (mdp.transition_probs * mdp.rewards)[cell, action].sum() == pytest.approx(paid)


def test_the_safest_way_is_the_best():
    """No other move is better than the one that both policies prefer, if one strays no more afterwards."""
    lake = domain("lake")
    ahead = np.zeros(17)
    for _ in range(5000):
        worth = (lake.mdp.transition_probs * (lake.mdp.rewards + 0.999 * ahead)).sum(axis=2)
        ahead[:16] = worth.max(axis=1)
    best = lake.candidate.table.argmax(axis=1)
    for cell in (0, 1, 2, 3, 4, 6, 8, 9, 10, 13, 14):
        assert worth[cell, best[cell]] == pytest.approx(worth[cell].max(), abs=1e-9)


@pytest.mark.parametrize(("name", "seen"), [("model-fail", 1), ("graph-hidden", 5)])
def test_what_is_hidden_is_not_logged_and_misleads_models(name, seen):
    problem = domain(name)
    data = problem.logs(4000, rng=np.random.default_rng(3))
    assert set(data.states) == set(range(seen))
    assert problem.behavior.table.shape == problem.candidate.table.shape == (seen, 2)
    np.testing.assert_allclose(
        problem.behavior.log_prob(data.states, data.actions, data.times), data.behavior_log_probs
    )
    assert data.behavior is problem.behavior
    model = tightrope.estimate(data, problem.candidate, estimator="mb")
    sampled = tightrope.estimate(data, problem.candidate, estimator="pdwis")
    assert abs(model - problem.true_value) > abs(sampled - problem.true_value)


@pytest.mark.parametrize("name", [*FIELD, *DRAWN])
def test_one_seed_gives_the_same_logs(name):
    first, second = (made(name).logs(20, rng=np.random.default_rng(5)) for _ in range(2))
    np.testing.assert_array_equal(first.rewards, second.rewards)
    np.testing.assert_array_equal(first.actions, second.actions)


def test_studies_know_them():
    assert {name: of_study(name).name for name in FIELD} == {name: name for name in FIELD}


# -- drawn to order ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("overlap", [1.0, 0.5, 0.05])
@pytest.mark.parametrize("hidden", [1, 2])
def test_a_drawn_problem_has_the_overlap_that_was_ordered(overlap, hidden):
    problem = drawn_problem(1, horizon=20, overlap=overlap, hidden=hidden)
    share = effective_share(problem.mdp, problem._seen(problem.behavior), problem._seen(problem.candidate))
    assert share == pytest.approx(overlap, rel=1e-6)
    assert np.array_equal(problem.candidate.table, problem.behavior.table) == (overlap == 1)


def test_a_knob_changes_nothing_else():
    plain = drawn_problem(3)
    for other in (drawn_problem(3, overlap=0.1), drawn_problem(3, horizon=30), drawn_problem(3, hidden=2)):
        np.testing.assert_array_equal(plain.behavior.table, other.behavior.table)
    apart, long, hidden = drawn_problem(3, overlap=0.1), drawn_problem(3, horizon=30), drawn_problem(3, hidden=2)
    for other in (apart, long):
        np.testing.assert_array_equal(plain.mdp.transition_probs, other.mdp.transition_probs)
        np.testing.assert_array_equal(plain.mdp.rewards, other.mdp.rewards)
    # The hidden part summed out, the states that are seen move as before.
    moves = hidden.mdp.transition_probs[:, :, :-1].reshape(6, 2, 3, 6, 2).sum(axis=4)
    for version in range(2):
        np.testing.assert_allclose(moves[:, version], plain.mdp.transition_probs[:, :, :-1], atol=1e-12)
    names = [one.name for one in (plain, apart, long, hidden, drawn_problem(4), drawn_problem(3, skew=1.0))]
    assert len(set(names)) == len(names)


@pytest.mark.parametrize("skew", [-2.0, 0.0, 1.0])
def test_rewards_have_the_skewness_that_was_ordered(skew):
    rewards = drawn_problem(8, states=60, actions=4, horizon=2, overlap=0.9, skew=skew).mdp.rewards.ravel()
    deviations = (rewards - rewards.mean()) / rewards.std()
    assert np.mean(deviations**3) == pytest.approx(skew, abs=0.2)
    assert (rewards.mean(), rewards.std()) == (pytest.approx(0, abs=0.05), pytest.approx(1, abs=0.05))


def test_what_is_hidden_misleads_models_up_and_down():
    """Even seeds: the candidate is better than the model can know; odd ones: worse."""
    for seed, sign in ((10, -1), (11, 1)):
        for hidden in (1, 2):
            problem = drawn_problem(seed, horizon=20, overlap=0.1, hidden=hidden)
            data = problem.logs(4000, rng=np.random.default_rng(0))
            off = (
                tightrope.estimate(data, problem.candidate, estimator="mb") - problem.true_value
            ) / data.returns.std()
            assert abs(off) < 0.06 if hidden == 1 else sign * off > 0.15


@pytest.mark.parametrize(
    ("knobs", "message"),
    [
        ({"actions": 1}, "actions must be at least 2; got 1"),
        ({"hidden": 0}, "hidden must be at least 1; got 0"),
        ({"overlap": 0.0}, "overlap must lie above 0 and be at most 1; got 0.0"),
        ({"overlap": 1e-9, "horizon": 2}, "overlap is 1e-09, but in this process the least is"),
    ],
)
def test_what_cannot_be_drawn_is_said(knobs, message):
    with pytest.raises(TightropeError, match=message):
        drawn_problem(0, **knobs)
