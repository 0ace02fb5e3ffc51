"""The command about the bad tail of the candidate's returns."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.checks import check_drawing
from tightrope.cli.options import (
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
    ReturnRange,
    RewardRange,
    SeedOption,
    Sigma,
    Strata,
)
from tightrope.cli.policies import form, named_policy
from tightrope.cli.reading import load
from tightrope.cli.shared import errors, progress_bar
from tightrope.cli.terminal import console, say

if TYPE_CHECKING:
    from tightrope.decisions.tails.record import Distribution

USUAL_QUANTILES, USUAL_SHARE = (0.05, 0.25, 0.5, 0.75, 0.95), 0.1  # where nothing is asked


def tail(
    logs: Logs,
    policy: PolicyOption = None,
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    deterministic: Deterministic = False,
    onnx_output: OnnxOutput = None,
    level: Annotated[
        list[float] | None,
        typer.Option(help="How often is a return below this? Repeat for several.", rich_help_panel=QUESTION),
    ] = None,
    cvar: Annotated[
        list[float] | None,
        typer.Option(help="The mean of this share of the lowest returns, such as 0.1.", rich_help_panel=QUESTION),
    ] = None,
    quantile: Annotated[
        list[float] | None,
        typer.Option(help="Which return does this share not exceed, such as 0.05?", rich_help_panel=QUESTION),
    ] = None,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exact bounds, which hold together.", rich_help_panel=QUESTION)
    ] = False,
    confidence: Confidence = 0.95,
    discount: Discount = None,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    return_range: ReturnRange = None,
    incomplete: Incomplete = "error",
    column: ColumnOption = None,
    one_step: OneStep = False,
    cluster: Cluster = None,
    strata: Strata = None,
    n_resamples: Resamples = 2000,
    seed: SeedOption = 0,
    picture: Annotated[
        Path | None,
        typer.Option(help="Also draw the whole distribution with its band here (.svg).", rich_help_panel=OUTPUT),
    ] = None,
    json: Json = False,
) -> None:
    """How low can the candidate's return fall, and how often: quantiles, the mean of the worst, and levels."""
    with errors():
        import tightrope

        check_drawing("--picture", picture)
        candidate = named_policy(policy, policy_class, epsilon, sigma, onnx_output, deterministic)
        dataset = load(
            logs, policy, discount, horizon, reward_range, return_range, incomplete, column, one_step, None, cluster,
            strata,
        )  # fmt: skip
        say(f"read: {'; '.join(dataset.reading)}", err=True)
        alone = not (level or cvar or quantile)
        with progress_bar("resampling") as progress:
            shape = tightrope.distribution(
                dataset,
                candidate,
                levels=level or (),
                shares=cvar or ((USUAL_SHARE,) if alone else ()),
                quantiles=quantile or (USUAL_QUANTILES if alone else ()),
                points=10 if alone or picture is not None else 0,  # what is not asked for costs nothing
                strict=strict,
                confidence=confidence,
                n_resamples=n_resamples,
                seed=seed,
                progress=progress,
            )
    _show(shape, json)
    if candidate is not None and not json:
        say(f"Evaluated: {form(policy, epsilon, sigma, deterministic)}.")
    if picture is not None:
        with errors():
            shape.to_svg(picture)
        say(f"picture: {picture}", err=True)


def _show(shape: Distribution, json: bool) -> None:
    """The answer in sentences, then the numbers as a table."""
    if json:
        say(shape.to_json())
        return
    from rich.table import Table

    from tightrope.decisions.tails.words import number, sentences, standing

    for text in (*sentences(shape), standing(shape)):
        say(text)
    table = Table(header_style="bold", box=None, pad_edge=False)
    for name in ("about", "at", "estimate", "at least", "at most", "bounds"):
        table.add_column(name, justify="left" if name in ("about", "bounds") else "right")
    for one in shape.tails:
        row = (number(one.at), number(one.estimate), number(one.lower, "lower"), number(one.upper, "upper"))
        table.add_row(one.kind, *row, one.guarantee)
    console().print(table)
    for warning in shape.warnings:
        say(f"! {warning}")
