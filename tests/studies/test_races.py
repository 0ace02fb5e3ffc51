"""Two runs started at the same moment in one empty folder: one of them runs, the other is told, nothing is mixed."""

import errno
import json
import multiprocessing
import shutil
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.studies.studies import clinic
from tightrope import StudyError
from tightrope.studies import lock, runner
from tightrope.studies.lock import FolderLock

ROOT = Path(__file__).parents[2]
RACES = 60


def in_this_process(job, tasks, workers):
    return ((position, job(task)) for position, task in enumerate(tasks))


def racer(seed, folders, barrier, answers):
    """Run the study of this seed in each folder, at the same moment as the other process runs that of its own."""
    runner.run_all = in_this_process  # the race is about the folder; workers would only make it slow
    study = clinic(sizes=(2,), trials=2, seed=seed)
    study.configuration()
    told = []
    for folder in folders:
        barrier.wait(timeout=60)
        try:
            runner.run_study(study, Path(folder))
            told.append("ran")
        except StudyError as error:
            told.append(str(error))
    answers.put((seed, told))


def race(folders):
    """What each of two processes was told in each folder, by its seed."""
    context = multiprocessing.get_context("spawn")
    barrier, answers = context.Barrier(2), context.Queue()
    processes = [context.Process(target=racer, args=(seed, folders, barrier, answers)) for seed in (0, 1)]
    for process in processes:
        process.start()
    told = dict(answers.get(timeout=120) for _ in processes)
    for process in processes:
        process.join()
    return told


def test_two_studies_that_start_together_never_mix(tmp_path):
    folders = [tmp_path / str(number) for number in range(RACES)]
    told = race([str(folder) for folder in folders])
    for folder, *answers in zip(folders, told[0], told[1], strict=True):
        assert sorted(answer == "ran" for answer in answers) == [False, True]
        winner, refused = answers.index("ran"), next(answer for answer in answers if answer != "ran")
        assert "another run is writing" in refused or "another configuration: seed is" in refused
        written = json.loads((folder / runner.CONFIGURATION).read_text())
        inside = json.loads(pq.read_schema(folder / runner.RESULTS).metadata[runner.KEY])
        assert written == inside
        assert written["seed"] == winner


def test_a_second_run_is_told_and_leaves_everything_as_it_was(tmp_path):
    with FolderLock(tmp_path), pytest.raises(StudyError, match=r"another run is writing to .*; wait for it, or end it"):
        runner.run_study(clinic(), tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["lock"]


def test_what_a_killed_run_leaves_behind_stops_nobody(tmp_path):
    holding = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT)
    assert holding.stdout.read(1) == b"!"
    with pytest.raises(StudyError, match="another run is writing"), FolderLock(tmp_path):
        pass
    holding.kill()
    holding.communicate()
    assert (tmp_path / "lock").exists()
    with FolderLock(tmp_path):
        pass


HOLD = """
import sys, time
from pathlib import Path
from tightrope.studies.lock import FolderLock
with FolderLock(Path(sys.argv[1])):
    print("!", end="", flush=True)
    time.sleep(600)
"""


def test_a_disk_that_cannot_lock_is_not_taken_for_another_run(tmp_path, monkeypatch):
    def no_locks(file):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(lock, "acquire", no_locks)
    with pytest.raises(StudyError, match=r"cannot be locked \(.*No locks available\), so two runs could mix"):
        runner.run_study(clinic(), tmp_path)


def test_a_folder_deleted_while_the_study_ran_gets_no_results(tmp_path, monkeypatch):
    """Whoever deletes it may have started another study under the same name."""

    def replaced(job, tasks, workers):
        yield from in_this_process(job, tasks, workers)
        shutil.rmtree(tmp_path / "out")
        runner.run_study(clinic(sizes=(2,), trials=1, seed=1), tmp_path / "out")

    monkeypatch.setattr(runner, "run_all", once(replaced))
    with pytest.raises(StudyError, match="was deleted while the study ran; its results were not written"):
        runner.run_study(clinic(sizes=(2,), trials=2, seed=0), tmp_path / "out")
    assert json.loads((tmp_path / "out" / runner.CONFIGURATION).read_text())["seed"] == 1
    inside = pq.read_schema(tmp_path / "out" / runner.RESULTS).metadata[runner.KEY]
    assert json.loads(inside)["seed"] == 1


def once(first):
    """``first`` the first time, then the trials alone."""
    ways = iter([first])
    return lambda *arguments: next(ways, in_this_process)(*arguments)


def test_trials_without_their_configuration_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_all", in_this_process)
    runner.run_study(clinic(sizes=(2,), trials=2), tmp_path)
    (tmp_path / runner.CONFIGURATION).unlink()
    with pytest.raises(StudyError, match=r"holds trials but not the configuration they belong to \(study.json"):
        runner.run_study(clinic(sizes=(2,), trials=2, seed=1), tmp_path)
