"""The page about the paper's experiments. Reads records, computes nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from tightrope.studies.pages.labels import printed


@dataclass(frozen=True)
class Figure:
    """A picture on the page."""

    path: Path
    domain: str
    caption: str


class Judged(Protocol):
    """A claim and how it fared."""

    @property
    def number(self) -> int:
        """Of the claim."""
        ...

    @property
    def text(self) -> str:
        """What was claimed."""
        ...

    @property
    def verdict(self) -> str:
        """Came out, partly, or did not."""
        ...

    @property
    def evidence(self) -> str:
        """The numbers."""
        ...


HEAD = """# The paper's experiments, reproduced

Written by `tightrope reproduce all` (`make reproduce`). The figures of *Bootstrapping with Models: Confidence Intervals
for Off-Policy Evaluation* (Hanna, Stone, Niekum 2017) are lost and it prints no table; what can be reproduced is what
its text says, claim by claim. Geometry, noise and horizons that it does not give are ours and stand below. A bound is
wrong where it lies above the true value (by more than two standard errors of the latter, where that is simulated).
Error rates come with Clopper and Pearson's 95 % intervals.
"""


def page(
    *,
    studies: Mapping[str, Mapping[str, Any]],
    lines: Mapping[str, Sequence[Any]],
    findings: Sequence[Judged],
    figures: Sequence[Figure],
    home: Path,
    learned: str = "",
) -> str:
    """The whole page as Markdown; figures are linked relative to ``home``."""
    parts = [HEAD, _claims(findings), learned]
    for name, configuration in studies.items():
        domain = configuration["domain"]["name"]
        parts.append(f"## {name}: {configuration['about']}\n")
        parts.append(_setting(configuration))
        if "repairs" not in name:
            parts += [_picture(figure, home) for figure in figures if figure.domain == domain]
        parts += [_rates(lines[name]), _means(lines[name])]
    parts += ["## Parameters\n", *(_parameters(name, configuration) for name, configuration in studies.items())]
    return "\n".join(part for part in parts if part).rstrip() + "\n"


def _claims(findings: Sequence[Judged]) -> str:
    rows = [f"| {one.number} | {one.text} | **{one.verdict}** | {one.evidence} |" for one in findings]
    return "\n".join(["## Claims\n", "| | claim | | numbers |", "|---:|---|---|---|", *rows, ""])


def _setting(configuration: Mapping[str, Any]) -> str:
    domain = configuration["domain"]
    error = domain["true_value_error"]
    precision = f" ± {error:.2g}" if error else ", exactly"
    return (
        f"V(π_e) = {domain['true_value']:.6g}{precision}; m = {configuration['trials']} data sets a size, B = "
        f"{configuration['n_resamples']}, confidence {configuration['confidence']:g}, seed {configuration['seed']}.\n"
    )


def _picture(figure: Figure, home: Path) -> str:
    return f"![{figure.caption}]({Path(os.path.relpath(figure.path, home)).as_posix()})\n"


def _rates(lines: Sequence[Any]) -> str:
    """Error rates by method and n."""
    return _table("Error rate", lines, lambda line: f"{line.error_rate:.1%}".replace(".0%", "%"))


def _means(lines: Sequence[Any]) -> str:
    """Mean bounds by method and n: over all finite ones, and over valid ones where that is another number."""
    return _table("Mean bound over all finite bounds (over valid ones; share of −∞)", lines, _mean)


def _mean(line: Any) -> str:
    if not line.finite.count:
        return "−∞"
    text = f"{line.finite.value:.1f}"
    if line.valid.count and f"{line.valid.value:.1f}" != text:
        text += f" ({line.valid.value:.1f})"
    share = line.infinite / (line.finite.count + line.infinite)
    return text + (f" [{share:.0%}]" if share else "")


def _table(title: str, lines: Sequence[Any], cell: Any) -> str:
    sizes = sorted({line.n for line in lines})
    methods = list(dict.fromkeys(line.method for line in lines))
    by_size = {(line.method, line.n): line for line in lines}
    rows = []
    for method in methods:
        cells = [cell(by_size[method, n]) if (method, n) in by_size else "" for n in sizes]
        rows.append(f"| {printed(method)} | {' | '.join(cells)} |")
    head = f"| {title} | {' | '.join(f'n = {n}' for n in sizes)} |"
    return "\n".join([head, f"|---|{'---:|' * len(sizes)}", *rows, ""])


def _parameters(name: str, configuration: Mapping[str, Any]) -> str:
    """Every number of the domain, and the settings of every method."""
    domain = ", ".join(f"{key} = {value}" for key, value in configuration["domain"].items() if key != "about")
    methods = [f"- `{label}`: `{one['estimator']}`" for label, one in configuration["methods"].items()]
    versions = ", ".join(f"{key} {value}" for key, value in configuration["versions"].items())
    return "\n".join([f"### {name}\n", f"Domain: {domain}.\n", *methods, f"\nVersions: {versions}.\n"])
