"""The commands that run studies: parse, call, print."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from tightrope.cli.shared import errors
from tightrope.cli.terminal import console, say

SIZES = (20, 200)


def coverage(
    domain: Annotated[
        str | None, typer.Argument(help="The name of a domain; or leave it out and give --env for your own simulator.")
    ] = None,
    n: Annotated[list[int] | None, typer.Option(help="Episodes per data set; repeat. Default: 20 and 200.")] = None,
    trials: Annotated[int, typer.Option(help="Data sets per size.")] = 400,
    estimator: Annotated[list[str] | None, typer.Option(help="As in evaluate; repeat. Default: all.")] = None,
    method: Annotated[list[str] | None, typer.Option(help="As in evaluate; repeat.")] = None,
    side: Annotated[Literal["lower", "upper", "both"], typer.Option(help="Which bounds.")] = "lower",
    confidence: Annotated[float, typer.Option(help="The confidence of each bound, between 0.5 and 1.")] = 0.95,
    n_resamples: Annotated[int, typer.Option(help="Bootstrap replicates.")] = 2000,
    seed: Annotated[int, typer.Option(help="The same seed gives the same numbers.")] = 0,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: one per core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on the workers of a dask scheduler instead, such as tcp://host:8786.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="Folder of the results; the same command continues a run that was stopped.")
    ] = None,
    env: Annotated[str | None, typer.Option(help="A Gymnasium environment: its id, or module:id.")] = None,
    behavior: Annotated[
        str | None, typer.Option(help="With --env: the policy that makes the logs, as module:object or a table.")
    ] = None,
    candidate: Annotated[str | None, typer.Option(help="With --env: the policy to evaluate.")] = None,
    horizon: Annotated[
        int | None, typer.Option(help="With --env: how many steps count. Default: the environment's own limit.")
    ] = None,
    discount: Annotated[float, typer.Option(help="With --env: γ.")] = 1.0,
    reward_range: Annotated[
        tuple[float, float] | None, typer.Option(help="With --env: lowest and highest reward of a step.")
    ] = None,
    truth_rollouts: Annotated[
        int, typer.Option(help="With --env: episodes that measure the candidate's true value.")
    ] = 10_000,
) -> None:
    """Measure how often the bounds are wrong, on a domain whose value is known or on your own simulator."""
    with errors():
        from tightrope.base.errors import StudyError
        from tightrope.domains import DOMAINS
        from tightrope.studies.measure import UserDomain, named_methods
        from tightrope.studies.study import Study

        chosen: Any = domain
        if env is not None and domain is None:
            if behavior is None or candidate is None:
                raise StudyError("--env needs --behavior (the policy that makes the logs) and --candidate")
            chosen = UserDomain(env, behavior, candidate, horizon, discount, truth_rollouts, reward_range, seed)
        elif domain is None or env is not None:
            raise StudyError(f"give either a domain ({', '.join(DOMAINS)}) or --env")
        name = str(domain or env).replace("/", "-").replace(":", "-")
        study = Study(
            id=f"coverage-{name}",
            domain=chosen,
            sizes=tuple(n or SIZES),
            trials=trials,
            methods=named_methods(estimator or (), method or ()),
            n_resamples=n_resamples,
            confidence=confidence,
            sides=("lower", "upper") if side == "both" else (side,),
            seed=seed,
            advice=True,
        )
        _run(study, out or Path("results") / study.id, workers, cluster)


def reproduce(
    which: Annotated[str, typer.Argument(help="mountain-car, cliff-world or all.")] = "all",
    quick: Annotated[
        bool, typer.Option("--quick", help="A few minutes: fewer data sets, sizes and replicates.")
    ] = False,
    out: Annotated[
        Path, typer.Option(help="Folder of the results; the same command continues a run that was stopped.")
    ] = Path("reproduction"),
    page: Annotated[Path | None, typer.Option(help="Where the page goes. Default: OUT/reproduction.md.")] = None,
    workers: Annotated[int | None, typer.Option(help="Processes. Default: one per core.")] = None,
    cluster: Annotated[
        str | None, typer.Option(help="Run on the workers of a dask scheduler instead, such as tcp://host:8786.")
    ] = None,
) -> None:
    """Run the experiments of "Bootstrapping with Models", draw its figures, and say which of its claims hold."""
    with errors():
        from tightrope.base.cluster import cluster_at
        from tightrope.studies.reproduce import reproduce as run
        from tightrope.studies.table import findings_table

        engine = None if cluster is None else cluster_at(cluster)
        done = run(which, out, small=quick, page_path=page, workers=workers, engine=engine)
        console().print(findings_table(done.findings))
        say(f"wrote {done.page}")


def _run(study: Any, folder: Path, workers: int | None, cluster: str | None) -> None:
    """Run a study and print its results."""
    from tightrope.base.cluster import cluster_at
    from tightrope.studies.runner import run_study
    from tightrope.studies.summary import read_results, summarize_results
    from tightrope.studies.table import study_table

    engine = None if cluster is None else cluster_at(cluster)
    results = read_results(run_study(study, folder, workers=workers, engine=engine))
    console().print(study_table(results, summarize_results(results)))
    say(f"Raw results: {folder / 'results.parquet'}")
