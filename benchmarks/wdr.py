"""What share of the bare matrix product's speed one bootstrap of WDR with a given model reaches: part of `make bench`.

One thread, CPU time, T = 100, B = 2000, float64; rounds are interleaved, the fraction is the median over them. A
bootstrap is everything from logs, candidate and q̂ to B values: ratios, TD errors, columns, counts, products. PDWIS,
whose columns are as many but two, runs along.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from bootstrap import HORIZON, RESAMPLES, make_logs, once
from sections import publish

import tightrope
from tightrope.base.problem import Problem
from tightrope.estimators import PDWIS, WDR
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import Multinomial
from tightrope.functional.statistic import SumStatistic
from tightrope.models import GivenValues

STATES, ACTIONS = 50, 3
PRODUCT_ROWS = 250  # replicates that the bare product multiplies at a time, so that it fits in memory at any n


def make_problem(n: int) -> Problem:
    """The bootstrap benchmark's episodes, in states drawn at random, with a candidate near the uniform behaviour."""
    rng = np.random.default_rng(1)
    logs = make_logs(n)
    data = replace(
        logs,
        states=rng.integers(STATES, size=logs.n_steps),
        actions=rng.integers(ACTIONS, size=logs.n_steps),
        behavior_log_probs=np.full(logs.n_steps, -np.log(ACTIONS)),
        eval_log_probs=None,
    )
    return Problem(data, tightrope.TabularPolicy(rng.dirichlet(np.full(ACTIONS, 200.0), size=STATES)))


def fractions(n: int, repeats: int) -> list[float]:
    """The bare product's time over the bootstrap's: everything, from ready ratios and TD errors on, and PDWIS's."""
    problem = make_problem(n)
    estimator = WDR(GivenValues(np.random.default_rng(2).normal(size=(HORIZON, STATES, ACTIONS))), fit="shared")
    data = problem.dataset
    ready, weighted = estimator(problem), PDWIS()(problem)
    columns = np.concatenate([part.copy() for _, _, part in ready.chunks()])
    weights = np.random.default_rng(3).poisson(1.0, (PRODUCT_ROWS, n)).astype(float)

    def product() -> None:
        for _ in range(RESAMPLES // PRODUCT_ROWS):
            weights @ columns

    def run(make: Callable[[], SumStatistic]) -> None:
        replicate([make()], Multinomial(), n_resamples=RESAMPLES, seed=0)

    calls = [
        product,
        lambda: run(lambda: estimator(Problem(data, problem.policy))),
        lambda: run(lambda: replace(ready)),  # a copy keeps no columns
        lambda: run(lambda: replace(weighted)),
    ]
    for call in calls:
        call()
    times = np.array([[once(call) for call in calls] for _ in range(repeats)])
    return np.median(times[:, :1] / times[:, 1:], axis=0).tolist()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="write the table into its section of this file")
    options = parser.parse_args()
    found = {n: fractions(n, options.repeats) for n in options.sizes}
    lines = [
        f"## WDR with a given model: T = {HORIZON}, B = {RESAMPLES:,}, float64",
        "",
        "| fraction of the bare product's speed | " + " | ".join(f"n = {n:,}" for n in found) + " |",
        "|---|" + "---:|" * len(found),
    ]
    for k, label in enumerate(
        ("WDR from logs, candidate and q̂", "WDR from log-probabilities and TD errors", "PDWIS from log-probabilities")
    ):
        lines.append(f"| {label} | " + " | ".join(f"{parts[k]:.2f}" for parts in found.values()) + " |")
    text = "\n".join(lines)
    publish(text, options.out)


if __name__ == "__main__":
    main()
