"""How often the rehearsed bound errs where states are quantities, and how far it lies from the truth (docs/tether.md).

    python benchmarks/linear_rehearsal.py --first 0 --last 100 --journal build/linear_rehearsal.jsonl

Every data set depends on its problem, its size and its number alone, and each is one line of the journal: several runs
may share one, and a run that was ended goes on where it stood. A line takes 1 to 2 seconds of one core, of MountainCar
4 to 8; so MountainCar has every sixth number only. The table in docs/tether.md holds the numbers below 93, of "known
cliff" below 67, of MountainCar below 289.

- drift: s' = 0.8 s + 0.4 (2a − 1) + N(0, 0.3²), r = s, 15 steps. The behaviour policy takes a = 1 half of the time, the
  candidate three times out of four. Linear and Gaussian: all values are exact, and the linear models are right.
- rare loss: the same, and after a = 1 one step in 50 loses 30. Exact too.
- cliff: drift that loses 30 in every step with s > 2.2, which logs of 20 episodes seldom hold: a linear model is wrong.
- known cliff: the same logs; the models are told the reward as a function of the state, and learn the moves alone.
- MountainCar: position and velocity as floats; rewards and the goal are known, moves are not linear.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tightrope
from tightrope import TrajectoryDataset
from tightrope.base.policy.discrete import Discrete
from tightrope.bounds import Rehearsed
from tightrope.domains import MountainCar
from tightrope.models import FittedQ, LinearModel

HORIZON, LOSS, RARE, CLIFF = 15, 30.0, 0.02, 2.2
SIZES, EVERY_SIXTH = (20, 50), 6
CAR = MountainCar()
PAIRS = (("wdr", "rehearsed"), ("wdr", "studentized"), ("pdwis", "studentized"), ("is", "percentile"), (None, None))


class Fixed(Discrete):
    """Action 1 with the same probability everywhere."""

    def __init__(self, chance: float):
        self.chance = chance

    def probs(self, states: Any, t: Any) -> Any:
        return np.tile([1 - self.chance, self.chance], (len(states), 1))


class Snapped(Discrete):
    """A policy of MountainCar's cells, for positions and velocities."""

    def __init__(self, table: Any):
        self.table = table

    def probs(self, states: Any, t: Any) -> Any:
        position = np.clip(states[:, 0], CAR.min_position, CAR.max_position)
        return self.table[CAR.snap(position, np.clip(states[:, 1], -CAR.max_speed, CAR.max_speed))]


def drift(n: int, rng: np.random.Generator, *, rare: float = 0.0, cliff: float = np.inf, chance: float = 0.5) -> Any:
    """Logs of a fixed policy."""
    state, columns = rng.normal(size=n), []
    for _ in range(HORIZON):
        action = (rng.random(n) < chance).astype(np.int64)
        lost = ((rng.random(n) < rare) & (action == 1)) | (state > cliff)
        columns.append((state, action, state - LOSS * lost))
        state = 0.8 * state + 0.4 * (2 * action - 1) + 0.3 * rng.standard_normal(n)
    states, actions, rewards = (np.array(one).T.ravel() for one in zip(*columns, strict=True))
    low = -8.0 - LOSS * (rare > 0 or cliff < np.inf)
    return TrajectoryDataset(
        offsets=np.arange(0, n * HORIZON + 1, HORIZON), rewards=np.clip(rewards, low, 8.0), horizon=HORIZON,
        terminated=np.zeros(n, dtype=bool), states=states[:, None], actions=actions.astype(np.int64),
        behavior_log_probs=np.full(n * HORIZON, np.log(0.5)), final_states=state[:, None], reward_range=(low, 8.0),
        behavior=Fixed(0.5),
    )  # fmt: skip


def drift_value(chance: float, rare: float) -> float:
    """The exact value of taking action 1 with this probability: means follow a line."""
    mean, value = 0.0, 0.0
    for _ in range(HORIZON):
        value += mean - rare * LOSS * chance
        mean = 0.8 * mean + 0.4 * (2 * chance - 1)
    return value


def cliff_value() -> float:
    """From a million episodes of the candidate; the standard error is 0.03."""
    blocks = [drift(100_000, np.random.default_rng([99, k]), cliff=CLIFF, chance=0.75).returns for k in range(10)]
    return float(np.concatenate(blocks).mean())


