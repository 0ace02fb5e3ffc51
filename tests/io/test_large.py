"""Logs that do not fit into memory give the same dataset, bit for bit, however the files are cut; or a clear error."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pyarrow as pa
import pyarrow.dataset
import pyarrow.parquet as pq
import pytest

import tightrope
from tightrope.domains import small
from tightrope.estimators import USUAL
from tightrope.io import large
from tightrope.models import SimulatorModel

WALKER = small("walker")
LOGS = WALKER.logs(300, rng=np.random.default_rng(3))
ARRAYS = [field.name for field in dataclasses.fields(tightrope.TrajectoryDataset) if field.name != "folder"]


@pytest.fixture(autouse=True)
def _small_batches(monkeypatch):
    monkeypatch.setattr(large, "LEAST_ROWS", 1)


@pytest.fixture
def table(tmp_path):
    tightrope.write(LOGS, tmp_path / "whole.parquet")
    return pq.read_table(tmp_path / "whole.parquet")


def cut(table, folder, places, rows_per_group=None):
    """The table as several files."""
    folder.mkdir(exist_ok=True)
    edges = [0, *places, table.num_rows]
    for number, (first, last) in enumerate(itertools.pairwise(edges)):
        part = table.slice(first, last - first)
        pq.write_table(
            part, folder / f"part-{number:03}.parquet", row_group_size=rows_per_group or max(1, part.num_rows)
        )
    return folder


def assert_same(one, other):
    for name in ARRAYS:
        left, right = getattr(one, name), getattr(other, name)
        if isinstance(left, np.ndarray):
            assert left.dtype == right.dtype, name
            np.testing.assert_array_equal(left, right, err_msg=name)
        else:
            assert left == right, name


def both(source, memory=4000, **options):
    """Read as a whole and in pieces."""
    whole, pieces = tightrope.read(source, memory="100GB", **options), tightrope.read(source, memory=memory, **options)
    assert whole.folder is None
    assert pieces.folder is not None
    return whole, pieces


@pytest.mark.parametrize("memory", [2000, 9001, 60_000])
@pytest.mark.parametrize(("places", "group"), [((), 7), ((1, 500, 501), None), ((311, 640), 100)])
def test_any_cut_gives_the_same_dataset(table, tmp_path, places, group, memory):
    whole, pieces = both(cut(table, tmp_path / "logs", places, group), memory)
    assert_same(whole, pieces)
    np.testing.assert_array_equal(pieces.rewards, LOGS.rewards)


def test_rows_in_no_order_within_and_between_neighbours(table, tmp_path):
    """Rows of some episodes mixed, and episodes that come in another order than that of their names."""
    rng = np.random.default_rng(0)
    episode = table["episode"].to_numpy()
    place = np.argsort(rng.permutation(300)[episode] + rng.uniform(0, 3, table.num_rows))
    assert_same(*both(cut(table.take(place), tmp_path / "logs", (100, 901)), 600_000))


def test_names_of_episodes_may_be_text(table, tmp_path):
    names = pa.array([f"e{i}" for i in table["episode"].to_pylist()])
    named = table.set_column(table.column_names.index("episode"), "episode", names)
    whole, pieces = both(cut(named, tmp_path / "logs", (400,)))
    assert_same(whole, pieces)
    assert pieces.episode_ids[:3].tolist() == ["e0", "e1", "e10"]


def test_text_states_and_actions_of_different_lengths(table, tmp_path):
    actions = pa.array(["a" * (1 + i // 900) for i in range(table.num_rows)])
    named = table.set_column(table.column_names.index("action"), "action", actions)
    assert_same(*both(cut(named, tmp_path / "logs", (400,))))


def test_episodes_by_flags_and_one_in_each_row(table, tmp_path):
    flagged = table.drop_columns(["episode", "t"])
    ends = np.diff(table["episode"].to_numpy(), append=-1) != 0
    flagged = flagged.append_column("done", pa.array(ends))
    folder = cut(flagged, tmp_path / "logs", (400, 777))
    assert_same(*both(folder, columns={"episode": None, "terminated": "terminated"}))
    bandit = table.select(["reward", "behavior_log_prob", "eval_log_prob"])
    assert_same(*both(cut(bandit, tmp_path / "bandit", (400,)), one_step=True))


def test_types_that_go_together_and_columns_that_are_not_used(table, tmp_path):
    folder = cut(table.append_column("note", pa.array(["x"] * table.num_rows)), tmp_path / "logs", ())
    whole_numbers = table.slice(0, 5).set_column(
        table.column_names.index("reward"), "reward", pa.array([-1, -1, -1, -1, -1], pa.int32())
    ).append_column("note", pa.array(["y"] * 5))  # fmt: skip
    names = pa.array([1000, 1001, 1002, 1003, 1004])
    whole_numbers = whole_numbers.set_column(0, "episode", names).set_column(1, "t", pa.array([0] * 5))
    pq.write_table(whole_numbers, folder / "part-1.parquet")
    whole, pieces = both(folder, incomplete="terminate", horizon=100)
    assert_same(whole, pieces)
    assert "not used: 'note'" in pieces.reading


def test_folders_that_say_something_of_all_their_rows(table, tmp_path):
    """Hive's partitions are columns, whole numbers where all are."""
    episode = table["episode"].to_numpy()
    for site, number in (("a", 1), ("b b", 2)):
        rows = table.filter(pa.array((episode < 150) == (site == "a")))
        folder = tmp_path / "logs" / f"place={site.replace(' ', '%20')}" / f"year={number}"
        folder.mkdir(parents=True)
        pq.write_table(rows, folder / "part.parquet")
    whole, pieces = both(tmp_path / "logs", columns={"state": "year"})
    assert_same(whole, pieces)
    assert set(pieces.states.tolist()) == {1, 2}
    named = tightrope.read(tmp_path / "logs", columns={"state": "place"})
    assert set(named.states.tolist()) == {"a", "b b"}
    of_arrow = pyarrow.dataset.dataset(tmp_path / "logs", partitioning="hive")
    assert_same(*both(of_arrow, columns={"state": "year"}))


