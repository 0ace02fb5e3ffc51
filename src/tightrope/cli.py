"""The command line: parse, call, print. Heavy modules are imported inside the commands."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from tightrope.cli_shared import BAD_INPUT, EXITS, NO_ANSWER
from tightrope.cli_shared import errors as _errors
from tightrope.cli_studies import coverage, reproduce

if TYPE_CHECKING:
    from tightrope.dataset import TrajectoryDataset
    from tightrope.engines.local import Progress
    from tightrope.evaluation import Evaluation
    from tightrope.policy import Policy

__all__ = ["BAD_INPUT", "NO_ANSWER", "app"]

app = typer.Typer(
    help="How good is this policy, at worst, judging only from logs of another policy?",
    epilog=EXITS,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

Logs = Annotated[
    Path,
    typer.Argument(
        help="Parquet or CSV file, one row per step; a Minari dataset (minari:ID or its folder).", show_default=False
    ),
]
PolicyOption = Annotated[
    str | None,
    typer.Option(
        help="The candidate: a column of the logs; a table of probabilities (.npy or .npz of shape (states, actions), "
        "file.npz:array, or .csv or .parquet with columns state, action, prob); module:object; an .onnx file; or a "
        "model (Stable-Baselines3 .zip, scikit-learn .joblib or .pkl), which runs code in that file."
    ),
]
PolicyClass = Annotated[
    str | None, typer.Option(help="The class of a .zip policy (PPO, A2C, SAC, TD3, DDPG, DQN), if it cannot be told.")
]
Epsilon = Annotated[
    float | None, typer.Option(help="The candidate acts at random with this probability (discrete actions).")
]
Sigma = Annotated[
    list[float] | None,
    typer.Option(
        help="The candidate adds normal noise of this standard deviation (continuous actions); repeat per component."
    ),
]
OnnxOutput = Annotated[
    str | None, typer.Option(help="What an .onnx policy gives: probabilities, log_probs, logits, or name:kind.")
]
BehaviorOption = Annotated[
    str,
    typer.Option(
        help="The behaviour policy: logged (behavior_prob), or estimated from the logs: auto, tabular, logistic, "
        "gaussian, or module:object (a behaviour model or a classifier)."
    ),
]
Discount = Annotated[float, typer.Option(help="γ: what a reward one step later is worth.")]
Horizon = Annotated[int | None, typer.Option(help="Steps that count. Default: the longest episode.")]
RewardRange = Annotated[
    tuple[float, float] | None, typer.Option(help="Lowest and highest possible reward of a step (may be -inf, inf).")
]
ReturnRange = Annotated[tuple[float, float] | None, typer.Option(help="Lowest and highest possible return.")]
Incomplete = Annotated[
    Literal["error", "terminate", "drop"],
    typer.Option(help="Episodes shorter than the horizon and not flagged as terminated."),
]
ColumnOption = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="Which column is what, where its name does not say: ROLE=NAME, such as behavior_prob=p or state=age,dose; "
        "ROLE= for none. Repeat for several.",
    ),
]
OneStep = Annotated[bool, typer.Option("--one-step", help="Every row is an episode of its own (a bandit's logs).")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
Confidence = Annotated[float, typer.Option(help="Of each bound, in (0.5, 1).")]
Resamples = Annotated[int, typer.Option(help="Bootstrap replicates.")]
SeedOption = Annotated[int, typer.Option(help="One seed gives the same numbers.")]

app.command(epilog=EXITS)(coverage)
app.command(epilog=EXITS)(reproduce)


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        typer.echo(f"tightrope {version('tightrope')}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """How good is this policy, at worst, judging only from logs of another policy?"""


@app.command(epilog=EXITS)
def evaluate(
    logs: Logs,
    policy: PolicyOption = None,
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    onnx_output: OnnxOutput = None,
    estimator: Annotated[
        list[str] | None, typer.Option(help="is, pdis, wis, pdwis, mb, dr, wdr; repeat for several.")
    ] = None,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="percentile, bca, basic, studentized, t, hoeffding, empirical-bernstein, anderson, cut, betting, "
            "robust (with mb); repeat for several."
        ),
    ] = None,
    model: Annotated[
        str, typer.Option(help="For mb, dr and wdr: auto, tabular, linear, polynomial, or module:object.")
    ] = "auto",
    behavior: BehaviorOption = "logged",
    side: Annotated[Literal["lower", "upper", "both"], typer.Option(help="Which bounds.")] = "lower",
    strict: Annotated[bool, typer.Option("--strict", help="Believe exact bounds alone.")] = False,
    confidence: Confidence = 0.95,
    discount: Discount = 1.0,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    return_range: ReturnRange = None,
    max_ratio: Annotated[
        float | None,
        typer.Option(help="No cumulative importance ratio can exceed this (hoeffding, empirical-bernstein)."),
    ] = None,
    incomplete: Incomplete = "error",
    column: ColumnOption = None,
    one_step: OneStep = False,
    n_resamples: Resamples = 2000,
    seed: SeedOption = 0,
    threshold: Annotated[
        float | None, typer.Option(help="Say whether the value exceeds this; bounds both sides.")
    ] = None,
    baseline: Annotated[
        Literal["behavior"] | None,
        typer.Option(help="Say whether the candidate gains on the policy that made the logs, by a paired difference."),
    ] = None,
    report: Annotated[Path | None, typer.Option(help="Also write a report here, one HTML page.")] = None,
    json: Json = False,
) -> None:
    """Bound the candidate's value from logs of another policy, and say which bound to believe."""
    with _errors():
        import tightrope
        from tightrope.policies import load_object
        from tightrope.readers.write import check_writable

        if report is not None:
            check_writable(report)
        candidate = _candidate(policy, policy_class, epsilon, sigma, onnx_output)
        dataset = _load(logs, policy, discount, horizon, reward_range, return_range, incomplete, column, one_step)
        typer.echo(f"read: {'; '.join(dataset.reading)}", err=True)
        with _progress("resampling") as progress:
            result = tightrope.evaluate(
                dataset,
                candidate,
                estimators=estimator,
                methods=method,
                model=load_object(model) if ":" in model else model,
                behavior=load_object(behavior) if ":" in behavior else behavior,
                side=side,
                strict=strict,
                confidence=confidence,
                n_resamples=n_resamples,
                rng=seed,
                max_ratio=max_ratio,
                threshold=threshold,
                baseline=baseline,
                progress=progress,
            )
        if report is not None:
            result = _with_origin(result, logs)
            result.to_html(report)
    _show(result, json)
    _leave(result)


