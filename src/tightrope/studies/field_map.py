"""The map: which estimator and which bound win where, over horizon, overlap, model error, hidden state and n.

The problems are drawn to order, several for each place of the map. One half of the data sets chooses the winner, the
other half says how near it comes and how often it is wrong.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from tightrope.base.dataset import Array
from tightrope.bounds import METHODS
from tightrope.bounds.base import is_exact
from tightrope.domains import Domain, SmallProblem, drawn_problem
from tightrope.estimators import DICE, ESTIMATORS, Estimator
from tightrope.estimators import estimator as find_estimator
from tightrope.evaluation.work import is_valid
from tightrope.models import FittedQ
from tightrope.studies.pages.field import HEAD
from tightrope.studies.pages.field_map import TITLE, Cell, Place, Sample, cell, render
from tightrope.studies.pages.sections import write_section
from tightrope.studies.runner import folder_of, run_study
from tightrope.studies.study import Method, Study
from tightrope.studies.summary import read_results

PLACES = tuple(
    Place(hidden, horizon, overlap, simple)
    for hidden, simple in ((1, False), (1, True), (2, False))
    for horizon in (5, 20, 80)
    for overlap in (0.5, 0.1, 0.03)
)
SIZES = (40, 400)
SEEDS = (101, 102, 103, 104)  # fresh: nothing was tuned on them; for odd ones what is hidden does harm
TRIALS = 60  # data sets a problem: 4 · 60 = 240 a cell, 120 to choose and 120 to report
RESAMPLES = 500
BOUNDS = ("percentile", "bca", "studentized", "betting")
STATES, ACTIONS = 6, 3  # of every process
TABLES = ("mb", "mis")  # know tables alone, and no model that is too simple; MB with q̂ on a line is FQE


@dataclass(frozen=True)
class Drawn:
    """A problem of the map by what was ordered, so that every process makes its own."""

    place: Place
    seed: int

    def load(self) -> SmallProblem:
        """The problem."""
        place = self.place
        return drawn_problem(
            self.seed,
            states=STATES,
            actions=ACTIONS,
            horizon=place.horizon,
            overlap=place.overlap,
            hidden=place.hidden,
        )

    def content(self) -> dict[str, str]:
        """Nothing outside the package."""
        return {}


def on_a_line(states: Array) -> Array:
    """1 and the number of the state, (N, 2): numbers are given at random, so that hardly anything is linear in them."""
    return np.column_stack([np.ones(len(states)), 2 * np.asarray(states, dtype=np.float64) / (STATES - 1) - 1])


def a_line_for_each_action(states: Array, actions: Array) -> Array:
    """The same for each action by itself, (N, 2 · actions)."""
    taken = np.eye(ACTIONS)[np.asarray(actions, dtype=np.int64)]
    return np.asarray((taken[:, :, None] * on_a_line(states)[:, None]).reshape(len(states), -1))


def contenders(names: tuple[str, ...], simple: bool, process: Domain) -> tuple[Method, ...]:
    """These estimators with each of the bounds that is valid for it; with models that are too simple where asked."""
    chosen = [find_estimator(name) for name in names if not (simple and name in TABLES)]
    valid = {one.name: [bound for bound in BOUNDS if is_valid(one, METHODS[bound])] for one in chosen}
    if simple:
        for one in chosen:
            if _has_model(one):  # no exact bound: it must have a model of earlier episodes, and has tables for that
                valid[one.name] = [bound for bound in valid[one.name] if not is_exact(METHODS[bound])]
        chosen = [_simplified(one) for one in chosen]
    return tuple(Method(one.name, one, tuple(valid[one.name])) for one in chosen)


def _has_model(one: Any) -> bool:
    return any(field.name == "model" for field in fields(one))


def _simplified(one: Any) -> Estimator:
    """With q̂ and ratios of visits on a line."""
    if isinstance(one, DICE):
        return replace(one, features=on_a_line)
    chosen: Estimator = replace(one, model=FittedQ(features=a_line_for_each_action)) if _has_model(one) else one
    return chosen


def studies(place: Place, names: tuple[str, ...], trials: int) -> Iterator[tuple[Study, Drawn]]:
    """A study for each problem of a place."""
    for seed in SEEDS:
        drawn = Drawn(place, seed)
        yield (
            Study(
                id=f"map-{'simple' if place.simple else place.hidden}-{place.horizon}-{place.overlap:g}-{seed}",
                domain=drawn,
                sizes=SIZES,
                trials=trials,
                methods=partial(contenders, names, place.simple),
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
