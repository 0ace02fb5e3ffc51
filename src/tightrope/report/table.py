"""An evaluation as a table in a terminal. It reads records and computes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from string import ascii_letters

from rich.box import SIMPLE_HEAD
from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from tightrope.base.records import BehaviorCheck, Bound, Evaluation, Overlap, Summary
from tightrope.base.rounding import outward
from tightrope.base.warnings import Caution, codes_of
from tightrope.bounds import METHODS
from tightrope.bounds.base import LAST
from tightrope.report.answer import Answer, text
from tightrope.report.rows import Rows

NUMBERS = ("estimate", "lower", "upper", "rehearsal")


def evaluation_table(evaluation: Evaluation, *, everything: bool = False) -> Group:
    """The answer first, then bounds: the recommended ones and one of each estimator, or (``everything``) all."""
    about_gain = evaluation.verdict is not None and evaluation.verdict.about == "gain" and bool(evaluation.gains)
    listed = [evaluation.gains if about_gain else evaluation.bounds]
    if everything:
        listed = [*listed, evaluation.bounds] if about_gain else listed
    else:
        listed = [_chosen(evaluation, listed[0])]
    shown = [bound for bounds in listed for bound in bounds]
    marks = dict(zip(codes_of(one for bound in shown for one in bound.warnings), _letters(), strict=False))
    parts: list[RenderableType] = [Answer(evaluation)]
    for bounds in listed:
        rows = Rows(_header(evaluation, bounds), _rows(evaluation, bounds, marks), NUMBERS, names=3, style="bold green")
        parts += [text(""), text(_title(bounds), style="italic"), rows]
    parts += _legend(shown, marks)
    if everything and evaluation.skipped:
        parts.append(_skipped(evaluation.skipped))
    if evaluation.rehearsal:
        count = max(one.trials for one in evaluation.rehearsal)
        words = f"Wrong in rehearsal: on {count} logs like these, simulated from a model of them. It chooses nothing."
        parts.append(text(words, style="dim"))
    if evaluation.true_value is not None:
        parts.append(text(f"True value of the candidate, known here: {evaluation.true_value:.5g}", style="bold"))
    if everything:
        return Group(*parts, *(text(f"  {reason}", style="dim") for reason in evaluation.reasons))
    parts += [text(f"No exact bound: {why}", style="dim") for why in _no_exact(evaluation)]
    return Group(*parts, text(_rest(evaluation, shown), style="dim"))


def _chosen(evaluation: Evaluation, bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """The recommended bounds, the exact ones beside them, and of each estimator those of its first method.

    First in an order that was fixed beforehand: the tightest would be the one that happens to err.
    """
    first: dict[str, str] = {}
    for bound in sorted(
        bounds, key=lambda bound: METHODS[bound.method].preference if bound.method in METHODS else LAST
    ):
        first.setdefault(bound.estimator, bound.method)
    wanted = (*recommended(evaluation, bounds), *evaluation.exact)
    kept = {(bound.estimator, bound.method) for bound in wanted} | set(first.items())
    return tuple(bound for bound in bounds if (bound.estimator, bound.method) in kept)


def recommended(evaluation: Evaluation, bounds: Sequence[Bound]) -> tuple[Bound, ...]:
    """Those to use, of bounds on the value or on the gain."""
    return evaluation.believed_gains if bounds[0].about == "gain" else evaluation.believed


def _title(bounds: Sequence[Bound]) -> str:
    confidence, sides = f"{bounds[0].confidence:.4%}".replace(".0000", ""), sides_of(bounds)
    which = "lower and upper bounds, each with that confidence," if len(sides) > 1 else f"{sides[0]} bounds"
    subject = "its gain over the behaviour policy" if bounds[0].about == "gain" else "the candidate's value"
    return f"{confidence} confidence: {which} on {subject}"


def sides_of(bounds: Sequence[Bound]) -> list[str]:
    """The sides that occur, in their order."""
    return [side for side in ("lower", "upper") if any(bound.side == side for bound in bounds)]


def _header(evaluation: Evaluation, bounds: Sequence[Bound]) -> list[str]:
    header = ["", "estimator", "method", "kind", "estimate", *sides_of(bounds)]
    if bounds[0].about == "value":
        header += ["holds"] * (evaluation.true_value is not None) + ["rehearsal"] * bool(evaluation.rehearsal)
    return [*header, "marks"] if any(bound.warnings for bound in bounds) else header


def _rows(evaluation: Evaluation, shown: Sequence[Bound], marks: dict[str, str]) -> list[list[str]]:
    """One row for each pair, with the sides beside each other; an arrow marks what is recommended."""
    pairs: dict[tuple[str, str], dict[str, Bound]] = {}
    for bound in shown:
        pairs.setdefault((bound.estimator, bound.method), {})[bound.side] = bound
    header, use = _header(evaluation, shown), recommended(evaluation, shown)
    rehearsed = {(one.estimator, one.method, one.side): one for one in evaluation.rehearsal}
    rows = []
    for (estimator, method), pair in pairs.items():
        bounds = list(pair.values())
        cells = ["▶" if any(bound in use for bound in bounds) else "", estimator.upper(), method]
        cells += ["exact" if bounds[0].guarantee == "exact" else "approx.", _number(bounds[0].estimate)]
        cells += [_outward(pair[side]) if side in pair else "" for side in sides_of(shown)]
        if "holds" in header:
            assert evaluation.true_value is not None
            cells.append("yes" if all(holds(bound, evaluation.true_value) for bound in bounds) else "NO")
        if "rehearsal" in header:
            rates = [rehearsed.get((estimator, method, bound.side)) for bound in bounds]
            cells.append(" / ".join(f"{one.errors / one.trials:.1%}" if one else "–" for one in rates))
        if "marks" in header:
            codes = codes_of(one for bound in bounds for one in bound.warnings)
            cells.append("".join(sorted(marks[code] for code in codes)))
        rows.append(cells)
    return rows


def _letters() -> Iterator[str]:
    """One for each mark: a, b, …, z, A, B, …"""
    return iter(ascii_letters)


def _legend(shown: Sequence[Bound], marks: dict[str, str]) -> list[Text]:
    """What each mark means, in full, in the words of the first bound that has it."""
    first: dict[str, Caution] = {}
    for bound in shown:
        for warning in bound.warnings:
            first.setdefault(warning.code, warning)
    return [text(f"{marks[code]} {warning}", style="yellow") for code, warning in first.items()]


def _no_exact(evaluation: Evaluation) -> list[str]:
    """Why there is no exact bound, where one was tried; in the words of the estimator that needs least."""
    if any(bound.guarantee == "exact" for bound in evaluation.bounds):
        return []
    reasons = {estimator: why for estimator, method, why in evaluation.skipped if method == "betting"}
    return [reasons[name] for name in ("is", "pdis", "tdr") if name in reasons][:1]


def _rest(evaluation: Evaluation, shown: Sequence[Bound]) -> str:
    """What is not shown, and how to see it."""
    pairs = {(bound.estimator, bound.method, bound.about) for bound in (*evaluation.bounds, *evaluation.gains)}
    rest = len(pairs) - len({(bound.estimator, bound.method) for bound in shown})
    parts = [f"{rest} more bound{'s' if rest > 1 else ''}"] * bool(rest)
    parts += [f"{len(evaluation.skipped)} left out"] * bool(evaluation.skipped)
    return f"Not shown: {' and '.join([', '.join(parts)] * bool(parts) + ['what was measured'])} (--all)."


def holds(bound: Bound, true_value: float) -> bool:
    """Whether the true value lies on the right side of the bound."""
    return bound.value <= true_value if bound.side == "lower" else bound.value >= true_value


def _skipped(skipped: tuple[tuple[str, str, str], ...]) -> Text:
    """Pairs left out, one line for each reason."""
    reasons: dict[str, list[str]] = {}
    for estimator, method, why in skipped:
        reasons.setdefault(why, []).append(f"{estimator.upper()} with {method}")
    return text(
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
        table.add_row(text(name, style="bold"), text(value))  # a column's name may hold what looks like markup
    warnings = [*summary.notes, *(overlap.warnings if overlap else ()), *(behavior.warnings if behavior else ())]
    return Group(table, *(text(f"! {warning}", style="yellow") for warning in warnings))


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
    return Group(text("\nFour situations that need different answers:", style="bold"), table)


def _range(declared: tuple[float, float] | None) -> str:
    return "not declared" if declared is None else f"{declared[0]:g} to {declared[1]:g}, declared"


def _outward(bound: Bound) -> str:
    """A bound that is not said to be better than it is."""
    return _number(outward(bound.value, bound.side, 5))


def _number(value: float) -> str:
    """Five significant digits, kept aligned by their zeros."""
    return f"{value:#.5g}"