@app.command(epilog=EXITS)
def inspect(
    logs: Logs,
    policy: PolicyOption = None,
    policy_class: PolicyClass = None,
    epsilon: Epsilon = None,
    sigma: Sigma = None,
    onnx_output: OnnxOutput = None,
    behavior: BehaviorOption = "logged",
    discount: Discount = 1.0,
    horizon: Horizon = None,
    reward_range: RewardRange = None,
    return_range: ReturnRange = None,
    incomplete: Incomplete = "error",
    column: ColumnOption = None,
    one_step: OneStep = False,
    json: Json = False,
) -> None:
    """What is in the logs, what is wrong with them, and how much they say about the candidate."""
    with _errors():
        from tightrope.behaviors import behavior as find_behavior
        from tightrope.diagnostics import overlap, summarize
        from tightrope.estimators.behavior_check import check_behavior
        from tightrope.policies import load_object
        from tightrope.problem import Problem

        candidate = _candidate(policy, policy_class, epsilon, sigma, onnx_output)
        dataset = _load(logs, policy, discount, horizon, reward_range, return_range, incomplete, column, one_step)
        summary = summarize(dataset)
        asked = candidate is not None or dataset.eval_log_probs is not None
        chosen = find_behavior(load_object(behavior) if ":" in behavior else behavior, dataset)
        problem = Problem(dataset, candidate, chosen)
        found, check = (overlap(problem), check_behavior(problem)) if asked else (None, None)
    if json:
        import json as encoder

        parts = {"summary": summary, "overlap": found, "behavior_check": check}
        typer.echo(encoder.dumps({name: part.to_dict() if part else None for name, part in parts.items()}))
        return
    from rich.console import Console

    from tightrope.report.table import summary_table

    Console().print(summary_table(summary, found, check))


@app.command(epilog=EXITS)
def demo(
    problem: Annotated[str, typer.Option(help="walker, bonus, decline, clinic or cliff.")] = "walker",
    n: Annotated[int, typer.Option(help="Episodes to log.")] = 1000,
    seed: SeedOption = 0,
    save: Annotated[Path | None, typer.Option(help="Also write the logs here (.parquet or .csv).")] = None,
    json: Json = False,
) -> None:
    """Bounds on logs made on the spot, with the true value beside them."""
    with _errors():
        import numpy as np

        import tightrope
        from tightrope.domains import small

        chosen = small(problem)
        dataset = chosen.logs(n, rng=np.random.default_rng(seed))
        if save is not None:
            tightrope.write(dataset, save)
        if not json:
            typer.echo(f"{chosen.name}: {chosen.about}.")
        with _progress("resampling") as progress:
            result = tightrope.evaluate(
                dataset, chosen.candidate, rng=seed, true_value=chosen.true_value, progress=progress
            )
    _show(result, json)
    if save is not None and not json:
        ranges = " ".join(
            f"--{name} {low!r} {high!r}"
            for name, (low, high) in (
                ("reward-range", chosen.mdp.reward_range),
                ("return-range", chosen.mdp.return_range),
            )
        )
        typer.echo(
            f"\nThe same from the file:\n  tightrope evaluate {save} --horizon {dataset.horizon} --discount "
            f"{dataset.discount:g} {ranges}"
        )
    if not json and save is None:
        _show_situations(seed)
    _leave(result)