def test_a_list_and_a_pattern(table, tmp_path):
    folder = cut(table, tmp_path / "logs", (400, 800))
    assert_same(*both(sorted(folder.iterdir())))
    assert_same(*both(f"{folder}/*.parquet"))


def test_bounds_are_the_same_bits(table, tmp_path):
    options = {"reward_range": (-100, 0), "horizon": LOGS.horizon}
    whole, pieces = both(cut(table, tmp_path / "logs", (400, 800)), 300_000, **options)
    for estimator, method in (
        ("pdwis", "studentized"),
        ("wis", "bca"),
        ("pdis", "betting"),
        ("is", "anderson"),
        ("wdr", "percentile"),
        ("mb", "percentile"),
        ("tdr", "percentile"),
    ):
        one, other = (
            tightrope.lower_bound(logs, WALKER.candidate, estimator=estimator, method=method, n_resamples=300)
            for logs in (whole, pieces)
        )  # fmt: skip
        assert one.value == other.value, (estimator, method)


def test_what_needs_all_steps_says_how_much_memory_that_takes(table, tmp_path):
    logs = tightrope.read(cut(table, tmp_path / "logs", ()), memory=4000, reward_range=(-100, 0))
    simulator = SimulatorModel(step=lambda states, actions, t, noise: (states, np.zeros(len(states)), None))
    for options, what in (
        ({"estimator": "mb"}, "robust"),
        ({"estimator": "pdwis", "behavior": "tabular"}, "an estimate of the behaviour policy"),
        ({"estimator": "mb", "model": simulator}, "the simulator model"),
    ):
        method = "robust" if what == "robust" else "percentile"
        with pytest.raises(
            tightrope.DataError, match=f"{what} needs all steps in memory at once, about 0.00023 GB, and memory"
        ):
            tightrope.lower_bound(logs, WALKER.candidate, method=method, **options)
    result = tightrope.evaluate(logs, WALKER.candidate, n_resamples=100)
    assert {bound.estimator for bound in result.bounds} == {*USUAL}
    whole = tightrope.evaluate(
        tightrope.read(tmp_path / "logs", reward_range=(-100, 0)), WALKER.candidate, n_resamples=100
    )
    found = {(bound.estimator, bound.method): bound.value for bound in whole.bounds}
    assert all(found[bound.estimator, bound.method] == bound.value for bound in result.bounds)
    assert result.overlap == whole.overlap
    assert result.model_check == whole.model_check
    assert result.summary == whole.summary


