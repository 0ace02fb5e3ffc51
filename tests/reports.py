"""Evaluations that call for different reports: clear yes, clear no, cannot tell, broken overlap, and some corners."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np

import tightrope
from tightrope.base.beside import Provenance
from tightrope.domains import situations, small
from tightrope.evaluation.verdict import verdict

ORIGIN = Provenance(
    versions={"python": "3.11.9", "tightrope": "1.0", "numpy": "2.0.0", "scipy": "1.13.0"},
    command="tightrope evaluate visits.parquet --policy policy.npz --one-step --threshold 0.45 --report out.html",
    source="visits.parquet",
    sha256="0123456789abcdef" * 4,
    policy="policy.npz as it acts, with its own probabilities",
    policy_sha256="fedcba9876543210" * 4,
    date="2026-01-31",
)


@cache
def report_of(name: str) -> tightrope.Evaluation:
    return replace(MAKERS[name](), provenance=ORIGIN)  # as a command gives it


@cache
def _both_sides() -> tightrope.Evaluation:
    problem = small("walker")
    data = problem.logs(1000, rng=np.random.default_rng(0))
    return tightrope.evaluate(data, problem.candidate, side="both")


def _walker(threshold: float) -> tightrope.Evaluation:
    """The same bounds for every threshold: it enters the verdict alone."""
    result = _both_sides()
    return replace(result, verdict=verdict(result.believed, result.advice, threshold=threshold, possible=(-32.0, 0.0)))


def _broken() -> tightrope.Evaluation:
    """The logs hold one action per state, the candidate mostly takes the other."""
    problem = situations()[3]
    return tightrope.evaluate(problem.logs(300, rng=np.random.default_rng(1)), problem.candidate, threshold=2.0)


def _heavy() -> tightrope.Evaluation:
    """Forty steps apart: one trajectory carries everything, bounds are infinite."""
    rng = np.random.default_rng(0)
    n, horizon = 30, 40
    action = rng.integers(2, size=n * horizon)
    columns = {
        "episode": np.repeat([f"<script>alert({i})</script>" for i in range(n)], horizon),
        "t": np.tile(np.arange(horizon), n),
        "action": action,
        "reward": rng.random(n * horizon),
        "behavior_prob": np.full(n * horizon, 0.5),
        "eval_prob": np.where(action == 1, 0.99, 0.01),
    }
    return tightrope.evaluate(tightrope.read(columns), threshold=20.0)


def _unsupported() -> tightrope.Evaluation:
    """No logged episode could have come from the candidate: there are no ratios, only a model."""
    problem = situations()[2]
    return tightrope.evaluate(problem.logs(200, rng=np.random.default_rng(1)), problem.candidate)


def _every_method() -> tightrope.Evaluation:
    """One step, no threshold, all methods: the longest forest."""
    problem = small("clinic")
    data = problem.logs(300, rng=np.random.default_rng(1))
    methods = list(tightrope.bounds.METHODS)
    return tightrope.evaluate(data, problem.candidate, methods=methods, max_ratio=4.5, true_value=problem.true_value)


def _one_step() -> tightrope.Evaluation:
    """Logs of a bandit."""
    problem = small("clinic")
    return tightrope.evaluate(problem.logs(400, rng=np.random.default_rng(2)), problem.candidate, threshold=0.45)


def _no_propensities() -> tightrope.Evaluation:
    """Better than the behaviour policy? Asked of logs without probabilities, so that these are estimated."""
    problem = small("clinic")
    data = replace(problem.logs(200, rng=np.random.default_rng(0)), behavior_log_probs=None, behavior=None)
    return tightrope.evaluate(data, problem.candidate, behavior="auto", baseline="behavior")


MAKERS = {
    "clear yes": lambda: _walker(-14.0),
    "clear no": lambda: _walker(-9.0),
    "cannot tell": lambda: _walker(-10.8),
    "broken overlap": _broken,
    "one heavy trajectory": _heavy,
    "no common support": _unsupported,
    "every method": _every_method,
    "one step": _one_step,
    "no propensities": _no_propensities,
}
SITUATIONS = ("clear yes", "clear no", "cannot tell", "broken overlap", "one step", "no propensities")  # the usual ones
