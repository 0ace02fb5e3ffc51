"""One thread against two, for the table "Cores, measured" of docs/scale.md.

Both take turns, and the shortest time of each counts: other processes only ever add to it. Where no quiet core is left
for the second thread, no ratio can show; the first row, two threads that only count, says how much could be gained.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from numba import njit

import tightrope
from tightrope.base.problem import Problem
from tightrope.base.threads import side_by_side
from tightrope.domains import small
from tightrope.estimators import MB, PDWIS
from tightrope.estimators.base import Estimator
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import scheme

WALKER = small("walker")


@njit(nogil=True)
def spin(count: int) -> float:
    """Work that no other thread can hold up."""
    total = 0.0
    for i in range(count):
        total += 1.0 / (i + 1)
    return total


def logs(n: int) -> tightrope.TrajectoryDataset:
    return WALKER.logs(n, rng=np.random.default_rng(0))


def bootstrap(estimator: Estimator, n: int, errors: bool) -> Callable[[int], object]:
    """2,000 replicates of n episodes of up to 12 steps."""
    statistic, multinomial = estimator(Problem(logs(n), WALKER.candidate)), scheme("multinomial")
    return lambda jobs: replicate(
        [statistic], multinomial, n_resamples=2000, seed=1, standard_errors=errors, n_jobs=jobs
    )


def evaluation(n: int) -> Callable[[int], object]:
    data = logs(n)
    return lambda jobs: tightrope.evaluate(data, WALKER.candidate, seed=0, n_jobs=jobs)


def cases() -> dict[str, Callable[[int], object]]:
    return {
        "two threads that only count": lambda jobs: list(side_by_side(spin, [10**8] * 2, jobs)),
        "bootstrap of PDWIS, 50,000 episodes": bootstrap(PDWIS(), 50_000, False),
        "bootstrap of MB, 3,000 episodes": bootstrap(MB(), 3000, False),
        "the same with standard errors": bootstrap(MB(), 3000, True),
        "bootstrap of MB, 20,000 episodes": bootstrap(MB(), 20_000, False),
        "the same, 20,000 with standard errors": bootstrap(MB(), 20_000, True),
        "`evaluate`, 3,000 episodes": evaluation(3000),
    }


def measure(call: Callable[[int], object], repeats: int) -> dict[int, float]:
    best = {1: np.inf, 2: np.inf}
    call(2)  # compiles
    for _ in range(repeats):
        for jobs in best:
            start = time.perf_counter()
            call(jobs)
            best[jobs] = min(best[jobs], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=10)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore")
    print("| | one thread | two threads | ratio |\n|---|---|---|---|")
    for name, call in cases().items():
        best = measure(call, repeats)
        print(f"| {name} | {best[1]:.3f} s | {best[2]:.3f} s | {best[1] / best[2]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
