"""Killing a monitor at any moment loses nothing and counts nothing twice: real processes, real signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.decisions.test_monitor import WALKER, day, same
from tightrope import DataError, Monitor
from tightrope.io.locks import lock_of

DAYS = 20
WORKER = """
import sys
from pathlib import Path
from tests.decisions.test_monitor import WALKER, day
from tightrope import Monitor
from tightrope.io.locks import lock_of

path = Path(sys.argv[1])
with lock_of(path):
    monitor = Monitor.load(path, WALKER.candidate) if path.exists() else Monitor(WALKER.candidate)
    for number in range(int(sys.argv[2])):
        monitor.update(day(number), label=f"day {number}", skip_known=True)
        monitor.save(path)
        print(number, flush=True)
"""
pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no SIGKILL here")


def worker(path):
    root = Path(__file__).parents[2]
    command = [sys.executable, "-c", WORKER, str(path), str(DAYS)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), os.environ.get("PYTHONPATH", "")])}
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)


def test_a_monitor_that_is_killed_again_and_again_ends_where_it_would_have(tmp_path):
    path, rng, reached = tmp_path / "state.npz", np.random.default_rng(0), []
    for _ in range(3):
        process = worker(path)
        for _ in range(int(rng.integers(1, 4))):  # some batches more, and then somewhere in the next
            process.stdout.readline()
        time.sleep(float(rng.random()) * 0.15)
        process.send_signal(signal.SIGKILL)
        assert process.wait() == -signal.SIGKILL
        process.stdout.close()
        reached.append(Monitor.load(path, WALKER.candidate).episodes)
        assert reached[-1] % 40 == 0  # whole batches
    assert reached == sorted(reached)
    assert reached[0] > 0
    assert reached[-1] < DAYS * 40
    last = worker(path)
    assert last.wait(120) == 0
    last.stdout.close()
    straight = Monitor(WALKER.candidate)
    for number in range(DAYS):
        straight.update(day(number), label=f"day {number}")
    same(straight, Monitor.load(path, WALKER.candidate))


@pytest.mark.parametrize("moment", ["fsync", "chmod", "replace"])
@pytest.mark.parametrize("done", [False, True], ids=["before", "after"])
def test_a_kill_inside_of_saving_leaves_the_old_state_or_the_new_one(tmp_path, monkeypatch, moment, done):
    path, monitor = tmp_path / "state.npz", Monitor(WALKER.candidate)
    monitor.update(day(0))
    monitor.save(path)
    monitor.update(day(1))
    real = getattr(os, moment)

    def deadly(*arguments):
        if done:
            real(*arguments)
        os.kill(os.getpid(), signal.SIGKILL)

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # threads of libraries do not matter to the child
        child = os.fork()
    if child == 0:
        monkeypatch.setattr(os, moment, deadly)
        monitor.save(path)
        os._exit(1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    held = Monitor.load(path, WALKER.candidate)
    assert held.episodes == (80 if moment == "replace" and done else 40)
    held.update(day(1), skip_known=True)
    same(monitor, held)


def test_an_error_in_the_middle_leaves_the_monitor_as_it_was(monkeypatch):
    monitor = Monitor(WALKER.candidate)
    monitor.update(day(0))
    twin = Monitor(WALKER.candidate)
    twin.update(day(0))

    def stop(share):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        monitor.update(day(1), progress=stop)
    same(monitor, twin)
    with pytest.raises(DataError, match="one kind in all logs"):
        monitor.update(replace(day(1), states=day(1).states.astype(str), final_states=day(1).final_states.astype(str)))
    same(monitor, twin)


def test_two_processes_do_not_change_one_state_at_once(tmp_path):
    path = tmp_path / "state.npz"
    with lock_of(path):
        process = worker(path)
        assert process.wait(60) == 1
        process.stdout.close()
    assert not path.exists()
    with lock_of(path), pytest.raises(DataError, match="another process is changing"), lock_of(path):
        pass
