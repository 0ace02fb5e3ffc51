"""Exact bounds on clipped and shrunk ratios, measured: how often they err, and how tight they are beside PDIS."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated

import typer

from tightrope.base.problem import Problem
from tightrope.base.records import About, Side
from tightrope.bounds import METHODS, Bottou
from tightrope.bounds.base import ExactBound
from tightrope.domains import small
from tightrope.estimators import PDIS, Anchor, Clipped, IndependentEstimator, Shrunk
from tightrope.estimators.gain import IndependentGain, possible_range
from tightrope.studies.counts import counted_grid, generator
from tightrope.studies.pages.field import HEAD
from tightrope.studies.pages.limited import TITLE, render
from tightrope.studies.pages.sections import write_section
from tightrope.studies.problems import CORE

SIZES, TRIALS, DELTA = (20, 200), 1000, 0.05
ESTIMATORS: dict[str, IndependentEstimator] = {
    "pdis": PDIS(),
    "clipped": Clipped(),
    "clipped at 2": Clipped(largest=2.0),
    "shrunk": Shrunk(),
}
ENDS: tuple[tuple[Side, Anchor], ...] = (("lower", "low"), ("upper", "high"))


def kinds() -> Iterator[tuple[str, About, IndependentEstimator]]:
    """What is bounded: the value by each estimator, the gain by those that are new."""
    for label, estimator in ESTIMATORS.items():
        yield label, "value", estimator
        if label != "pdis":
            yield label, "gain", IndependentGain(estimator)


def trial(name: str, n: int, seed: int) -> Mapping[str, float]:
    """Every bound on one data set, by "estimator/bound/about/side"."""
    problem = small(name)
    logs = problem.logs(n, rng=generator(name, n, seed))
    question, result = Problem(logs, problem.candidate), {}
    for side, anchor in ENDS:
        for label, about, estimator in kinds():
            sample = estimator.anchored(anchor).trajectory_values(question, max_ratio=None)
            low, high = possible_range(estimator, logs)
            for method in METHODS.values():
                if isinstance(method, ExactBound) and (label != "pdis" or method.name == "betting"):
                    bound = sample.origin + sample.sign * max(0.0, method.lower(sample, delta=DELTA, seed=seed))
                    result[f"{label}/{method.name}/{about}/{side}"] = min(max(bound, low), high)
        for label, bottou in (("two parts", Bottou()), ("two parts, by episode", Bottou(per_decision=False))):
            end = bottou.bound(question, confidence=1 - DELTA, side=side, seed=seed, about="value")
            result[f"{label}/bottou/value/{side}"] = end.value
    return result


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/field.md"),
    results: Annotated[Path, typer.Option(help="Folder of finished cells.")] = Path("build/limited"),
    trials: Annotated[int, typer.Option(help="Data sets a cell.")] = TRIALS,
) -> None:
    """Measure exact bounds on limited ratios and write their section."""
    cells = counted_grid(results, CORE, dict.fromkeys(SIZES, trials), trial)
    truths: dict[tuple[str, About], float] = {}
    for name in CORE:
        truths[name, "value"] = small(name).true_value
        truths[name, "gain"] = small(name).true_value - small(name).behavior_value
    write_section(out, TITLE, render(cells, truths), head=HEAD)


if __name__ == "__main__":
    typer.run(main)
