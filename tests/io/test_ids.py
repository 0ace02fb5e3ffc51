"""Names stay apart: whole numbers that are written differently are never one episode or one action."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope
from tests.logs import columns, refused
from tightrope.io.aliases import ROLES

LONG = [str(10**20 + i) for i in range(50)]  # 21 digits: as doubles, all of them are one number


def write(path, rows, header="episode,t,action,reward"):
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def test_long_ids_stay_apart(tmp_path):
    data = tightrope.read(write(tmp_path / "logs.csv", [f"{name},0,0,{i}" for i, name in enumerate(LONG)]))
    assert data.episode_ids.tolist() == LONG
    assert data.rewards.tolist() == list(range(50))


@pytest.mark.parametrize("other", ["007", "+7", "0x7", "07"])
def test_ids_that_are_one_number_stay_apart(tmp_path, other):
    data = tightrope.read(write(tmp_path / "logs.csv", [f"{other},0,0,1", "7,0,0,2"]))
    assert sorted(data.episode_ids.tolist()) == sorted([other, "7"])


def test_ids_under_another_name(tmp_path):
    rows, header = ["007,0,1", "7,0,2"], "who,t,reward"
    path = write(tmp_path / "logs.csv", rows, header)
    assert tightrope.read(path, columns={"episode": "who"}).episode_ids.tolist() == ["007", "7"]
    for alias in ROLES["episode"]:
        assert tightrope.read(write(path, rows, f"{alias},t,reward")).n_trajectories == 2


def test_actions_that_are_one_number_stay_apart(tmp_path):
    rows = [f"{i},0,{name},1" for i, name in enumerate(["007", "7", *LONG[:3]])]
    data = tightrope.read(write(tmp_path / "logs.csv", rows))
    assert data.actions.tolist() == ["007", "7", *LONG[:3]]
    assert data.discrete_actions


@pytest.mark.parametrize("name", ["state", "next_state"])
def test_long_states_are_refused(tmp_path, name):
    rows = [f"{i},0,1,{big}" for i, big in enumerate(LONG)]
    refused(
        write(tmp_path / "logs.csv", rows, f"episode,t,reward,{name}"),
        f"column '{name}' must hold whole numbers of at most 64 bits",
    )


def test_what_numbers_hold_is_read_as_numbers(tmp_path):
    rows = ["1, 0, 0.50, 1, 07", "2, 0, 0.5, 1e3, 7", "10, 0, -1.25, 0.5, 1"]
    data = tightrope.read(write(tmp_path / "logs.csv", rows, "episode,t,action,reward,state"))
    assert data.episode_ids.tolist() == [1, 2, 10]  # numbers, in their order
    assert data.actions.tolist() == [0.5, 0.5, -1.25]  # one quantity, written in two ways
    assert data.states.tolist() == [7, 7, 1]
    padded = tightrope.read(write(tmp_path / "logs.csv", ["01,0,02,1", "02,0,10,1"]))
    assert padded.actions.tolist() == [2, 10]
    assert padded.episode_ids.tolist() == ["01", "02"]  # a name keeps its zeros
    assert tightrope.read(write(tmp_path / "logs.csv", ["true,0,true,1", "false,0,false,1"])).actions.tolist() == [0, 1]


@pytest.mark.parametrize("make", [list, tuple, lambda values: np.array(values, dtype=object)])
def test_large_whole_numbers_of_a_mapping_stay_apart(make):
    big = [2**63 + i for i in (1, 1, 1, 2, 2, 2)] + [5, 5, 5]
    data = tightrope.read(columns(episode=make(big)))
    assert data.episode_ids.tolist() == [5, 2**63 + 1, 2**63 + 2]
    refused(columns(episode=make([*big[:-3], -5, -5, -5])), "column 'episode' .*Give them as text")
    refused(columns(episode=make([10**20 + i for i in range(9)])), "column 'episode' .*Give them as text")


IDS = st.from_regex(r"\A[+-]?0{0,2}[1-9]?[0-9]{0,22}\Z").filter(lambda text: text.strip("+-"))


@settings(deadline=None, derandomize=True, database=None, max_examples=200)
@given(st.lists(IDS, min_size=1, max_size=6, unique=True), st.sampled_from(["csv", "parquet", "pandas"]))
def test_every_name_is_an_episode(tmp_path_factory, names, kind):
    """The law: as many episodes as there are names, whatever they look like."""
    folder = tmp_path_factory.getbasetemp()
    table = pa.table({"episode": names, "t": [0] * len(names), "reward": list(range(len(names)))})
    source = {"csv": folder / "ids.csv", "parquet": folder / "ids.parquet", "pandas": table.to_pandas()}[kind]
    if kind == "csv":
        write(source, [f"{name},0,{i}" for i, name in enumerate(names)], "episode,t,reward")
    elif kind == "parquet":
        pa.parquet.write_table(table, source)
    data = tightrope.read(source)
    assert data.n_trajectories == len(names)
    kind = str if data.episode_ids.dtype.kind == "U" else int
    told = dict(zip(map(kind, data.episode_ids.tolist()), data.rewards.tolist(), strict=True))
    assert told == {kind(name): float(i) for i, name in enumerate(names)}
