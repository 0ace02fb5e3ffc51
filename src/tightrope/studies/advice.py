"""The recommended bound, measured: its error rate, and how far it lies from the truth beside the best in hindsight.

The problems are those the rule was made on, problems that are known to break bounds, and problems drawn at random that
nobody looked at before.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tightrope.base.records import About
from tightrope.domains import Domain
from tightrope.estimators import USUAL, is_model_based
from tightrope.estimators import estimator as find_estimator
from tightrope.studies.pages.advice import TITLE, Cell, cell, render
from tightrope.studies.pages.sections import write_section
from tightrope.studies.problems import BOTH_WAYS, CORE, Named
from tightrope.studies.runner import folder_of, run_study
from tightrope.studies.study import Method, Study
from tightrope.studies.summary import read_results

TRIALS = {(20,): 2000, (50,): 1000, (200, 1000): 400}  # data sets, by numbers of episodes
HINDSIGHT = 150  # of them, on which every pair is computed
FRESH = tuple(f"random-{seed}" for seed in range(201, 209))  # never used while the rule was made
PROBLEMS = (*CORE, "cliff", "rare", "mountain-car", "hidden", "state not logged", "probabilities only", *FRESH)
NOT_TABULAR = ("mountain-car", "probabilities only")


def every_pair(process: Domain) -> tuple[Method, ...]:
    """All estimators with the usual bounds, on the first data sets."""
    tabular = process.name not in NOT_TABULAR
    names = [name for name in USUAL if tabular or not is_model_based(name) or name == "tdr"]
    approximate = ("percentile", "bca", "studentized")
    methods = [Method(name, find_estimator(name), approximate, trials=HINDSIGHT) for name in names]
    if not tabular:
        return tuple(methods)
    return (*methods, Method("wdr-rehearsed", find_estimator("wdr"), ("rehearsed",), trials=HINDSIGHT))


def advised_only(process: Domain) -> tuple[Method, ...]:
    """The recommended bound alone; one cheap pair keeps the study's form."""
    return (Method("is", find_estimator("is"), ("percentile",), trials=1),)


def studies(names: Sequence[str], sizes: Sequence[int], about: About, most: int | None) -> Iterator[Study]:
    """Several studies a problem, since small logs are cheap and get more data sets."""
    for among, trials in TRIALS.items():
        chosen = tuple(n for n in among if n in sizes)
        for name in names if chosen else ():
            yield Study(
                id=f"advice-{about}-{name}-{'-'.join(map(str, chosen))}",
                domain=Named(name),
                sizes=chosen,
                trials=trials if most is None else min(trials, most),
                methods=every_pair if about == "value" else advised_only,
                advice=True,
                about_what=about,
                seed=20261116,
            )


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/coverage.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path("build/advice"),
    only: Annotated[list[str] | None, typer.Option(help="These problems alone; repeat for several.")] = None,
    size: Annotated[list[int] | None, typer.Option(help="These numbers of episodes alone.")] = None,
    trials: Annotated[int | None, typer.Option(help="At most so many data sets a cell.")] = None,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure the recommended bound and write its section of the page of error rates."""
    sizes = size or [n for among in TRIALS for n in among]
    wanted = [
        *studies([name for name in PROBLEMS if not only or name in only], sizes, "value", trials),
        *studies(
            [name for name in BOTH_WAYS if not only or name in only], sorted({20, 200} & {*sizes}), "gain", trials
        ),
    ]
    cells: list[Cell] = []
    for study in wanted:
        outcome = read_results(run_study(study, folder_of(results, study), workers=workers))
        for n in study.sizes:
            cells.append(cell(outcome, n))
            typer.echo(cells[-1].line(), err=True)
    write_section(out, TITLE, render(cells, CORE, FRESH))


if __name__ == "__main__":
    typer.run(main)
