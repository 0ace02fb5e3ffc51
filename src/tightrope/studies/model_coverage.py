"""Measured error rates of MB, DR and WDR, by where the model comes from and what it says of pairs it never saw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope import api
from tightrope.base.errors import TightropeError
from tightrope.base.records import Side
from tightrope.domains import SMALL, SmallProblem, situations, small
from tightrope.estimators import DR, MB, WDR, Estimator
from tightrope.models import TabularModel

METHODS = ("percentile", "bca", "studentized")
SIZES = (20, 200)

_TRAP = TabularModel(unseen="self-loop", unseen_reward=0.0)
VARIANTS: dict[str, Estimator] = {
    "mb": MB(),
    "mb, unseen pairs earn 0": MB(_TRAP),
    "dr, cross-fitted": DR(),
    "wdr, cross-fitted": WDR(),
    "wdr, one shared model": WDR(fit="shared"),
    "wdr, shared, unseen pairs earn 0": WDR(_TRAP, fit="shared"),
    "wdr, a model per resample": WDR(fit="refit"),
}
TRAPPED = tuple(label for label in VARIANTS if "earn 0" in label)  # shown where it matters

Outcomes = dict[tuple[str, str, Side], list[tuple[float, bool]]]


def problems() -> dict[str, SmallProblem]:
    """The small problems, and one whose model is wrong because part of the state is hidden."""
    hidden = next(problem for problem in situations() if problem.observe is not None)
    return {name: small(name) for name in SMALL} | {"hidden": hidden}


@dataclass(frozen=True)
class ModelTask:
    """Some of the data sets of one problem at one size."""

    problem: str
    n: int
    trials: range


def run(task: ModelTask) -> Outcomes:
    """Lower bounds of every variant on each data set; trial k is the same whatever the task it is part of."""
    problem = problems()[task.problem]
    outcomes: Outcomes = {}
    for trial in task.trials:
        data, weights = np.random.SeedSequence([*task.problem.encode(), task.n, trial, 3]).spawn(2)
        logs = problem.logs(task.n, rng=np.random.default_rng(data))
        for label, estimator in VARIANTS.items():
            if label in TRAPPED and task.problem != "cliff":
                continue
            try:
                result = api.evaluate(logs, problem.candidate, estimators=[estimator], methods=METHODS, seed=weights)
            except TightropeError:  # no overlap at all in this data set: nothing to count for this variant
                continue
            for bound in result.bounds:
                warned = any(warning.code not in ("unlogged-actions", "no-spread") for warning in bound.warnings)
                outcomes.setdefault((label, bound.method, bound.side), []).append((bound.value, warned))
    return outcomes
