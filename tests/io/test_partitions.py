"""Logs that workers read: the same arrays, wherever files are cut, and the same answers; nothing is lost or doubled."""

from __future__ import annotations

import os
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tightrope
from tests.engines import Everywhere, Pieces
from tightrope.base import threads
from tightrope.base.cluster import Cluster
from tightrope.base.dataset import PER_EPISODE, PER_STEP
from tightrope.base.errors import DataError
from tightrope.io import large

SMALL = 20_000  # bytes: these logs do not fit


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(large, "LEAST_ROWS", 64)


def table(seed: int, n: int = 150) -> pa.Table:
    rng = np.random.default_rng(seed)
    lengths = rng.integers(1, 60, n)
    rows = int(lengths.sum())
    behavior = rng.uniform(0.3, 0.7, rows)
    return pa.table(
        {
            "episode": np.repeat(np.arange(n), lengths),
            "t": np.concatenate([np.arange(length) for length in lengths]),
            "reward": rng.normal(size=rows),
            "state": rng.integers(0, 5, rows),
            "action": rng.integers(0, 2, rows),
            "behavior_prob": behavior,
            "eval_prob": behavior * rng.uniform(0.9, 1.1, rows),
            "terminated": np.concatenate([np.arange(length) == length - 1 for length in lengths]),
        }
    )


def written(rows: pa.Table, folder, edges) -> str:
    for number, (start, stop) in enumerate(pairwise(edges)):
        pq.write_table(rows.slice(start, stop - start), folder / f"{number:03}.parquet", row_group_size=150)
    return str(folder)


def assert_same(one, other):
    for name in ("offsets", *PER_STEP, *PER_EPISODE):
        left, right = getattr(one, name), getattr(other, name)
        assert (left is None) == (right is None), name
        if left is not None:
            assert left.dtype == right.dtype, name
            np.testing.assert_array_equal(left, right, err_msg=name)


@pytest.mark.parametrize("seed", range(6))
def test_wherever_files_are_cut_workers_read_the_same(seed, tmp_path):
    """Episodes go on in the next file, or through several small or empty ones; rows of neighbours may be mixed."""
    rng, rows = np.random.default_rng(seed), table(seed)
    count = rows.num_rows
    edges = [0, *np.sort(rng.integers(0, count + 1, int(rng.integers(1, 40)))).tolist(), count]
    if seed % 2:
        edges = [*range(0, count, int(rng.integers(150, 600))), count]
        rows = rows.take(pa.array(np.argsort(np.arange(count) + rng.uniform(0, 20, count))))
    folder = written(rows, tmp_path, edges)
    whole = tightrope.read(folder)
    for engine in (Pieces(1), Pieces(3), Everywhere()):
        logs = tightrope.read(folder, memory=SMALL, engine=engine)
        assert logs.folder is not None
        assert_same(whole, logs)
        assert all(name.endswith(".bin") for name in os.listdir(logs.folder.path))  # what was on the way is gone


def test_what_workers_read_has_the_same_bounds(tmp_path, monkeypatch):
    folder = written(table(7), tmp_path, [0, 100, 333, 700, 1200, 2000, 10_000])
    whole, engine = tightrope.read(folder), Everywhere()
    logs = tightrope.read(folder, memory=SMALL, engine=engine)
    options = {"estimators": ["is", "wis", "pdwis"], "n_resamples": 100, "side": "both"}
    here = str(tightrope.evaluate(whole, **options))
    monkeypatch.setattr(threads, "side_by_side", None)  # no pass over the episodes is made here
    assert str(tightrope.evaluate(logs, engine=engine, **options)) == here


def test_bandit_logs_are_numbered_over_all_files(tmp_path):
    rng = np.random.default_rng(1)
    rows = pa.table({"reward": rng.random(900), "pscore": np.full(900, 0.5), "eval_prob": rng.uniform(0.2, 0.8, 900)})
    folder = written(rows, tmp_path, [0, 10, 400, 900])
    logs = tightrope.read(folder, memory=2_000, engine=Everywhere())
    assert_same(tightrope.read(folder), logs)
    np.testing.assert_array_equal(logs.episode_ids, np.arange(900))


