"""The command that watches a candidate while logs arrive."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.checks import check_drawing
from tightrope.cli.options import (
    LOGS,
    METHODS,
    OUTPUT,
    QUESTION,
    ColumnOption,
    Deterministic,
    Discount,
    Epsilon,
    Horizon,
    Incomplete,
    Json,
    OneStep,
    OnnxOutput,
    PolicyClass,
    PolicyOption,
    ReturnRange,
    RewardRange,
    Sigma,
)
from tightrope.cli.policies import named_policy
from tightrope.cli.reading import load
from tightrope.cli.shared import VERDICTS, errors, progress_bar
from tightrope.cli.terminal import say

if TYPE_CHECKING:
    from tightrope.base.dataset import TrajectoryDataset
    from tightrope.decisions.monitoring import Look, Monitor


def monitor(
    state: Annotated[Path, typer.Argument(help="The monitor's file: made by the first call, carried on by the next.")],
    logs: Annotated[
        list[str] | None,
        typer.Argument(help="New logs, each one batch, as evaluate takes them; none: show what is known."),
    ] = None,
    policy: PolicyOption = None,
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    deterministic: Deterministic = False,
    onnx_output: OnnxOutput = None,
    above: Annotated[
        float | None, typer.Option(help="Raise an alarm once the value surely exceeds this.", rich_help_panel=QUESTION)
    ] = None,
    below: Annotated[
        float | None,
        typer.Option(help="Raise an alarm once the value surely lies below this.", rich_help_panel=QUESTION),
    ] = None,
    confidence: Annotated[
        float | None,
        typer.Option(
            help="The confidence of each bound, at all looks together. Default: as it began, or 0.95.",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(help="auto, tabular or none. Default: as it began, or auto.", rich_help_panel=METHODS),
    ] = None,
    discount: Discount = None,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    return_range: ReturnRange = None,
    max_step_ratio: Annotated[
        float | None,
        typer.Option(
            help="No action's importance ratio can exceed this at any step, logged or not.", rich_help_panel=LOGS
        ),
    ] = None,
    behavior_policy: Annotated[
        str | None,
        typer.Option(help="The policy that made these logs, as --policy takes it.", rich_help_panel=LOGS),
    ] = None,
    incomplete: Incomplete = "error",
    column: ColumnOption = None,
    one_step: OneStep = False,
    cluster: Annotated[
        str | None,
        typer.Option(help="Refused: a monitor takes one episode for each patient, site or day.", rich_help_panel=LOGS),
    ] = None,
    skip_known: Annotated[
        bool,
        typer.Option(
            "--skip-known",
            help="Leave out episodes that were counted before; otherwise they are an error.",
            rich_help_panel=LOGS,
        ),
    ] = False,
    every: Annotated[
        int | None,
        typer.Option(help="Also look after each so many episodes of a batch.", rich_help_panel=QUESTION),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Also draw the bounds at every look here (.svg).", rich_help_panel=OUTPUT)
    ] = None,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="Exit with 0 if surely above, 4 if surely below, 5 if neither is sure yet.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    json: Json = False,
) -> None:
    """Bound the candidate's value while logs arrive: the bounds hold at every look, however often one looks."""
    with errors():
        from tightrope.io.locks import lock_of

        _check(exit_code, above, below, plot)
        candidate = named_policy(policy, policy_class, epsilon, sigma, onnx_output, deterministic)
        with lock_of(state):
            watch = _opened(state, candidate, confidence, model, max_step_ratio, has_logs=bool(logs))
            for source in logs or ():
                dataset = _batch(
                    watch, source, policy, discount, horizon, reward_range, return_range, incomplete, column, one_step,
                    behavior_policy, cluster,
                )  # fmt: skip
                if watch.terms is None:
                    say(f"read: {'; '.join(dataset.reading)}", err=True)
                for note in dataset.notes:
                    say(f"! {note}", err=True)
                if any(note.code == "group-column" for note in dataset.notes):
                    say("! A monitor goes by no clusters: give it one episode for each, or it is not exact.", err=True)
                with progress_bar("counting") as progress:
                    watch.update(
                        dataset, label=Path(source).stem, every=every, skip_known=skip_known, progress=progress
                    )
                watch.save(state)  # after every batch: what was counted stays counted
        if plot is not None:
            watch.plot(plot, above=above, below=below)
    _show(watch, above, below, json)
    if plot is not None:
        say(f"plot: {plot}", err=True)
    if exit_code:
        raise typer.Exit(VERDICTS[_kind(watch.looks[-1], above, below)])


