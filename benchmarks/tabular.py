"""Bootstrap of a tabular model with exact evaluation, as ratios within one run: part of `make bench`.

1,000 states, 3 actions, horizon 100, about 15,000 distinct transitions, n = 5,000 trajectories, B = 2,000 replicates.
Rivals run a few replicates and are scaled up. One thread, CPU time.
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
from scipy import sparse

import tightrope
from tightrope.domains import FiniteMDP
from tightrope.models import TabularModel
from tightrope.problem import Problem

STATES, ACTIONS, HORIZON, EPISODES, RESAMPLES = 1000, 3, 100, 5000, 2000


def make_problem() -> Problem:
    rng = np.random.default_rng(0)
    transition = np.zeros((STATES, ACTIONS, STATES + 1))
    for state in range(STATES):
        for action in range(ACTIONS):
            transition[state, action, rng.choice(STATES, 5, replace=False)] = 0.995 * rng.dirichlet(np.ones(5))
            transition[state, action, STATES] = 0.005
    mdp = FiniteMDP(transition, -np.ones_like(transition), np.full(STATES, 1 / STATES), HORIZON)
    behavior = tightrope.TabularPolicy(np.full((STATES, ACTIONS), 1 / ACTIONS))
    candidate = tightrope.TabularPolicy(rng.dirichlet(np.full(ACTIONS, 5.0), size=STATES))
    return Problem(mdp.simulate(behavior, EPISODES, rng=rng), candidate)


class Rivals:
    """Count with NumPy, then evaluate with dense or sparse matrices, one replicate after the other."""

    def __init__(self, problem: Problem):
        data = problem.dataset
        assert data.states is not None
        assert data.actions is not None
        assert data.final_states is not None
        self.probs = problem.policy.probs(np.arange(STATES), np.zeros(STATES, dtype=int))
        following = np.append(data.states[1:], 0)
        following[data.offsets[1:] - 1] = data.final_states
        self.pair = data.states * ACTIONS + data.actions
        self.arc = self.pair * (STATES + 1) + following
        self.rewards, self.lengths, self.starts = data.rewards, data.lengths, data.states[data.offsets[:-1]]

    def _model(self, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        steps = np.repeat(weights, self.lengths)
        arcs = np.bincount(self.arc, weights=steps, minlength=STATES * ACTIONS * (STATES + 1))
        visits = np.bincount(self.pair, weights=steps, minlength=STATES * ACTIONS)
        rewards = np.bincount(self.pair, weights=steps * self.rewards, minlength=STATES * ACTIONS)
        arcs = arcs.reshape(STATES * ACTIONS, STATES + 1)
        seen = np.maximum(visits, 1e-300)
        return arcs / seen[:, None], np.where(visits > 0, rewards / seen, -1.0), visits

    def _evaluate(self, transition: object, rewards: np.ndarray, weights: np.ndarray) -> float:
        ahead = np.zeros(STATES + 1)
        for _ in range(HORIZON):
            q = (rewards + transition @ ahead).reshape(STATES, ACTIONS)
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
        rows, columns = np.divmod(self.arc, STATES + 1)
        shape = (STATES * ACTIONS, STATES + 1)
        counts = sparse.coo_array((steps, (rows, columns)), shape=shape).tocsr()
        visits = np.maximum(np.asarray(counts.sum(axis=1)).ravel(), 1e-300)
        rewards = np.bincount(self.pair, weights=steps * self.rewards, minlength=STATES * ACTIONS)
        transition = sparse.diags_array(1 / visits) @ counts
        return self._evaluate(transition, np.where(visits > 1e-200, rewards / visits, -1.0), weights)


def cpu(call: Callable[[], object]) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=None, help="append the table to this file")
    options = parser.parse_args()
    problem = make_problem()
    prepared = TabularModel(unseen_reward=-1.0).prepare(problem, anchor="low")
    rivals = Rivals(problem)
    weights = tightrope.draw_weights(EPISODES, RESAMPLES, rng=0)
    prepared.values(weights[:8])
    agree = [
        abs(rivals.sparse_counts(row) - value)
        for row, value in zip(weights, prepared.values(weights[:3]), strict=False)
    ]
    assert max(agree) < 0.2, agree  # they differ only in what follows unseen pairs
    ours = float(np.median([cpu(lambda: prepared.values(weights)) for _ in range(5)]))
    lines = [
        "",
        f"## Tabular models: {STATES} states, {ACTIONS} actions, horizon {HORIZON}, {len(prepared.arc_pair)} "
        f"transitions, n = {EPISODES}, B = {RESAMPLES}",
        "",
        "| refit and exact evaluation of every replicate is faster than | |",
        "|---|---:|",
    ]
    for label, way, count in (
        ("dense transition matrices", rivals.dense, 4),
        ("SciPy sparse matrices from dense counts", rivals.sparse, 8),
        ("SciPy sparse matrices throughout", rivals.sparse_counts, 16),
    ):
        seconds = cpu(lambda way=way, count=count: [way(row) for row in weights[:count]]) * RESAMPLES / count
        lines.append(f"| {label} | {seconds / ours:.1f} × |")
    text = "\n".join([*lines, ""])
    print(text)
    if options.out is not None:
        options.out.write_text(options.out.read_text(encoding="utf-8") + text, encoding="utf-8")


if __name__ == "__main__":
    main()