def test_a_wider_type_in_a_later_file_widens_all(tmp_path):
    names = [f"patient-{'x' * (number // 40)}-{number:04}" for number in range(150)]
    rows = table(3)
    rows = rows.set_column(0, "episode", pa.array(np.array(names)[rows["episode"].to_numpy()]))
    folder = written(rows, tmp_path, [0, 900, 2000, 10_000])
    assert_same(tightrope.read(folder), tightrope.read(folder, memory=SMALL, engine=Pieces(3)))


def test_flags_alone_do_not_say_where_episodes_begin_so_one_reads_all(tmp_path, monkeypatch):
    monkeypatch.setattr(large, "shared_out", None)
    folder = written(table(2).drop_columns(["episode", "t"]), tmp_path, [0, 1000, 2000, 10_000])
    whole, logs = (
        tightrope.read(folder, columns={"episode": None}, **options)
        for options in ({}, {"memory": SMALL, "engine": Pieces(2)})
    )
    assert_same(whole, logs)


def test_scattered_episodes_are_refused_not_lost(tmp_path):
    rows = table(5)
    late = pa.concat_tables([rows.slice(3), rows.slice(0, 3)])
    folder = written(late, tmp_path, [0, 700, 1500, 10_000])
    for engine in ("local", Pieces(3)):
        with pytest.raises(DataError, match=r"rows of episode 0 must lie near each other"):
            tightrope.read(folder, memory=SMALL, engine=engine)


@pytest.mark.parametrize("engine", ["local", Pieces(3)], ids=["here", "workers"])
def test_a_gap_is_a_gap_wherever_files_are_cut(engine, tmp_path):
    rows = table(5)
    assert rows["episode"][1000] == rows["episode"][1001]
    folder = written(pa.concat_tables([rows.slice(0, 1000), rows.slice(1001)]), tmp_path, [0, 1000, 1500, 10_000])
    episode, step = rows["episode"][1000], rows["t"][1000]
    with pytest.raises(DataError, match=rf"episode {episode}, step {step}, .*this step is missing"):
        tightrope.read(folder, memory=SMALL, engine=engine)


def test_one_large_file_is_shared_out_too(tmp_path):
    """Its row groups go to several workers."""
    folder, engine = written(table(0), tmp_path, [0, 10_000]), Pieces(3)
    seen = []
    engine.map = lambda call, ranges: map(call, seen.append(list(ranges)) or seen[-1])
    assert_same(tightrope.read(folder), tightrope.read(folder, memory=SMALL, engine=engine))
    assert len(os.listdir(folder)) == 1
    assert len(seen[0]) > 3


@pytest.mark.parametrize("engine", ["local", Pieces(3)], ids=["here", "workers"])
@pytest.mark.parametrize("name", ["t", "episode", "terminated", "reward", "action"])
def test_a_missing_value_is_named_by_its_row_among_all(name, engine, tmp_path):
    """Or by its episode and step, once these are known; as in logs that are read as a whole."""
    rows = table(4)
    column = rows[name].to_pylist()
    column[1234] = None
    folder = written(replaced(rows, name, pa.array(column)), tmp_path, [0, 700, 1500, 10_000])
    with pytest.raises(DataError) as whole:
        tightrope.read(folder)
    with pytest.raises(DataError) as pieces:
        tightrope.read(folder, memory=SMALL, engine=engine)
    assert str(pieces.value) == str(whole.value)
    assert "1234" in str(whole.value) or f"episode {rows['episode'][1234]}, step {rows['t'][1234]}" in str(whole.value)


def test_rows_that_nobody_found_are_an_error(tmp_path, monkeypatch):
    folder = written(table(5), tmp_path, [0, 700, 1500, 10_000])
    monkeypatch.setattr(large.Large, "_to_the_end", lambda self, kept, file: iter([]))
    with pytest.raises(DataError, match=r"the files hold [\d,]+ rows, but workers found"):
        tightrope.read(folder, memory=SMALL, engine=Pieces(3))


