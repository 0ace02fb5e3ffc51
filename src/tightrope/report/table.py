"""An evaluation as a table for people. Reads records, computes nothing."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tightrope.records import Bound, Evaluation, Overlap, Summary


def evaluation_table(evaluation: Evaluation) -> Group:
    """The bounds, what is wrong with them, and which to believe."""
    parts: list[RenderableType] = [_heading(evaluation.summary, evaluation.overlap), _bounds(evaluation)]
    parts += _warnings(evaluation)
    if evaluation.skipped:
        parts.append(_skipped(evaluation.skipped))
    if evaluation.true_value is not None:
        parts.append(Text(f"True value of the candidate, known here: {evaluation.true_value:.4f}", style="bold"))
    parts.append(Text(evaluation.advice, style="bold green" if evaluation.believe else "bold red"))
    return Group(*parts)


def _heading(summary: Summary, overlap: Overlap) -> Text:
    declared = "" if summary.horizon_declared else " (the longest seen)"
    return Text(
        f"{summary.n_trajectories} trajectories, {summary.n_steps} steps; discount {summary.discount:g}, horizon "
        f"{summary.horizon}{declared}; worth {overlap.effective_sample_size[-1]:.1f} trajectories of the candidate. "
        f"The behaviour policy's own value: {summary.return_mean:.4g} ± {summary.return_error:.2g}."
    )


def _bounds(evaluation: Evaluation) -> Table:
    first = evaluation.bounds[0]
    sides = {bound.side for bound in evaluation.bounds}
    title = (
        f"{first.confidence:.4%}".replace(".0000", "")
        + " confidence, "
        + ("each side on its own" if len(sides) > 1 else f"{first.side} bounds on the candidate's value")
    )
    table = Table(title=title, title_justify="left", header_style="bold")
    for name in ("estimator", "method", "guarantee"):
        table.add_column(name)
    for name in ("estimate", *(f"{side} bound" for side in ("lower", "upper") if side in sides)):
        table.add_column(name, justify="right")
    if evaluation.true_value is not None:
        table.add_column("holds")
    table.add_column("warnings", overflow="fold")
    for index, bound in enumerate(evaluation.bounds):
        cells = [bound.estimator, bound.method, bound.guarantee, _number(bound.estimate)]
        cells += [_number(bound.value) if bound.side == side else "" for side in ("lower", "upper") if side in sides]
        if evaluation.true_value is not None:
            cells.append("yes" if holds(bound, evaluation.true_value) else "NO")
        cells.append(", ".join(dict.fromkeys(text.split(":")[0] for text in bound.warnings)))
        table.add_row(*cells, style="bold green" if index in evaluation.believe else None)
    return table


def holds(bound: Bound, true_value: float) -> bool:
    """Whether the true value lies on the right side of the bound."""
    return bound.value <= true_value if bound.side == "lower" else bound.value >= true_value


def _warnings(evaluation: Evaluation) -> list[Text]:
    """Each warning once, in full."""
    texts: dict[str, str] = {}
    for bound in evaluation.bounds:
        for text in bound.warnings:
            texts.setdefault(text.split(":")[0], text)
    return [Text(f"! {text}", style="yellow") for text in texts.values()]


def _skipped(skipped: tuple[tuple[str, str, str], ...]) -> Text:
    """Pairs left out, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for estimator, method, why in skipped:
        reasons.setdefault(why, []).append(f"{estimator}/{method}")
    return Text("\n".join(f"Left out {', '.join(pairs)}: {why}" for why, pairs in reasons.items()), style="dim")


def summary_table(summary: Summary, overlap: Overlap | None) -> Group:
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
    if overlap is not None:
        sizes = overlap.effective_sample_size
        middle = len(sizes) // 2
        rows |= {
            "effective sample size": f"{sizes[0]:.1f} at step 0, {sizes[middle]:.1f} at step {middle}, "
            f"{sizes[-1]:.1f} at the end",
            "largest share": f"{overlap.largest_share[-1]:.1%} of the weight at the end",
            "zero weight": f"{overlap.zero_share:.1%} of the trajectories",
            "tail index": "too few to tell" if overlap.pareto_k is None else f"{overlap.pareto_k:.2f}",
            "mean ratio": f"{overlap.mean_ratio:.3g} ± {overlap.mean_ratio_error:.2g} (expected: 1)",
        }
        if overlap.unlogged_mass is not None:
            rows["unlogged actions"] = f"{overlap.unlogged_mass:.1%} of the candidate's choices"
    for name, value in rows.items():
        table.add_row(Text(name, style="bold"), value)
    warnings = [*summary.notes, *(overlap.warnings if overlap else ())]
    return Group(table, *(Text(f"! {text}", style="yellow") for text in warnings))


def _range(declared: tuple[float, float] | None) -> str:
    return "not declared" if declared is None else f"{declared[0]:g} to {declared[1]:g}, declared"


def _number(value: float) -> str:
    return f"{value:.4f}" if abs(value) < 1e5 else f"{value:.4g}"
