"""How fast a linear model is refitted and rolled out for every replicate, as ratios within one run.

One thread, CPU time, T = 100, B = 2000, 12 features to 7 targets. Rivals run a few replicates and are scaled up; rounds
are interleaved, ratios are medians over them. Absolute times mean nothing; ratios do. Needs scikit-learn.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from sections import publish
from sklearn.linear_model import LinearRegression

from tightrope import GaussianPolicy, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.models.regression import LinearModel

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


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def measure_refits(n: int, repeats: int, shared: int = 3) -> dict[str, float]:
    """How often each rival's time holds ours: refits alone, and with the one pass over the logs that they need."""
    data = make_logs(n)
    weights = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)
    x = np.hstack([np.ones((data.n_steps, 1)), data.states, data.actions])
    prepared = MODEL.prepare(Problem(data, POLICY), anchor="low")
    y = prepared.transitions.next_states

    def normal_equations() -> None:
        for row in weights[:shared]:
            weighted_least_squares(x, y, np.repeat(row, HORIZON))

    def scikit_learn() -> None:
        for row in weights[:shared]:
            LinearRegression().fit(x[:, 1:], y, sample_weight=np.repeat(row, HORIZON))

    found: dict[str, list[float]] = {}
    prepared.fit(weights)
    for _ in range(repeats):
        refits = cpu(lambda: prepared.fit(weights))
        sums = cpu(lambda: MODEL.prepare(Problem(data, POLICY), anchor="low"))
        for label, rival in (("scikit-learn", scikit_learn), ("a NumPy loop of normal equations", normal_equations)):
            theirs = cpu(rival) * RESAMPLES / shared
            found.setdefault(f"refits, than {label}", []).append(theirs / refits)
            found.setdefault(f"refits and the pass over the logs, than {label}", []).append(theirs / (refits + sums))
    return {label: float(np.median(values)) for label, values in found.items()}


def weighted_least_squares(x: np.ndarray, y: np.ndarray, weights: np.ndarray) -> np.ndarray:
    weighted = x * weights[:, None]
    return np.linalg.solve(weighted.T @ x, weighted.T @ y)


def measure_rollouts(repeats: int, shared: int = 20) -> float:
    """How often a plain NumPy loop over replicates holds one pass over all: 100 roll-outs x 100 steps each, refit too.

    Ten starts with ten roll-outs each; the rival's noise is drawn anew, ours is frozen; both fit the residual noise.
    """
    n, each, rng = 10, 10, np.random.default_rng(2)
    data = make_logs(n)
    weights = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)
    prepared = MODEL.prepare(Problem(data, POLICY), anchor="low")
    x, y = np.hstack([np.ones((data.n_steps, 1)), data.states, data.actions]), prepared.transitions.next_states
    starts = np.repeat(data.states[data.offsets[:-1]], each, axis=0)

    def one(row: np.ndarray) -> float:
        steps = np.repeat(row, HORIZON)
        coefficients = weighted_least_squares(x, y, steps)
        off = y - x @ coefficients
        factor = np.linalg.cholesky((off * steps[:, None]).T @ off / steps.sum())
        state, total = starts, np.zeros(n * each)
        for _ in range(HORIZON):
            action = -0.1 * state[:, :ACTIONS] + np.sqrt(0.5) * rng.normal(size=(n * each, ACTIONS))
            total -= np.abs(state[:, 0])
            inputs = np.hstack([np.ones((n * each, 1)), state, action])
            state = inputs @ coefficients + rng.normal(size=(n * each, STATES)) @ factor.T
        return float(np.average(total.reshape(n, each).mean(axis=1), weights=row))

    ours = prepared.values(weights[:shared])
    theirs = np.array([one(row) for row in weights[:shared]])
    assert np.abs(ours - theirs).max() < 0.2 * np.abs(ours).max()
    ratios = []
    for _ in range(repeats):
        taken = cpu(lambda: prepared.values(weights))
        ratios.append(cpu(lambda: [one(row) for row in weights[:shared]]) * RESAMPLES / shared / taken)
    return float(np.median(ratios))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="write the table into its section of this file")
    options = parser.parse_args()
    made = {n: measure_refits(n, options.repeats) for n in options.sizes}
    lines = [
        f"## Linear models: 12 features, {STATES} targets, horizon {HORIZON}, B = {RESAMPLES:,}",
        "",
        "| faster by | " + " | ".join(f"n = {n:,}" for n in made) + " |",
        "|---|" + "---:|" * len(made),
    ]
    for label in next(iter(made.values())):
        lines.append(f"| {label} | " + " | ".join(f"{ratios[label]:,.0f} ×" for ratios in made.values()) + " |")
    ratio = measure_rollouts(options.repeats)
    lines += [
        "",
        f"{RESAMPLES:,} replicates × 100 roll-outs × {HORIZON} steps in one pass, refits included: {ratio:.1f} times "
        "as fast as a NumPy loop over replicates.",
    ]
    text = "\n".join(lines)
    publish(text, options.out)


if __name__ == "__main__":
    main()