def _check(exit_code: bool, above: float | None, below: float | None, plot: Path | None) -> None:
    from tightrope.base.errors import BoundError

    if exit_code and above is None and below is None:
        raise BoundError(
            "--exit-code must come with --above VALUE or --below VALUE, because it says whether that is sure"
        )
    check_drawing("--plot", plot)


def _opened(
    state: Path,
    candidate: Any,
    confidence: float | None,
    model: str | None,
    max_step_ratio: float | None,
    *,
    has_logs: bool,
) -> Monitor:
    """The monitor that the file holds, or a new one; what is asked for must be what it began with."""
    from dataclasses import replace

    import tightrope
    from tightrope.base.errors import DataError

    if not state.exists():
        if not has_logs:
            raise DataError(
                f"{state} must be a file that a monitor wrote, or come with logs to begin one; there is none"
            )
        return tightrope.Monitor(
            candidate, confidence=0.95 if confidence is None else confidence, model=model or "auto",
            max_step_ratio=max_step_ratio,
        )  # fmt: skip
    watch = tightrope.Monitor.load(state, candidate)
    given: dict[str, Any] = {"confidence": confidence, "model": model, "max_step_ratio": max_step_ratio}
    assert watch.terms is not None
    watch.check_terms(replace(watch.terms, **{name: value for name, value in given.items() if value is not None}))
    return watch


def _batch(
    watch: Monitor,
    source: str,
    policy: str | None,
    discount: float | None,
    horizon: int | None,
    reward_range: tuple[float, float] | None,
    return_range: tuple[float, float] | None,
    *rest: Any,
) -> TrajectoryDataset:
    """One batch; what was not said is as it was when the monitor began."""
    terms = watch.terms
    if terms is not None:
        discount = terms.discount if discount is None else discount
        horizon = terms.horizon if horizon is None else horizon
        if reward_range is None and return_range is None:
            reward_range, return_range = terms.reward_range, terms.return_range
    return load([source], policy, discount, horizon, reward_range, return_range, *rest)


def _kind(look: Look, above: float | None, below: float | None) -> str:
    """The answer as evaluate names it; a value that is surely too low is the alarm that counts."""
    if below is not None and look.upper < below:
        return "no"
    return "yes" if above is not None and look.lower > above else "cannot tell"


def _no_alarm(look: Look, above: float | None, below: float | None) -> list[str]:
    """What was asked about: what is surely not so, and what is still open."""
    sure: list[str] = []
    unsure: list[str] = []
    if above is not None:
        (sure if look.upper <= above else unsure).append(f"above {above:g}")
    if below is not None:
        (sure if look.lower >= below else unsure).append(f"below {below:g}")
    lines = [f"No alarm: the value surely does not lie {' or '.join(sure)}."] if sure else []
    open_ones = f"whether the value lies {' or '.join(unsure)} is not sure."
    return [*lines, *([f"No alarm yet: {open_ones}"] if unsure else [])]


def _show(watch: Monitor, above: float | None, below: float | None, json: bool) -> None:
    """Print the answer first, then the last looks."""
    from tightrope.base.rounding import outward

    look, terms = watch.looks[-1], watch.terms
    assert terms is not None
    sure_above, sure_below = above is not None and look.lower > above, below is not None and look.upper < below
    if json:
        import json as writer

        alarms = {
            "above": sure_above if above is not None else None,
            "below": sure_below if below is not None else None,
        }
        record = {**look.to_dict(), "confidence": terms.confidence, "alarms": alarms}
        warnings = [one.to_dict() for one in watch.warnings]
        say(writer.dumps({**record, "warnings": warnings, "looks": [one.to_dict() for one in watch.looks]}))
        return
    lines = [f"! {one}" for one in watch.warnings]
    if sure_below:
        lines.append(f"ALARM: the candidate's value surely lies below {below:g}.")
    if sure_above:
        lines.append(f"ALARM: the candidate's value surely exceeds {above:g}.")
    lines += [] if sure_below or sure_above else _no_alarm(look, above, below)
    low, high = outward(look.lower, "lower"), outward(look.upper, "upper")
    lines.append(
        f"After {look.episodes} episodes: {low:g} ≤ value ≤ {high:g}. Each bound holds with confidence "
        f"{terms.confidence:g} at all looks together (exact, both {2 * terms.confidence - 1:g})."
    )
    shown = watch.looks[-SHOWN:]
    rows = [
        (one.label, str(one.episodes), f"{outward(one.lower, 'lower'):g}", f"{outward(one.upper, 'upper'):g}")
        for one in shown
    ]
    say("\n".join([*lines, "", *_table([("look", "episodes", "lower", "upper"), *rows])]))


SHOWN = 7  # looks


def _table(rows: list[tuple[str, ...]]) -> list[str]:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:], strict=True))]
        )
        for row in rows
    ]
