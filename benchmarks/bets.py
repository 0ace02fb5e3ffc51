"""What aiming bets, and counting one order, two or all, buy the exact bound: ``python benchmarks/bets.py``.

Three bounds on the same data sets: planned bets that stay as planned, averaged over four orders; bets that aim at what
is missing, averaged as well; and `betting` as it is. Mean distance to the truth, and errors at 95 %.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.problem import Problem
from tightrope.bounds.exact import betting
from tightrope.bounds.exact import planning_kernels as kernels
from tightrope.domains import small
from tightrope.estimators import TDR

DELTA, TRIALS, SEED = 0.05, 300, 20261117
TARGET = math.log(1 / DELTA)
PROBLEMS, SIZES = ("walker", "bonus", "decline", "clinic"), (20, 200)

Games = tuple[Array, Array, Array, Array]


def as_planned(games: Games, m: float) -> float:
    """The wealth of planned bets, averaged over orders, in multiples of 1/δ."""
    values, bets, stakes, tethers = games
    factors = 1 + np.minimum(bets, stakes / (m + tethers)) * (values - m)
    return float(np.prod(np.maximum(factors, 0), axis=1).mean() * DELTA)


def aiming(games: Games, m: float) -> float:
    """The wealth of bets that aim, averaged over all orders."""
    shares = [min(1.0, kernels.share_of_goal(*one, m, TARGET)) for one in zip(*games, strict=True)]
    return kernels.GOAL * float(np.mean(shares))


def as_it_is(games: Games, m: float) -> float:
    """The wealth that `betting` counts."""
    return float(kernels.evidence(*games, m, TARGET))


def largest(wealth: Callable[[Games, float], float], games: Games) -> float:
    """The largest m against which the wealth is enough, by bisection."""
    low, high = 0.0, float(games[0].max())
    for _ in range(40):
        m = (low + high) / 2
        low, high = (m, high) if wealth(games, m) >= 1 else (low, m)
    return low


def main() -> None:
    """Print the table."""
    print("| problem | n | as planned | aiming | and one order, two or all |\n|---|---:|---:|---:|---:|")
    for name in PROBLEMS:
        problem = small(name)
        for n in SIZES:
            rows = []
            for number in range(TRIALS):
                logs = problem.logs(n, rng=np.random.default_rng([SEED, n, number]))
                sample = TDR().sequential_values(Problem(logs, problem.candidate))
                games = betting.games(sample, DELTA, number)
                rows.append([sample.origin + largest(one, games) for one in (as_planned, aiming, as_it_is)])
            bounds = np.array(rows)
            far, wrong = problem.true_value - bounds.mean(axis=0), (bounds > problem.true_value).sum(axis=0)
            cells = " | ".join(f"{one:.3g} ({errors} wrong)" for one, errors in zip(far, wrong, strict=True))
            print(f"| {name} | {n} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
