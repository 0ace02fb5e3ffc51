"""States are labels: what they are called changes no bound and costs nothing, however large their numbers are."""

from __future__ import annotations

import tracemalloc
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import tightrope
from tests.logs import POLICY, columns, dataset
from tightrope import DataError, PolicyError, TabularPolicy
from tightrope.adapters import load_policy
from tightrope.adapters.outputs import labelled
from tightrope.domains import small
from tightrope.estimators import DR, WDR
from tightrope.models import TabularModel

FAR = [100_000, 10**7, 2**40, 2**62]
NAMES = ["evaluate", "estimated", "gain", "robust", "model per resample"]


def renamed(data, labels):
    """The logs with state s called labels[s]; where nothing follows, a final state is a name like any other."""
    final = None if data.final_states is None else labels[np.minimum(data.final_states, len(labels) - 1)]
    behavior = TabularPolicy(data.behavior.table, labels)
    return replace(data, states=labels[data.states], final_states=final, behavior=behavior)


def answers(data, policy, name):
    options = {
        "evaluate": {},
        "estimated": {"behavior": "auto", "estimators": ["is", "wdr"]},
        "gain": {"baseline": "behavior", "estimators": ["is", "mb"]},
        "robust": {"estimators": ["mb"], "methods": ["robust", "percentile"], "side": "both"},
        "model per resample": {"estimators": [DR(fit="refit"), WDR(TabularModel(unseen="worst"), fit="cross")]},
    }[name]
    result = tightrope.evaluate(data, policy, n_resamples=60, **options)
    assert result.bounds
    return result


@pytest.fixture(scope="module")
def problem():
    chosen = small("walker")
    data = chosen.logs(150, rng=np.random.default_rng(1))
    return replace(data, notes=()), chosen.candidate.table


@pytest.fixture(scope="module")
def plain(problem):
    """The answers with states called 0, 1, 2 and so on; each is computed once."""
    data, table = problem
    return cache(lambda name: answers(data, TabularPolicy(table), name))


def peak(logs, policy):
    """The most memory that the answers take."""
    answers(logs, policy, "evaluate")  # compiled and imported
    tracemalloc.start()
    answers(logs, policy, "evaluate")
    answers(logs, policy, "robust")
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


@pytest.fixture(scope="module")
def plain_peak(problem):
    data, table = problem
    return peak(data, TabularPolicy(table))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("far", FAR)
def test_a_far_state_changes_no_bit(problem, plain, name, far):
    data, table = problem
    labels = np.arange(len(table))
    labels[-1] = far
    found, expected = answers(renamed(data, labels), TabularPolicy(table, labels), name), plain(name)
    assert found.bounds == expected.bounds
    assert found.model_check == expected.model_check
    assert found.behavior_check == expected.behavior_check
    assert found.advice == expected.advice