@pytest.mark.parametrize("name", ["reward", "behavior_prob"])
def test_a_bad_number_is_named_by_its_episode(name, tmp_path):
    rows = table(4)
    values = rows[name].to_numpy().copy()
    values[1234] = np.nan
    rows = rows.set_column(rows.column_names.index(name), name, pa.array(values))
    folder = written(rows, tmp_path, [0, 700, 1500, 10_000])
    place = f"episode {rows['episode'][1234]}, step {rows['t'][1234]}"
    for options in ({}, {"memory": SMALL, "engine": Everywhere()}):
        with pytest.raises(DataError, match=place):
            tightrope.read(folder, **options)


def test_an_unknown_engine_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"engine must be \"local\", .*; got 'spark'"):
        tightrope.read(written(table(1), tmp_path, [0, 10_000]), engine="spark")


def test_a_pass_that_cannot_travel_stays_here():
    class Far:
        def map(self, call, ranges):
            raise tightrope.base.errors.CannotSendError("too large")

    with threads.passes_by(Far()):
        assert list(threads.passed(abs, [-1, 2, -3])) == [1, 2, 3]


def test_a_pass_takes_the_error_settings_along():
    with np.errstate(divide="raise"), threads.passes_by(Everywhere()), pytest.raises(FloatingPointError):
        list(threads.passed(lambda value: np.array([1.0]) / value, [np.zeros(1), np.ones(1)]))


@pytest.mark.parametrize(("name", "value"), [("reward", np.nan), ("reward", None), ("terminated", None)])
def test_of_episodes_by_flags_rows_are_named(name, value, tmp_path):
    """Numbers that episodes have in a part of the logs would mislead."""
    rows = table(4).drop_columns(["episode", "t"])
    column = rows[name].to_pylist()
    column[1234] = value
    folder = written(replaced(rows, name, pa.array(column)), tmp_path, [0, 700, 1500, 10_000])
    with pytest.raises(DataError, match=r"row 1234 \(counted from 0\)"):
        tightrope.read(folder, memory=SMALL, columns={"episode": None})


@pytest.mark.parametrize("engine", ["local", Pieces(3)], ids=["here", "workers"])
def test_numbers_and_names_in_different_parts(engine, tmp_path):
    rows = table(4)
    states = np.where(np.arange(rows.num_rows) < 1234, "1", "a")
    folder = written(replaced(rows, "state", pa.array(states)), tmp_path, [0, 700, 1500, 10_000])
    place = f"'a' at episode {rows['episode'][1234]}, step {rows['t'][1234]}"
    for options in ({}, {"memory": SMALL, "engine": engine}):
        with pytest.raises(DataError, match=place):
            tightrope.read(folder, **options)


def test_columns_that_are_missing_are_told_without_our_own(tmp_path):
    folder = written(table(4).drop_columns(["reward"]), tmp_path, [0, 700, 10_000])
    messages = []
    for options in ({}, {"memory": SMALL}):
        with pytest.raises(DataError) as error:
            tightrope.read(folder, **options)
        messages.append(str(error.value))
    assert messages[0] == messages[1]


# -- columns of other kinds --------------------------------------------------------------------------------------


def replaced(rows: pa.Table, name: str, values) -> pa.Table:
    return rows.set_column(rows.column_names.index(name), name, values)


