"""The commands about a user's own logs: evaluate and inspect."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from tightrope.cli.checks import check_gate, check_report, check_settings
from tightrope.cli.completion import estimators, methods
from tightrope.cli.describe import Parts, show_columns, show_logs
from tightrope.cli.options import (
    LOGS,
    METHODS,
    OUTPUT,
    QUESTION,
    BehaviorOption,
    Cluster,
    ColumnOption,
    Confidence,
    Deterministic,
    Discount,
    EngineOption,
    Epsilon,
    Horizon,
    Incomplete,
    Jobs,
    Json,
    Logs,
    Memory,
    Metric,
    OneStep,
    OnnxOutput,
    PolicyClass,
    PolicyOption,
    Report,
    Resamples,
    ReturnRange,
    RewardRange,
    Scratch,
    SeedOption,
    Sigma,
    Strata,
    Title,
    Unit,
)
from tightrope.cli.policies import form, named_policy, policy_sha256
from tightrope.cli.reading import column_map, kept, load
from tightrope.cli.shared import errors, leave, origin, progress_bar, show, write_report
from tightrope.cli.terminal import say

if TYPE_CHECKING:
    pass


def evaluate(
    logs: Logs,
    policy: PolicyOption = None,
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    deterministic: Deterministic = False,
    onnx_output: OnnxOutput = None,
    estimator: Annotated[
        list[str] | None,
        typer.Option(
            help="is, pdis, wis, pdwis, mb, dr, wdr, tdr (these by default), fqe, magic, mis, drl, dice, clipped, "
            "shrunk, slope, opera; repeat for several.",
            rich_help_panel=METHODS,
            autocompletion=estimators,
        ),
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="percentile, bca, basic, studentized, t, hoeffding, empirical-bernstein, anderson, cut, betting, "
            "betting-mixture, bottou (with clipped), robust (with mb), rehearsed (with wdr); repeat for several.",
            rich_help_panel=METHODS,
            autocompletion=methods,
        ),
    ] = None,
    model: Annotated[
        str,
        typer.Option(
            help="For mb, dr and wdr: auto, tabular, linear, polynomial, fitted-q, or module:object.",
            rich_help_panel=METHODS,
        ),
    ] = "auto",
    behavior: BehaviorOption = "logged",
    side: Annotated[
        Literal["lower", "upper", "both"], typer.Option(help="Which bounds.", rich_help_panel=QUESTION)
    ] = "lower",
    strict: Annotated[
        bool, typer.Option("--strict", help="Believe exact bounds only.", rich_help_panel=QUESTION)
    ] = False,
    confidence: Confidence = 0.95,
    discount: Discount = None,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    return_range: ReturnRange = None,
    max_ratio: Annotated[
        float | None,
        typer.Option(
            help="No cumulative importance ratio can exceed this (hoeffding, empirical-bernstein).",
            rich_help_panel=LOGS,
        ),
    ] = None,
    max_step_ratio: Annotated[
        float | None,
        typer.Option(
            help="No action's importance ratio can exceed this at any step, logged or not (tdr with betting).",
            rich_help_panel=LOGS,
        ),
    ] = None,
    behavior_policy: Annotated[
        str | None,
        typer.Option(
            help="The policy that made the logs, as --policy takes it, for tdr's exact bounds.", rich_help_panel=LOGS
        ),
    ] = None,
    incomplete: Incomplete = "error",
    column: ColumnOption = None,
    one_step: OneStep = False,
    cluster: Cluster = None,
    strata: Strata = None,
    memory: Memory = None,
    scratch: Scratch = None,
    n_resamples: Resamples = 2000,
    seed: SeedOption = 0,
    jobs: Jobs = None,
    engine: EngineOption = "local",
    threshold: Annotated[
        float | None,
        typer.Option(help="Say whether the value exceeds this number; computes both sides.", rich_help_panel=QUESTION),
    ] = None,
    baseline: Annotated[
        Literal["behavior"] | None,
        typer.Option(
            help="Say whether the candidate is better than the policy that made the logs, by their paired difference.",
            rich_help_panel=QUESTION,
        ),
    ] = None,
    rehearsals: Annotated[
        int,
        typer.Option(
            help="Simulate so many logs like these, and show how often each bound is wrong there (try 200).",
            rich_help_panel=METHODS,
        ),
    ] = 0,
    exit_code: Annotated[
        bool,
        typer.Option(
            "--exit-code",
            help="With --threshold or --baseline: exit with 0 for yes, 4 for no, 5 for cannot tell.",
            rich_help_panel=OUTPUT,
        ),
    ] = False,
    everything: Annotated[
        bool,
        typer.Option(
            "--all", help="Show every bound, what was left out, and what was measured.", rich_help_panel=OUTPUT
        ),
    ] = False,
    report: Report = None,
    title: Title = None,
    metric: Metric = None,
    unit: Unit = None,
    json: Json = False,
) -> None:
    """Bound the candidate's value from logs of another policy, and say which bound to believe."""
    with errors():
        import tightrope
        from tightrope.adapters import load_object

        check_gate(exit_code, threshold, baseline)
        settings: dict[str, Any] = {
            "confidence": confidence, "n_resamples": n_resamples, "max_ratio": max_ratio, "n_jobs": jobs,
            "engine": engine,
        }  # fmt: skip
        check_settings(estimator, method, model, **settings)
        check_report(report, title=title, metric=metric, unit=unit)
        candidate = named_policy(policy, policy_class, epsilon, sigma, onnx_output, deterministic)
        dataset = load(
            logs, policy, discount, horizon, reward_range, return_range, incomplete, column, one_step, behavior_policy,
            cluster, strata, memory, scratch, engine,
        )  # fmt: skip
        say(f"read: {'; '.join(dataset.reading)}", err=True)
        with progress_bar("resampling") as progress:
            result = tightrope.evaluate(
                dataset,
                candidate,
                estimators=estimator, methods=method, side=side, strict=strict, seed=seed,
                model=load_object(model) if ":" in model else model,
                behavior=load_object(behavior) if ":" in behavior else behavior,
                max_step_ratio=max_step_ratio, threshold=threshold, baseline=baseline, rehearsals=rehearsals,
                progress=progress, **settings,
            )  # fmt: skip
        words = form(policy, epsilon, sigma, deterministic)
        result = replace(result, provenance=origin(result.provenance, logs, words, policy_sha256(policy)))
    show(result, json, everything=everything)  # before the report is written: a full disk must not cost the answer
    if candidate is not None and not json:
        say(f"Evaluated: {form(policy, epsilon, sigma, deterministic)}.")
    write_report(report, partial(result.to_html, title=title, metric=metric or "value", unit=unit or ""))
    leave(result, by_verdict=exit_code, model_is_enough=bool(estimator))


