"""Tables as policies: files and frames of rows, lists, text for states and actions."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tightrope
from tests.logs import POLICY, columns, dataset
from tightrope import PolicyError, TabularPolicy
from tightrope.adapters import load_policy
from tightrope.base.policy import as_policy
from tightrope.base.problem import Problem

STATES, ACTIONS = np.array(["calm", "storm"]), np.array(["run", "walk"])
NAMED = {"state": STATES, "action": ACTIONS}
ROWS = {
    "state": [0, 0, 1, 1],
    "action": [0, 1, 0, 1],
    "prob": POLICY.ravel().tolist(),
}
FORMS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "lazy": lambda rows: pl.DataFrame(rows).lazy(),
    "pyarrow": pa.table,
    "mapping": dict,
}


def spelled(which, **changes):
    """Valid logs with names for the numbers of some columns."""
    return columns(**{name: NAMED[name][columns()[name]] for name in which}, **changes)


def spelled_rows(which):
    return ROWS | {name: NAMED[name][ROWS[name]].tolist() for name in which}


@pytest.mark.parametrize("form", FORMS)
def test_frames_are_policies(form):
    wanted = tightrope.estimate(dataset(), POLICY)
    assert tightrope.estimate(dataset(), FORMS[form](ROWS)) == wanted


def test_lists_are_policies():
    wanted = tightrope.estimate(dataset(), POLICY)
    assert tightrope.estimate(dataset(), POLICY.tolist()) == wanted
    assert tightrope.estimate(dataset(), tuple(map(tuple, POLICY))) == wanted
    assert tightrope.estimate(dataset(), [POLICY.tolist()] * 3) == wanted  # one table for each time


WHICH = [("state",), ("action",), ("state", "action")]


@pytest.mark.parametrize("which", WHICH, ids="-".join)
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".jsonl", ".parquet", ".csv.gz", ".feather"])
def test_text_in_files_of_policies(which, suffix, tmp_path):
    from tests.io.test_places import write

    path = write(tmp_path / f"policy{suffix}", pa.table(spelled_rows(which)))
    logs = tightrope.read(spelled(which))
    assert tightrope.estimate(logs, load_policy(str(path))) == pytest.approx(tightrope.estimate(dataset(), POLICY))


@pytest.mark.parametrize("which", WHICH, ids="-".join)
@pytest.mark.parametrize("estimator", ["is", "pdis", "wis", "pdwis", "mb", "dr", "wdr", "tdr"])
def test_names_give_the_numbers_that_numbers_give(which, estimator):
    logs = tightrope.read(spelled(which), reward_range=(-1, 2), horizon=3)
    numbered = tightrope.read(columns(), reward_range=(-1, 2), horizon=3)
    named = tightrope.estimate(logs, FORMS["mapping"](spelled_rows(which)), estimator=estimator)
    assert named == pytest.approx(tightrope.estimate(numbered, POLICY, estimator=estimator), rel=1e-12)


BEHAVIOR = np.array([[0.5, 0.5], [0.4, 0.6]])


@pytest.fixture(scope="module")
def many():
    """Logs of two hundred episodes of a known behaviour policy, and what names them."""
    rng = np.random.default_rng(0)
    state, action, reward = rng.integers(0, 2, 600), np.zeros(600, int), np.zeros(600)
    action = (rng.random(600) < BEHAVIOR[state, 1]).astype(int)
    reward = np.round(rng.random(600) * (action + state), 2)
    return {"episode": np.repeat(np.arange(200), 3), "t": np.tile(np.arange(3), 200), "state": state,
            "action": action, "reward": reward}  # fmt: skip


@pytest.mark.parametrize("which", WHICH, ids="-".join)
def test_an_evaluation_of_names_is_that_of_numbers(which, many):
    """All estimators, bounds, checks and diagnostics; only the words differ where they name an action."""
    given = {name: NAMED[name][values] if name in which else values for name, values in many.items()}
    logs = {}
    for key, source, names in (("numbers", many, ()), ("names", given, which)):
        rows = spelled_rows(names) | {"prob": BEHAVIOR.ravel().tolist()}
        logs[key] = tightrope.read(source, reward_range=(0, 2), horizon=3, behavior=rows if names else BEHAVIOR)
    asked = {"methods": ["percentile", "betting"], "n_resamples": 200, "side": "both"}
    wanted = tightrope.evaluate(logs["numbers"], POLICY, **asked)
    found = tightrope.evaluate(logs["names"], spelled_rows(which), **asked)
    assert [(b.estimator, b.method, b.side) for b in found] == [(b.estimator, b.method, b.side) for b in wanted]
    np.testing.assert_allclose([b.value for b in found], [b.value for b in wanted], rtol=1e-9)
    assert found.overlap.unlogged_mass == pytest.approx(wanted.overlap.unlogged_mass)
    assert len(found.reasons) == len(wanted.reasons)
    for one in ("tabular", "logistic"):
        estimates = [tightrope.estimate(logs[key], rows, estimator="wis", behavior=one)
                     for key, rows in (("numbers", POLICY), ("names", spelled_rows(which)))]  # fmt: skip
        assert estimates[0] == pytest.approx(estimates[1], rel=1e-9)


@pytest.mark.parametrize(("estimator", "method"), [("mb", "robust"), ("wdr", "rehearsed")])
def test_bounds_that_count_states(estimator, method, many):
    given = many | {name: NAMED[name][many[name]] for name in NAMED}
    rows = spelled_rows(NAMED) | {"prob": BEHAVIOR.ravel().tolist()}
    bounds = [
        tightrope.lower_bound(tightrope.read(source, reward_range=(0, 2), horizon=3, behavior=behavior), policy,
                              estimator=estimator, method=method, n_resamples=100).value
        for source, behavior, policy in ((many, BEHAVIOR, POLICY), (given, rows, spelled_rows(NAMED)))
    ]  # fmt: skip
    # A table of numbers declares which states there are; of names only those in the logs are known, here the same.
    assert bounds[1] == pytest.approx(bounds[0], rel=1e-6)


def test_noise_over_named_actions(many):
    given = many | {"action": ACTIONS[many["action"]]}
    soft = tightrope.softened(spelled_rows(["action"]), epsilon=0.3)
    logs = [tightrope.read(source, behavior=rows) for source, rows in (
        (many, BEHAVIOR), (given, spelled_rows(["action"]) | {"prob": BEHAVIOR.ravel().tolist()}))]  # fmt: skip
    wanted = tightrope.estimate(logs[0], tightrope.softened(POLICY, epsilon=0.3), estimator="mb")
    assert tightrope.estimate(logs[1], soft, estimator="mb") == pytest.approx(wanted, rel=1e-9)


def test_an_action_that_only_the_candidate_knows():
    """It counts as never logged, under its own name."""
    rows = {
        "state": [0, 0, 0, 1, 1],
        "action": ["run", "walk", "fly", "run", "walk"],
        "prob": [0.3, 0.2, 0.5, 0.4, 0.6],
    }
    problem = Problem(tightrope.read(spelled(["action"])), rows)
    from tightrope.evaluation.overlap import unlogged_mass

    at_zero = (columns()["state"] == 0).mean()
    assert unlogged_mass(problem) == pytest.approx(0.5 * at_zero)


def test_the_users_own_code_sees_names_and_not_numbers():
    seen = []

    def policy(states, actions, t):
        seen.append((states[0], actions[0]))
        return np.where(actions == "run", 0.5, 0.5)

    tightrope.estimate(tightrope.read(spelled(NAMED)), policy)
    assert seen[0] == ("calm", "run")


def test_regressions_refuse_names():
    logs = tightrope.read(spelled(["state"]))
    with pytest.raises(tightrope.TightropeError, match=r"states must be .*; the logs hold <U5|state"):
        tightrope.estimate(logs, spelled_rows(["state"]), estimator="mb", model="linear")


def test_settings_by_number_are_refused_where_there_are_names():
    from tightrope.estimators import MB
    from tightrope.models import TabularModel

    logs = tightrope.read(spelled(["state"]))
    with pytest.raises(tightrope.DataError, match="n_states must be left out where states or actions are text"):
        tightrope.estimate(logs, spelled_rows(["state"]), estimator=MB(TabularModel(n_states=3)))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            {"state": [0], "action": [0]},
            "must have the columns state, action, prob .*; it lacks prob and has state, action",
        ),
        ({"state": [0], "p": [1.0]}, "it lacks action, prob and has state, p"),
        (ROWS | {"prob": list("abcd")}, "column 'prob' must hold numbers; it holds 'a'"),
        (ROWS | {"state": [0.5] * 4}, "column 'state' must hold whole numbers from 0, or text; it holds 0.5"),
        (ROWS | {"t": list("abcd")}, "column 't' must hold whole numbers from 0; it holds 'a'"),
        (ROWS | {"prob": [0.9] * 4}, r"row \[0\] of probs must sum to 1; got 1.8"),
        (spelled_rows(["state"]) | {"prob": [0.9] * 4}, r"row \['calm'\] of probs must sum to 1; got 1.8"),
        ([[0.5, 0.6]], r"row \[0\] of probs must sum to 1"),
        ([0.5, 0.5], r"probs must have shape \(states, actions\)"),
        (pd.DataFrame(), "it holds no rows"),
    ],
)
def test_bad_tables(rows, message):
    with pytest.raises(PolicyError, match=message):
        as_policy(rows)


def test_a_state_that_the_table_does_not_know():
    logs = tightrope.read(spelled(["state"]))
    with pytest.raises(PolicyError, match=r"states must be one integer per step .*; the logs hold <U5"):
        tightrope.estimate(logs, POLICY)
    with pytest.raises(
        PolicyError, match=r"state must be one of the 1 in the policy's table; got storm \(at episode 10"
    ):
        tightrope.estimate(logs, TabularPolicy([[0.5, 0.5]], states=["calm"]))


def test_a_word_among_numbers_is_no_name():
    from tests.logs import refused

    refused(columns(state=["0.5"] * 8 + ["oops"]), "column 'state' must hold either numbers or names, not both")


@pytest.mark.parametrize("name", ["logs.parquet", "logs.csv"])
def test_names_are_written_and_read_again(name, tmp_path):
    from tests.logs import assert_same

    rows = spelled(NAMED, next_state=STATES[[1, 0, 1] * 3], terminated=np.tile([0, 0, 1], 3))
    logs = tightrope.read(rows, horizon=3)
    tightrope.write(logs, tmp_path / name)
    assert_same(tightrope.read(tmp_path / name, horizon=3), logs)
    assert logs.final_states.tolist() == ["storm"] * 3


def test_numbers_beside_names_are_not_taken_for_the_numbers_of_names():
    """Next states by number and a classifier of numbered actions, where the logs hold names."""
    rows = spelled(NAMED, next_state=columns()["state"])
    coded = Problem(tightrope.read(rows), spelled_rows(NAMED)).coded
    assert coded.dataset.final_states is None
    numbered = tightrope.softened(tightrope.StatePolicy(lambda s, t: np.full((len(s), 2), 0.5)), epsilon=0, n_actions=2)
    with pytest.raises(tightrope.DataError, match="actions must be one integer per step for a table whose columns"):
        tightrope.estimate(tightrope.read(spelled(["action"])), numbered, estimator="mb")


def test_names_of_both_policies_stand_side_by_side():
    """The behaviour policy knows an action that the candidate never takes and nobody logged."""
    behavior = {
        "state": [0, 0, 0, 1, 1],
        "action": ["run", "fly", "walk", "run", "walk"],
        "prob": [0.5, 0.1, 0.4, 0.5, 0.5],
    }
    logs = tightrope.read(spelled(["action"]), behavior=behavior)
    coded = Problem(logs, spelled_rows(["action"])).coded
    states, t = np.array([0, 1]), np.zeros(2, int)
    np.testing.assert_allclose(coded.policy.probs(states, t), [[0.0, 0.7, 0.3], [0.0, 0.4, 0.6]])
    np.testing.assert_allclose(coded.dataset.behavior.probs(states, t), [[0.1, 0.5, 0.4], [0.0, 0.5, 0.5]])
