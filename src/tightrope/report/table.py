"""An evaluation as a table in a terminal. It reads records and computes nothing."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tightrope.base.errors import visible
from tightrope.base.records import BehaviorCheck, Bound, Evaluation, Overlap, Summary
from tightrope.base.warnings import Caution, codes_of


def _text(words: str, style: str = "") -> Text:
    """Words as plain text: a name from the logs must be neither markup nor a command to the terminal."""
    return Text(visible(words), style=style)


def evaluation_table(evaluation: Evaluation) -> Group:
    """The bounds, what is wrong with them, and which to believe."""
    parts: list[RenderableType] = [_heading(evaluation), _bounds(evaluation)]
    parts += _warnings(evaluation)
    if evaluation.skipped:
        parts.append(_skipped(evaluation.skipped))
    if evaluation.rehearsal:
        count = max(one.trials for one in evaluation.rehearsal)
        words = f"Wrong in rehearsal: on {count} logs like these, simulated from a model of them. It chooses nothing."
        parts.append(_text(words, style="dim"))
    if evaluation.true_value is not None:
        parts.append(_text(f"True value of the candidate, known here: {evaluation.true_value:.5g}", style="bold"))
    parts += [
        _text(
            f"Gain over the behaviour policy, on the same resamples: {str(bound).splitlines()[0].removeprefix('gain ')}"
        )
        for bound in evaluation.believed_gains
    ]
    if evaluation.verdict is not None and evaluation.verdict.threshold is not None:
        parts.append(_text(evaluation.verdict.headline, style="bold"))
    parts.append(_text(evaluation.advice, style="bold green" if evaluation.believed else "bold red"))
    parts += [_text(f"  {reason}", style="dim") for reason in evaluation.reasons]
    return Group(*parts)


def _heading(evaluation: Evaluation) -> Text:
    summary, overlap, check = evaluation.summary, evaluation.overlap, evaluation.behavior_check
    estimated = f" Behaviour policy estimated ({check.behavior})." if check is not None else ""
    declared = "" if summary.horizon_declared else " (the longest episode)"
    return _text(
        f"{summary.n_trajectories} episodes, {summary.n_steps} steps; discount {summary.discount:g}, horizon "
        f"{summary.horizon}{declared}. They carry as much information as {overlap.effective_sample_size[-1]:.1f} "
        f"episodes of the candidate. The behaviour policy's own value: {summary.return_mean:.4g} ± "
        f"{summary.return_error:.2g}.{estimated}"
    )


def _bounds(evaluation: Evaluation) -> Table:
    """One row for each pair, with the sides beside each other."""
    rows: dict[tuple[str, str], dict[str, Bound]] = {}
    for bound in evaluation.bounds:
        rows.setdefault((bound.estimator, bound.method), {})[bound.side] = bound
    sides = [side for side in ("lower", "upper") if any(side in row for row in rows.values())]
    confidence = f"{evaluation.bounds[0].confidence:.4%}".replace(".0000", "")
    which = "lower and upper bounds, each with that confidence," if len(sides) > 1 else f"{sides[0]} bounds"
    title = f"{confidence} confidence: {which} on the candidate's value"
    table = Table(title=title, title_justify="left", header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("estimator", "method", "guarantee"):
        table.add_column(name, no_wrap=True)
    for name in ("estimate", *(side for side in sides)):
        table.add_column(name, justify="right", no_wrap=True)
    if evaluation.true_value is not None:
        table.add_column("holds", no_wrap=True)
    rehearsed = {(one.estimator, one.method, one.side): one for one in evaluation.rehearsal}
    if rehearsed:
        table.add_column("wrong in rehearsal", justify="right")
    table.add_column("warnings", overflow="fold")
    for (estimator, method), row in rows.items():
        bounds = list(row.values())
        # IS and PDIS count from the floor for a lower and from the ceiling for an upper bound: two estimates.
        estimates = dict.fromkeys(_number(bound.estimate) for bound in bounds)
        cells = [estimator.upper(), method, bounds[0].guarantee, " / ".join(estimates)]
        cells += [_number(row[side].value) if side in row else "" for side in sides]
        if evaluation.true_value is not None:
            cells.append("yes" if all(holds(bound, evaluation.true_value) for bound in bounds) else "NO")
        if rehearsed:
            rates = [rehearsed.get((estimator, method, bound.side)) for bound in bounds]
            cells.append(" / ".join(f"{one.errors / one.trials:.1%}" if one else "–" for one in rates))
        cells.append(", ".join(codes_of(warning for bound in bounds for warning in bound.warnings)))
        believed = any(bound in evaluation.believed for bound in bounds)
        table.add_row(*map(_text, cells), style="bold green" if believed else None)
    return table


def holds(bound: Bound, true_value: float) -> bool:
    """Whether the true value lies on the right side of the bound."""
    return bound.value <= true_value if bound.side == "lower" else bound.value >= true_value


def _warnings(evaluation: Evaluation) -> list[Text]:
    """Each warning once, in full."""
    first: dict[str, Caution] = {}
    for bound in evaluation.bounds:
        for warning in bound.warnings:
            first.setdefault(warning.code, warning)
    return [_text(f"! {warning}", style="yellow") for warning in first.values()]


def _skipped(skipped: tuple[tuple[str, str, str], ...]) -> Text:
    """Pairs left out, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for estimator, method, why in skipped:
        reasons.setdefault(why, []).append(f"{estimator.upper()} with {method}")
    return _text(
        "\n".join(f"Left out: {', '.join(pairs)}, because {why}" for why, pairs in reasons.items()), style="dim"
    )