@pytest.mark.parametrize("name", NAMES)
def test_any_names_change_nothing_but_rounding(problem, plain, name):
    data, table = problem
    labels = np.random.default_rng(0).permutation(2**60 // (1 + np.arange(len(table))))
    found = answers(renamed(data, labels), TabularPolicy(table, labels), name)
    expected = plain(name)
    for one, other in zip(found.bounds, expected.bounds, strict=True):
        assert (one.estimator, one.method, one.guarantee) == (other.estimator, other.method, other.guarantee)
        assert one.value == pytest.approx(other.value, rel=1e-9)
        assert one.estimate == pytest.approx(other.estimate, rel=1e-9)


@pytest.mark.parametrize("far", FAR)
def test_a_far_state_costs_no_more_memory(problem, plain_peak, far):
    data, table = problem
    labels = np.arange(len(table))
    labels[-1] = far
    assert peak(renamed(data, labels), TabularPolicy(table, labels)) < plain_peak + 1_000_000


@pytest.mark.parametrize("far", FAR)
def test_a_function_is_asked_about_logged_states_alone(problem, far):
    data, table = problem
    labels = np.arange(len(table))
    labels[-1] = far
    asked = set()

    def policy(states, t):
        asked.update(states.tolist())
        return table[np.searchsorted(labels, states)]

    logs = renamed(data, labels)
    answers(logs, policy, "evaluate")
    answers(logs, policy, "robust")
    assert asked <= set(labels.tolist())


def test_one_far_state_among_few_steps():
    """One row with state 100000 used to ask for 149 GiB."""
    states = columns()["state"].copy()
    states[4] = 100_000
    data = tightrope.read(columns(state=states), reward_range=(-1, 2), horizon=3)
    result = tightrope.evaluate(data, lambda s, t: np.where(s[:, None] == 1, [0.4, 0.6], [0.7, 0.3]))
    assert {bound.estimator for bound in result.bounds} >= {"mb", "dr", "wdr", "pdwis"}
    with pytest.raises(PolicyError, match=r"state must lie between 0 and 1, .*; got 100000 \(at episode 11, step 1\)"):
        tightrope.evaluate(data, POLICY)


def test_a_table_that_names_its_states():
    policy = TabularPolicy([[0.1, 0.9], [0.7, 0.3]], states=[2**40, 5])
    np.testing.assert_array_equal(policy.states, [5, 2**40])
    found = policy.probs(np.array([5, 2**40, 5]), np.zeros(3, dtype=int))
    np.testing.assert_array_equal(found, [[0.7, 0.3], [0.1, 0.9], [0.7, 0.3]])
    with pytest.raises(PolicyError, match="state must be one of the 2 in the policy's table; got 6"):
        policy.probs(np.array([5, 6]), np.zeros(2, dtype=int))
    in_time = TabularPolicy([[[0.1, 0.9], [0.7, 0.3]], [[1.0, 0.0], [0.5, 0.5]]], states=[9, 3])
    np.testing.assert_array_equal(in_time.probs(np.array([9, 3]), np.array([1, 0])), [[1.0, 0.0], [0.7, 0.3]])


@pytest.mark.parametrize(
    ("states", "message"),
    [
        ([1, 1], "states must name each state once"),
        ([1], r"states must be .*; got shape \(1,\)"),
        ([0.5, 1.0], r"one whole number, .*float64"),
        ([-1, 0], "one whole number, 0 or more"),
    ],
)
def test_bad_names_of_states(states, message):
    with pytest.raises(PolicyError, match=message):
        TabularPolicy(POLICY, states=states)


def test_a_bad_row_is_named_by_its_state():
    with pytest.raises(PolicyError, match=r"row \[7\] of probs must sum to 1; got 0.9"):
        TabularPolicy([[0.5, 0.5], [0.5, 0.4]], states=[3, 7])
    with pytest.raises(PolicyError, match=r"probs\[7, 1\] must be a probability ≥ 0; got -0.5"):
        TabularPolicy([[0.5, 0.5], [1.5, -0.5]], states=[3, 7])


@pytest.mark.parametrize("far", FAR)
def test_a_file_of_rows_names_its_states(tmp_path, far):
    path = tmp_path / "policy.csv"
    path.write_text(f"state,action,prob\n0,0,0.25\n0,1,0.75\n{far},1,0.5\n{far},0,0.5\n")
    policy = load_policy(str(path))
    np.testing.assert_array_equal(policy.probs(np.array([far, 0]), np.zeros(2, dtype=int)), [[0.5, 0.5], [0.25, 0.75]])
    with pytest.raises(PolicyError, match="state must be one of the 2 in the policy's table; got 1"):
        policy.probs(np.array([1]), np.zeros(1, dtype=int))
    path.write_text(f"state,action,prob\n0,0,0.25\n0,{far},0.75\n")
    if far > 10**7:
        with pytest.raises(PolicyError, match="must number actions and times from 0 without gaps"):
            load_policy(str(path))


@pytest.mark.parametrize("far", [10**7, 2**40])
def test_far_actions_cost_nothing(far):
    actions = columns()["action"].copy()
    actions[4] = far
    data = tightrope.read(columns(action=actions), reward_range=(-1, 2), horizon=3)

    def policy(states, actions, t):
        return np.where(actions == far, 0.0, 0.5)

    plain = tightrope.evaluate(data, policy, n_resamples=40)
    listed = tightrope.evaluate(data, labelled(lambda s, t: np.zeros((len(s), 3)), [0, 1, far]), n_resamples=40)
    assert plain.bounds
    assert listed.bounds


def test_an_action_that_the_candidate_does_not_list_is_never_taken():
    """A table of fewer actions than the logs hold: those steps have no weight, and nothing else changes."""

    class Narrow:
        def probs(self, states, t):
            return POLICY[states]

        def log_prob(self, states, actions, t):
            with np.errstate(divide="ignore"):
                return np.log(np.where(actions < 2, POLICY[states, np.minimum(actions, 1)], 0.0))

    actions = columns()["action"].copy()
    actions[4] = 5
    data = tightrope.read(columns(action=actions), reward_range=(-1, 2), horizon=3)
    padded = np.pad(POLICY, ((0, 0), (0, 4)))
    found, expected = (tightrope.evaluate(data, policy, n_resamples=40) for policy in (Narrow(), padded))
    assert {bound.estimator for bound in found.bounds} >= {"mb", "is"}
    assert [(b.estimator, b.method, b.value) for b in found.bounds] == [
        (b.estimator, b.method, b.value) for b in expected.bounds
    ]
    assert found.overlap == expected.overlap


def test_known_rewards_and_declared_sizes_keep_their_meaning():
    data = dataset()
    known = TabularModel(rewards=((1.0, 2.0), (3.0, 4.0)))
    assert np.isfinite(tightrope.estimate(data, POLICY, estimator="mb", model=known))
    far = replace(data, states=np.where(data.states == 1, 4, 0))
    table = np.zeros((5, 2))
    table[[0, 4]] = [[1.0, 2.0], [3.0, 4.0]]
    named = TabularPolicy(POLICY, states=[0, 4])
    one = tightrope.estimate(far, named, estimator="mb", model=TabularModel(rewards=table))
    assert one == tightrope.estimate(data, POLICY, estimator="mb", model=known)
    with pytest.raises(DataError, match=r"rewards must be finite numbers of shape \(5, 2\); got shape \(2, 2\)"):
        tightrope.estimate(far, named, estimator="mb", model=known)
    with pytest.raises(DataError, match=r"n_states must be at least 5, because the logs hold state 4; got 3"):
        tightrope.estimate(far, named, estimator="mb", model=TabularModel(n_states=3))
