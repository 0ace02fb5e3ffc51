"""The map: which estimator and which bound win where, over horizon, overlap, hidden state and n.

The problems are drawn to order, several for each place of the map. One half of the data sets chooses the winner, the
other half says how near it comes and how often it is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tightrope.bounds import METHODS
from tightrope.domains import Domain, SmallProblem, drawn_problem
from tightrope.estimators import ESTIMATORS
from tightrope.estimators import estimator as find_estimator
from tightrope.evaluation.work import is_valid
from tightrope.studies.pages.field import HEAD
from tightrope.studies.pages.field_map import TITLE, Cell, Place, Sample, cell, render
from tightrope.studies.pages.sections import write_section
from tightrope.studies.runner import folder_of, run_study
from tightrope.studies.study import Method, Study
from tightrope.studies.summary import read_results

PLACES = tuple(
    Place(hidden, horizon, overlap) for hidden in (1, 2) for horizon in (5, 20, 80) for overlap in (0.5, 0.1, 0.03)
)
SIZES = (40, 400)
SEEDS = (101, 102, 103, 104)  # fresh: nothing was tuned on them; for odd ones what is hidden does harm
TRIALS = 60  # data sets a problem: 4 · 60 = 240 a cell, 120 to choose and 120 to report
RESAMPLES = 500
BOUNDS = ("percentile", "bca", "studentized", "betting")


@dataclass(frozen=True)
class Drawn:
    """A problem of the map by what was ordered, so that every process makes its own."""

    place: Place
    seed: int

    def load(self) -> SmallProblem:
        """The problem."""
        place = self.place
        return drawn_problem(self.seed, horizon=place.horizon, overlap=place.overlap, hidden=place.hidden)

    def content(self) -> dict[str, str]:
        """Nothing outside the package."""
        return {}


def contenders(names: tuple[str, ...], process: Domain) -> tuple[Method, ...]:
    """These estimators with each of the bounds that is valid for it."""
    chosen = [find_estimator(name) for name in names]
    valid = {one: tuple(bound for bound in BOUNDS if is_valid(one, METHODS[bound])) for one in chosen}
    return tuple(Method(one.name, one, valid[one]) for one in chosen)


def studies(place: Place, names: tuple[str, ...], trials: int) -> Iterator[tuple[Study, Drawn]]:
    """A study for each problem of a place."""
    for seed in SEEDS:
        drawn = Drawn(place, seed)
        yield (
            Study(
                id=f"map-{place.hidden}-{place.horizon}-{place.overlap:g}-{seed}",
                domain=drawn,
                sizes=SIZES,
                trials=trials,
                methods=partial(contenders, names),
                n_resamples=RESAMPLES,
                seed=20261116,
            ),
            drawn,
        )


def cells_of(place: Place, names: tuple[str, ...], trials: int, results: Path, workers: int) -> list[Cell]:
    """One cell for each number of episodes; what is not yet done is run."""
    samples = []
    for study, drawn in studies(place, names, trials):
        problem = drawn.load()
        outcome = read_results(run_study(study, folder_of(results, study), workers=workers))
        spread = problem.mdp.spread(problem._seen(problem.candidate))
        samples.append(Sample(outcome, spread, problem.mdp.return_range))
    return [cell(place, n, samples) for n in SIZES]


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/field.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path("build/map"),
    only: Annotated[list[str] | None, typer.Option(help="These estimators alone; repeat for several.")] = None,
    trials: Annotated[int, typer.Option(help="Data sets per problem; four problems make a cell.")] = TRIALS,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure which estimator and which bound win where, and write the table behind the map."""
    names = tuple(only or ESTIMATORS)
    cells: list[Cell] = []
    for place in PLACES:
        for one in cells_of(place, names, trials, results, workers):
            cells.append(one)
            typer.echo(one.line(), err=True)
    write_section(out, TITLE, render(cells, seeds=SEEDS, trials=trials, resamples=RESAMPLES), head=HEAD)


if __name__ == "__main__":
    typer.run(main)
