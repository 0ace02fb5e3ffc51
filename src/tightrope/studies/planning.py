"""Plans, measured: the number of episodes that they name, beside the one at which yes comes as often as promised."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.api import lower_bound
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.base.records import Bound
from tightrope.decisions.planning import by_effect
from tightrope.domains import SmallProblem, small
from tightrope.evaluation.needed import CHANCE, NORMAL, prospect
from tightrope.studies.comparing import HEAD
from tightrope.studies.pages.planning import TITLE, Case, Looks, Planned, render
from tightrope.studies.pages.sections import write_section

PILOT = 200
AROUND = (0.5, 0.8, 1.25, 2.0)  # of a first guess: where the chance of a yes is measured
TWICE, LOOKS = ("clinic", "bonus", "decline"), 2000  # problems and pilots of the table of second looks
FAR = 20  # times the pilot: whose plan needs more gives up

CASES = (
    Case("clinic", 0.1),
    Case("clinic", 0.1, recommended=True),
    Case("bonus", 0.15),
    Case("decline", 0.6),
    Case("walker", 1.0),
)


def bounded(case: Case, problem: SmallProblem, n: int, seed: int) -> tuple[Bound, Problem]:
    """A lower bound from new logs, and the problem that it bounds."""
    return judged(case, problem, problem.logs(n, rng=np.random.default_rng([20261116, n, seed])), seed)


def judged(case: Case, problem: SmallProblem, logs: TrajectoryDataset, seed: int) -> tuple[Bound, Problem]:
    """The bound of a case from these logs, and the problem that it bounds."""
    estimator, method = (None, None) if case.recommended else ("tdr", "percentile")
    bound = lower_bound(
        logs, problem.candidate, estimator=estimator, method=method, n_resamples=1000, seed=seed, n_jobs=1
    )
    return bound, Problem(logs, problem.candidate)


def needed_in_truth(case: Case, problem: SmallProblem, guess: float, trials: int) -> float:
    """Where the measured chance of a yes crosses the promised one: a line through its normal scores over √n."""
    roots, scores, threshold = [], [], problem.true_value - case.distance
    for times in AROUND:
        n = round(times * guess)
        yes = sum(bounded(case, problem, n, seed)[0].value > threshold for seed in range(trials))
        roots.append(math.sqrt(n))
        scores.append(NORMAL.inv_cdf((yes + 0.5) / (trials + 1)))
    slope, start = np.polyfit(roots, scores, 1)
    return float(((NORMAL.inv_cdf(CHANCE) - start) / slope) ** 2)


def planned(case: Case, pilots: int, trials: int) -> Planned:
    """Plans from pilots, and the truth."""
    problem, result = small(case.problem), Planned(case)
    threshold = problem.true_value - case.distance
    for seed in range(pilots):
        bound, question = bounded(case, problem, PILOT, seed)
        view = prospect(bound, threshold)
        assert view is not None
        result.as_it_looks.append(view.needed())
        declared = replace(view, distance=case.distance)
        result.by_effect.append(by_effect(declared, CHANCE, bound, question))
        result.unsettled.append(bound.value <= threshold)
    guess = float(np.median([one.total for one in result.by_effect]))
    result.truth = needed_in_truth(case, problem, guess, trials)
    return result


def second_looks(name: str, trials: int) -> Looks:
    """A candidate exactly at its threshold: pilots, and a second look where the first was no yes but a plan."""
    case, problem, result = Case(name, 0.0), small(name), Looks(name, trials)
    threshold = problem.true_value
    for seed in range(trials):
        logs = problem.logs((FAR + 1) * PILOT, rng=np.random.default_rng([20261117, seed]))
        pilot, _ = judged(case, problem, logs.take(np.arange(PILOT)), seed)
        view = prospect(pilot, threshold)
        assert view is not None
        n = view.needed().total
        if pilot.value > threshold:
            result.yes += 1
        elif n <= FAR * PILOT:
            result.planned += 1
            together, alone = logs.take(np.arange(round(n))), logs.take(np.arange(PILOT, PILOT + round(n)))
            result.together += judged(case, problem, together, seed)[0].value > threshold
            result.alone += judged(case, problem, alone, seed)[0].value > threshold
    return result


def studied(pilots: int, trials: int) -> Iterator[Planned]:
    """All cases."""
    for case in CASES:
        few = 4 if case.recommended else 1  # rehearsals take their time
        result = planned(case, pilots // few, trials // few)
        typer.echo(f"{case.problem}: {result.truth:.0f} episodes", err=True)
        yield result


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/decisions.md"),
    pilots: Annotated[int, typer.Option(help="Pilots a case.")] = 400,
    trials: Annotated[int, typer.Option(help="Data sets a number of episodes.")] = 300,
) -> None:
    """Measure plans and write their section of the page on decisions."""
    text = render(list(studied(pilots, trials)), [second_looks(name, LOOKS) for name in TWICE])
    write_section(out, TITLE, text, head=HEAD)


if __name__ == "__main__":
    typer.run(main)
