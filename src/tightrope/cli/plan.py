"""The command that says how many more episodes would settle a question."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Annotated

import typer

from tightrope.cli.checks import check_report
from tightrope.cli.options import (
    QUESTION,
    BehaviorOption,
    BehaviorPolicy,
    Cluster,
    ColumnOption,
    Confidence,
    Deterministic,
    Discount,
    Epsilon,
    Horizon,
    Incomplete,
    Jobs,
    Json,
    Logs,
    MaxStepRatio,
    OneStep,
    OnnxOutput,
    PolicyClass,
    PolicyOption,
    Report,
    Resamples,
    ReturnRange,
    RewardRange,
    SeedOption,
    Sigma,
    Strata,
    Title,
)
from tightrope.cli.policies import form, named_policy, policy_sha256
from tightrope.cli.reading import load
from tightrope.cli.shared import NO_ANSWER, errors, origin, progress_bar, show_record, write_report
from tightrope.cli.terminal import say


def plan(
    logs: Logs,
    policy: PolicyOption = None,
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    deterministic: Deterministic = False,
    onnx_output: OnnxOutput = None,
    better_than: Annotated[
        str,
        typer.Option(
            help="What the candidate is to exceed: behavior (the policy that made the logs) or a number.",
            rich_help_panel=QUESTION,
        ),
    ] = "behavior",
    effect: Annotated[
        float | None,
        typer.Option(
            help="Plan for a candidate that is better by this much. Default: as it looks in these logs.",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    chance: Annotated[
        float, typer.Option(help="The chance of an answer at the planned number.", rich_help_panel=QUESTION)
    ] = 0.8,
    risk: Annotated[
        float | None,
        typer.Option(
            help="The most that an episode of new logs may lose against today's policy.", rich_help_panel=QUESTION
        ),
    ] = None,
    strict: Annotated[bool, typer.Option("--strict", help="Plan for exact bounds.", rich_help_panel=QUESTION)] = False,
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
    n_resamples: Resamples = 2000,
    seed: SeedOption = 0,
    jobs: Jobs = None,
    report: Report = None,
    title: Title = None,
    json: Json = False,
) -> None:
    """Say how many more episodes would show whether the candidate is better."""
    with errors():
        import tightrope
        from tightrope.adapters import load_object
        from tightrope.base.checks import reads_as_number

        check_report(report, title=title)
        candidate = named_policy(policy, policy_class, epsilon, sigma, onnx_output, deterministic)
        dataset = load(
            logs, policy, discount, horizon, reward_range, return_range, incomplete, column, one_step, behavior_policy,
            cluster, strata,
        )  # fmt: skip
        say(f"read: {'; '.join(dataset.reading)}", err=True)
        with progress_bar("resampling") as progress:
            result = tightrope.plan(
                dataset,
                candidate,
                better_than=float(better_than) if reads_as_number(better_than) else better_than,  # type: ignore[arg-type]
                effect=effect,
                chance=chance,
                risk=risk,
                strict=strict,
                confidence=confidence,
                n_resamples=n_resamples,
                seed=seed,
                behavior=load_object(behavior) if ":" in behavior else behavior,
                max_step_ratio=max_step_ratio,
                progress=progress,
                n_jobs=jobs,
            )
        words = form(policy, epsilon, sigma, deterministic)
        result = replace(result, provenance=origin(result.provenance, logs, words, policy_sha256(policy)))
    show_record(result, json)
    write_report(report, partial(result.to_html, title=title))
    if result.kind == "broken":
        raise typer.Exit(NO_ANSWER)
