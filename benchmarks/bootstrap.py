"""How fast one bootstrap of PDWIS is, as ratios within one run: `make bench`.

One thread, CPU time, median of repeats, T = 100, B = 2000, float64. Slow rivals run a share of the replicates and are
scaled up; the table says so. Absolute times mean nothing; ratios do.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import importlib.util
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sections import publish

import tightrope
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import Multinomial

HORIZON, RESAMPLES = 100, 2000


def make_logs(n: int, seed: int = 0) -> tightrope.TrajectoryDataset:
    """Unequal lengths, rewards of both signs, step ratios near one."""
    rng = np.random.default_rng(seed)
    lengths = np.minimum(rng.geometric(0.012, n), HORIZON)
    steps = int(lengths.sum())
    behavior = np.log(rng.uniform(0.3, 0.7, steps))
    return tightrope.TrajectoryDataset(
        offsets=np.concatenate([[0], np.cumsum(lengths)]),
        rewards=rng.normal(size=steps),
        terminated=lengths < HORIZON,
        horizon=HORIZON,
        behavior_log_probs=behavior,
        eval_log_probs=np.minimum(behavior + rng.normal(-0.005, 0.1, steps), 0.0),
    )


def cpu(call: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds after one warm-up."""
    call()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times))


def once(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def pdwis(ratio: np.ndarray, reward: np.ndarray) -> float:
    """The estimator as its definition says it, on padded (n, T) arrays."""
    weight = ratio / ratio.sum(axis=0)
    return float((weight * reward).sum())


class Rivals:
    """What a user would write, given padded ratios and rewards (n, T)."""

    def __init__(self, n: int, dataset: tightrope.TrajectoryDataset):
        columns = tightrope.statistic(dataset, estimator="pdwis").make_columns(0, n)
        self.n, self.columns = n, columns
        self.ratio = np.ascontiguousarray(columns[:, :HORIZON])
        self.weighted = np.ascontiguousarray(columns[:, HORIZON:])
        self.reward = dataset.pad(dataset.rewards, 0, n)
        self.rng = np.random.default_rng(1)

    def loop(self, count: int) -> None:
        """(a) a Python loop over replicates with fancy indexing."""
        for _ in range(count):
            index = self.rng.integers(self.n, size=self.n)
            pdwis(self.ratio[index], self.reward[index])

    def bincount(self, count: int) -> None:
        """(b) the best naive form: counts per replicate, matrix-vector products."""
        for _ in range(count):
            counts = np.bincount(self.rng.integers(self.n, size=self.n), minlength=self.n).astype(float)
            ((counts @ self.weighted) / (counts @ self.ratio)).sum()

    def torch(self, count: int) -> None:
        """(c) torch: counts by scatter_add, chunks of replicates, one product each, float64."""
        import torch

        torch.set_num_threads(1)
        columns = torch.from_numpy(self.columns)
        size = max(1, min(count, (64 << 20) // (8 * self.n)))
        done = 0
        while done < count:
            rows = min(size, count - done)
            index = torch.randint(self.n, (rows, self.n))
            counts = torch.zeros((rows, self.n), dtype=torch.float64)
            counts.scatter_add_(1, index, torch.ones_like(counts))
            sums = counts @ columns
            (sums[:, HORIZON:] / sums[:, :HORIZON]).sum(dim=1)
            done += rows

    def scipy(self, count: int) -> None:
        """(d) scipy.stats.bootstrap over trajectory indices."""
        from scipy.stats import bootstrap

        def value(index: np.ndarray) -> float:
            return pdwis(self.ratio[index], self.reward[index])

        bootstrap(
            (np.arange(self.n),), value, n_resamples=count, batch=1, method="percentile", rng=self.rng, vectorized=False
        )

    def arch(self, count: int) -> None:
        """(d) arch's IIDBootstrap over trajectory indices."""
        from arch.bootstrap import IIDBootstrap

        def value(index: np.ndarray) -> float:
            return pdwis(self.ratio[index], self.reward[index])

        IIDBootstrap(np.arange(self.n), seed=self.rng).apply(value, count)

    def product(self) -> Callable[[], object]:
        """The bare matrix product of the same shape, weights ready made."""
        weights = self.rng.poisson(1.0, (RESAMPLES, self.n)).astype(float)
        return lambda: weights @ self.columns


def measure(n: int, repeats: int) -> dict[str, float]:
    """Seconds for each way, and extra memory."""
    dataset = make_logs(n)
    rivals = Rivals(n, dataset)
    bare = rivals.product()
    settings = {"estimator": "pdwis", "n_resamples": RESAMPLES}

    def engine() -> object:
        statistic = tightrope.statistic(dataset, estimator="pdwis")
        return replicate([statistic], Multinomial(), n_resamples=RESAMPLES, seed=0)

    calls: dict[str, Callable[[], object]] = {
        "product": bare,
        "bootstrap": engine,
        "percentile": lambda: tightrope.lower_bound(dataset, method="percentile", **settings),
        "bca": lambda: tightrope.lower_bound(dataset, method="bca", **settings),
        "float32": lambda: tightrope.lower_bound(dataset, method="percentile", precision="float32", **settings),
    }
    # Interleaved, so that a slow minute of the machine falls on all of them.
    samples: dict[str, list[float]] = {name: [] for name in calls}
    for call in calls.values():
        call()
    for _ in range(repeats):
        for name, call in calls.items():
            samples[name].append(once(call))
    seconds = {name: float(np.median(values)) for name, values in samples.items()}
    for name in ("bootstrap", "percentile"):  # the ratio within each round, then its median
        seconds[f"{name} fraction"] = float(np.median(np.array(samples["product"]) / np.array(samples[name])))
    seconds["bca extra"] = float(np.median(np.array(samples["bca"]) / np.array(samples["percentile"]))) - 1
    seconds["float32 share"] = float(np.median(np.array(samples["float32"]) / np.array(samples["percentile"])))
    share = max(1, min(RESAMPLES, int(4e6 / n / 2)))
    for name in ("loop", "bincount", "torch", "scipy", "arch"):
        if name in ("torch", "arch") and importlib.util.find_spec(name) is None:
            continue
        way = getattr(rivals, name)
        count = max(2, share)
        seconds[name] = cpu(lambda way=way, count=count: way(count), 3) * RESAMPLES / count
    seconds["share"] = share / RESAMPLES
    del rivals, bare, calls
    tracemalloc.start()
    engine()
    seconds["memory"] = tracemalloc.get_traced_memory()[1] / 2**20
    tracemalloc.stop()
    return seconds


ROWS = {
    "loop": "(a) Python loop, fancy indexing",
    "bincount": "(b) loop of bincount and matrix–vector products",
    "torch": "(c) torch counts and matmul, float64",
    "scipy": "(d) scipy.stats.bootstrap",
    "arch": "(d) arch IIDBootstrap",
}


def render(results: dict[int, dict[str, float]]) -> str:
    sizes = list(results)
    lines = [
        "# Speed",
        "",
        "Written by `make bench`: PDWIS, T = 100, B = 2000, float64, one thread, CPU time, median of repeats, "
        "all in one run.",
        "A bootstrap is everything from logged probabilities to B values: ratios, columns, counts, products. "
        "Rivals start from",
        "ready-made padded ratios and run a share of the replicates, scaled up. Fractions are medians over interleaved",
        "rounds.",
        "",
        "| one bootstrap is faster than | " + " | ".join(f"n = {n:,}" for n in sizes) + " |",
        "|---|" + "---:|" * len(sizes),
    ]
    for key, label in ROWS.items():
        cells = [f"{r[key] / r['bootstrap']:.0f} ×" if key in r else "not installed" for r in results.values()]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    ratios = {
        "fraction of the bare product's speed, bootstrap": lambda r: f"{r['bootstrap fraction']:.2f}",
        'the same for the whole `lower_bound(method="percentile")`, diagnostics included': (
            lambda r: f"{r['percentile fraction']:.2f}"
        ),
        "BCa's jackknife adds": lambda r: f"{r['bca extra']:+.1%}",
        "float32 takes, of float64's time": lambda r: f"{r['float32 share']:.2f}",
        "extra memory beyond the dataset, MB": lambda r: f"{r['memory']:.0f}",
        "share of replicates the rivals ran": lambda r: f"{r['share']:.1%}",
    }
    for label, value in ratios.items():
        lines.append(f"| {label} | " + " | ".join(value(r) for r in results.values()) + " |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=11)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    results = {}
    for n in options.sizes:
        print(f"n = {n:,} ...", flush=True)
        results[n] = measure(n, options.repeats)
    text = render(results)
    publish(text, options.out)


if __name__ == "__main__":
    main()
