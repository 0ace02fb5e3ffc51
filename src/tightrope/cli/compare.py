"""The command that compares several policies on the same logs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tightrope.cli.checks import check_report
from tightrope.cli.options import (
    CANDIDATE,
    METHODS,
    OUTPUT,
    QUESTION,
    BehaviorOption,
    BehaviorPolicy,
    Cluster,
    ColumnOption,
    Confidence,
    Discount,
    Horizon,
    Incomplete,
    Jobs,
    Json,
    Logs,
    MaxStepRatio,
    OneStep,
    Report,
    ReturnRange,
    RewardRange,
    SeedOption,
    Strata,
    Title,
)
from tightrope.cli.policies import named_policy
from tightrope.cli.reading import kept, load
from tightrope.cli.shared import NO_ANSWER, VERDICTS, errors, origin, progress_bar, show_record, write_report
from tightrope.cli.terminal import say

if TYPE_CHECKING:
    from tightrope.base.dataset import TrajectoryDataset


def compare(
    logs: Logs,
    policy: Annotated[
        list[str],
        typer.Option(
            help="A candidate, as evaluate takes it: a table of probabilities, module:object, an .onnx file, a model, "
            "or a column of the logs. NAME=... gives it a name. Repeat for several.",
            rich_help_panel=CANDIDATE,
        ),
    ],
    baseline: Annotated[
        str,
        typer.Option(
            help="What to be better than: behavior (the policy that made the logs), a number, one of the names, or a "
            "policy.",
            rich_help_panel=QUESTION,
        ),
    ] = "behavior",
    strict: Annotated[bool, typer.Option("--strict", help="Exact bounds only.", rich_help_panel=QUESTION)] = False,
    confidence: Confidence = 0.95,
    behavior: BehaviorOption = "logged",
    discount: Discount = None,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    return_range: ReturnRange = None,
    max_step_ratio: MaxStepRatio = None,
    behavior_policy: BehaviorPolicy = None,
    incomplete: Incomplete = "error",
    column: ColumnOption = None,
    one_step: OneStep = False,
    cluster: Cluster = None,
    strata: Strata = None,
    n_resamples: Annotated[
        int | None,
        typer.Option(help="Bootstrap replicates. Default: 10,000, or more for many.", rich_help_panel=METHODS),
    ] = None,
    seed: SeedOption = 0,
    jobs: Jobs = None,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="Exit with 0 if some candidate is better than the baseline, 4 if none is, 5 for cannot tell.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    report: Report = None,
    title: Title = None,
    json: Json = False,
) -> None:
    """Compare several policies: which is better than today's, and which may be the best."""
    with errors():
        import tightrope
        from tightrope.adapters import load_object

        check_report(report, title=title)
        words = (
            discount, horizon, reward_range, return_range, incomplete, column, one_step, behavior_policy, cluster,
            strata,
        )  # fmt: skip
        source = kept(logs, column)
        dataset = load(source, None, *words)
        say(f"read: {'; '.join(dataset.reading)}", err=True)
        named = _named(policy)

        finder = partial(_found, partial(load, source), words)
        with progress_bar("resampling") as progress:
            result = tightrope.compare(
                dataset,
                {name: finder(spec) for name, spec in named.items()},
                baseline=_baseline(baseline, named, finder),
                strict=strict,
                confidence=confidence,
                n_resamples=n_resamples,
                seed=seed,
                behavior=load_object(behavior) if ":" in behavior else behavior,
                max_step_ratio=max_step_ratio,
                progress=progress,
                n_jobs=jobs,
            )
        result = replace(result, provenance=origin(result.provenance, logs, ", ".join(policy)))
    show_record(result, json)
    write_report(report, partial(result.to_html, title=title))
    if exit_code:
        raise typer.Exit(VERDICTS[result.verdict.kind])
    if not result.chosen:
        raise typer.Exit(NO_ANSWER)


def _found(read: Callable[..., TrajectoryDataset], words: tuple[Any, ...], spec: str) -> Any:
    """The policy that the words name, or the column of the logs that holds its probabilities."""
    from tightrope.adapters.load import is_column
    from tightrope.decisions.contenders import Logged

    if not is_column(spec):
        return named_policy(spec, None, None, None, None, False)
    log_probs = read(spec, *words).eval_log_probs
    assert log_probs is not None
    return Logged(log_probs)


def _named(policies: list[str]) -> dict[str, str]:
    """The policies by their names: NAME=POLICY, or the policy's own words."""
    from tightrope.base.errors import DataError

    named: dict[str, str] = {}
    for text in policies:
        name, equals, spec = text.partition("=")
        name, spec = (name, spec) if equals else (Path(text).stem if Path(text).suffix else text, text)
        if not name or not spec or name in named:
            raise DataError(f"--policy must be POLICY or NAME=POLICY, each name once; got {text!r}")
        named[name] = spec
    return named


def _baseline(text: str, named: dict[str, str], finder: Callable[[str], Any]) -> Any:
    """A word that compare knows, a number, or a policy of its own."""
    from tightrope.base.checks import reads_as_number
    from tightrope.base.errors import DataError
    from tightrope.base.names import did_you_mean

    if text == "behavior" or text in named:
        return text
    if reads_as_number(text):
        return float(text)
    try:
        return finder(text)
    except DataError as error:
        known = did_you_mean(text, ["behavior", *named])
        raise DataError(
            f'--baseline must be "behavior", a number, the name of a candidate, or a policy as --policy takes it; '
            f"got {text!r}{known or f' ({error})'}"
        ) from error