@pytest.mark.parametrize("engine", ["local", Pieces(3)], ids=["here", "workers"])
def test_names_that_are_categories_and_clusters_that_are_dates(engine, tmp_path):
    rows = table(6)
    episode = rows["episode"].to_numpy()
    rows = replaced(rows, "episode", pa.array([f"{number:03}" for number in episode]).dictionary_encode())
    rows = rows.append_column("day", pa.array((episode // 5 + 19_000).astype(np.int32)).cast(pa.date32()))
    folder = written(rows, tmp_path, [0, 700, 1500, 10_000])
    logs = tightrope.read(folder, cluster="day", memory=SMALL, engine=engine)
    assert_same(tightrope.read(folder, cluster="day"), logs)


@pytest.mark.parametrize("kind", [pa.float16(), pa.string_view(), pa.large_string()], ids=str)
def test_names_of_any_type(kind, tmp_path):
    rows = table(6)
    names = rows["episode"].to_numpy()
    names = pa.array(names.astype(np.float16)) if kind == pa.float16() else pa.array([f"{k:03}" for k in names], kind)
    folder = written(replaced(rows, "episode", names), tmp_path, [0, 700, 1500, 10_000])
    assert_same(tightrope.read(folder), tightrope.read(folder, memory=SMALL, engine=Pieces(3)))


def test_names_that_are_lists_are_refused(tmp_path):
    rows = table(6)
    lists = pa.array([[k] for k in rows["episode"].to_pylist()])
    folder = written(replaced(rows, "episode", lists), tmp_path, [0, 700, 10_000])
    for options in ({}, {"memory": SMALL}):
        with pytest.raises(DataError, match=r"column 'episode' must hold one number or text per row"):
            tightrope.read(folder, **options)


def test_whole_numbers_that_no_one_type_holds_are_refused_not_rounded(tmp_path):
    rows = table(6)
    states = np.zeros(rows.num_rows, dtype=np.uint64)
    states[-1] = 2**64 - 1
    folder = written(replaced(rows, "state", pa.array(states)), tmp_path, [0, 700, 1500, 10_000])
    assert tightrope.read(folder).states.dtype == np.uint64
    for engine in ("local", Pieces(3)):
        with pytest.raises(DataError, match=r"whole numbers of 2\*\*63 and more"):
            tightrope.read(folder, memory=SMALL, engine=engine)


def test_rows_of_last_observations_count_as_found(tmp_path):
    rows = table(8)
    last = rows["terminated"].to_numpy()
    rows = rows.drop_columns(["terminated"]).append_column("is_last", pa.array(last))
    rows = rows.append_column("is_terminal", pa.array(last))
    rows = replaced(rows, "reward", pa.array(np.where(last, 0.0, rows["reward"].to_numpy())))
    several = np.isin(rows["episode"].to_numpy(), np.flatnonzero(np.bincount(rows["episode"].to_numpy()) > 1))
    folder = written(rows.filter(pa.array(several)), tmp_path, [0, 700, 1500, 10_000])
    seen = []
    logs = tightrope.read(folder, memory=SMALL, engine=Pieces(3), progress=lambda done, of: seen.append((done, of)))
    assert_same(tightrope.read(folder), logs)
    assert seen[-1][0] == seen[-1][1] == several.sum() > logs.n_steps


@pytest.mark.parametrize("engine", ["local", Pieces(3)], ids=["here", "workers"])
def test_last_observations_of_some_episodes_alone_are_left_out(engine, tmp_path):
    rows = table(8)
    episode, last = rows["episode"].to_numpy(), rows["terminated"].to_numpy()
    observed = last & (episode < 60) & (rows["t"].to_numpy() > 0)
    rows = rows.append_column("is_last", pa.array(observed))
    rows = replaced(rows, "reward", pa.array(np.where(observed, 0.0, rows["reward"].to_numpy())))
    folder = written(rows, tmp_path, [0, 700, 1500, 10_000])
    whole = tightrope.read(folder, incomplete="terminate")
    assert whole.final_states is None
    assert_same(whole, tightrope.read(folder, incomplete="terminate", memory=SMALL, engine=engine))


def test_an_engine_that_is_none_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"engine must be .*; got 5"):
        tightrope.read(written(table(1), tmp_path, [0, 10_000]), engine=5)


def test_what_cannot_be_packed_is_said():
    import threading

    lock = threading.Lock()
    with pytest.raises(tightrope.BoundError, match="cannot be packed for them"):
        Cluster(None).map(lambda part: lock, [range(1)])
