"""Marginalised importance sampling: what it is equal to, its derivatives, and what it refuses."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tests.field.dice import one_hot
from tests.laws import laws
from tests.laws.laws import logs, same
from tests.laws.test_models import DATA, HORIZON, MANY, POLICY, REPEATS, STATES, TABULAR, candidate, on
from tests.oracle import Episode
from tightrope import TabularPolicy
from tightrope.base.errors import BoundError, DataError, NoOverlapError
from tightrope.base.problem import Problem
from tightrope.behaviors import TabularBehavior
from tightrope.domains import situations, small
from tightrope.estimators import DICE, DRL, MB, MIS, PDIS
from tightrope.models import TabularModel

N = DATA.n_trajectories
ROWS = np.array([np.ones(N), REPEATS, np.random.default_rng(1).exponential(size=N)])


def by_state_and_time(data):
    """The same logs with the time in the state, and the candidate for them."""
    timed = replace(data, states=data.states * HORIZON + data.times, final_states=None)
    table = [candidate(s, t) for s in range(STATES) for t in range(HORIZON)]
    return timed, TabularPolicy(table)


def test_with_a_counted_behaviour_policy_it_is_the_tabular_model_with_time_in_the_state():
    """Yin and Wang (2020): with π_b counted by state and time, the ratios of MIS turn counts into transitions.

    A pair that was never logged has no step to weigh: MIS takes it as the end of the episode, which earns nothing.
    """
    counted = MIS()(Problem(DATA, POLICY, behavior=TabularBehavior(timed=True)))
    timed, policy = by_state_and_time(DATA)
    modelled = MB(TabularModel(unseen="terminate", unseen_reward=0.0))(Problem(timed, policy))
    same(counted(ROWS), modelled(ROWS), 1e-10)
    same(counted.influence(), modelled.influence(), 1e-10)
    # By state alone it is another number, and so it is with the logged probabilities.
    for other in (Problem(DATA, POLICY, behavior=TabularBehavior()), Problem(DATA, POLICY)):
        assert abs(MIS()(other).estimate - modelled.estimate) > 1e-3


def test_where_no_state_is_visited_twice_it_is_pdis():
    data = replace(DATA, states=np.arange(DATA.n_steps), final_states=None)
    same(MIS()(Problem(data))(ROWS), PDIS()(Problem(data))(ROWS))


def test_counts_are_shared_by_episodes_that_meet():
    """Two episodes meet in state 1: either start goes on with either end, and PDIS never mixes them."""
    meeting = [
        Episode([0.0, 1.0], [0.5, 0.5], [1.0, 0.0], True, [0, 1], [0, 0]),
        Episode([0.0, 5.0], [0.5, 0.5], [0.0, 1.0], True, [0, 1], [1, 1]),
    ]
    problem = Problem(logs(meeting, horizon=2))
    # d_1(1) = (2 + 0) / 2 = 1, r_1(1) = (0 · 1 + 2 · 5) / 2 = 5.
    assert MIS()(problem).estimate == pytest.approx(5.0, abs=1e-14)
    with pytest.raises(NoOverlapError):  # no single episode is one of the candidate's
        PDIS()(problem)


@pytest.mark.parametrize("behavior", [None, TabularBehavior(), TabularBehavior(timed=True)])
def test_influences_are_derivatives(behavior):
    statistic = MIS()(Problem(DATA, POLICY, behavior=behavior))
    rows = np.array([ROWS[0], ROWS[1] + 0.5, ROWS[2]])
    influences = statistic.model.influences(rows)
    step = 1e-6 * np.eye(N)
    slopes = np.array([(statistic(row + step) - statistic(row - step)) / 2e-6 for row in rows])
    np.testing.assert_allclose(influences, slopes, rtol=1e-6, atol=1e-8)
    same((rows * influences).sum(axis=1), np.zeros(3), 1e-10)
    expected = np.sqrt((rows * slopes**2).sum(axis=1) * N / (N - 1))
    np.testing.assert_allclose(statistic.standard_errors(rows, (N,)), expected, rtol=1e-6)


def test_an_episode_without_weight_is_as_if_it_were_not_there():
    influences = MIS()(Problem(DATA, POLICY)).model.influences(np.array([REPEATS], dtype=float))
    kept = np.flatnonzero(REPEATS)
    few = MIS()(Problem(DATA.take(kept), POLICY)).model.influences(np.array(REPEATS, dtype=float)[None, kept])
    same(influences[:, kept], few)


def test_the_same_bits_in_any_batch():
    statistic = MIS()(Problem(DATA, POLICY))
    rows = np.random.default_rng(2).poisson(1.0, (37, N)).astype(float)
    rows[5] = 0.0
    together = statistic(rows)
    assert np.isnan(together[5])
    np.testing.assert_array_equal(together, [statistic(row) for row in rows])
    np.testing.assert_array_equal(together[20:], statistic(rows[20:]))
    errors = statistic.standard_errors(rows, (N,))
    np.testing.assert_array_equal(errors[3:9], statistic.standard_errors(rows[3:9], (N,)))


def test_states_by_name():
    names = np.array(["east", "north", "west"])
    data = replace(DATA, states=names[DATA.states], final_states=None)
    assert MIS()(Problem(data)).estimate == MIS()(Problem(DATA, POLICY)).estimate


def test_actions_that_a_fit_never_saw():
    """A row without an episode fits a behaviour policy that never saw its actions: they do not count."""
    statistic = MIS()(Problem(DATA, POLICY, behavior=TabularBehavior(timed=True)))
    assert np.isfinite(statistic.leave_one_out()).all()
    assert np.isnan(statistic(np.zeros(N)))
    assert not statistic.model.influences(np.zeros((1, N))).any()


@pytest.mark.parametrize("states", [None, np.linspace(0, 1, DATA.n_steps), np.zeros((DATA.n_steps, 2))])
def test_states_that_cannot_be_counted(states):
    data = replace(DATA, states=states, final_states=None)
    with pytest.raises(DataError, match=r"mis counts how often each state is visited.*Number the states, or use dice"):
        MIS()(Problem(data))


def test_no_way_through_the_logs():
    never = replace(DATA, eval_log_probs=np.where(DATA.times == 0, -np.inf, DATA.eval_log_probs))
    with pytest.raises(NoOverlapError, match="mis finds no way through the logs"):
        MIS()(Problem(never))


def test_ratios_beyond_all_bounds():
    huge = replace(DATA, actions=None, behavior_log_probs=np.full(DATA.n_steps, -1000.0))
    with pytest.raises(BoundError, match=r"the importance ratio of episode 0, step 0 is exp\(99"):
        MIS()(Problem(huge))


def test_missing_probabilities_are_named():
    with pytest.raises(DataError, match="no behaviour probabilities"):
        MIS()(Problem(replace(DATA, behavior_log_probs=None), POLICY))


@pytest.mark.parametrize("method", ["percentile", "bca", "studentized", "t"])
def test_bounds(method):
    walker = small("walker")
    data = walker.logs(60, rng=np.random.default_rng(3))
    settings = {"estimator": "mis", "method": method, "n_resamples": 200, "seed": 1}
    low = tightrope.lower_bound(data, walker.candidate, **settings)
    high = tightrope.upper_bound(data, walker.candidate, **settings)
    assert low.value < low.estimate == high.estimate < high.value


@pytest.mark.parametrize("estimator", [MIS(), DRL(TABULAR), DICE(one_hot)], ids=lambda estimator: estimator.name)
def test_partition(estimator, monkeypatch):
    laws.law_partition(on(estimator), MANY, monkeypatch)


@pytest.mark.parametrize("estimator", ["mis", "drl", "dice"])
@pytest.mark.parametrize("hidden", [True, False])
def test_a_hidden_state_speaks_against_it(estimator, hidden):
    """What the first of two decisions led to is not logged: the value is wrong, and the bound is not advised."""
    problem = next(one for one in situations() if one.name == "wrong model, good overlap")
    if not hidden:
        before, after = (TabularPolicy([chances] * 3) for chances in ([0.6, 0.4], [0.4, 0.6]))
        problem = replace(problem, observe=None, behavior=before, candidate=after)
    data = problem.logs(2000, rng=np.random.default_rng(4))
    settings = {"estimators": [estimator], "methods": ["studentized"], "n_resamples": 200}
    result = tightrope.evaluate(data, problem.candidate, **settings)
    (bound,) = result.bounds
    assert (abs(bound.estimate - problem.true_value) > 0.3) == hidden
    assert any("forgets what came before" in one.text for one in bound.warnings) == hidden
    if hidden:
        assert "model-contradicted" in result.advice
