"""How fast linear fitted Q evaluation is refitted for every replicate, as ratios within one run.

One thread, CPU time, T = 100, B = 2000, 15 features (3 actions, 4 numbers of state). Rivals run one replicate,
scikit-learn a tenth of one, and are scaled up; rounds are interleaved, the least time of each counts. Absolute times
mean nothing; ratios do. Needs scikit-learn.
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

from tightrope import SoftmaxPolicy, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.estimators import FQE
from tightrope.models import FittedQ

HORIZON, RESAMPLES, STATES, ACTIONS, DISCOUNT = 100, 2000, 4, 3, 0.99
TASTE = np.random.default_rng(9).normal(size=(STATES, ACTIONS))
POLICY = SoftmaxPolicy(lambda s, t: s @ TASTE)
MODEL = FittedQ(stationary=True)


def make_logs(n: int, seed: int = 0) -> TrajectoryDataset:
    """A stable linear system, pushed by random actions."""
    rng = np.random.default_rng(seed)
    push = 0.3 * rng.normal(size=(ACTIONS, STATES))
    states, actions = np.empty((n, HORIZON, STATES)), rng.integers(ACTIONS, size=(n, HORIZON))
    state = rng.normal(size=(n, STATES))
    for t in range(HORIZON):
        states[:, t] = state
        state = 0.9 * state + push[actions[:, t]] + 0.2 * rng.normal(size=(n, STATES))
    return TrajectoryDataset(
        offsets=np.arange(n + 1) * HORIZON,
        rewards=(states[..., 0] + 0.1 * actions).ravel(),
        terminated=np.zeros(n, bool),
        horizon=HORIZON,
        discount=DISCOUNT,
        states=states.reshape(-1, STATES),
        actions=actions.ravel(),
        final_states=state,
    )


class Loop:
    """What a user would write: features once, then for every resample a fit at every time, backwards."""

    def __init__(self, data: TrajectoryDataset):
        self.rewards = data.rewards
        self.taken = self._features(data.states, data.actions)
        following = np.concatenate([data.states[1:], data.states[:1]])
        following[data.offsets[1:] - 1] = data.final_states
        self.following, self.starts = self._expected(following), self._expected(data.states[data.offsets[:-1]])

    def _features(self, states: np.ndarray, actions: np.ndarray) -> np.ndarray:
        block = np.hstack([np.ones((len(states), 1)), states])
        return ((actions[:, None] == np.arange(ACTIONS))[:, :, None] * block[:, None]).reshape(len(states), -1)

    def _expected(self, states: np.ndarray) -> np.ndarray:
        probs = POLICY.probs(states, np.zeros(len(states), dtype=int))
        return sum(p[:, None] * self._features(states, np.full(len(states), a)) for a, p in enumerate(probs.T))

    def normal_equations(self, row: np.ndarray) -> float:
        """Their matrix is inverted once for every resample; their right side is new at every time."""
        weighted = self.taken * np.repeat(row, HORIZON)[:, None]
        inverse, beta = np.linalg.inv(weighted.T @ self.taken), np.zeros(self.taken.shape[1])
        for _ in range(HORIZON):
            beta = inverse @ (weighted.T @ (self.rewards + DISCOUNT * self.following @ beta))
        return float(np.average(self.starts @ beta, weights=row))

    def scikit_learn(self, row: np.ndarray, times: int = HORIZON) -> float:
        """``LinearRegression`` at every time."""
        weights, ahead = np.repeat(row, HORIZON), np.zeros(len(self.rewards))
        for _ in range(times):
            fitted = LinearRegression(fit_intercept=False)
            fitted.fit(self.taken, self.rewards + DISCOUNT * ahead, sample_weight=weights)
            ahead = fitted.predict(self.following)
        return float(np.average(fitted.predict(self.starts), weights=row))


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(n: int, repeats: int) -> dict[str, float]:
    """How often each rival's time holds ours, and how much longer we take than the product alone."""
    data = make_logs(n)
    weights = np.random.default_rng(1).multinomial(n, np.full(n, 1 / n), size=RESAMPLES).astype(float)
    loop, statistic = Loop(data), FQE(MODEL)(Problem(data, POLICY))
    for rival in (loop.normal_equations, loop.scikit_learn):
        assert abs(rival(weights[0]) - float(statistic(weights[0]))) < 1e-6, "they compute the same"
    sums, few = statistic.model.sums.sums, HORIZON // 10
    calls = {  # what is timed, and how often it would have to be done
        "refits": (lambda: statistic(weights), 1),
        "product": (lambda: weights @ sums, 1),
        "pass": (lambda: MODEL.prepare(Problem(data, POLICY), anchor="low"), 1),
        "a NumPy loop of normal equations": (lambda: loop.normal_equations(weights[0]), RESAMPLES),
        "scikit-learn": (lambda: loop.scikit_learn(weights[0], few), RESAMPLES * HORIZON // few),
    }
    rounds = [{name: cpu(call) * times for name, (call, times) in calls.items()} for _ in range(repeats)]
    least = {name: min(each[name] for each in rounds) for name in calls}  # what else the machine does only adds
    ratios = {}
    for rival in list(calls)[3:]:
        ratios[f"refits, faster than {rival}"] = least[rival] / least["refits"]
        ratios[f"with the pass over the logs, faster than {rival}"] = least[rival] / (least["refits"] + least["pass"])
    ratios["refits take, of the product `weights @ sums` alone"] = least["refits"] / least["product"]
    return ratios


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[200, 1_000])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="write the table into its section of this file")
    options = parser.parse_args()
    made = {n: measure(n, options.repeats) for n in options.sizes}
    lines = [
        f"## Fitted Q evaluation: {ACTIONS * (1 + STATES)} features, horizon {HORIZON}, B = {RESAMPLES:,}",
        "",
        "| | " + " | ".join(f"n = {n:,}" for n in made) + " |",
        "|---|" + "---:|" * len(made),
    ]
    for label in next(iter(made.values())):
        cells = [f"{ratios[label]:,.{0 if ratios[label] >= 10 else 1}f} ×" for ratios in made.values()]
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    publish("\n".join(lines), options.out)


if __name__ == "__main__":
    main()
