"""The command that asks for several things of a candidate at once."""

from __future__ import annotations

from typing import Annotated

import typer

from tightrope.cli.options import (
    LOGS,
    OUTPUT,
    QUESTION,
    Cluster,
    ColumnOption,
    Confidence,
    Deterministic,
    Discount,
    Epsilon,
    Horizon,
    Incomplete,
    Json,
    Logs,
    OneStep,
    OnnxOutput,
    PolicyClass,
    PolicyOption,
    Resamples,
    SeedOption,
    Sigma,
    Strata,
)
from tightrope.cli.policies import form, named_policy
from tightrope.cli.reading import kept, load
from tightrope.cli.shared import NO_ANSWER, VERDICTS, errors, progress_bar
from tightrope.cli.terminal import say


def constrain(
    logs: Logs,
    demand: Annotated[
        list[str],
        typer.Option(
            help='What must hold: COLUMN>=NUMBER, COLUMN<=NUMBER or COLUMN>=behavior, such as "harm<=0.1"; repeat.',
            rich_help_panel=QUESTION,
        ),
    ],
    policy: PolicyOption = None,
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    deterministic: Deterministic = False,
    onnx_output: OnnxOutput = None,
    step_range: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Lowest and highest possible value of a column at one step: COLUMN=LOW,HIGH; repeat.",
            rich_help_panel=LOGS,
        ),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Believe exact bounds only.", rich_help_panel=QUESTION)
    ] = False,
    confidence: Confidence = 0.95,
    discount: Discount = None,
    horizon: Horizon = None,
    incomplete: Incomplete = "error",
    column: ColumnOption = None,
    one_step: OneStep = False,
    cluster: Cluster = None,
    strata: Strata = None,
    n_resamples: Resamples = 2000,
    seed: SeedOption = 0,
    exit_code: Annotated[
        bool,
        typer.Option("--exit-code", help="Exit with 0 for yes, 4 for no, 5 for cannot tell.", rich_help_panel=OUTPUT),
    ] = False,
    json: Json = False,
) -> None:
    """Does the candidate meet all demands at once: enough of the good, not too much of the bad?"""
    with errors():
        import tightrope

        wanted, ranges = _demands(demand), _ranges(step_range or [])
        candidate = named_policy(policy, policy_class, epsilon, sigma, onnx_output, deterministic)
        source = kept(logs, column)
        asked_of = {
            name: (
                load(
                    source, policy, discount, horizon, ranges.get(name), None, incomplete,
                    [*(column or []), f"reward={name}"], one_step, None, cluster, strata,
                ),
                text,
            )
            for name, text in wanted.items()
        }  # fmt: skip
        with progress_bar("resampling") as progress:
            result = tightrope.constrained(
                asked_of, candidate,
                strict=strict, confidence=confidence, n_resamples=n_resamples, seed=seed, progress=progress,
            )  # fmt: skip
    say(result.to_json() if json else str(result))
    if candidate is not None and not json:
        say(f"Evaluated: {form(policy, epsilon, sigma, deterministic)}.")
    if result.kind == "cannot tell" and result.silent:
        raise typer.Exit(NO_ANSWER)
    if exit_code:
        raise typer.Exit(VERDICTS[result.kind])


def _demands(given: list[str]) -> dict[str, str]:
    """The demand on each column."""
    from tightrope.base.errors import BoundError

    result: dict[str, str] = {}
    for text in given:
        place = max(text.find("<="), text.find(">="))
        name = text[:place].strip()
        if place < 1 or not name or name in result:
            raise BoundError(f'--demand must be like "harm<=0.1" or "reward>=behavior", each column once; got {text!r}')
        result[name] = text[place:]
    return result


def _ranges(given: list[str]) -> dict[str, tuple[float, float]]:
    """The range of each column."""
    from tightrope.base.errors import DataError

    result = {}
    for text in given:
        name, _, ends = text.partition("=")
        try:
            low, high = (float(end) for end in ends.split(","))
        except ValueError:
            raise DataError(f"--range must be COLUMN=LOW,HIGH, such as harm=0,1; got {text!r}") from None
        result[name.strip()] = (low, high)
    return result
