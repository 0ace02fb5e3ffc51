"""Run the paper's studies and write their results: figures, tables, and a line for every claim."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.base.cluster import Cluster
from tightrope.base.errors import StudyError
from tightrope.base.names import must_be_one_of
from tightrope.base.problem import Problem
from tightrope.domains import CliffWorld, MountainCar
from tightrope.domains import domain as find_domain
from tightrope.estimators import WDR
from tightrope.evaluation.model_check import check_model
from tightrope.io.write import replace_file
from tightrope.models import LinearModel, PolynomialModel, TabularModel
from tightrope.models.residuals import td_errors
from tightrope.report.domains import save_drawing
from tightrope.studies.claims import CAR, CLIFF, SHIFTED, Finding, findings
from tightrope.studies.learned import learned
from tightrope.studies.pages.figures import bounds_figure, errors_figure
from tightrope.studies.pages.reproduction import Figure, page
from tightrope.studies.paper import PAPER, quick
from tightrope.studies.runner import run_study
from tightrope.studies.study import Study
from tightrope.studies.summary import Line, Results, read_results, summarize_results

GROUPS: dict[str, tuple[str, ...]] = {
    "mountain-car": ("mountain-car",),
    "cliff-world": ("cliff-world", "cliff-world-shifted", "cliff-world-repairs"),
    "all": tuple(PAPER),
}
NAMES = {CAR: "MountainCar", CLIFF: "CliffWorld", SHIFTED: "CliffWorld, platform at [2, 7]²"}
# What is drawn, by domain: the paper's own methods, then what it did not cross.
PAPER_CURVES: dict[str, dict[str, str]] = {
    CAR: {
        "MB": "mb/percentile",
        "WDR": "wdr/percentile",
        "PDWIS": "pdwis/bca",
        "WIS": "wis/bca",
        "IS and PDIS": "is/bca",  # the same number where every step earns -1 and returns are counted from their floor
    },
    CLIFF: {
        "MB, linear": "mb-lr/percentile",
        "WDR, linear": "wdr-lr/percentile",
        "MB, polynomial": "mb-pr/percentile",
        "WDR, polynomial": "wdr-pr/percentile",
        "PDWIS": "pdwis/bca",
    },
    SHIFTED: {
        "MB, polynomial": "mb-pr/percentile",
        "WDR, polynomial": "wdr-pr/percentile",
        "PDWIS": "pdwis/bca",
    },
}
FLOORS = {CAR: -101.0, CLIFF: -420.0, SHIFTED: -420.0}  # below it a curve is cut off


@dataclass(frozen=True)
class Reproduction:
    """Where everything was written, and which claims hold."""

    page: Path
    findings: tuple[Finding, ...]


def reproduce(
    which: str,
    out: Path,
    *,
    small: bool = False,
    page_path: Path | None = None,
    workers: int | None = None,
    engine: Cluster | None = None,
) -> Reproduction:
    """Run (or go on with) the studies of ``which``, and write figures, summaries and the page."""
    if which not in GROUPS:
        raise StudyError(must_be_one_of("study", which, GROUPS))
    studies = [quick(PAPER[name]) if small else PAPER[name] for name in GROUPS[which]]
    results = {
        study.id: read_results(run_study(study, out / "raw" / study.id, workers=workers, engine=engine))
        for study in studies
    }
    lines = {name: summarize_results(rows) for name, rows in results.items()}
    for name, rows in lines.items():
        _write_summary(out / f"{name}.parquet", rows, results[name])
    counted = [line for name, rows in lines.items() if "repairs" not in name for line in rows]
    judged = [*findings(counted), *_more_findings({line.domain for line in counted})]
    figures = _figures(counted, out)
    target = page_path or out / "reproduction.md"
    text = page(
        studies=_described(studies, results),
        lines=lines,
        findings=judged,
        figures=figures,
        home=target.parent,
        learned="" if small else learned(lines),  # what it says rests on the full size
    )
    replace_file(target, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    return Reproduction(target, tuple(judged))


def _described(studies: Sequence[Study], results: Mapping[str, Results]) -> dict[str, Mapping[str, Any]]:
    return {study.id: {**results[study.id].configuration, "about": study.about} for study in studies}


def _figures(lines: Sequence[Line], out: Path) -> list[Figure]:
    by_method: dict[tuple[str, str], list[Line]] = {}
    for line in sorted(lines, key=lambda one: one.n):
        by_method.setdefault((line.domain, line.method), []).append(line)
    figures = []
    for domain, curves in PAPER_CURVES.items():
        drawn = {label: by_method[domain, method] for label, method in curves.items() if (domain, method) in by_method}
        if not drawn:
            continue
        name = NAMES[domain]
        picture = out / f"{domain}.png"
        save_drawing(find_domain(domain), picture, seed=0)
        figures.append(Figure(picture, domain, f"{name}: the domain, and a few episodes of both policies"))
        for which, words in (("valid", "valid bounds, as the paper averages"), ("finite", "all bounds")):
            path = out / f"{domain}-bounds-{which}.png"
            bounds_figure(drawn, path, title=f"{name}: {words}", which=which, floor=FLOORS[domain])  # type: ignore[arg-type]
            figures.append(Figure(path, domain, f"{name}: mean 95 % lower bound against n, {words}"))
        path = errors_figure(drawn, out / f"{domain}-errors.png", title=f"{name}: how often the bound is wrong")
        figures.append(Figure(path, domain, f"{name}: error rate against n"))
    return figures


def _more_findings(domains: set[str]) -> list[Finding]:
    """What is not in the tables: the models' weighted errors, and what a shared tabular model leaves to correct."""
    extra = []
    if CLIFF in domains:
        extra.append(_model_errors(CliffWorld()))
    if CAR in domains:
        extra.append(_nothing_to_correct(MountainCar()))
    return sorted(extra, key=lambda finding: finding.number)


