"""The study runner: kills, resumption, the same bits, and what it refuses before it starts."""

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import tightrope
from tests.studies.studies import clinic, failing, methods
from tightrope import StudyError
from tightrope.domains import small
from tightrope.studies import pool, runner
from tightrope.studies.journal import Journal
from tightrope.studies.measure import named_methods
from tightrope.studies.reproduce import reproduce
from tightrope.studies.study import Study
from tightrope.studies.trial import Outcome, Row, Trial, run_trial

ROOT = Path(__file__).parents[2]


def start(folder, workers):
    command = [sys.executable, "-m", "tests.studies.studies", str(folder), str(workers)]
    return subprocess.Popen(command, cwd=ROOT, stderr=subprocess.DEVNULL, start_new_session=True)


def records(folder):
    path = folder / runner.JOURNAL
    return path.read_bytes().count(b"\n") if path.exists() else 0


def test_killed_again_and_again_the_table_is_the_same_bit_for_bit(tmp_path):
    whole = start(tmp_path / "whole", 2)
    folder, seen = tmp_path / "killed", 0
    for workers, kill in ((1, os.killpg), (2, os.kill)):  # the group with its workers, the parent alone
        process = start(folder, workers)
        while records(folder) < seen + 20:
            assert process.poll() is None, "the study ended before it could be killed"
            time.sleep(0.005)
        kill(process.pid, signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        assert seen < records(folder) < 180
        assert not (folder / runner.RESULTS).exists()
        seen = records(folder)
    assert start(folder, 3).wait() == 0
    assert whole.wait() == 0
    assert (folder / runner.RESULTS).read_bytes() == (tmp_path / "whole" / runner.RESULTS).read_bytes()


def test_the_table_is_what_the_trials_say_in_order(tmp_path):
    study = clinic(sizes=(20, 2), trials=4)
    table = pq.read_table(runner.run_study(study, tmp_path, workers=2))
    rows = table.to_pylist()
    assert [(row["n"], row["trial"], row["method"]) for row in rows if row["trial"] > 2] == [
        (20, 3, "is/betting"), (20, 3, "is/percentile"), (20, 3, "pdwis/bca"), (20, 3, "pdwis/studentized"),
        (2, 3, "is/betting"), (2, 3, "is/percentile"), (2, 3, "pdwis/bca"), (2, 3, "pdwis/studentized"),
    ]  # fmt: skip
    assert [(row["n"], row["trial"]) for row in rows if row["label"] == "rare"] == [(20, 0), (20, 1), (20, 2)]
    direct = run_trial(study, Trial(20, 3)).rows
    assert [row["value"] for row in rows if (row["n"], row["trial"]) == (20, 3)] == [row.value for row in direct]
    told = json.loads(table.schema.metadata[runner.KEY])
    assert told == json.loads((tmp_path / "study.json").read_text())
    assert told["domain"]["name"] == "clinic"
    assert told["versions"]["numpy"] == np.__version__


def test_trials_are_independent_and_follow_the_seed():
    first, again = (run_trial(clinic(), Trial(20, 1)).rows for _ in range(2))
    assert first == again
    for other in (run_trial(clinic(), Trial(20, 2)), run_trial(clinic(seed=1), Trial(20, 1))):
        assert all(a.value != b.value for a, b in zip(first, other.rows, strict=False))


def test_what_fails_is_a_row_with_its_reason_and_spoils_no_other():
    rows = run_trial(clinic(methods=failing), Trial(20, 0)).rows
    assert [(row.label, row.error) for row in rows] == [
        ("refuses", "no such luck"),
        ("crashes", "its numbers cannot be computed on these logs: LinAlgError: singular"),
        ("crashes", "its numbers cannot be computed on these logs: LinAlgError: singular"),
        ("pdwis", ""),
    ]
    assert np.isnan([row.value for row in rows[:3]]).all()
    (alone,) = run_trial(clinic(methods=failing_but_last), Trial(20, 0)).rows
    assert rows[3] == alone


def failing_but_last(domain):
    return failing(domain)[-1:]


def test_the_bound_that_is_advised_has_a_line_of_its_own():
    study = clinic(advice=True, sides=("lower", "upper"), methods=named_methods(("is", "pdwis"), ("betting", "t")))
    answered = 0
    for trial in (Trial(2, 0), Trial(200, 0)):
        rows = run_trial(study, trial).rows
        data, weights = np.random.SeedSequence([0, *b"clinic", *trial]).spawn(2)
        logs = small("clinic").logs(trial.n, rng=np.random.default_rng(data))
        settings = {"side": "both", "n_resamples": 100, "seed": weights}
        for name, strict in (("believed", False), ("exact", True)):
            told = tightrope.evaluate(logs, small("clinic").candidate, strict=strict, **settings)
            believed = {bound.side: bound.value for bound in told.believed}
            lines = {row.side: row.value for row in rows if (row.label, row.bound) == ("advice", name)}
            assert all(lines[side] == value for side, value in believed.items())
            assert set(lines) == {"lower", "upper"}
            silent = {side: value for side, value in lines.items() if side not in believed and name == "believed"}
            assert silent == {side: {"lower": -np.inf, "upper": np.inf}[side] for side in silent}
            answered += len(believed)
    assert answered


def test_a_study_that_cannot_be_sent_is_refused(tmp_path):
    with pytest.raises(StudyError, match=r"cannot be sent to other processes .*module-level"):
        runner.run_study(clinic(methods=lambda domain: methods(domain)), tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_folder_of_another_configuration_is_refused_with_the_difference(tmp_path):
    runner.run_study(clinic(trials=2, sizes=(2,)), tmp_path, workers=1)
    with pytest.raises(StudyError, match=r"another configuration: trials is 2 there, 3 now; seed is 0 there, 7 now\."):
        runner.run_study(clinic(trials=3, sizes=(2,), seed=7), tmp_path)
    with pytest.raises(StudyError, match=r"methods\.is\.estimator is .IS\(.* there, absent now"):
        runner.run_study(clinic(trials=2, sizes=(2,), methods=failing), tmp_path)
    (tmp_path / "study.json").write_text("nonsense")
    with pytest.raises(StudyError, match="is not the configuration of a study"):
        runner.run_study(clinic(), tmp_path)


def no_work(*arguments):
    raise AssertionError("work was begun")


def test_a_full_disk_is_reported_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_all", no_work)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=1_000_000))
    with pytest.raises(StudyError, match=r"must have 1\d MB of free disk for this study; it has 1 MB"):
        runner.run_study(clinic(), tmp_path / "out")
    assert not (tmp_path / "out" / "study.json").exists()


def test_an_unwritable_folder_is_reported_before_any_work(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_all", no_work)
    (tmp_path / "file").write_text("")
    with pytest.raises(StudyError, match=r"cannot be written, so nothing was run: .*Not a directory"):
        runner.run_study(clinic(), tmp_path / "file" / "out")

    def read_only(**_):  # as root, which tests may run as, a folder's mode stops nobody
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(tempfile, "TemporaryFile", read_only)
    with pytest.raises(StudyError, match=r"cannot be written, so nothing was run: .*Read-only file system"):
        runner.run_study(clinic(), tmp_path)


def outcome(value):
    return Outcome((Row("is", "t", "lower", value, 0.0, 0.1, 0, "approximate", "skew", ""),), 0.5)


def test_a_torn_record_is_cut_off_and_a_damaged_one_left_out(tmp_path):
    path = tmp_path / "journal"
    with Journal(path) as journal:
        for number in range(4):
            journal.append(Trial(2, number), outcome(number / 3))
    whole = path.read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in (len(whole) - 1, len(whole) - 30, len(whole) - len(lines[-1]) + 1):
        path.write_bytes(whole[:cut])
        with Journal(path) as journal:
            assert (list(journal.done), journal.damaged) == ([Trial(2, 0), Trial(2, 1), Trial(2, 2)], 1)
            journal.append(Trial(2, 3), outcome(1.0))
        assert path.read_bytes() == whole
    path.write_bytes(whole.replace(b"0.33333", b"0.43333"))
    with Journal(path) as journal:
        assert (list(journal.done), journal.damaged) == ([Trial(2, 0), Trial(2, 2), Trial(2, 3)], 1)


def test_infinite_and_undefined_values_survive_the_journal(tmp_path):
    with Journal(tmp_path / "journal") as journal:
        journal.append(Trial(2, 0), outcome(-np.inf))
        journal.append(Trial(2, 1), outcome(np.nan))
    with Journal(tmp_path / "journal") as journal:
        assert journal.done[Trial(2, 0)] == outcome(-np.inf)
        assert np.isnan(journal.done[Trial(2, 1)].rows[0].value)


def test_a_disk_that_fills_up_later_says_what_is_safe(tmp_path, monkeypatch):
    with Journal(tmp_path / "journal") as journal:
        journal.append(Trial(2, 0), outcome(1.0))
        monkeypatch.setattr(os, "fsync", full)
        with pytest.raises(StudyError, match=r"No space left on device\. 1 trials are safe"):
            journal.append(Trial(2, 1), outcome(1.0))


def full(descriptor):
    raise OSError(errno.ENOSPC, "No space left on device")


def die_once(task):
    marker, number = task
    if number == 3 and not Path(marker).exists():
        Path(marker).touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return 10 * number


def die(task):
    os._exit(9)


def threads(task):
    return os.environ["OPENBLAS_NUM_THREADS"]


def test_a_killed_worker_is_replaced_and_its_task_tried_again(tmp_path):
    tasks = [(str(tmp_path / "killed"), number) for number in range(8)]
    assert sorted(pool.run_all(die_once, tasks, 2)) == [(number, 10 * number) for number in range(8)]
    assert (tmp_path / "killed").exists()
    with pytest.raises(StudyError, match=r"trial 0 with n = 2 ended its process 3 times with exit code 9"):
        list(pool.run_all(die, [Trial(2, 0)], 1))


def test_workers_have_one_thread_each_and_leave_the_caller_alone(monkeypatch):
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    assert list(pool.run_all(threads, [0], 1)) == [(0, "1")]
    assert os.environ["OPENBLAS_NUM_THREADS"] == "7"


def test_an_error_in_a_task_reaches_the_caller():
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        list(pool.run_all(divmod_by_zero, [1], 1))
    with pytest.raises(StudyError, match="trials must be at least 1; got 0"):
        list(pool.run_all(bad_study, [1], 1))


def divmod_by_zero(task):
    return task / 0


def bad_study(task):
    return Study("x", "clinic", (2,), task - 1, methods)


def test_unknown_ids_name_the_known_ones(tmp_path):
    with pytest.raises(StudyError, match=r"study must be .*; got 'moon'"):
        reproduce("moon", tmp_path)
    with pytest.raises(ValueError, match=r"domain must be .*clinic.*; got 'moon'"):
        runner.run_study(Study("moon", "moon", (2,), 1, methods), tmp_path)


def test_stopped_by_hand_it_says_how_to_go_on(tmp_path, monkeypatch, capsys):
    def stop(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(runner, "run_all", stop)
    with pytest.raises(KeyboardInterrupt):
        runner.run_study(clinic(), tmp_path)
    assert "0 of 360 trials are safe" in capsys.readouterr().err
