"""What a tether costs: bounds on TDR beside a bootstrap of DR on the same logs. Part of `make bench`.

One thread, CPU time, T = 100, B = 2000; rounds are interleaved, ratios are medians over them. Each call is everything
from logs, both policies and a tabular model (cross-fitted, for exact bounds fitted to each block's past) to the bound.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from bootstrap import HORIZON, RESAMPLES, once
from sections import publish
from wdr import ACTIONS, STATES, make_problem

import tightrope

BASE = ("dr", "percentile")
PAIRS = {("tdr", "percentile"): "TDR with percentile", ("tdr", "betting"): "TDR with betting, exact"}


def times(n: int, repeats: int) -> np.ndarray:
    """CPU seconds of the base and of each pair, (repeats, 1 + pairs)."""
    problem = make_problem(n)
    uniform = tightrope.TabularPolicy(np.full((STATES, ACTIONS), 1 / ACTIONS))
    logs = replace(problem.dataset, behavior=uniform, reward_range=(-10.0, 10.0), return_range=None)

    def run(estimator: str, method: str) -> None:
        tightrope.lower_bound(logs, problem.policy, estimator=estimator, method=method, n_resamples=RESAMPLES)

    calls = [partial(run, *pair) for pair in (BASE, *PAIRS)]
    for call in calls:  # compiles
        call()
    return np.array([[once(call) for call in calls] for _ in range(repeats)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, default=None, help="write the table into its section of this file")
    options = parser.parse_args()
    found = {n: times(n, options.repeats) for n in options.sizes}
    lines = [
        f"## Bounds on tethered values: T = {HORIZON}, B = {RESAMPLES:,}, {STATES} states, {ACTIONS} actions",
        "",
        "| takes, of a bootstrap of DR | " + " | ".join(f"n = {n:,}" for n in found) + " |",
        "|---|" + "---:|" * len(found),
    ]
    for k, label in enumerate(PAIRS.values(), start=1):
        ratios = [f"{np.median(each[:, k] / each[:, 0]):.2f} ×" for each in found.values()]
        lines.append(f"| {label} | {' | '.join(ratios)} |")
    seconds = [f"{np.median(each[:, 2]):.2g} s" for each in found.values()]
    lines.append(f"| CPU time of the exact bound | {' | '.join(seconds)} |")
    publish("\n".join(lines), options.out)


if __name__ == "__main__":
    main()
