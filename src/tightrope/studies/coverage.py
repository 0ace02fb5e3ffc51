"""Measured error rates: every estimator with every bound, on small problems whose values are known exactly.

Each cell counts how often a bound lies on the wrong side of the true value over many independent data sets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from tightrope import api
from tightrope.base.dataset import Array
from tightrope.base.records import About, Side
from tightrope.bounds import METHODS
from tightrope.domains import small
from tightrope.domains.small import SWAPPED
from tightrope.io.write import replace_file
from tightrope.studies import model_coverage
from tightrope.studies.model_coverage import ModelTask
from tightrope.studies.pages.advice import TITLE as ADVICE
from tightrope.studies.pages.coverage import COMPARED, Cell, Efficiency, render, render_gains, render_models
from tightrope.studies.pages.exact import TITLE as EXACT
from tightrope.studies.pages.sections import section_of, with_section
from tightrope.studies.pool import run_all

SIZES = (20, 200)
EFFICIENCY_SIZES = (30, 100, 1000)
EFFICIENCY_PROBLEMS = ("walker", "bonus", "decline")
CORE = ("walker", "bonus", "decline", "clinic")
GAIN_PROBLEMS = tuple(f"{name}{end}" for end in ("", SWAPPED) for name in CORE)  # gains of either sign
SAMPLING = ("is", "pdis", "wis", "pdwis")
NOMINAL = 0.05
_TRIALS_PER_TASK = 50


@dataclass(frozen=True)
class Task:
    """Some of the data sets of one problem at one size."""

    problem: str
    n: int
    trials: range
    methods: tuple[str, ...]
    estimators: tuple[str, ...] | None = None
    side: Literal["lower", "upper", "both"] = "both"
    about: About = "value"


Outcomes = dict[tuple[str, str, Side], list[tuple[float, bool]]]  # (estimator, method, side): (bound, warned) by trial


def run(task: Task) -> Outcomes:
    """Evaluate each data set; trial k has the same data and weights whatever the task it is part of."""
    problem = small(task.problem)
    outcomes: Outcomes = {}
    for trial in task.trials:
        seed = np.random.SeedSequence([*task.problem.encode(), task.n, trial])
        data, weights = seed.spawn(2)
        logs = problem.mdp.simulate(problem.behavior, task.n, rng=np.random.default_rng(data))
        result = api.evaluate(
            logs,
            problem.candidate,
            estimators=task.estimators,
            methods=task.methods,
            side=task.side,
            max_ratio=problem.max_ratio,
            confidence=1 - NOMINAL,
            seed=weights,
            baseline="behavior" if task.about == "gain" else None,
        )
        for bound in result.gains if task.about == "gain" else result.bounds:
            warned = any(warning.against in ("resampling", "everything") for warning in bound.warnings)
            outcomes.setdefault((bound.estimator, bound.method, bound.side), []).append((bound.value, warned))
    return outcomes


def tasks(trials: int, sizes: Sequence[int], problems: Sequence[str], **settings: object) -> Iterator[Task]:
    """All data sets of a grid, cut into pieces."""
    for problem in problems:
        for n in sizes:
            for first in range(0, trials, _TRIALS_PER_TASK):
                piece = range(first, min(first + _TRIALS_PER_TASK, trials))
                yield Task(problem, n, piece, **settings)  # type: ignore[arg-type]


def cells(problem: str, n: int, outcomes: Outcomes, about: About = "value") -> list[Cell]:
    """Error counts by estimator, method and side."""
    made = small(problem)
    truth = made.true_value - (made.behavior_value if about == "gain" else 0.0)
    return [Cell.count(problem, n, *key, truth, pairs) for key, pairs in outcomes.items()]


def efficiency(problem: str, n: int, outcomes: Outcomes) -> list[Efficiency]:
    """Mean exact lower bounds on the same data sets."""
    truth = small(problem).true_value
    rows = []
    for (estimator, method, _), pairs in outcomes.items():
        values = np.array([value for value, _ in pairs])
        rows.append(Efficiency(problem, n, estimator, method, truth, float(values.mean()), _error(values)))
    return rows


def model_tasks(trials: int) -> list[ModelTask]:
    """The grid of the model-based estimators."""
    pieces = [range(first, min(first + _TRIALS_PER_TASK, trials)) for first in range(0, trials, _TRIALS_PER_TASK)]
    names = list(model_coverage.problems())
    return [ModelTask(name, n, piece) for name in names for n in model_coverage.SIZES for piece in pieces]


def model_cells(problem: str, n: int, outcomes: Outcomes) -> list[Cell]:
    """Error counts by variant and method."""
    truth = model_coverage.problems()[problem].true_value
    return [Cell.count(problem, n, *key, truth, pairs) for key, pairs in outcomes.items()]


def _error(values: Array) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values)))


def gather(
    job: Callable[[Any], Outcomes], work: Sequence[Task | ModelTask], workers: int, label: str
) -> dict[tuple[str, int], Outcomes]:
    """Results of all tasks by problem and size, from several processes."""
    from rich.progress import track

    parts = dict(track(run_all(job, work, workers), total=len(work), description=label))
    results: dict[tuple[str, int], Outcomes] = {}
    for position, task in enumerate(work):
        whole = results.setdefault((task.problem, task.n), {})
        for key, pairs in parts[position].items():
            whole.setdefault(key, []).extend(pairs)
    return results


def main(
    out: Annotated[Path, typer.Option(help="Where to write the tables.")] = Path("docs/coverage.md"),
    trials: Annotated[int, typer.Option(help="Data sets per cell.")] = 2000,
    efficiency_trials: Annotated[int, typer.Option(help="Data sets for the comparison of exact bounds.")] = 400,
    model_trials: Annotated[int, typer.Option(help="Data sets per cell of the model-based estimators.")] = 400,
    gain_trials: Annotated[int, typer.Option(help="Data sets per cell of bounds on the gain.")] = 500,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure error rates on the small problems and write the tables."""
    work = list(tasks(trials, SIZES, CORE, methods=tuple(METHODS), estimators=SAMPLING))
    measured = gather(run, work, workers, "error rates")
    settings = {"methods": COMPARED, "estimators": ("is", "pdis"), "side": "lower"}
    grid = list(tasks(efficiency_trials, EFFICIENCY_SIZES, EFFICIENCY_PROBLEMS, **settings))
    compared = gather(run, grid, workers, "exact bounds")
    modelled = gather(model_coverage.run, model_tasks(model_trials), workers, "models")
    text = render(
        [cell for (name, n), outcomes in measured.items() for cell in cells(name, n, outcomes)],
        [row for (name, n), outcomes in compared.items() for row in efficiency(name, n, outcomes)],
        abouts={name: small(name).about for name in CORE},
        nominal=NOMINAL,
        trials=(trials, efficiency_trials),
    )
    text += render_models(
        [cell for (name, n), outcomes in modelled.items() for cell in model_cells(name, n, outcomes)],
        abouts={name: problem.about for name, problem in model_coverage.problems().items()},
        nominal=NOMINAL,
        trials=model_trials,
    )
    gained = gather(
        run, list(tasks(gain_trials, SIZES, GAIN_PROBLEMS, methods=tuple(METHODS), about="gain")), workers, "gains"
    )
    text += render_gains(
        [cell for (name, n), outcomes in gained.items() for cell in cells(name, n, outcomes, "gain")],
        abouts={name: small(name).about for name in GAIN_PROBLEMS},
        nominal=NOMINAL,
        trials=gain_trials,
    )
    old = out.read_text(encoding="utf-8") if out.exists() else ""
    for title in (ADVICE, EXACT):  # sections that other runs write
        kept = section_of(old, title)
        text = text if kept is None else with_section(text, title, kept)
    replace_file(out, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    typer.echo(f"wrote {out}")


if __name__ == "__main__":
    typer.run(main)
