"""The commands about domains that ship with the library: demo and truth."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tightrope.cli.options import Json, SeedOption
from tightrope.cli.shared import errors, leave, progress_bar, show
from tightrope.cli.terminal import console, say


def demo(
    problem: Annotated[str, typer.Option(help="walker, bonus, decline, clinic or cliff.")] = "walker",
    n: Annotated[int, typer.Option(help="Episodes to log.")] = 1000,
    seed: SeedOption = 0,
    save: Annotated[Path | None, typer.Option(help="Also write the logs here (.parquet or .csv).")] = None,
    json: Json = False,
) -> None:
    """Make logs, compute bounds on them, and show the true value beside the bounds."""
    with errors():
        import numpy as np

        import tightrope
        from tightrope.domains import small
        from tightrope.io.write import check_target

        chosen = small(problem)
        if save is not None:
            check_target(save)
        dataset = chosen.logs(n, rng=np.random.default_rng(seed))
        if not json:
            say(f"{chosen.name}: {chosen.about}.")
        with progress_bar("resampling") as progress:
            result = tightrope.evaluate(
                dataset, chosen.candidate, seed=seed, true_value=chosen.true_value, progress=progress
            )
    show(result, json)
    if save is not None:
        with errors():
            tightrope.write(dataset, save)
    if save is not None and not json:
        ranges = " ".join(
            f"--{name} {low!r} {high!r}"
            for name, (low, high) in (
                ("reward-range", chosen.mdp.reward_range),
                ("return-range", chosen.mdp.return_range),
            )
        )
        say(
            f"\nThe same from the file:\n  tightrope evaluate {save} --horizon {dataset.horizon} --discount "
            f"{dataset.discount:g} {ranges}"
        )
    if not json and save is None:
        _show_situations(seed)
    leave(result)


def _show_situations(seed: int) -> None:
    """Show the advice in situations that need different answers, beside the truth."""
    import numpy as np

    import tightrope
    from tightrope.domains import situations
    from tightrope.report.table import situations_table

    results = []
    for number, problem in enumerate(situations()):
        dataset = problem.logs(500, rng=np.random.default_rng([seed, number]))
        results.append(
            (problem.name, problem.about, tightrope.evaluate(dataset, problem.candidate, true_value=problem.true_value))
        )
    console().print(situations_table(results))


def truth(
    domain: Annotated[str, typer.Argument(help="mountain-car, cliff-world, ...; an unknown name gives a list of all.")],
    rollouts: Annotated[int, typer.Option(help="Episodes of each policy, where there is no exact value.")] = 100_000,
    seed: SeedOption = 0,
    draw: Annotated[Path | None, typer.Option(help="Also draw the domain (.png, .pdf or .svg).")] = None,
    json: Json = False,
) -> None:
    """Compute the true values of both policies of a domain, and show every number of the domain."""
    with errors():
        import tightrope.domains
        from tightrope.domains.truth import truth as compute

        chosen = tightrope.domains.domain(domain)
        drawn = None
        if draw is not None:
            from tightrope.report.domains import drawing

            drawn = drawing(chosen, draw, seed=seed)  # written last: a full disk must not cost the answer
        with progress_bar("rolling out") as progress:
            values = compute(chosen, rollouts=rollouts, seed=seed, progress=progress)
    from tightrope.report.truth import truth_record, truth_table

    if json:
        import json as encoder

        say(encoder.dumps(truth_record(chosen, values)))
    else:
        console().print(truth_table(chosen, values))
    if drawn is not None:
        with errors():
            drawn()
