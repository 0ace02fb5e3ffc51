"""A folder of Parquet that does not fit into memory: how long an evaluation takes beside reading and the bare product.

    python benchmarks/large.py FOLDER --make --gigabytes 8   # makes the folder
    python benchmarks/large.py FOLDER --memory 1GB           # evaluates it, and measures
    rm -r FOLDER

``--without state action`` leaves out what PDWIS with logged probabilities does not need.

With ``--states 1000`` in both commands the logs are walks over so many states with ten different rewards, and the
candidate is a table of probabilities, as models need it; then ``--estimator wdr --resamples 200``.

``ulimit -d 1048576`` before the second command holds the process itself to 1 GiB; pages of its files, which the system
may take back at any time, are not counted there.
"""

from __future__ import annotations

import argparse
import threading
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tightrope

STEPS, EPISODES = 100, 20_000  # of an episode, and of a file
BYTES = 27.2  # a row, on disk
RESAMPLES = 2000
COLUMNS = ["episode", "t", "state", "action", "reward", "behavior_prob", "eval_prob", "terminated"]


def make(folder: Path, gigabytes: float, states: int | None) -> None:
    """Files of episodes with random rewards and probabilities, which no compression makes smaller; or of walks."""
    folder.mkdir(parents=True, exist_ok=True)
    files = int(np.ceil(gigabytes * 1e9 / (BYTES * STEPS * EPISODES)))
    for number in range(files):
        rng, rows = np.random.default_rng(number), STEPS * EPISODES
        behavior = rng.uniform(0.3, 0.7, rows)
        columns = {
            "episode": np.repeat(np.arange(EPISODES) + number * EPISODES, STEPS),
            "t": np.tile(np.arange(STEPS, dtype=np.int32), EPISODES),
            "state": rng.integers(0, 1000, rows, dtype=np.int32),
            "action": rng.integers(0, 2, rows, dtype=np.int32),
            "reward": rng.normal(size=rows),
            "behavior_prob": behavior,
            "eval_prob": behavior * rng.uniform(0.97, 1.03, rows),
            "terminated": np.tile(np.arange(STEPS) == STEPS - 1, EPISODES),
        }
        if states is not None:
            walk = np.cumsum(rng.integers(0, 3, rows)) % states
            columns |= {"state": walk.astype(np.int32), "reward": rng.integers(0, 10, rows) / 2}
            columns |= {"behavior_prob": np.full(rows, 0.5)}
            del columns["eval_prob"]
        pq.write_table(pa.table(columns), folder / f"part-{number:04}.parquet", row_group_size=200_000)
    print(f"{files} files, {sum(f.stat().st_size for f in folder.iterdir()) / 1e9:.2f} GB, {files * rows:,} rows")


def candidate(states: int | None) -> tightrope.TabularPolicy | None:
    """A policy that acts nearly at random; None: the probabilities that the logs hold."""
    if states is None:
        return None
    probs = 0.5 + np.random.default_rng(0).uniform(-0.02, 0.02, states)
    return tightrope.TabularPolicy(np.stack([probs, 1 - probs], axis=1))


def read_alone(folder: Path, columns: list[str]) -> float:
    """Reading the same columns with pyarrow, batch by batch, and nothing else."""
    started = time.perf_counter()
    for path in sorted(folder.iterdir()):
        parquet = pq.ParquetFile(path)
        held = [name for name in columns if name in parquet.schema_arrow.names]
        for _ in parquet.iter_batches(batch_size=1 << 19, columns=held):
            pass
    return time.perf_counter() - started


def product_alone(n: int, resamples: int) -> float:
    """The bare product of weights and columns on all cores, weights and columns given."""
    block = 4096
    weights, columns = np.random.default_rng(0).uniform(size=(resamples, block)), np.ones((block, 2 * STEPS))
    weights @ columns
    started = time.perf_counter()
    for _ in range(8):
        weights @ columns
    return (time.perf_counter() - started) / 8 * n / block


class Peak:
    """The largest memory of the process's own, and with the pages of its files, while something runs."""

    def __enter__(self):
        self.own = self.all = 0.0
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()
        return self

    def __exit__(self, *error):
        self.over.set()
        self.thread.join()

    def _watch(self):
        while not self.over.wait(0.02):
            lines = Path("/proc/self/status").read_text().splitlines()
            found = {
                line.split(":")[0]: int(line.split()[1]) * 1024 for line in lines if line.startswith(("Rss", "VmRSS"))
            }
            self.own, self.all = max(self.own, found["RssAnon"]), max(self.all, found["VmRSS"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--make", action="store_true")
    parser.add_argument("--gigabytes", type=float, default=8.0)
    parser.add_argument("--memory", default="1GB")
    parser.add_argument("--estimator", default="pdwis")
    parser.add_argument("--method", default="percentile")
    parser.add_argument("--states", type=int)
    parser.add_argument("--resamples", type=int, default=RESAMPLES)
    parser.add_argument("--without", nargs="*", default=[], help="columns that are neither read nor kept")
    asked = parser.parse_args()
    if asked.make:
        make(asked.folder, asked.gigabytes, asked.states)
        return
    columns = [name for name in COLUMNS if name not in asked.without]
    reading = min(read_alone(asked.folder, columns) for _ in range(2))  # the first one fills the system's cache
    with Peak() as peak:
        started = time.perf_counter()
        unread = dict.fromkeys(asked.without)
        logs = tightrope.read(asked.folder, memory=asked.memory, scratch=asked.folder.parent, columns=unread)
        read = time.perf_counter() - started
        started = time.perf_counter()
        bound = tightrope.lower_bound(
            logs,
            candidate(asked.states),
            estimator=asked.estimator,
            method=asked.method,
            n_resamples=asked.resamples,
        )
        bounded = time.perf_counter() - started
    bare = product_alone(logs.n_trajectories, asked.resamples)
    rate, sum_of_both = logs.n_steps / read / 1e6, reading + bare
    print(bound)
    print(f"{logs.n_steps:,} rows: read and kept in {read:.1f} s ({rate:.1f} million rows/s), bound in {bounded:.1f} s")
    print(f"pyarrow {reading:.1f} s, the bare product {bare:.1f} s: {(read + bounded) / sum_of_both:.2f} times that")
    print(f"memory: {peak.own / 1e9:.2f} GB of its own, {peak.all / 1e9:.2f} GB with pages of its files")


if __name__ == "__main__":
    main()