def _with_origin(result: Evaluation, logs: Path) -> Evaluation:
    """The result with the command as typed and the file it read."""
    import shlex
    from dataclasses import replace

    from tightrope.provenance import provenance

    return replace(result, provenance=provenance(shlex.join(["tightrope", *sys.argv[1:]]), logs))


def _show_situations(seed: int) -> None:
    """What is advised where different answers are called for, beside the truth."""
    import numpy as np
    from rich.console import Console

    import tightrope
    from tightrope.domains import situations
    from tightrope.report.table import situations_table

    results = []
    for number, problem in enumerate(situations()):
        dataset = problem.logs(500, rng=np.random.default_rng([seed, number]))
        results.append(
            (problem.name, problem.about, tightrope.evaluate(dataset, problem.candidate, true_value=problem.true_value))
        )
    Console().print(situations_table(results))


@app.command(epilog=EXITS)
def truth(
    domain: Annotated[str, typer.Argument(help="mountain-car, cliff-world, ...; an unknown name lists all.")],
    rollouts: Annotated[int, typer.Option(help="Episodes of each policy, where there is no exact value.")] = 100_000,
    seed: SeedOption = 0,
    draw: Annotated[Path | None, typer.Option(help="Also draw the domain (.png, .pdf or .svg).")] = None,
    json: Json = False,
) -> None:
    """What both policies of a domain are truly worth, computed anew, and every number of the domain."""
    with _errors():
        import tightrope.domains
        from tightrope.domains.truth import truth as compute

        chosen = tightrope.domains.domain(domain)
        if draw is not None:
            from tightrope.report.drawing import save_drawing

            save_drawing(chosen, draw, seed=seed)
        with _progress("rolling out") as progress:
            found = compute(chosen, rollouts=rollouts, seed=seed, progress=progress)
    from tightrope.report.truth import truth_record, truth_table

    if json:
        import json as encoder

        typer.echo(encoder.dumps(truth_record(chosen, found)))
        return
    from rich.console import Console

    Console().print(truth_table(chosen, found))


def _load(
    logs: Path,
    policy: str | None,
    discount: float,
    horizon: int | None,
    reward_range: tuple[float, float] | None,
    return_range: tuple[float, float] | None,
    incomplete: Literal["error", "terminate", "drop"],
    column: list[str] | None,
    one_step: bool,
) -> TrajectoryDataset:
    """The logs, with the candidate's probabilities where it is one of their columns."""
    from tightrope.policies.load import is_column
    from tightrope.readers import read

    return read(
        logs,
        discount=discount,
        horizon=horizon,
        reward_range=reward_range,
        return_range=return_range,
        incomplete=incomplete,
        eval_column=policy if policy is not None and is_column(policy) else None,
        columns=_column_map(column or []),
        one_step=True if one_step else None,
    )


def _candidate(
    policy: str | None,
    policy_class: str | None,
    epsilon: float | None,
    sigma: list[float] | None,
    onnx_output: str | None,
) -> Policy | None:
    """The candidate, unless it is a column of the logs."""
    from tightrope.errors import PolicyError
    from tightrope.policies import load_policy
    from tightrope.policies.load import is_column
    from tightrope.policies.pickled import runs_code

    if policy is None or is_column(policy):
        if (epsilon, sigma, policy_class, onnx_output) != (None, None, None, None):
            raise PolicyError(
                "--epsilon, --sigma, --policy-class and --onnx-output are for a policy in a file or module; a column "
                "of the logs holds the probabilities themselves"
            )
        return None
    if runs_code(policy):
        typer.echo(f"policy: loading {policy} runs code in it; name only files whose maker you trust", err=True)
    return load_policy(
        policy,
        epsilon=epsilon,
        sigma=sigma[0] if sigma and len(sigma) == 1 else sigma,
        policy_class=policy_class,
        onnx_output=onnx_output,
    )


def _column_map(given: list[str]) -> dict[str, str | list[str] | None]:
    """ROLE=NAME pairs; several names for one role with commas, none for no such column."""
    from tightrope.errors import DataError

    result: dict[str, str | list[str] | None] = {}
    for text in given:
        role, equals, name = text.partition("=")
        if not equals or role in result:
            raise DataError(f"--column is {text!r}; give ROLE=NAME, each role once, such as behavior_prob=p")
        result[role] = name.split(",") if "," in name else name or None
    return result


def _show(result: Evaluation, json: bool) -> None:
    """Print the result."""
    if json:
        typer.echo(result.to_json())
    else:
        from rich.console import Console

        from tightrope.report.table import evaluation_table

        Console().print(evaluation_table(result))


def _leave(result: Evaluation) -> None:
    """Leave with the code that says whether there is an answer."""
    if not result.believe:
        raise typer.Exit(NO_ANSWER)


@contextmanager
def _progress(what: str) -> Iterator[Progress | None]:
    """A bar on stderr while there is someone to see it."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bar

    with Bar(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=1.0)
        yield lambda share: bar.update(task, completed=share)