def inspect(
    logs: Logs,
    policy: PolicyOption = None,
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    deterministic: Deterministic = False,
    onnx_output: OnnxOutput = None,
    behavior: BehaviorOption = "logged",
    discount: Discount = None,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    return_range: ReturnRange = None,
    incomplete: Incomplete = "error",
    column: ColumnOption = None,
    one_step: OneStep = False,
    cluster: Cluster = None,
    strata: Strata = None,
    memory: Memory = None,
    scratch: Scratch = None,
    json: Json = False,
) -> None:
    """What is in the logs, what is wrong with them, and how much they say about the candidate."""
    with errors():
        from tightrope.adapters import load_object
        from tightrope.base.errors import TightropeError, failing
        from tightrope.base.problem import Problem
        from tightrope.behaviors import behavior as find_behavior
        from tightrope.evaluation.behavior_check import check_behavior
        from tightrope.evaluation.gaps import gaps
        from tightrope.evaluation.overlap import overlap
        from tightrope.evaluation.summary import summarize

        candidate = named_policy(policy, policy_class, epsilon, sigma, onnx_output, deterministic)
        source = kept(logs, column)
        try:
            dataset = load(
                source, policy, discount, horizon, reward_range, return_range, incomplete, column, one_step, None,
                cluster, strata, memory, scratch,
            )  # fmt: skip
        except TightropeError as error:
            show_columns(source, column_map(column or []), error, json)
            raise
        summary = summarize(dataset)
        has_candidate = candidate is not None or dataset.eval_log_probs is not None
        chosen = find_behavior(load_object(behavior) if ":" in behavior else behavior, dataset)
        missing = gaps(dataset, has_candidate=has_candidate, estimated=chosen is not None)
        parts: Parts = {"overlap": None, "behavior_check": None}
        wrong = None
        if has_candidate and (dataset.behavior_log_probs is not None or chosen is not None):
            try:
                with failing():
                    problem = Problem(dataset, candidate, chosen)
                    parts = {"overlap": overlap(problem), "behavior_check": check_behavior(problem)}
            except TightropeError as error:  # what can be said all the same is said first
                wrong = error
    show_logs(summary, parts, missing, json)
    with errors():
        if wrong is not None:
            raise wrong