def _model_errors(domain: CliffWorld, n: int = 128, data_sets: int = 5) -> Finding:
    """Claim 13: weighted negative log-likelihoods of both model classes."""
    errors = []
    for seed in range(data_sets):
        problem = Problem(domain.logs(n, rng=np.random.default_rng([13, seed])), domain.candidate)
        checks = [
            check_model(
                problem, kind(reward=domain.reward, terminated=domain.terminated, n_rollouts=2), "low", effective=0
            )
            for kind in (LinearModel, PolynomialModel)
        ]
        errors.append([(c.likelihood_training, c.likelihood_held_out, c.misfit) for c in checks])
    mean = np.nanmean(np.array(errors, dtype=np.float64), axis=0)
    apart = float(mean[1, 1] - mean[0, 1])
    good = apart > 1.0
    text = "CliffWorld: the polynomial model has high importance-weighted training error, and the bias bound says so"
    return Finding(
        13,
        text,
        "came out" if good else "did not",
        f"weighted negative log-likelihood of an episode, fitted / held out: linear {mean[0, 0]:.1f} / "
        f"{mean[0, 1]:.1f}, polynomial {mean[1, 0]:.1f} / {mean[1, 1]:.1f} nats (n = {n}, {data_sets} data sets). The "
        f"linear class holds the truth, so the difference of {apart:.0f} nats estimates the divergence that the bias "
        f"bound takes: it exceeds 2 nats, where the bound is the whole range of the return. It says that the model is "
        "bad, not by how much",
    )


def _nothing_to_correct(domain: MountainCar, n: int = 128) -> Finding:
    """With deterministic moves a shared tabular model explains its own data: WDR is the mean of v̂(S_0)."""
    problem = Problem(domain.logs(n, rng=np.random.default_rng(14)), domain.candidate)
    prepared = TabularModel().prepare(problem, anchor="low")
    q_values, state_values = prepared.control_variates(np.ones(n))
    largest = float(np.abs(td_errors(problem.dataset, q_values, state_values)).max())
    estimate = WDR(fit="shared")(problem).estimate
    start = float(state_values[problem.dataset.offsets[:-1]].mean())
    good = largest < 1e-9 and abs(estimate - start) < 1e-9
    return Finding(
        14,
        "Not in the paper: with a tabular model fitted on the same deterministic data nothing is left to correct",
        "came out" if good else "did not",
        f"largest TD error {largest:.1g}; WDR {estimate:.6f}, mean of v̂(S_0) {start:.6f} (n = {n})",
    )


def _write_summary(path: Path, lines: Sequence[Line], results: Results) -> None:
    """The summary as a small Parquet file."""
    import json

    import pyarrow as pa
    import pyarrow.parquet

    rows = [_flat(asdict(line)) for line in lines]
    meta = {b"tightrope": json.dumps(dict(results.configuration), ensure_ascii=False, sort_keys=True).encode()}
    table = pa.Table.from_pylist(rows).replace_schema_metadata(meta)
    os.makedirs(path.parent, exist_ok=True)
    replace_file(path, lambda temporary: pyarrow.parquet.write_table(table, temporary, compression="zstd"))


def _flat(row: dict[str, Any]) -> dict[str, Any]:
    """Means as three columns."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        flat |= (
            {f"{name}_{part}": number for part, number in value.items()} if isinstance(value, dict) else {name: value}
        )
    return flat
