"""Measured error rates with a behaviour policy estimated from the same logs, beside those with the true one."""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.base.dataset import Array
from tightrope.domains import Domain
from tightrope.estimators import estimator as find_estimator
from tightrope.io.write import replace_file
from tightrope.studies.coverage import NOMINAL, SIZES
from tightrope.studies.pages.behavior import Accuracy, render
from tightrope.studies.problems import CORE, Named, problem
from tightrope.studies.runner import folder_of, run_study
from tightrope.studies.study import Method, Study
from tightrope.studies.summary import Line, Results, read_results, summarize_results

ESTIMATORS = ("is", "pdis", "wis", "pdwis", "wdr")
BOUNDS = ("percentile", "bca")
RESAMPLES = 500
KNOWN = {"true": "logged", "estimated": "tabular"}  # both see the same data and weights


def named(known: str, process: Domain) -> tuple[Method, ...]:
    """The estimators, labelled by which behaviour policy they use."""
    return tuple(Method(f"{name} {known}", find_estimator(name), BOUNDS) for name in ESTIMATORS)


def study(name: str, known: str, trials: int) -> Study:
    """One problem with one of the two policies."""
    return Study(
        id=f"behavior-{known}-{name}", domain=Named(name), sizes=SIZES, trials=trials, methods=partial(named, known),
        n_resamples=RESAMPLES, confidence=1 - NOMINAL, behavior=KNOWN[known], seed=7,
    )  # fmt: skip


def accuracy(name: str, n: int, results: dict[str, Results]) -> list[Accuracy]:
    """Root mean square errors of the estimates on the same data sets."""

    def off(estimator: str, known: str) -> Array:
        columns = results[known].columns
        rows = (columns["method"] == f"{estimator} {known}/{BOUNDS[0]}") & (columns["n"] == n)
        return np.asarray(columns["estimate"][rows] - results[known].true_value, dtype=np.float64)

    return [Accuracy.of(name, n, one, off(one, "true"), off(one, "estimated")) for one in ESTIMATORS]


def main(
    out: Annotated[Path, typer.Option(help="Where to write the tables.")] = Path("docs/behavior.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path("build/rates"),
    trials: Annotated[int, typer.Option(help="Data sets per cell.")] = 400,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure error rates with an estimated behaviour policy and write the tables."""
    lines: list[Line] = []
    rows: list[Accuracy] = []
    for name in CORE:
        both = {known: study(name, known, trials) for known in KNOWN}
        outcomes = {
            known: read_results(run_study(one, folder_of(results, one), workers=workers)) for known, one in both.items()
        }
        lines += [line for one in outcomes.values() for line in summarize_results(one)]
        rows += [row for n in SIZES for row in accuracy(name, n, outcomes)]
    text = render(
        lines,
        rows,
        abouts={name: problem(name).about for name in CORE},
        nominal=NOMINAL,
        trials=trials,
        resamples=RESAMPLES,
    )
    replace_file(out, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    typer.echo(f"wrote {out}")


if __name__ == "__main__":
    typer.run(main)
