"""Choosing an estimator on the data it is bounded with, measured: the naive way beside a bootstrap of the choice."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.base.dataset import Array
from tightrope.base.problem import Problem
from tightrope.bounds.base import highest, lowest, rank
from tightrope.estimators import Opera, Slope
from tightrope.estimators.choosing import Among
from tightrope.functional.resampling import draw_weights
from tightrope.studies.counts import counted_grid, generator
from tightrope.studies.pages.choosing import MEMBERS, TITLE, render
from tightrope.studies.pages.field import HEAD
from tightrope.studies.pages.sections import write_section
from tightrope.studies.problems import CORE, problem

PROBLEMS = (*CORE, "hidden")  # in the last the model is wrong: part of the state is not logged
SIZES, TRIALS, DELTA, RESAMPLES = (20, 200), 500, 0.05, 400
SLOPE, OPERA = Slope(choices=MEMBERS), Opera(choices=MEMBERS)


def trial(name: str, n: int, seed: int) -> Mapping[str, float]:
    """Lower and upper percentile bounds on one data set, by "way/side", and which member SLOPE chose."""
    process = problem(name)
    logs = process.logs(n, rng=generator(name, n, seed))
    weights = np.vstack([np.ones(n), draw_weights(n, RESAMPLES, seed=seed)])
    members = SLOPE(Problem(logs, process.candidate)).model
    assert isinstance(members, Among)
    values, errors = members.parts(weights)[0], members.covariances(weights)
    places, shares = SLOPE.places(values, errors), OPERA.shares(errors)
    blends = np.einsum("rk,rk->r", values, shares)
    ways = dict(zip(MEMBERS, values.T, strict=True))
    alone = {way: _ends(column[1:]) for way, column in ways.items()}
    ends = {
        **alone,
        "the best of all": (max(low for low, _ in alone.values()), min(high for _, high in alone.values())),
        "slope, naive": _ends(values[1:, places[0]]),
        "slope": _ends(np.take_along_axis(values, places[:, None], axis=1)[1:, 0]),
        "opera, naive": _ends(values[1:] @ shares[0]),
        "opera": _ends(blends[1:]),
    }
    result = {
        f"{way}/{side}": end for way, pair in ends.items() for side, end in zip(("lower", "upper"), pair, strict=True)
    }
    return {**result, "choice": float(places[0]), "moves": float((places[1:] != places[0]).mean())}


def _ends(replicates: Array) -> tuple[float, float]:
    """Percentile bounds, undefined replicates counting as the worst."""
    position = rank(DELTA, RESAMPLES)
    return lowest(replicates, position), highest(replicates, position)


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/field.md"),
    results: Annotated[Path, typer.Option(help="Folder of finished cells.")] = Path("build/choosing"),
    trials: Annotated[int, typer.Option(help="Data sets a cell.")] = TRIALS,
) -> None:
    """Measure what choosing on the same data costs and write its section."""
    cells = counted_grid(results, PROBLEMS, dict.fromkeys(SIZES, trials), trial)
    truths = {name: problem(name).true_value for name in PROBLEMS}
    write_section(out, TITLE, render(cells, truths), head=HEAD)


if __name__ == "__main__":
    typer.run(main)
