"""Bootstrap of a tabular model with exact evaluation, as ratios within one run: part of `make bench`.

3 actions, horizon 100, n = 5,000 trajectories, B = 2,000 replicates; 1,000 states with about 15,000 distinct
transitions, and 1,102 states with one next state for each action, as in a discretised MountainCar. Rivals run a few
replicates and are scaled up. One thread, CPU time, rounds interleaved, medians of ratios.
"""

from __future__ import annotations

import os

for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"):
    os.environ[name] = "1"

import argparse
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy import sparse
from sections import publish

import tightrope
from tightrope.base.problem import Problem
from tightrope.domains import FiniteMDP
from tightrope.estimators import WDR
from tightrope.models import Rollouts, TabularModel

ACTIONS, HORIZON, EPISODES, RESAMPLES = 3, 100, 5000, 2000


def make_problem(n_states: int, n_next: int) -> Problem:
    """Random dynamics with ``n_next`` next states after each pair, and a random candidate."""
    rng = np.random.default_rng(0)
    transition = np.zeros((n_states, ACTIONS, n_states + 1))
    for state in range(n_states):
        for action in range(ACTIONS):
            after = rng.choice(n_states, n_next, replace=False)
            transition[state, action, after] = 0.995 * rng.dirichlet(np.ones(n_next))
            transition[state, action, n_states] = 0.005
    mdp = FiniteMDP(transition, -np.ones_like(transition), np.full(n_states, 1 / n_states), HORIZON)
    behavior = tightrope.TabularPolicy(np.full((n_states, ACTIONS), 1 / ACTIONS))
    candidate = tightrope.TabularPolicy(rng.dirichlet(np.full(ACTIONS, 5.0), size=n_states))
    return Problem(mdp.simulate(behavior, EPISODES, rng=rng), candidate)


class Rivals:
    """Count with NumPy, then evaluate with dense or sparse matrices, one replicate after the other."""

    def __init__(self, problem: Problem):
        data = problem.dataset
        assert data.states is not None
        assert data.actions is not None
        assert data.final_states is not None
        self.probs = problem.policy.table[0] if problem.policy.table.ndim == 3 else problem.policy.table
        self.n_states = len(self.probs)
        following = np.append(data.states[1:], 0)
        following[data.offsets[1:] - 1] = data.final_states
        self.pair = data.states * ACTIONS + data.actions
        self.arc = self.pair * (self.n_states + 1) + following
        self.rewards, self.lengths, self.starts = data.rewards, data.lengths, data.states[data.offsets[:-1]]

    def _model(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        steps = np.repeat(weights, self.lengths)
        arcs = np.bincount(self.arc, weights=steps, minlength=self.n_states * ACTIONS * (self.n_states + 1))
        visits = np.bincount(self.pair, weights=steps, minlength=self.n_states * ACTIONS)
        rewards = np.bincount(self.pair, weights=steps * self.rewards, minlength=self.n_states * ACTIONS)
        arcs = arcs.reshape(self.n_states * ACTIONS, self.n_states + 1)
        seen = np.maximum(visits, 1e-300)
        return arcs / seen[:, None], np.where(visits > 0, rewards / seen, -1.0), visits

    def _evaluate(self, transition: object, rewards: np.ndarray, weights: np.ndarray) -> float:
        ahead = np.zeros(self.n_states + 1)
        for _ in range(HORIZON):
            q = (rewards + transition @ ahead).reshape(self.n_states, ACTIONS)
            ahead = np.append((self.probs * q).sum(axis=1), 0.0)
        return float(np.average(ahead[self.starts], weights=weights))

    def dense(self, weights: np.ndarray) -> float:
        transition, rewards, _ = self._model(weights)
        return self._evaluate(transition, rewards, weights)

    def sparse(self, weights: np.ndarray) -> float:
        transition, rewards, _ = self._model(weights)
        return self._evaluate(sparse.csr_array(transition), rewards, weights)

    def sparse_counts(self, weights: np.ndarray) -> float:
        """The same with counts kept sparse throughout, as an expert would."""
        steps = np.repeat(weights, self.lengths)
        rows, columns = np.divmod(self.arc, self.n_states + 1)
        shape = (self.n_states * ACTIONS, self.n_states + 1)
        counts = sparse.coo_array((steps, (rows, columns)), shape=shape).tocsr()
        visits = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1e-300)
        rewards = np.bincount(self.pair, weights=steps * self.rewards, minlength=self.n_states * ACTIONS)
        transition = sparse.diags_array(1 / visits) @ counts
        return self._evaluate(transition, np.where(visits > 1e-200, rewards / visits, -1.0), weights)


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def measure(n_states: int, n_next: int, repeats: int) -> tuple[int, dict[str, float]]:
    """How many transitions there are, and how often each rival's time holds ours."""
    problem = make_problem(n_states, n_next)
    model = TabularModel(unseen="terminate", unseen_reward=-1.0)
    prepared = model.prepare(problem, anchor="low")
    others = {
        "takes, of this time: 100 roll-outs in every replicate instead": replace(model, rollouts=Rollouts(100))
        .prepare(problem, anchor="low")
        .values,
        "takes, of this time: WDR with a model per resample": WDR(model, fit="refit")(problem),
    }
    rivals = Rivals(problem)
    weights = tightrope.draw_weights(EPISODES, RESAMPLES, seed=0)
    for row, value in zip(weights, prepared.values(weights[:3]), strict=False):
        assert abs(rivals.sparse_counts(row) - value) < 1e-9
    shares = {
        "dense transition matrices": (rivals.dense, 2),
        "SciPy sparse matrices from dense counts": (rivals.sparse, 4),
        "SciPy sparse matrices throughout": (rivals.sparse_counts, 8),
    }
    for way in others.values():
        way(weights[:8])
    ratios: dict[str, list[float]] = {label: [] for label in (*shares, *others)}
    for _ in range(repeats):
        ours = cpu(lambda: prepared.values(weights))
        for label, (way, count) in shares.items():
            theirs = cpu(lambda way=way, count=count: [way(row) for row in weights[:count]]) * RESAMPLES / count
            ratios[label].append(theirs / ours)
        for label, way in others.items():
            ratios[label].append(cpu(lambda way=way: way(weights)) / ours)
    return len(prepared.arc_pair), {label: float(np.median(found)) for label, found in ratios.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--out", type=Path, default=None, help="write the table into its section of this file")
    options = parser.parse_args()
    made = {
        (n_states, n_next): measure(n_states, n_next, options.repeats) for n_states, n_next in ((1000, 5), (1102, 1))
    }
    titles = [f"{n_states:,} states, {arcs:,} transitions" for (n_states, _), (arcs, _) in made.items()]
    lines = [
        f"## Tabular models: {ACTIONS} actions, horizon {HORIZON}, n = {EPISODES:,}, B = {RESAMPLES:,}",
        "",
        f"| refit and exact evaluation of every replicate is faster than | {' | '.join(titles)} |",
        "|---|" + "---:|" * len(titles),
    ]
    labels = next(iter(made.values()))[1]
    for label in labels:
        lines.append(
            f"| {label} | "
            + " | ".join(f"{ratios[label]:,.{1 if ratios[label] < 10 else 0}f} ×" for _, ratios in made.values())
            + " |"
        )
    text = "\n".join(lines)
    publish(text, options.out)


if __name__ == "__main__":
    main()