def summary_table(summary: Summary, overlap: Overlap | None, behavior: BehaviorCheck | None = None) -> Group:
    """What is in the logs and what is wrong with them."""
    table = Table(show_header=False, box=None, pad_edge=False)
    declared = "" if summary.horizon_declared else " (not declared: the longest episode)"
    rows = {
        "episodes": f"{summary.n_trajectories}, of {summary.shortest} to {summary.longest} steps; "
        f"{summary.terminated} terminated",
        "steps": f"{summary.n_steps}",
        "horizon, discount": f"{summary.horizon}{declared}, {summary.discount:g}",
        "states": summary.states,
        "actions": summary.actions,
        "rewards seen": f"{summary.reward_seen[0]:g} to {summary.reward_seen[1]:g}",
        "reward range": _range(summary.reward_range),
        "return range": _range(summary.return_range),
        "behaviour policy's value": f"{summary.return_mean:.4g} ± {summary.return_error:.2g}",
    }
    if summary.reading:
        rows = {"read": "\n".join(summary.reading), **rows}
    if overlap is not None:
        sizes = overlap.effective_sample_size
        middle = len(sizes) // 2
        rows |= {
            "effective sample size": f"{sizes[0]:.1f} at step 0, {sizes[middle]:.1f} at step {middle}, "
            f"{sizes[-1]:.1f} at the end",
            "largest share": f"{overlap.largest_share[-1]:.1%} of the weight at the end",
            "zero weight": f"{overlap.zero_share:.1%} of the episodes",
            "tail index": "too few to estimate" if overlap.pareto_k is None else f"{overlap.pareto_k:.2f}",
            "mean ratio": f"{overlap.mean_ratio:.3g} ± {overlap.mean_ratio_error:.2g} (expected: 1)",
        }
        if overlap.unlogged_mass is not None:
            rows["unlogged actions"] = f"{overlap.unlogged_mass:.1%} of the candidate's choices"
    if behavior is not None:
        rows["behaviour policy"] = behavior.summary
    for name, value in rows.items():
        table.add_row(_text(name, style="bold"), _text(value))  # a column's name may hold what looks like markup
    warnings = [*summary.notes, *(overlap.warnings if overlap else ()), *(behavior.warnings if behavior else ())]
    return Group(table, *(_text(f"! {warning}", style="yellow") for warning in warnings))


def situations_table(results: Sequence[tuple[str, str, Evaluation]]) -> Group:
    """Situations that need different answers: the advice, beside the truth."""
    table = Table(header_style="bold", box=SIMPLE_HEAD, padding=(0, 1, 0, 0))
    for name in ("situation", "advised"):
        table.add_column(name)
    for name in ("lower", "true value"):
        table.add_column(name, justify="right")
    table.add_column("holds")
    for name, about, result in results:
        advised = result.believed
        assert result.true_value is not None
        words = f"{advised[0].estimator.upper()}, {advised[0].method}" if advised else "none, the logs cannot answer"
        value, right = "–", "–"
        if advised:
            value, right = _number(advised[0].value), "yes" if holds(advised[0], result.true_value) else "NO"
        table.add_row(f"{name}: {about}", words, value, _number(result.true_value), right)
    return Group(_text("\nFour situations that need different answers:", style="bold"), table)


def _range(declared: tuple[float, float] | None) -> str:
    return "not declared" if declared is None else f"{declared[0]:g} to {declared[1]:g}, declared"


def _number(value: float) -> str:
    """Five significant digits, kept aligned by their zeros."""
    return f"{value:#.5g}"
