"""How fast a linear model is refitted and rolled out for every replicate, as ratios within one run.

One thread, CPU time, T = 100, B = 2000, 12 features to 7 targets. Rivals run a few replicates and are scaled up.
Absolute times mean nothing; ratios do. Needs scikit-learn.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import time
from collections.abc import Callable

import numpy as np
from sklearn.linear_model import LinearRegression

from tightrope import GaussianPolicy, TrajectoryDataset
from tightrope.models.regression import LinearModel
from tightrope.problem import Problem

HORIZON, RESAMPLES, STATES, ACTIONS = 100, 2000, 7, 4
POLICY = GaussianPolicy(lambda s, t: -0.1 * s[:, :ACTIONS], 0.5 * np.eye(ACTIONS))
MODEL = LinearModel(reward=lambda s, a, after, t: -np.abs(s[:, 0]))


def make_logs(n: int, seed: int = 0) -> TrajectoryDataset:
    """A stable linear system under random actions."""
    rng = np.random.default_rng(seed)
    push = 0.1 * rng.normal(size=(ACTIONS, STATES))
    states, actions = np.empty((n, HORIZON, STATES)), rng.normal(size=(n, HORIZON, ACTIONS))
    state = rng.normal(size=(n, STATES))
    for t in range(HORIZON):
        states[:, t] = state
        state = 0.9 * state + actions[:, t] @ push + 0.1 * rng.normal(size=(n, STATES))
    return TrajectoryDataset(
        offsets=np.arange(n + 1) * HORIZON,
        rewards=-np.abs(states[..., 0]).ravel(),
        terminated=np.zeros(n, bool),
        horizon=HORIZON,
        states=states.reshape(-1, STATES),
        actions=actions.reshape(-1, ACTIONS),
        final_states=state,
    )


def cpu(call: Callable[[], object], repeats: int) -> float:
    """Median CPU seconds after one warm-up."""
    times = []
    for _ in range(repeats + 1):
        start = time.process_time()
        call()
        times.append(time.process_time() - start)
    return float(np.median(times[1:]))


def measure(n: int, repeats: int, shared: int) -> dict[str, float]:
    data = make_logs(n)
    weights = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)
    x = np.hstack([np.ones((data.n_steps, 1)), data.states, data.actions])
    prepared = MODEL.prepare(Problem(data, POLICY), anchor="low")
    y = prepared.transitions.next_states

    def normal_equations() -> None:
        for row in weights[:shared]:
            weighted = x * np.repeat(row, HORIZON)[:, None]
            np.linalg.solve(weighted.T @ x, weighted.T @ y)

    def scikit_learn() -> None:
        for row in weights[:shared]:
            LinearRegression().fit(x[:, 1:], y, sample_weight=np.repeat(row, HORIZON))

    scale = RESAMPLES / shared
    return {
        "refits": cpu(lambda: prepared.fit(weights), repeats),
        "sums": cpu(lambda: MODEL.prepare(Problem(data, POLICY), anchor="low"), repeats),
        "scikit-learn": scale * cpu(scikit_learn, 1),
        "normal equations": scale * cpu(normal_equations, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repeats", type=int, default=11)
    options = parser.parse_args()
    for n in options.sizes:
        made = measure(n, options.repeats, shared=3)
        for rival in ("scikit-learn", "normal equations"):
            with_sums = made[rival] / (made["refits"] + made["sums"])
            print(
                f"n = {n:,}: {RESAMPLES:,} refits {made[rival] / made['refits']:,.0f} times faster than {rival} "
                f"({with_sums:,.0f} times with the one pass over the logs counted)"
            )
    data = make_logs(10)
    prepared = MODEL.prepare(Problem(data, POLICY), anchor="low")
    weights = np.random.default_rng(1).multinomial(10, np.full(10, 0.1), size=RESAMPLES).astype(float)
    taken = cpu(lambda: prepared.values(weights), 1)
    print(
        f"{RESAMPLES:,} replicates x 100 roll-outs x {HORIZON} steps: {taken:.1f} s, {taken / 2e7 * 1e9:.0f} ns a step"
    )


if __name__ == "__main__":
    main()
