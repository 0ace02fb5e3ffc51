"""The section on the recommended bound. Raw results come in, text goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.studies.summary import AGAINST, Results, clopper_pearson, is_wrong

Anything = npt.NDArray[Any]
TITLE = "The recommended bound"
NOMINAL = 0.05


@dataclass(frozen=True)
class Counted:
    """Errors among data sets."""

    errors: int
    trials: int

    @property
    def over(self) -> bool:
        """Whether the whole 95 % interval lies above the nominal rate."""
        return self.trials > 0 and clopper_pearson(self.errors, self.trials)[0] > NOMINAL

    def __str__(self) -> str:
        if not self.trials:
            return "–"
        low, high = clopper_pearson(self.errors, self.trials)
        rate = f"{100 * self.errors / self.trials:.1f}"
        return f"{f'**{rate}**' if self.over else rate} [{100 * low:.1f}, {100 * high:.1f}]"


@dataclass(frozen=True)
class Cell:
    """One problem at one size."""

    problem: str
    about: str  # "value" or "gain"
    n: int
    truth: float
    believed: Counted
    exact: Counted
    silent: int  # data sets on which the logs were said not to answer
    gap: float  # mean distance of the recommended bound to the truth, where it is finite
    exact_gap: float
    best: str  # the tightest pair that held its level, in hindsight
    ratio: float  # of the recommended bound's mean distance to that pair's, on the same data sets
    by_pair: dict[str, Counted]  # by what was recommended
    by_warning: dict[str, tuple[Counted, Counted]]  # errors where it spoke, and where it was silent

    def line(self) -> str:
        """In one line, for somebody who watches the run."""
        return (
            f"{self.about} {self.problem} n = {self.n}: {self.believed.errors}/{self.believed.trials} wrong, exact "
            f"{self.exact.errors}/{self.exact.trials}, {self.ratio:.2f} times the distance of {self.best or '–'}"
        )


def cell(results: Results, n: int) -> Cell:
    """Count one study's rows of one size."""
    configuration, here = results.configuration, results.columns["n"] == n
    columns = {name: column[here] for name, column in results.columns.items()}
    truth, error = results.true_value, results.true_value_error
    method, values = columns["method"], columns["value"]
    rows = method == "advice/believed"
    wrong = is_wrong(values[rows], "lower", truth, error)
    gaps = truth - values[rows]
    exact = values[method == "advice/exact"]
    pairs, warnings = columns["pair"][rows], [set(codes.split()) for codes in columns["warnings"][rows]]
    first = columns["trial"][rows]
    best, ratio = _hindsight(columns, (truth, error), dict(zip(first.tolist(), gaps.tolist(), strict=True)))
    codes = sorted({code for one in warnings for code in one} & AGAINST)
    spoke = {code: np.array([code in one for one in warnings]) for code in codes}
    finite = np.isfinite(gaps)
    return Cell(
        problem=configuration["domain"]["name"],
        about=configuration["about"],
        n=n,
        truth=truth,
        believed=Counted(int(wrong.sum()), len(wrong)),
        exact=Counted(int(is_wrong(exact, "lower", truth, error).sum()), len(exact)),
        silent=int((~finite).sum()),
        gap=float(gaps[finite].mean()) if finite.any() else np.nan,
        exact_gap=float((truth - exact[np.isfinite(exact)]).mean()),
        best=best,
        ratio=ratio,
        by_pair={str(one): _among(wrong, pairs == one) for one in sorted(set(pairs)) if one},
        by_warning={code: (_among(wrong, yes), _among(wrong, ~yes)) for code, yes in spoke.items()},
    )


def _among(wrong: Anything, where: Anything) -> Counted:
    return Counted(int(wrong[where].sum()), int(where.sum()))


def _hindsight(
    columns: Mapping[str, Anything], truth: tuple[float, float], gaps: dict[int, float]
) -> tuple[str, float]:
    """The tightest of all pairs whose error rate is not above nominal beyond noise, and the ratio of mean distances."""
    best, least, ratio = "", np.inf, np.nan
    for name in dict.fromkeys(columns["method"]):
        rows = columns["method"] == name
        values, trials = columns["value"][rows], columns["trial"][rows].tolist()
        own = np.array([gaps[trial] for trial in trials])
        both = np.isfinite(values) & np.isfinite(own)
        if name.startswith("advice/") or both.sum() < max(50, 0.9 * len(values)):
            continue
        wrong = is_wrong(values, "lower", *truth)
        if Counted(int(wrong.sum()), len(wrong)).over:
            continue
        gap = float((truth[0] - values[both]).mean())
        if 0 < gap < least:
            best, least, ratio = name, gap, float(own[both].mean()) / gap
    return best, ratio


