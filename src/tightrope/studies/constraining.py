"""Several demands at once, measured: how often the answer is a wrong yes or a wrong no."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.base.records import Bound, Side
from tightrope.decisions.belief import believed
from tightrope.domains import small
from tightrope.evaluation.settings import Settings
from tightrope.studies.counts import counted, generator
from tightrope.studies.pages.constraining import TITLE, render
from tightrope.studies.pages.sections import write_section

SIZES = (50, 200)
TRIALS = {True: 2000, False: 500}  # data sets a size, by exact or approximate bounds
DELTA = 0.05
CHANCES = {"harm": (0.05, 0.2), "relapse": (0.3, 0.1)}  # of each action, and independent of the cure
SIDES: dict[str, Side] = {"cured": "lower", "harm": "upper", "relapse": "upper"}


def outcomes(n: int, seed: int) -> dict[str, tuple[TrajectoryDataset, float]]:
    """The clinic with two more outcomes: the logs of each, and the candidate's true value."""
    clinic = small("clinic")
    rng = generator("constraints", n, seed)
    logs = clinic.logs(n, rng=rng)
    assert logs.actions is not None
    shares = clinic.mdp.start_probs @ clinic.candidate.table
    result = {"cured": (logs, clinic.true_value)}
    for name, chances in CHANCES.items():
        met = rng.random(n) < np.array(chances)[logs.actions]
        result[name] = (replace(logs, rewards=met.astype(float)), float(shares @ chances))
    return result


def trial(n: int, strict: bool, seed: int) -> Mapping[str, float]:
    """The answers that are wrong on one data set; limits lie where the truth does, the hardest case."""
    wrong_bounds, estimates, refuted, refuted_naively = [], [], [], []
    settings = Settings(confidence=1 - DELTA, seed=seed, n_resamples=1000)
    shared = replace(settings, confidence=1 - DELTA / len(SIDES))
    candidate = small("clinic").candidate
    for name, (logs, true) in outcomes(n, seed).items():
        problem, side = Problem(logs, candidate), SIDES[name]
        away: Side = "upper" if side == "lower" else "lower"
        bound = believed(problem, side, "value", settings, strict=strict)
        wrong_bounds.append(_beyond(bound, true))
        estimates.append(bound is not None and (bound.estimate > true) == (side == "lower"))
        refuted.append(_beyond(believed(problem, away, "value", shared, strict=strict), true))
        refuted_naively.append(_beyond(believed(problem, away, "value", settings, strict=strict), true))
    return {
        "yes, one fails": wrong_bounds[1],  # the limit of harm is just missed; the others are met by far
        "yes, all fail": all(wrong_bounds),
        "naive yes, one fails": estimates[1],
        "no": any(refuted),
        "naive no": any(refuted_naively),
    }


def _beyond(bound: Bound | None, true: float) -> bool:
    """Whether a bound lies on the wrong side of the truth."""
    if bound is None:
        return False
    return bound.value > true + 1e-9 if bound.side == "lower" else bound.value < true - 1e-9


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/decisions.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path(
        "build/constraining"
    ),
) -> None:
    """Measure several demands at once and write their section of the page of decisions."""
    cells = {
        (strict, n): counted(results, f"clinic-{n}-{strict}", trials, partial(trial, n, strict))
        for strict, trials in TRIALS.items()
        for n in SIZES
    }
    write_section(out, TITLE, render(cells))


if __name__ == "__main__":
    typer.run(main)
