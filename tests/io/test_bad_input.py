"""One clear error for each kind of bad input, told apart by its message."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tightrope
from tests.logs import POLICY, columns, put, refused
from tightrope import DataError, TrajectoryDataset

nan, inf = np.nan, np.inf
OBS = columns(state=None, obs_0=np.arange(9.0), obs_1=np.ones(9))
FLOAT_ACTIONS = columns(action=np.linspace(-1, 1, 9))
AT = "episode 11, step 1"


# -- values ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [nan, inf, -inf])
@pytest.mark.parametrize("name", ["reward", "state", "action", "behavior_prob"])
def test_value_is_not_finite(name, value):
    refused(put(name, 4, value), rf"column '{name}' must be a finite number; got {value} at {AT}")


@pytest.mark.parametrize("name", ["obs_1", "action_1", "next_obs_0"])
def test_component_is_not_finite(name):
    bad = np.ones(9)
    bad[4] = nan
    source = columns(state=None, action=None, obs_0=np.ones(9), action_0=np.ones(9), **{name: bad})
    refused(source, rf"column '{name}' must be a finite number; got nan at {AT}")


@pytest.mark.parametrize("name", ["behavior_log_prob", "eval_log_prob"])
@pytest.mark.parametrize("value", [nan, inf])
def test_log_prob_is_not_a_number(name, value):
    logs = np.full(9, -0.5)
    logs[4] = value
    source = columns(behavior_prob=None, **{"behavior_log_prob": np.full(9, -0.5), name: logs})
    refused(source, rf"column '{name}' must be .*; got {value} at {AT}")


def test_behavior_log_prob_of_minus_infinity():
    logs = np.full(9, -0.5)
    logs[4] = -inf
    refused(
        columns(behavior_prob=None, behavior_log_prob=logs),
        rf"'behavior_log_prob' must be finite, .*; got -inf at {AT}",
    )
    candidate = tightrope.read(columns(eval_log_prob=logs)).eval_log_probs  # a candidate may rule an action out
    assert candidate[4] == -inf


def test_behavior_prob_not_positive():
    refused(put("behavior_prob", 4, 0.0), rf"column 'behavior_prob' must be a probability > 0, .*; got 0 at {AT}")
    refused(
        put("behavior_prob", 4, -0.7),
        rf"'behavior_prob' must be a probability > 0, .*; got -0.7 at {AT}. If these are logarithms, say so",
    )
    refused(
        columns(eval_prob=np.r_[[0.5] * 4, -0.1, [0.5] * 4]),
        rf"'eval_prob' must be a probability ≥ 0; got -0.1 at {AT}",
    )


def test_probability_above_one():
    bad = np.r_[[0.5] * 4, 1.5, [0.5] * 4]
    refused(
        put("behavior_prob", 4, 1.5),
        rf"'behavior_prob' must be at most 1, because actions are discrete; got 1.5 at {AT}",
    )
    refused(columns(eval_prob=bad), rf"'eval_prob' must be at most 1, .*; got 1.5 at {AT}")
    refused(
        columns(action=None, behavior_prob=bad),
        rf"'behavior_prob' must be at most 1, because without an action column .*; got 1.5 at {AT}",
    )
    refused(
        columns(behavior_prob=None, behavior_log_prob=np.log(bad)),
        rf"'behavior_log_prob' must be at most 0, .*; got 0.405465 at {AT}",
    )
    density = tightrope.read({**FLOAT_ACTIONS, "behavior_prob": bad}).behavior_log_probs
    assert density[4] == np.log(1.5)


NULLS = ["episode", "t", "state", "action", "reward", "behavior_prob", "terminated"]


@pytest.mark.parametrize("name", NULLS)
@pytest.mark.parametrize("kind", ["pyarrow", "pandas", "polars", "csv"])
def test_missing_value(name, kind, tmp_path):
    values = columns(terminated=np.zeros(9, dtype=bool))
    values[name] = pa.array([None if row == 4 else value for row, value in enumerate(values[name].tolist())])
    table = pa.table(values)
    place = "row 4" if name in ("episode", "t") else AT
    source = {"pyarrow": table, "pandas": table.to_pandas(), "polars": pl.from_arrow(table)}.get(kind)
    if kind == "csv":
        source = tmp_path / "logs.csv"
        pa.csv.write_csv(table, source)
    refused(source, rf"column '{name}' must have a value in every row; it is missing or NaN at {place}")


def test_missing_text_in_csv(tmp_path):
    path = tmp_path / "logs.csv"
    path.write_text("episode,t,action,reward\n0,0,left,1\n0,1,,1\n")
    refused(path, "column 'action' must have a value in every row; .* at episode 0, step 1")


def test_missing_value_in_unsorted_rows_names_the_step():
    rewards = [0.0, 1.0, None, -1.0, 0.0, 2.0, 0.25, 0.0, 1.0]
    table = pa.table(columns(reward=pa.array(rewards))).take(list(reversed(range(9))))
    refused(table, "column 'reward' must have a value in every row; .* at episode 10, step 2")


def test_nan_and_fractions_where_whole_numbers_belong():
    refused(put("episode", 4, nan), r"column 'episode' must be a finite number; got nan at row 4")
    refused(put("t", 4, nan), r"column 't' must hold whole numbers; it is nan at row 4")
    refused(put("t", 4, inf), r"column 't' must hold whole numbers; it is inf at row 4")
    refused(put("t", 4, 1.5), r"column 't' must hold whole numbers; it is 1.5 at row 4")
    refused(columns(t=list("012012012")), r"column 't' must hold whole numbers; it holds text such as '0'")


# -- steps -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("t", "message"),
    [
        ([0, 1, 1], "episode 11, step 1, column 't': this step is there more than once"),
        ([0, 0, 1], "episode 11, step 0, column 't': this step is there more than once"),
        ([0, 2, 3], "episode 11, step 1, column 't': this step is missing"),
        ([1, 2, 3], "episode 11, step 0, column 't': this step is missing; steps count from 0"),
        ([-1, 0, 1], "episode 11, step -1, column 't': steps must count from 0"),
    ],
)
def test_steps(t, message):
    refused(columns(t=np.r_[0, 1, 2, t, 0, 1, 2]), message)


@pytest.mark.parametrize("flag", ["terminated", "truncated"])
def test_rows_after_the_end(flag):
    flags = np.arange(9) == 4
    refused(columns(**{flag: flags}), rf"column '{flag}' is set at {AT}, but the episode goes on.*drop the rows")
    refused(columns(**{flag: 2 * flags}), rf"column '{flag}' must hold true or false; it is 2 at {AT}")
    refused(columns(**{flag: ["yes"] * 9}), rf"column '{flag}' must hold true or false; it holds text such as 'yes'")


def short(**changes):
    """Episode 11 has only two steps."""
    return {name: np.delete(np.asarray(values), 5) for name, values in columns(**changes).items()}


@pytest.mark.parametrize("flags", [{}, {"truncated": np.isin(np.arange(9), [2, 4, 8])}, {"terminated": np.zeros(9)}])
def test_incomplete_episode(flags):
    source = short(**flags)
    refused(source, r'episode 11 stops after step 1.*horizon is 3.*1 of 3.*terminated column.*incomplete="terminate"')
    kept = tightrope.read(source, incomplete="terminate")
    assert kept.terminated.tolist() == [False, True, False]
    assert kept.lengths.tolist() == [3, 2, 3]
    dropped = tightrope.read(source, incomplete="drop")
    assert dropped.episode_ids.tolist() == [10, 12]
    assert dropped.terminated.tolist() == [False, False]
    for data, done in ((kept, "taken to have ended for good"), (dropped, "left out")):
        (note,) = data.notes
        assert re.search(rf"^(assumed|dropped): 1 of 3 episodes.*{done}", str(note))
        assert note in tightrope.lower_bound(data, POLICY, method="percentile", n_resamples=40).warnings
    complete = tightrope.read(columns(), incomplete="terminate")
    assert complete.notes == ()


def test_flagged_episode_is_complete():
    data = tightrope.read(short(terminated=np.arange(9) == 4))
    assert data.terminated.tolist() == [False, True, False]
    assert data.notes == ()


def test_incomplete_is_unknown_or_leaves_nothing():
    refused(columns(), r'incomplete must be "error", "terminate" or "drop"; got .guess.', incomplete="guess")
    refused(columns(), 'incomplete="drop" leaves no episode', incomplete="drop", horizon=4)


# -- types and columns -----------------------------------------------------------------------------------------------


def test_mixed_action_types(tmp_path):
    mixed = [0, 1, 1, 1, "left", 0, 1, 0, 1]
    message = r"column 'action' holds mixed types: 0 \(int\) in row 0 and 'left' \(str\) in row 4"
    refused(pd.DataFrame(columns(action=mixed)), message)
    refused(columns(action=np.array(mixed, dtype=object)), message)
    words = rf"must hold either numbers or names, not both; got '0' at episode 10, step 0 and 'left' at {AT}"
    refused(columns(action=[str(action) for action in mixed]), f"column 'action' {words}")
    path = tmp_path / "logs.csv"
    pd.DataFrame(columns(action=mixed)).to_csv(path, index=False)
    refused(path, f"column 'action' {words}")
    with pytest.raises(DataError, match=f"actions {words}"):
        TrajectoryDataset(
            offsets=[0, 3, 6, 9],
            rewards=np.zeros(9),
            terminated=[0] * 3,
            horizon=3,
            actions=mixed,
            episode_ids=[10, 11, 12],
        )


@pytest.mark.parametrize(
    ("both", "message"),
    [
        ({"action_0": np.ones(9)}, "either 'action' or action_0; they have both"),
        ({"behavior_log_prob": np.zeros(9)}, "columns 'behavior_prob' and 'behavior_log_prob' must agree"),
        (
            {"eval_prob": np.ones(9), "eval_log_prob": np.full(9, -1.0)},
            "columns 'eval_prob' and 'eval_log_prob' must agree",
        ),
    ],
)
def test_two_columns_for_one_thing(both, message):
    refused(columns(**both), message)


@pytest.mark.parametrize("name", ["episode", "t", "reward"])
def test_missing_column(name):
    refused(columns(**{name: None}), rf"the logs must have a column '{name}'; they have: .*behavior_prob")


@pytest.mark.parametrize("name", ["reward", "behavior_prob"])
def test_text_where_numbers_belong(name):
    refused(columns(**{name: list("abcdefghi")}), rf"column '{name}' must hold numbers; it holds text such as 'a'")


def test_columns_that_are_no_columns():
    refused(columns(state=np.zeros((9, 2, 2))), r"column 'state' must have shape .*; got shape \(9, 2, 2\). Flatten it")
    refused(columns(reward=np.zeros((9, 2))), "column 'reward' must hold one number per row; it holds lists of 2")
    ragged = [[1.0, 2.0]] * 4 + [[1.0]] + [[1.0, 2.0]] * 4
    refused(
        pa.table(columns(state=ragged)),
        "column 'state' must hold lists of one length, .*; got 2 at episode 10, step 0 and 1 at episode 11, step 1",
    )
    refused(
        pa.table(columns(state=[[1.0, None]] * 9)),
        "column 'state' must have a value in every row; .* at episode 10, step 0",
    )
    refused(pa.table(columns(state=[[[1.0]]] * 9)), "column 'state' must hold plain lists of numbers")
    refused({**columns(), "reward": np.zeros(8)}, "columns differ in length")
    refused(pl.DataFrame({**columns(), "a\0b": np.zeros(9)}), "must not hold a null character")
    refused(pa.table([[0], [0]], names=["episode", "episode"]), "more than one named episode")
    refused(columns(), "the candidate's column must be .*got 'other'", eval_column="other")


@pytest.mark.parametrize("source", [3, None, [1, 2], pl.Series([1.0])])
def test_source_is_no_table(source):
    refused(source, rf"source must be a path .*; got type {type(source).__name__}")


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "logs.parquet"
    pyarrow.parquet.write_table(pa.table(columns()), path)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".pq"])
def test_empty_file(tmp_path, suffix):
    path = tmp_path / f"logs{suffix}"
    path.touch()
    refused(path, r"logs\.\w+ is empty")


def test_no_rows(tmp_path):
    nothing = pa.table(columns()).slice(0, 0)
    pa.csv.write_csv(nothing, tmp_path / "logs.csv")
    pyarrow.parquet.write_table(nothing, tmp_path / "logs.parquet")
    for source in (tmp_path / "logs.csv", tmp_path / "logs.parquet", nothing, nothing.to_pandas(), {}):
        refused(source, "is empty: it holds no rows")
    (tmp_path / "logs.csv").write_text("\n\n")
    refused(tmp_path / "logs.csv", "cannot be read as CSV|is empty")


def test_file_is_not_what_its_name_says(parquet, tmp_path):
    refused(parquet.rename(tmp_path / "a.csv"), "is a Parquet file, not the CSV file its name says; rename it")
    text = tmp_path / "b.parquet"
    pd.DataFrame(columns()).to_csv(text, index=False)
    refused(text, r"is not the Parquet file its name says; if it is CSV, rename it to end in \.csv")
    binary = tmp_path / "c.csv"
    binary.write_bytes(bytes(range(256)))
    refused(binary, "is not the CSV file its name says: it is not UTF-8 text")


def test_broken_file(parquet, tmp_path):
    whole = parquet.read_bytes()
    for broken in (whole[:-100], whole[:200], b"PAR1", whole[:4] + bytes(len(whole) - 8) + whole[-4:]):
        parquet.write_bytes(broken)
        refused(str(parquet), "logs.parquet cannot be read as Parquet, which is what its name says")
    path = tmp_path / "logs.csv"
    path.write_text("episode,t,reward\n0,0,1\n0,1\n")
    refused(path, "cannot be read as CSV.*Expected 3 columns, got 2")


def test_path(tmp_path):
    (tmp_path / "logs.xlsx").touch()
    refused(tmp_path / "logs.xlsx", r"logs.xlsx: the name must end in \.parquet, \.pq, \.csv")
    refused(tmp_path / "none.csv", "none.csv: no such file")
    refused(tmp_path, r"the folder must lead to a file that ends in \.parquet, .*; it leads to none")
    refused("episode,t,reward\n" * 1000, "no such file")


def test_the_first_text_among_numbers_is_named():
    refused(
        columns(reward=["0.5"] * 4 + ["oops"] * 5), "column 'reward' must hold numbers; it holds text such as 'oops' at"
    )


def test_nothing_exact_after_dropping_episodes():
    data = tightrope.read(short(), incomplete="drop", reward_range=(-100, 100), horizon=3)
    with pytest.raises(tightrope.BoundError, match="nothing exact can be said when episodes were left out"):
        tightrope.lower_bound(data, POLICY, estimator="is", method="betting")
    assumed = tightrope.read(short(), incomplete="terminate", reward_range=(-100, 100), horizon=3)
    told = tightrope.lower_bound(assumed, POLICY, estimator="is", method="betting").warnings
    assert any(one.code == "assumed" for one in told)