def test_times_of_any_steps():
    for steps in (slice(0, 1), slice(17, 40), slice(1900, 1902), slice(0, 1902)):
        np.testing.assert_array_equal(LOGS.times_at(steps), LOGS.times[steps])
    np.testing.assert_array_equal(LOGS.times_of(3, 9), LOGS.times[LOGS.steps(3, 9)])


def test_the_folder_goes_with_the_dataset(table, tmp_path):
    folder = cut(table, tmp_path / "logs", ())
    logs = tightrope.read(folder, memory=4000, scratch=tmp_path)
    place = logs.folder.path
    assert place.parent == tmp_path
    assert any(place.iterdir())
    del logs
    assert not place.exists()


def test_progress_reaches_the_end(table, tmp_path):
    seen = []
    tightrope.read(cut(table, tmp_path / "logs", ()), memory=4000, progress=lambda *rows: seen.append(rows))
    assert seen == sorted(seen)
    assert len(seen) > 3
    assert seen[-1] == (table.num_rows, table.num_rows)


# -- what is wrong with them -----------------------------------------------------------------------------------


def refused(folder, text, **options):
    for memory in ("100GB", 4000):
        with pytest.raises(tightrope.DataError, match=text):
            tightrope.read(folder, memory=memory, **options)


def test_a_file_that_cannot_be_read(table, tmp_path):
    folder = cut(table, tmp_path / "logs", (400, 800))
    whole = (folder / "part-001.parquet").read_bytes()
    (folder / "part-001.parquet").write_bytes(whole[: len(whole) // 2])
    refused(folder, r"part-001.parquet cannot be read as Parquet")
    (folder / "part-001.parquet").write_bytes(b"")
    refused(folder, r"part-001.parquet is empty")


def test_columns_that_differ_between_files(table, tmp_path):
    folder = cut(table, tmp_path / "logs", (400,))
    pq.write_table(table.slice(400).drop_columns(["state"]), folder / "part-001.parquet")
    refused(
        folder, r"all files must have the same columns; .*part-001.parquet and .*part-000.parquet differ in 'state'"
    )
    texts = table.slice(400).set_column(
        table.column_names.index("reward"), "reward", pa.array(["x"] * (table.num_rows - 400))
    )
    pq.write_table(texts, folder / "part-001.parquet")
    refused(folder, "must have types that go together")


def test_an_episode_that_goes_on_in_another_file_with_a_gap(table, tmp_path):
    episode = table["episode"].to_numpy()
    place = int(np.flatnonzero(np.diff(episode) == 0)[400]) + 1  # in the middle of an episode
    folder = cut(table, tmp_path / "logs", (place,))
    pq.write_table(table.slice(place + 1), folder / "part-001.parquet")
    refused(folder, r"episode \d+, step \d+, column 't': this step is missing")


def test_the_same_episode_in_two_files(table, tmp_path):
    folder = cut(table, tmp_path / "logs", ())
    pq.write_table(table.slice(0, 200), folder / "part-001.parquet")
    with pytest.raises(tightrope.DataError, match="this step is there more than once"):
        tightrope.read(folder, memory="100GB")
    with pytest.raises(tightrope.DataError, match="If there are two of this name, give each its own"):
        tightrope.read(folder, memory=4000)


def test_rows_scattered_over_the_whole_folder(table, tmp_path):
    order = np.argsort(table["t"].to_numpy(), kind="stable")
    folder = cut(table.take(order), tmp_path / "logs", (400,))
    tightrope.read(folder, memory="100GB")
    with pytest.raises(
        tightrope.DataError, match=r"must lie near each other.*ORDER BY episode, t\) TO 'sorted.parquet'"
    ):
        tightrope.read(folder, memory=4000)


def test_a_full_disk(table, tmp_path, monkeypatch):
    from tightrope.base import folder as place

    def full(file, content, first):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(place.os, "pwrite", full)
    with pytest.raises(tightrope.DataError, match=r"nothing more can be written: .*No space left.*--scratch"):
        tightrope.read(cut(table, tmp_path / "logs", ()), memory=4000, scratch=tmp_path)
    assert not list(tmp_path.glob("tightrope-*"))


def test_a_disk_that_takes_a_little_at_a_time(table, tmp_path, monkeypatch):
    from tightrope.base import folder as place

    write = place.os.pwrite
    monkeypatch.setattr(place.os, "pwrite", lambda file, content, first: write(file, content[:301], first))
    assert_same(*both(cut(table, tmp_path / "logs", (400,)), 600_000))


def test_too_many_open_files(table, tmp_path, monkeypatch):
    from tightrope.base import folder as place

    logs = tightrope.read(cut(table, tmp_path / "logs", ()), memory=4000)

    def none(*arguments, **keywords):
        raise OSError(24, "Too many open files")

    monkeypatch.setattr(place.np, "memmap", none)
    with pytest.raises(tightrope.DataError, match=r"may not open more files there: .*ulimit -n"):
        logs.scratch.empty(3)


def test_a_file_that_is_written_anew_meanwhile(table, tmp_path):
    folder = cut(table, tmp_path / "logs", (400, 800, 1200), 100)

    def anew(done, of):
        pq.write_table(table.slice(1200), folder / "part-003.parquet", row_group_size=10)

    with pytest.raises(tightrope.DataError, match=r"part-003.parquet has changed while it was read"):
        tightrope.read(folder, memory=2000, progress=anew, incomplete="drop")


def test_a_small_last_row_group_is_no_batch_of_its_own(tmp_path, monkeypatch):
    """Ten episodes side by side, ordered by time: rows of one lie near each other, but not next to each other."""
    monkeypatch.setattr(large, "LEAST_ROWS", 200)
    n, steps = 100, 41
    episode, t = (part.ravel() for part in np.meshgrid(np.arange(n), np.arange(steps), indexing="ij"))
    order = np.lexsort((episode, t, episode // 10))
    columns = {"episode": episode, "t": t, "reward": np.zeros(n * steps), "terminated": t == steps - 1}
    columns |= {"behavior_prob": np.full(n * steps, 0.5), "eval_prob": np.full(n * steps, 0.5)}
    table = pa.table({name: values[order] for name, values in columns.items()})
    folder = tmp_path / "logs"
    folder.mkdir()
    pq.write_table(table.slice(0, 3303), folder / "0.parquet", row_group_size=3300)
    pq.write_table(table.slice(3303), folder / "1.parquet")
    assert_same(*both(folder, 4000))


def test_memory_and_scratch_are_checked(tmp_path, table):
    folder = cut(table, tmp_path / "logs", ())
    with pytest.raises(tightrope.DataError, match="memory must be a number of bytes, or such as '800MB'"):
        tightrope.read(folder, memory="much")
    with pytest.raises(tightrope.DataError, match="scratch must be a folder that can be written to"):
        tightrope.read(folder, memory=4000, scratch=tmp_path / "nowhere")
