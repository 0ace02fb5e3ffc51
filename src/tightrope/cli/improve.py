"""The command that looks for a better policy."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tightrope.cli.options import (
    OUTPUT,
    QUESTION,
    BehaviorPolicy,
    Cluster,
    ColumnOption,
    Confidence,
    Discount,
    Horizon,
    Incomplete,
    Json,
    Logs,
    OneStep,
    Resamples,
    ReturnRange,
    RewardRange,
    SeedOption,
    Strata,
)
from tightrope.cli.reading import load
from tightrope.cli.shared import NO_ANSWER, errors, progress_bar
from tightrope.cli.terminal import say

if TYPE_CHECKING:
    from tightrope.decisions.improvement.record import Improvement


def improve(
    logs: Logs,
    out: Annotated[
        Path, typer.Option(help="Write the policy here (.csv or .parquet), if there is one.", rich_help_panel=OUTPUT)
    ],
    baseline: Annotated[
        str,
        typer.Option(help="What it must be better than: behavior, or a number.", rich_help_panel=QUESTION),
    ] = "behavior",
    strict: Annotated[bool, typer.Option("--strict", help="Test by an exact bound.", rich_help_panel=QUESTION)] = False,
    confidence: Confidence = 0.95,
    behavior_policy: BehaviorPolicy = None,
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
    json: Json = False,
) -> None:
    """Propose a policy on one part of the logs, test it once on the other, and write it if it is better."""
    with errors():
        import tightrope
        from tightrope.io.write import check_target

        check_target(out)
        wanted = _baseline(baseline)
        dataset = load(
            logs, None, discount, horizon, reward_range, return_range, incomplete, column, one_step, behavior_policy,
            cluster, strata,
        )  # fmt: skip
        say(f"read: {'; '.join(dataset.reading)}", err=True)
        with progress_bar("testing") as progress:
            result = tightrope.improve(
                dataset,
                baseline=wanted,  # type: ignore[arg-type]  # "behavior", or a number
                strict=strict,
                confidence=confidence,
                n_resamples=n_resamples,
                seed=seed,
                progress=progress,
            )
        if result.success:
            result.write(out)
    _show(result, out, json)
    if not result.success:
        raise typer.Exit(NO_ANSWER)


def _baseline(text: str) -> str | float:
    from tightrope.base.errors import BoundError

    if text == "behavior":
        return text
    try:
        return float(text)
    except ValueError:
        raise BoundError(f"--baseline must be behavior or a number; got {text!r}") from None


def _show(result: Improvement, out: Path, json: bool) -> None:
    if json:
        say(result.to_json())
        return
    say(result.why)
    parts = f"{result.n_proposed} episodes proposed it, {result.n_tested} others tested it, once"
    if result.n_clusters is not None and result.n_clusters_tested is not None:
        first = result.n_clusters - result.n_clusters_tested
        parts = (
            f"{first} clusters, {result.n_proposed} episodes, proposed it; {result.n_clusters_tested} others, "
            f"{result.n_tested} episodes, tested it, once"
        )
    say(f"Tested: {result.recipe} ({parts}).")
    if result.bound is not None:
        say(str(result.bound))
    for note in result.notes:
        say(f"! {note}")
    again = f"Written to {out}. To judge it again use new logs, for these chose it: evaluate ... --policy {out}."
    say(again if result.success else "Nothing was written.")
