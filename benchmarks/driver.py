"""What grows on the machine that asks a cluster: its own memory and time beside the number of episodes.

    python benchmarks/driver.py FOLDER --millions 1 2 4   # makes logs of so many episodes there, and deletes them

Two workers of one thread each on this machine read the logs, check them and make every pass; memory is that of the
process that asks, without pages of files, which the system may take back at any time.
"""

from __future__ import annotations

import argparse
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tightrope

STEPS, EPISODES = 5, 100_000  # of an episode, and of a file
RESAMPLES = 200


def make(folder: Path, millions: float) -> None:
    """Files of short episodes with random rewards and probabilities."""
    folder.mkdir(parents=True)
    for number in range(int(millions * 1e6 / EPISODES)):
        rng, rows = np.random.default_rng(number), STEPS * EPISODES
        behavior = rng.uniform(0.3, 0.7, rows)
        columns = {
            "episode": np.repeat(np.arange(EPISODES) + number * EPISODES, STEPS),
            "t": np.tile(np.arange(STEPS, dtype=np.int32), EPISODES),
            "reward": rng.normal(size=rows),
            "behavior_prob": behavior,
            "eval_prob": behavior * rng.uniform(0.97, 1.03, rows),
            "terminated": np.tile(np.arange(STEPS) == STEPS - 1, EPISODES),
        }
        pq.write_table(pa.table(columns), folder / f"part-{number:04}.parquet", row_group_size=200_000)


def own_memory() -> float:
    """What this process holds beside pages of files, in MB."""
    for line in Path("/proc/self/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("RssAnon"):
            return int(line.split()[1]) / 1000
    raise RuntimeError("only Linux says how much memory is a process's own")


class Watch(threading.Thread):
    """The most memory of its own that this process has while it runs."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.done = 0.0, threading.Event()

    def run(self) -> None:
        """Look every few milliseconds."""
        while not self.done.wait(0.005):
            self.most = max(self.most, own_memory())


def measure(folder: Path, client: object) -> None:
    """One row of the table."""
    before, watch, start = own_memory(), Watch(), time.perf_counter()
    watch.start()
    declared = {"horizon": STEPS, "reward_range": (-10, 10)}
    logs = tightrope.read(folder, memory="100MB", scratch=folder.parent, engine=client, **declared)
    read, used = time.perf_counter() - start, time.process_time()
    bound = tightrope.lower_bound(logs, estimator="pdwis", method="percentile", n_resamples=RESAMPLES, engine=client)
    whole, used = time.perf_counter() - start, time.process_time() - used
    exact = tightrope.lower_bound(logs, estimator="pdis", method="betting", engine=client)
    watch.done.set()
    print(
        f"| {logs.n_trajectories / 1e6:g} | {watch.most - before:.0f} MB | {read:.1f} s | {whole - read:.1f} s |"
        f" {used:.1f} s | {time.perf_counter() - start - whole:.1f} s |  {bound.value!r}, {exact.value!r}",
        flush=True,
    )


def main() -> None:
    """Make, measure, delete."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--millions", type=float, nargs="+", default=[0.2, 1, 2, 4])
    arguments = parser.parse_args()
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as local, Client(local) as client:
        print("| million episodes | memory of its own | reading | bound | of it CPU here | exact bound |")
        for millions in arguments.millions:
            folder = arguments.folder / "logs"
            make(folder, millions)
            measure(folder, client)
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
