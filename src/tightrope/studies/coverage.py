"""Measured error rates: every estimator with every bound, on small problems whose values are known exactly.

Each cell counts how often a bound lies on the wrong side of the true value over many independent data sets.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from tightrope.base.records import About, Side
from tightrope.bounds import METHODS
from tightrope.bounds import method as find_bound
from tightrope.bounds.base import ProcessBound
from tightrope.domains import SMALL, Domain
from tightrope.estimators import DR, MB, USUAL, WDR, Estimator
from tightrope.estimators import estimator as find_estimator
from tightrope.evaluation.work import is_valid
from tightrope.io.write import replace_file
from tightrope.models import TabularModel
from tightrope.studies.pages.advice import TITLE as ADVICE
from tightrope.studies.pages.coverage import COMPARED, render, render_gains, render_models
from tightrope.studies.pages.exact import TITLE as EXACT
from tightrope.studies.pages.sections import section_of, with_section
from tightrope.studies.problems import BOTH_WAYS, CORE, Named, problem
from tightrope.studies.runner import folder_of, run_study
from tightrope.studies.study import Method, Study
from tightrope.studies.summary import Line, read_results, summarize_results

SIZES = (20, 200)
COMPARED_SIZES = (30, 100, 1000)
NOMINAL = 0.05
BOTH: tuple[Side, ...] = ("lower", "upper")

_TRAP = TabularModel(unseen="self-loop", unseen_reward=0.0)
VARIANTS: dict[str, Estimator] = {
    "mb": MB(),
    "mb, unseen pairs earn 0": MB(_TRAP),
    "dr, cross-fitted": DR(),
    "wdr, cross-fitted": WDR(),
    "wdr, one shared model": WDR(fit="shared"),
    "wdr, shared, unseen pairs earn 0": WDR(_TRAP, fit="shared"),
    "wdr, a model per resample": WDR(fit="refit"),
}


def sampling(process: Domain) -> tuple[Method, ...]:
    """Importance sampling with every bound."""
    return _with_every_bound(("is", "pdis", "wis", "pdwis"))


def everything(process: Domain) -> tuple[Method, ...]:
    """The usual estimators with every bound."""
    return _with_every_bound(USUAL)


def compared(process: Domain) -> tuple[Method, ...]:
    """What is exact, side by side."""
    return tuple(Method(name, find_estimator(name), COMPARED) for name in ("is", "pdis"))


def variants(process: Domain) -> tuple[Method, ...]:
    """Where the model comes from, and what it says of pairs it never saw; the trap is shown where it matters."""
    bounds = ("percentile", "bca", "studentized")
    return tuple(
        Method(label, estimator, bounds)
        for label, estimator in VARIANTS.items()
        if process.name == "cliff" or "earn 0" not in label
    )


def _with_every_bound(names: Sequence[str]) -> tuple[Method, ...]:
    methods = []
    for name in names:
        chosen = find_estimator(name)
        bounds = [bound for bound in METHODS if not isinstance(find_bound(bound), ProcessBound)]
        methods.append(Method(name, chosen, tuple(bound for bound in bounds if is_valid(chosen, find_bound(bound)))))
    return tuple(methods)


def measured(
    part: str,
    names: Sequence[str],
    methods: Callable[[Domain], tuple[Method, ...]],
    trials: int,
    results: Path,
    workers: int,
    *,
    sizes: tuple[int, ...] = SIZES,
    sides: tuple[Side, ...] = ("lower",),
    about: About = "value",
) -> list[Line]:
    """One part of the page: a study for each problem, run or gone on with."""
    lines: list[Line] = []
    for name in names:
        study = Study(
            id=f"{part}-{name}", domain=Named(name), sizes=sizes, trials=trials, methods=methods, sides=sides,
            about_what=about, confidence=1 - NOMINAL,
        )  # fmt: skip
        lines += summarize_results(read_results(run_study(study, folder_of(results, study), workers=workers)))
    return lines


def main(
    out: Annotated[Path, typer.Option(help="Where to write the tables.")] = Path("docs/coverage.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path("build/rates"),
    trials: Annotated[int, typer.Option(help="Data sets per cell.")] = 2000,
    compared_trials: Annotated[int, typer.Option(help="Data sets for the comparison of exact bounds.")] = 400,
    model_trials: Annotated[int, typer.Option(help="Data sets per cell of the model-based estimators.")] = 400,
    gain_trials: Annotated[int, typer.Option(help="Data sets per cell of bounds on the gain.")] = 500,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure error rates on the small problems and write the tables."""
    where = (results, workers)
    tight = measured("compared", CORE[:3], compared, compared_trials, *where, sizes=COMPARED_SIZES)
    text = render(
        measured("values", CORE, sampling, trials, *where, sides=BOTH),
        tight,
        abouts=_abouts(CORE),
        nominal=NOMINAL,
        trials=(trials, compared_trials),
    )
    modelled = (*SMALL, "hidden")
    text += render_models(
        measured("models", modelled, variants, model_trials, *where),
        abouts=_abouts(modelled),
        nominal=NOMINAL,
        trials=model_trials,
    )
    text += render_gains(
        measured("gains", BOTH_WAYS, everything, gain_trials, *where, sides=BOTH, about="gain"),
        abouts=_abouts(BOTH_WAYS),
        nominal=NOMINAL,
        trials=gain_trials,
    )
    old = out.read_text(encoding="utf-8") if out.exists() else ""
    for title in (ADVICE, EXACT):  # sections that other runs write
        kept = section_of(old, title)
        text = text if kept is None else with_section(text, title, kept)
    replace_file(out, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    typer.echo(f"wrote {out}")


def _abouts(names: Sequence[str]) -> dict[str, str]:
    return {name: problem(name).about for name in names}


if __name__ == "__main__":
    typer.run(main)
