"""Measured error rates with a behaviour policy estimated from the same logs, beside those with the true one."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import typer

from tightrope import api
from tightrope.base.dataset import Array
from tightrope.domains import small
from tightrope.io.write import replace_file
from tightrope.studies.coverage import CORE, NOMINAL, SIZES, Outcomes, Task, cells, gather, tasks
from tightrope.studies.pages.behavior import Accuracy, render

ESTIMATORS = ("is", "pdis", "wis", "pdwis", "wdr")
METHODS = ("percentile", "bca")
RESAMPLES = 500
Known = Literal["true", "estimated"]
_ESTIMATE = "estimate"  # stands for the method where the point estimate is kept


def run(task: Task) -> Outcomes:
    """Lower bounds and estimates on each data set, twice: with the logged propensities and with counted ones.

    Names of estimators are followed by "true" or "estimated"; both see the same data and weights.
    """
    problem = small(task.problem)
    outcomes: Outcomes = {}
    for trial in task.trials:
        data, weights = np.random.SeedSequence([*task.problem.encode(), task.n, trial, 7]).spawn(2)
        logs = problem.logs(task.n, rng=np.random.default_rng(data))
        blind = replace(logs, behavior_log_probs=None, behavior=None)
        for known, seen, behavior in (("true", logs, "logged"), ("estimated", blind, "tabular")):
            result = api.evaluate(
                seen,
                problem.candidate,
                estimators=task.estimators,
                methods=task.methods,
                behavior=behavior,
                confidence=1 - NOMINAL,
                n_resamples=RESAMPLES,
                seed=weights,
            )
            for bound in result.bounds:
                name = f"{bound.estimator} {known}"
                outcomes.setdefault((name, bound.method, bound.side), []).append((bound.value, bool(bound.warnings)))
                if bound.method == METHODS[0]:
                    outcomes.setdefault((name, _ESTIMATE, bound.side), []).append((bound.estimate, False))
    return outcomes


def accuracy(problem: str, n: int, outcomes: Outcomes) -> list[Accuracy]:
    """Root mean square errors of the estimates on the same data sets."""
    truth = small(problem).true_value

    def off(estimator: str, known: Known) -> Array:
        return np.array([value for value, _ in outcomes[f"{estimator} {known}", _ESTIMATE, "lower"]]) - truth

    return [Accuracy.of(problem, n, name, off(name, "true"), off(name, "estimated")) for name in ESTIMATORS]


def main(
    out: Annotated[Path, typer.Option(help="Where to write the tables.")] = Path("docs/behavior.md"),
    trials: Annotated[int, typer.Option(help="Data sets per cell.")] = 400,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure error rates with an estimated behaviour policy and write the tables."""
    work = list(tasks(trials, SIZES, CORE, methods=METHODS, estimators=ESTIMATORS, side="lower"))
    measured = gather(run, work, workers, "estimated behaviour")
    bounds = {
        where: {key: pairs for key, pairs in outcomes.items() if key[1] != _ESTIMATE}
        for where, outcomes in measured.items()
    }
    text = render(
        [cell for (name, n), outcomes in bounds.items() for cell in cells(name, n, outcomes)],
        [row for (name, n), outcomes in measured.items() for row in accuracy(name, n, outcomes)],
        abouts={name: small(name).about for name in CORE},
        nominal=NOMINAL,
        trials=trials,
        resamples=RESAMPLES,
    )
    replace_file(out, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    typer.echo(f"wrote {out}")


if __name__ == "__main__":
    typer.run(main)
