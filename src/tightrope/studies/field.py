"""Measured error rates of the estimators that one must ask for, on problems whose values are known exactly.

Which estimators these are, the registry says: all that are not usual.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tightrope.base.errors import StudyError
from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.domains import Domain
from tightrope.estimators import ESTIMATORS, USUAL
from tightrope.estimators import estimator as find_estimator
from tightrope.evaluation.work import is_valid
from tightrope.studies.coverage import BOTH, NOMINAL, measured
from tightrope.studies.pages.field import HEAD, TITLE, render
from tightrope.studies.pages.sections import write_section
from tightrope.studies.problems import CORE, problem
from tightrope.studies.study import Method
from tightrope.studies.summary import Line

PROBLEMS = (*CORE, "model-fail")
APPROXIMATE = ("percentile", "bca", "studentized")
MOST = {"slope": 500, "opera": 300, "magic": 500}  # data sets a cell of estimators that take their time


def others() -> list[str]:
    """The registered estimators that are not usual."""
    return [name for name in ESTIMATORS if name not in USUAL]


def alone(name: str, process: Domain) -> tuple[Method, ...]:
    """One estimator with the usual approximate bounds and the exact ones that are valid for it."""
    chosen = find_estimator(name)
    bounds = [bound for bound, method in METHODS.items() if bound in APPROXIMATE or is_exact(method)]
    return (Method(name, chosen, tuple(bound for bound in bounds if is_valid(chosen, METHODS[bound]))),)


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/field.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path("build/field"),
    only: Annotated[list[str] | None, typer.Option(help="These estimators alone; repeat for several.")] = None,
    trials: Annotated[int, typer.Option(help="Data sets per cell.")] = 1000,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure error rates of the estimators that are not usual, and write them to the page of the field."""
    names = only or others()
    if not names:
        raise StudyError("every registered estimator is a usual one, which `make coverage` measures; name some: --only")
    lines: list[Line] = []
    for name in names:  # a study for each, so that one more estimator changes nothing about the others
        count = min(trials, MOST.get(name, trials))
        lines += measured(f"field-{name}", PROBLEMS, partial(alone, name), count, results, workers, sides=BOTH)
    abouts = {name: problem(name).about for name in PROBLEMS}
    write_section(out, TITLE, render(lines, abouts=abouts, nominal=NOMINAL), head=HEAD)


if __name__ == "__main__":
    typer.run(main)