def render(cells: Sequence[Cell], core: Sequence[str], fresh: Sequence[str]) -> str:
    """The text of the section."""
    values = [one for one in cells if one.about == "value"]
    gains = [one for one in cells if one.about == "gain"]
    over = [one for one in cells if one.believed.over]
    ratios = np.array([one.ratio for one in values if np.isfinite(one.ratio)])
    worst_exact = max(cells, key=lambda one: one.exact.errors / max(1, one.exact.trials))
    names = "none" if not over else ", ".join(f"{one.problem} ({one.about}, n = {one.n})" for one in over)
    lines = [
        "What `evaluate` and `lower_bound` recommend when no estimator is named: a rule that was fixed before any "
        "reward is looked at ([methods](guide/methods.md)). 95 % lower bounds, B = 2000; errors in percent with the "
        "95 % Clopper–Pearson interval, **bold** where it lies wholly above 5 %. *Distance*: the mean of truth − "
        "bound. *Of the best*: that distance over the distance of the tightest pair that in hindsight held its level "
        "on the same data sets (no rule can know it beforehand). *No answer*: data sets on which the logs were said "
        f"not to answer. The problems {', '.join(core)} and rare were looked at while the rule was made; "
        f"{fresh[0]} to {fresh[-1]} were drawn afterwards.",
        "",
        f"- Cells above 5 % beyond noise: {names}, of {len(cells)}.",
        f"- Of the best: geometric mean {np.exp(np.log(ratios).mean()):.2f}, worst {ratios.max():.2f}."
        if len(ratios)
        else "- Of the best: not measured.",
        f"- The exact bound beside it: highest error rate {worst_exact.exact.errors / worst_exact.exact.trials:.1%} "
        f"({worst_exact.problem}, n = {worst_exact.n}).",
        "",
        *_table(values),
        "",
    ]
    if gains:
        lines += ["### The gain over the behaviour policy", "", *_table(gains), ""]
    return "\n".join([*lines, *_conditional(cells)])


def _table(cells: Sequence[Cell]) -> list[str]:
    names = ("problem", "n", "data sets", "errors %", "no answer", "distance", "of the best", "best pair")
    head = f"| {' | '.join((*names, 'exact: errors %', 'distance'))} |"
    lines = [head, "|---|---:|---:|---:|---:|---:|---:|---|---:|---:|"]
    for one in cells:
        ratio = f"{one.ratio:.2f}" if np.isfinite(one.ratio) else "–"
        lines.append(
            f"| {one.problem} | {one.n} | {one.believed.trials} | {one.believed} | {one.silent} | {one.gap:.4g} | "
            f"{ratio} | {_shown(one.best)} | {one.exact} | {one.exact_gap:.4g} |"
        )
    return lines


def _shown(pair: str) -> str:
    """The estimator in capitals."""
    estimator, _, method = pair.removesuffix("/rehearsed").partition("/")
    name = estimator.upper().replace("-REHEARSED", " rehearsed")
    return f"{name} {method}".strip() or "–"


def _conditional(cells: Sequence[Cell]) -> list[str]:
    """Errors by what was recommended and by which warnings spoke: where selection would show."""
    pairs: dict[str, list[Counted]] = {}
    warnings: dict[str, list[tuple[Counted, Counted]]] = {}
    for one in cells:
        for pair, count in one.by_pair.items():
            pairs.setdefault(pair, []).append(count)
        for code, both in one.by_warning.items():
            warnings.setdefault(code, []).append(both)
    lines = [
        "### Errors by what was recommended, and by warnings",
        "",
        "Over all cells above. A rule that selected by outcomes would err more where it chose freely, and more where "
        "warnings are silent than where they speak. Each warning is counted in the cells where it spoke at least once.",
        "",
        "| recommended | cells | data sets | errors % |",
        "|---|---:|---:|---:|",
    ]
    for pair, counts in pairs.items():
        total = _sum(counts)
        estimators, _, methods = pair.partition("/")
        lines.append(f"| {estimators.upper()} with {methods} | {len(counts)} | {total.trials} | {total} |")
    lines += [
        "",
        "| warning | cells | errors % where it spoke | errors % where it was silent |",
        "|---|---:|---:|---:|",
    ]
    for code, each in sorted(warnings.items()):
        spoke, silent = _sum([yes for yes, _ in each]), _sum([no for _, no in each])
        lines.append(f"| `{code}` | {len(each)} | {spoke} ({spoke.trials}) | {silent} ({silent.trials}) |")
    return lines


def _sum(counts: Sequence[Counted]) -> Counted:
    return Counted(sum(one.errors for one in counts), sum(one.trials for one in counts))
