"""What a user gets: `evaluate` with default threads against one thread, on a quiet and on a busy machine.

Every measurement is a process of its own, since libraries read their number of threads when they are loaded. Default
and one thread take turns, round by round, without and with one other process that spins; ratios are within a round, and
their median is told. Absolute times mean nothing; ratios do.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
from sections import publish

import tightrope
from tightrope.models import LinearModel

THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")
STATES = ("quiet", "busy")


def propensities(n: int, horizon: int = 5) -> tightrope.TrajectoryDataset:
    """Logged probabilities of both policies, and nothing else."""
    rng = np.random.default_rng(0)
    behavior = rng.uniform(0.3, 0.7, n * horizon)
    return tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1) * horizon,
        rewards=rng.random(n * horizon),
        terminated=np.zeros(n, dtype=bool),
        horizon=horizon,
        behavior_log_probs=np.log(behavior),
        eval_log_probs=np.log(behavior * np.exp(rng.normal(-0.1, 0.1, n * horizon)).clip(max=1.4)),
        reward_range=(0, 1),
    )


def motion(n: int, horizon: int = 20) -> tightrope.TrajectoryDataset:
    """Seven numbers as state, four as action, moved linearly."""
    rng = np.random.default_rng(0)
    states, actions = np.empty((n, horizon, 7)), rng.normal(size=(n, horizon, 4))
    state, push = rng.normal(size=(n, 7)), 0.1 * rng.normal(size=(4, 7))
    for t in range(horizon):
        states[:, t] = state
        state = 0.9 * state + actions[:, t] @ push + 0.1 * rng.normal(size=(n, 7))
    return tightrope.TrajectoryDataset(
        offsets=np.arange(n + 1) * horizon,
        rewards=-np.abs(states[..., 0]).ravel(),
        terminated=np.zeros(n, dtype=bool),
        horizon=horizon,
        states=states.reshape(-1, 7),
        actions=actions.reshape(-1, 4),
        final_states=state,
        behavior_log_probs=(-0.5 * actions**2 - 0.5 * np.log(2 * np.pi)).sum(axis=2).ravel(),
    )


POLICY = tightrope.GaussianPolicy(lambda s, t: -0.02 * s[:, :4], np.eye(4))
MODEL = LinearModel(reward=lambda s, a, after, t: -np.abs(s[:, 0]), point_rollouts=2000)

# What is measured: how many episodes a warm-up has, how many the measurement, and the call.
Case = tuple[int, int, Callable[[int], object]]
CASES: dict[str, Case] = {
    "50,000 episodes of 5 steps, B = 500": (
        1000, 50_000, lambda n: tightrope.evaluate(propensities(n), n_resamples=500, seed=0),
    ),
    "1,000,000 episodes of 5 steps, B = 2,000": (
        1000, 1_000_000, lambda n: tightrope.evaluate(propensities(n), seed=0),
    ),
    "10,000 episodes of 100 steps, B = 2,000": (
        1000, 10_000, lambda n: tightrope.evaluate(propensities(n, 100), seed=0),
    ),
    "1,000 episodes of 20 steps, a linear model, B = 500": (
        50, 1000,
        lambda n: tightrope.evaluate(
            motion(n), POLICY, estimators=["mb", "wdr"], methods=["percentile"], model=MODEL, n_resamples=500, seed=0
        ),
    ),
    "2,000 episodes of 20 steps, a behaviour policy estimated, B = 200": (
        100, 2000,
        lambda n: tightrope.evaluate(
            motion(n), POLICY, estimators=["wis"], methods=["studentized"], behavior="gaussian", n_resamples=200, seed=0
        ),
    ),
}  # fmt: skip


def once(name: str) -> None:
    """Measure one case in this process, with the threads it was given."""
    few, many, call = CASES[name]
    call(few)  # compiles, or loads what was compiled
    wall, cpu = time.perf_counter(), time.process_time()
    call(many)
    print(json.dumps([time.perf_counter() - wall, time.process_time() - cpu]))


def seconds(name: str, threads: str | None) -> list[float]:
    """Wall and CPU seconds of a case in a process with that many threads; None: as many as libraries choose."""
    environment = {key: value for key, value in os.environ.items() if key not in THREADS}
    environment |= {} if threads is None else dict.fromkeys(THREADS, threads)
    command = [sys.executable, __file__, "--case", name]
    told = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True).stdout
    found: list[float] = json.loads(told.splitlines()[-1])
    return found


@contextmanager
def machine(state: str) -> Iterator[None]:
    """The machine as it is, or with one more process that spins."""
    spinning = subprocess.Popen([sys.executable, "-c", "while True: pass"]) if state == "busy" else None
    try:
        yield
    finally:
        if spinning is not None:
            spinning.kill()
            spinning.wait()


def ratios(name: str, repeats: int) -> dict[str, list[float]]:
    """Default over one thread, by the machine's state: medians of wall and CPU time."""
    found: dict[str, list[list[float]]] = {state: [] for state in STATES}
    for number in range(repeats):
        for state in STATES:
            with machine(state):
                order = (None, "1") if number % 2 else ("1", None)  # neither is always the first
                taken = {threads: seconds(name, threads) for threads in order}
            found[state].append([a / b for a, b in zip(taken[None], taken["1"], strict=True)])
    return {state: np.median(rounds, axis=0).tolist() for state, rounds in found.items()}


def render(results: dict[str, dict[str, list[float]]], repeats: int, load: float) -> str:
    lines = [
        f"## Default threads against one thread: `evaluate` on {os.cpu_count()} cores, {repeats} rounds",
        "",
        "How many times as long as with `OMP_NUM_THREADS=1` the same call takes with the threads that libraries choose",
        "by themselves: 1 is as fast, above it slower. Busy: beside one other process that spins. Others' processes",
        f"blur wall times more than CPU times; the load average was {load:.1f} when this began.",
        "",
        "| `evaluate` | quiet, wall time | quiet, CPU time | busy, wall time | busy, CPU time |",
        "|---|---:|---:|---:|---:|",
    ]
    for name, found in results.items():
        cells = [f"{ratio:.2f}" for state in STATES for ratio in found[state]]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--case", help="measure this one here, for the process that compares")
    parser.add_argument("--only", nargs="+", type=int, help="numbers of the cases, from 0")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None)
    options = parser.parse_args()
    if options.case:
        once(options.case)
        return
    results, load = {}, os.getloadavg()[0]
    for number, name in enumerate(CASES):
        if options.only is None or number in options.only:
            print(f"{name} ...", flush=True)
            results[name] = ratios(name, options.repeats)
    publish(render(results, options.repeats, load), options.out)


if __name__ == "__main__":
    main()
