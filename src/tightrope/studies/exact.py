"""The exact tethered bound, measured: how often it errs, with wild models too, and how tight it is."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.base.records import About
from tightrope.domains import Domain, small
from tightrope.estimators import IS, TDR
from tightrope.models import GivenValues
from tightrope.studies.pages.exact import TITLE, render
from tightrope.studies.pages.sections import write_section
from tightrope.studies.problems import BOTH_WAYS, CORE, Named
from tightrope.studies.runner import folder_of, run_study
from tightrope.studies.study import Method, Study
from tightrope.studies.summary import Line, read_results, summarize_results

SIZES = (20, 50, 200)
TRIALS = 420  # a problem, size and question: 8 · 3 · 2 · 420 = 20,160 data sets
TIGHT_TRIALS = 300


def right_and_wild(domain: Domain) -> tuple[Method, ...]:
    """Values of the fitted model, and values that are nonsense: far beyond what is possible, of both signs."""
    problem = small(domain.name)
    states, actions, _ = problem.mdp.transition_probs.shape
    low, high = problem.mdp.return_range
    rng = np.random.default_rng(len(domain.name))
    size = rng.choice([0.3, 300.0], (problem.mdp.horizon, states, actions)) * (high - low)
    wild = GivenValues(size * rng.standard_cauchy(size.shape))
    return Method("tdr", TDR(), ("betting",)), Method("tdr-wild", TDR(wild), ("betting",))


def ladder(domain: Domain) -> tuple[Method, ...]:
    """What each step of the method buys."""
    return Method("is", IS(), ("betting-mixture", "betting")), Method("tdr", TDR(), ("betting",))


def error_studies() -> Iterator[Study]:
    """Value and gain, both sides, on all small problems and their reversals."""
    abouts: tuple[About, ...] = ("value", "gain")
    for about in abouts:
        for name in BOTH_WAYS:
            yield Study(
                id=f"exact-{about}-{name}", domain=Named(name), sizes=SIZES, trials=TRIALS, methods=right_and_wild,
                sides=("lower", "upper"), about_what=about, seed=20261116,
            )  # fmt: skip


def tightness_studies() -> Iterator[Study]:
    """The small problems at three sizes; the long ones at 200."""
    grid = [*((name, (20, 200, 1000)) for name in CORE), ("cliff", (200,)), ("mountain-car", (200,))]
    for name, sizes in grid:
        yield Study(
            id=f"tight-{name}", domain=Named(name), sizes=sizes, trials=TIGHT_TRIALS, methods=ladder, seed=20261116
        )


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/coverage.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path("build/exact"),
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure the exact bound on tethered values and write its section of the page of error rates."""
    lines: dict[str, list[tuple[About, Line]]] = {"tight": [], "exact": []}
    for study in (*tightness_studies(), *error_studies()):
        outcome = read_results(run_study(study, folder_of(results, study), workers=workers))
        about = study.about_what
        lines[study.id.partition("-")[0]] += [(about, line) for line in summarize_results(outcome)]
    write_section(out, TITLE, render(lines["exact"], lines["tight"]))


if __name__ == "__main__":
    typer.run(main)