def car(n: int, rng: np.random.Generator) -> TrajectoryDataset:
    """MountainCar's logs with floats for states."""
    data = CAR.logs(n, rng=rng)
    places = np.column_stack([CAR.positions, CAR.velocities])
    return TrajectoryDataset(
        offsets=data.offsets, rewards=data.rewards, terminated=data.terminated, horizon=data.horizon,
        behavior_log_probs=data.behavior_log_probs, states=places[data.states], actions=data.actions,
        final_states=places[data.final_states], reward_range=data.reward_range, return_range=data.return_range,
        behavior=Snapped(CAR.behavior.table),
    )  # fmt: skip


class Cell(NamedTuple):
    logs: Callable[[int, np.random.Generator], TrajectoryDataset]
    candidate: Any
    truth: float
    world: Any = "auto"


def cells() -> dict[str, Cell]:
    goal = LinearModel(
        reward=lambda s, a, n, t: np.full(len(s), -1.0), terminated=lambda s, a, n, t: n[:, 0] >= 0.5 - 1 / 64
    )
    edge = LinearModel(reward=lambda s, a, n, t: s[:, 0] - LOSS * (s[:, 0] > CLIFF))
    below, value = (lambda n, rng: drift(n, rng, cliff=CLIFF)), cliff_value()
    return {
        "drift": Cell(drift, Fixed(0.75), drift_value(0.75, 0.0)),
        "rare loss": Cell(lambda n, rng: drift(n, rng, rare=RARE), Fixed(0.75), drift_value(0.75, RARE)),
        "cliff": Cell(below, Fixed(0.75), value),
        "known cliff": Cell(below, Fixed(0.75), value, edge),
        "MountainCar": Cell(car, Snapped(CAR.candidate.table), CAR.true_value, goal),
    }


def bounds(cell: Cell, logs: TrajectoryDataset, number: int) -> Iterator[tuple[str, float]]:
    """Every pair's bound, and the recommended one."""
    for estimator, method in PAIRS:
        shared: dict[str, Any] = {"n_resamples": 1000, "seed": number, "n_jobs": 1}
        if estimator is not None:
            shared |= {"estimator": estimator, "method": method}
        if method == "rehearsed":
            shared["method"] = Rehearsed(world=cell.world)
        if estimator == "wdr":
            shared["model"] = FittedQ()
        yield (
            f"{estimator}/{method}" if estimator else "recommended",
            tightrope.lower_bound(logs, cell.candidate, **shared).value,
        )


def run(journal: Path, first: int, last: int, only: str | None) -> None:
    every = {name: cell for name, cell in cells().items() if only in (None, name)}
    known = {(line["problem"], line["n"], line["number"]) for line in lines(journal)}
    with journal.open("a", encoding="utf-8") as out:
        for number in range(first, last):
            for name, cell in every.items():
                if name == "MountainCar" and number % EVERY_SIXTH:
                    continue
                for n in SIZES:
                    if (name, n, number) in known:
                        continue
                    logs = cell.logs(n, np.random.default_rng([2026, n, number, *name.removeprefix("known ").encode()]))
                    line = {"problem": name, "n": n, "number": number, "truth": cell.truth}
                    out.write(json.dumps(line | {"bounds": dict(bounds(cell, logs, number))}) + "\n")
                    out.flush()


def lines(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text(encoding="utf-8").splitlines()] if journal.exists() else []


def table(journal: Path) -> str:
    """Errors and mean bounds of every pair."""
    every = lines(journal)
    pairs = list(every[0]["bounds"])
    rows = ["| problem, n | " + " | ".join(pairs) + " |", "|---" * (1 + len(pairs)) + "|"]
    for name, n in dict.fromkeys((line["problem"], line["n"]) for line in every):
        here = [line for line in every if (line["problem"], line["n"]) == (name, n)]
        row = [f"{name} {here[0]['truth']:.2f}, n = {n}"]
        for pair in pairs:
            values = np.array([line["bounds"][pair] for line in here])
            row.append(f"{(values > here[0]['truth']).sum()} of {len(values)}, {values.mean():.1f}")
        rows.append("| " + " | ".join(row) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--last", type=int, default=100, help="the first number that is left out")
    parser.add_argument("--only", help="the problem, where it is not all of them")
    parser.add_argument("--journal", type=Path, default=Path("build/linear_rehearsal.jsonl"))
    asked = parser.parse_args()
    asked.journal.parent.mkdir(parents=True, exist_ok=True)
    run(asked.journal, asked.first, asked.last, asked.only)
    print(table(asked.journal))
