"""One law for every engine: whoever computes the replicates, and from wherever, they are the same to the last bit."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest

import tightrope
from tests.engines import Everywhere, Pieces
from tightrope.base import cluster
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import USUAL, estimator
from tightrope.functional.engines import base, replicate, sums
from tightrope.functional.engines.base import group_ranges, tree_sum
from tightrope.functional.resampling import Bayesian, Multinomial, Poisson

WALKER = small("walker")
DATA = WALKER.logs(5500, rng=np.random.default_rng(7))  # six blocks, the last one short
OPTIONS = {"n_resamples": 40, "seed": 3, "standard_errors": True}
SCHEMES = [Multinomial(), Multinomial(900), Poisson(), Bayesian()]


def statistics(data=DATA, names=USUAL):
    return [estimator(name)(Problem(data, WALKER.candidate)) for name in names]


@pytest.fixture(autouse=True)
def _small_groups(monkeypatch):
    """Groups of one block, so that there are several."""
    for module in (base, sums):
        monkeypatch.setattr(module, "GROUP", 1)


def assert_same(one, other):
    for left, right in zip(one, other, strict=True):
        np.testing.assert_array_equal(left.values, right.values)
        assert left.estimate == right.estimate
        if left.standard_errors is not None:
            np.testing.assert_array_equal(left.standard_errors, right.standard_errors)
            assert left.standard_error == right.standard_error


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_threads_and_parts(scheme):
    """Any number of threads, and any number of ranges of episodes."""
    some = statistics(names=["pdwis", "pdis", "wdr", "tdr"])
    alone = replicate(some, scheme, n_jobs=1, **OPTIONS)
    for jobs in (2, 3):
        assert_same(alone, replicate(some, scheme, n_jobs=jobs, **OPTIONS))
    for parts in (1, 2, 3, 50):
        assert_same(alone, replicate(some, scheme, engine=Pieces(parts), **OPTIONS))


def test_other_processes_are_sent_everything_they_need():
    """Every estimator, packed, unpacked and computed from what was packed."""
    some = statistics()
    assert_same(
        replicate(some, Multinomial(), n_jobs=1, **OPTIONS),
        replicate(some, Multinomial(), engine=Everywhere(), **OPTIONS),
    )


def test_logs_in_files_are_not_sent(tmp_path, monkeypatch):
    """Their arrays go by name: what travels does not grow with the logs."""
    monkeypatch.setattr("tightrope.io.large.LEAST_ROWS", 1000)
    tightrope.write(DATA, tmp_path / "logs.parquet")
    logs = tightrope.read(tmp_path / "logs.parquet", memory=200_000, scratch=tmp_path)
    whole, engine = tightrope.read(tmp_path / "logs.parquet", memory="10GB"), Everywhere()
    some = [statistics(data, ["pdwis", "is", "wdr", "dr", "mb"]) for data in (whole, logs)]
    assert_same(
        replicate(some[0], Multinomial(), n_jobs=1, **OPTIONS),
        replicate(some[1], Multinomial(), engine=engine, **OPTIONS),
    )
    assert engine.largest < 8 * DATA.n_steps


def test_a_large_call_is_refused(monkeypatch):
    monkeypatch.setattr(cluster, "MOST_BYTES", 10)
    with pytest.raises(
        tightrope.BoundError, match=r"Keep them in files that all workers see: read\(memory=..., scratch"
    ):
        cluster.Cluster(None).add(abs, [range(1)])


def test_ranges_are_subtrees():
    for blocks in (1, 5, 16, 33, 100):
        for parts in (1, 2, 7, 200):
            ranges = group_ranges(blocks, parts)
            assert [block for one in ranges for block in one] == list(range(blocks))
            assert len(ranges) >= min(parts, blocks)
            size = len(ranges[0])
            assert size & (size - 1) == 0
            assert all(len(one) == size for one in ranges[:-1])


@pytest.mark.parametrize("count", range(1, 40))
def test_the_tree_is_the_same_however_its_leaves_are_grouped(count):
    numbers = [
        [np.array([value])] for value in np.random.default_rng(count).normal(size=count) * 10.0 ** np.arange(count)
    ]
    whole = tree_sum(numbers)[0]
    for size in (1, 2, 4, 8):
        parts = [tree_sum(numbers[first : first + size]) for first in range(0, count, size)]
        assert tree_sum(parts)[0] == whole
    assert whole == pytest.approx(sum(value[0][0] for value in numbers))


# -- dask, with real workers -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def workers():
    """A scheduler and two workers of one thread each, which come back when they are killed."""
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local_cluster,
        distributed.Client(local_cluster) as client,
    ):
        yield client


def test_dask_gives_the_same_bits_with_one_and_two_workers(workers):
    some = statistics(names=["pdwis", "tdr", "mb"])
    alone = replicate(some, Multinomial(), n_jobs=1, **OPTIONS)
    assert_same(alone, replicate(some, Multinomial(), engine=cluster.Cluster(workers), **OPTIONS))
    bounds = [
        tightrope.lower_bound(
            DATA, WALKER.candidate, estimator="wdr", method="studentized", n_resamples=50, engine=engine
        )
        for engine in ("local", workers)
    ]
    assert bounds[0].value == bounds[1].value


@contextmanager
def one_is_killed(workers):
    """One worker is killed as soon as it has something to do; in the end there are two again, one of them a new one."""
    pids = set(workers.run(os.getpid).values())

    def kill():
        while not any(workers.processing().values()):
            time.sleep(0.01)
        os.kill(min(pids), signal.SIGKILL)

    victim = threading.Thread(target=kill)
    victim.start()
    yield
    victim.join()
    for _ in range(300):  # the scheduler takes a while to notice
        now = set(workers.run(os.getpid, on_error="ignore").values())
        if len(now) == 2 and min(pids) not in now:
            return
        time.sleep(0.1)
    raise AssertionError("no worker took the place of the one that was killed")


def test_a_worker_killed_in_the_middle_changes_nothing(workers):
    some = statistics(names=["pdwis"])
    options = {**OPTIONS, "n_resamples": 3000}
    alone = replicate(some, Multinomial(), n_jobs=1, **options)
    with one_is_killed(workers):
        assert_same(alone, replicate(some, Multinomial(), engine=cluster.Cluster(workers), **options))


def test_workers_read_the_logs_themselves(workers, tmp_path, monkeypatch):
    """Also if one of them is killed on the way; and every pass over the logs is theirs."""
    monkeypatch.setattr("tightrope.io.large.LEAST_ROWS", 1000)
    for number in range(6):
        part = DATA.take(np.arange(number * 900, (number + 1) * 900))
        tightrope.write(part, tmp_path / f"{number}.parquet")
    whole = tightrope.read(tmp_path / "*.parquet")
    with one_is_killed(workers):
        logs = tightrope.read(tmp_path / "*.parquet", memory=200_000, scratch=tmp_path, engine=workers)
    assert logs.folder is not None
    options = {"estimator": "pdwis", "method": "studentized", "n_resamples": 50}
    one = tightrope.lower_bound(whole, WALKER.candidate, **options)
    assert tightrope.lower_bound(logs, WALKER.candidate, engine=workers, **options) == one


def test_a_study_with_a_worker_killed_has_every_trial_once_and_the_same_bytes(workers, tmp_path):
    from tests.studies.studies import clinic
    from tightrope.studies.runner import JOURNAL, RESULTS, run_study

    study = clinic(trials=40)
    run_study(study, tmp_path / "here", workers=1)
    with one_is_killed(workers):
        run_study(study, tmp_path / "there", engine=cluster.Cluster(workers))
    assert (tmp_path / "there" / RESULTS).read_bytes() == (tmp_path / "here" / RESULTS).read_bytes()
    assert (tmp_path / "there" / JOURNAL).read_bytes().count(b"\n") == 120


def test_an_address_is_an_engine(workers):
    address = workers.scheduler.address
    options = {"estimator": "pdwis", "method": "percentile", "n_resamples": 50}
    here, there = (tightrope.lower_bound(DATA, WALKER.candidate, engine=e, **options) for e in ("local", address))
    assert here.value == there.value


def test_an_address_without_a_scheduler_is_an_error(monkeypatch):
    monkeypatch.setattr(cluster, "CONNECT", "1s")
    with pytest.raises(
        tightrope.BoundError, match="engine must be the address of a dask scheduler that is running; got"
    ):
        tightrope.lower_bound(DATA, WALKER.candidate, engine="tcp://127.0.0.1:9")
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(tightrope.BoundError, match=r'needs dask: pip install "tightrope\[dask\]"'):
        tightrope.lower_bound(DATA, WALKER.candidate, engine="tcp://127.0.0.1:9")


def test_our_own_errors_come_through(workers):
    def fail(part):
        raise tightrope.DataError(f"part {part} is bad")

    with pytest.raises(tightrope.DataError, match=r"part range\(0, 1\) is bad"):
        list(cluster.Cluster(workers).map(fail, [range(1)]))


def test_a_cluster_that_dies_for_good_is_an_error(monkeypatch):
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)
    with (
        distributed.LocalCluster(n_workers=0, dashboard_address=":0") as empty,
        distributed.Client(empty) as client,
        pytest.raises(tightrope.BoundError, match=r"could not finish \(no worker for 2 s\).*use engine=\"local\""),
    ):
        list(cluster.Cluster(client).map(abs, [range(1)]))


def test_without_dask_nothing_imports_it():
    code = "import sys, tightrope.api; sys.exit('distributed' in sys.modules or 'cloudpickle' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
