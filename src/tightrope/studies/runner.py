"""Run a study and write it to a folder; it can be resumed at any time, and any number of processes gives the same bits.

The folder holds ``lock`` (one run at a time), ``study.json`` (the whole configuration), ``journal`` (finished trials),
and at the end ``results.parquet`` (all rows, with the configuration in its metadata) and ``timings.parquet`` (what
differs between runs).
"""

from __future__ import annotations

import json
import os
import pickle
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

from rich.console import Console

from tightrope.base.blas import one_blas_thread
from tightrope.base.cluster import Cluster
from tightrope.base.errors import DataError, StudyError, visible
from tightrope.io.write import replace_file
from tightrope.studies.identity import Witness, Words, witness
from tightrope.studies.journal import Journal
from tightrope.studies.lock import FolderLock
from tightrope.studies.pool import run_all
from tightrope.studies.study import Study, prepared
from tightrope.studies.summary import KEY
from tightrope.studies.trial import Outcome, Row, Trial, run_trial

RESULTS, TIMINGS, CONFIGURATION, JOURNAL = "results.parquet", "timings.parquet", "study.json", "journal"
_ROW_BYTES, _SPARE_BYTES = 600, 16 << 20  # a row in the journal and in the table; what must stay free besides


@one_blas_thread  # as its workers have: what is hashed or compared must not depend on the number of cores
def run_study(study: Study, folder: Path, *, workers: int | None = None, engine: Cluster | None = None) -> Path:
    """Run what is not yet done, and write the table of raw results; its path.

    Trials run in ``workers`` processes, or on the workers of a dask cluster (``engine``).

    Whatever can be known to be wrong is reported before any work: an unwritable folder, a full disk, a folder that
    belongs to another configuration.
    """
    if workers is not None and workers < 1:
        raise StudyError(f"workers must be at least 1; got {workers}")
    _check_sendable(study)
    prepared.cache_clear()  # files may have changed since it was loaded
    with Console(stderr=True).status(visible(f"the candidate's true value in {study.id}")):
        configuration = study.configuration()
    grid = [Trial(n, number) for n in study.sizes for number in range(study.trials)]
    _prepare(folder, _rows_expected(study, grid))
    with FolderLock(folder) as lock, _journal(folder, configuration) as journal:
        done = [trial for trial in grid if trial in journal.done]
        if done or journal.damaged:
            _say(f"{study.id}: {len(done)} of {len(grid)} trials are already in {folder}; going on from there")
        if journal.damaged:
            _say(f"{study.id}: {journal.damaged} half-written or damaged records were left out; their trials run again")
        try:
            _work(study, journal, grid, workers or os.cpu_count() or 1, engine)
        except KeyboardInterrupt:
            _say(
                f"{study.id}: stopped; {len(journal.done)} of {len(grid)} trials are safe in {folder}. "
                "The same command goes on from there"
            )
            raise
        outcomes = [(trial, journal.done[trial]) for trial in grid]
        lock.check()
        _write(folder, configuration, outcomes)
    return folder / RESULTS


def folder_of(results: Path, study: Study) -> Path:
    """Where a study among several keeps its results."""
    return results / study.id.replace(",", "").replace(" ", "-")


def _check_sendable(study: Study) -> None:
    try:
        pickle.dumps(study)
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise StudyError(
            f"study {study.id!r} cannot be sent to other processes ({error}): its functions must be module-level ones, "
            "not lambdas or local functions"
        ) from error


def _work(study: Study, journal: Journal, grid: Sequence[Trial], workers: int, engine: Cluster | None) -> None:
    """Largest data sets first, so that no long trial is left for the end."""
    seen = witness(study.domain, prepared(study)[0]) if isinstance(study.domain, Words) else None
    todo = sorted((trial for trial in grid if trial not in journal.done), key=lambda trial: (-trial.n, trial.number))
    with _bar(study.id, len(grid), len(grid) - len(todo)) as advance:
        job = partial(_trial, study, seen)
        running = run_all(job, todo, min(workers, len(todo))) if engine is None else engine.finished(job, todo)
        for position, outcome in running:
            journal.append(todo[position], outcome)
            advance()


@one_blas_thread
def _trial(study: Study, seen: Witness | None, trial: Trial) -> Outcome:
    _check_domain(study, seen)
    return run_trial(study, trial)


@cache
def _check_domain(study: Study, seen: Witness | None) -> None:
    """Once in each process: the domain loaded here is the one that the study began with."""
    if seen is not None:
        seen.check(study.domain, prepared(study)[0])


def _prepare(folder: Path, rows: int) -> None:
    """Prepare the folder, or say why that is not possible."""
    needed = rows * _ROW_BYTES + _SPARE_BYTES
    try:
        folder.mkdir(parents=True, exist_ok=True)
        free = shutil.disk_usage(folder).free
        if free < needed:
            raise StudyError(
                f"{folder} must have {needed / 1e6:.0f} MB of free disk for this study; it has {free / 1e6:.0f} MB"
            )
        with tempfile.TemporaryFile(dir=folder) as probe:  # a read-only folder shows only when it is written to
            probe.write(bytes(1 << 16))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise StudyError(f"{folder} cannot be written, so nothing was run: {error}") from error


def _journal(folder: Path, configuration: dict[str, Any]) -> Journal:
    """The finished trials of this configuration; the folder must be locked, or another run could write its own now."""
    path = folder / CONFIGURATION
    if path.exists():
        _compare(path, configuration)
        return Journal(folder / JOURNAL)
    if (folder / JOURNAL).exists():
        raise StudyError(
            f"{folder} holds trials but not the configuration they belong to ({CONFIGURATION} is missing). Give "
            "another folder, or delete this one"
        )
    text = json.dumps(configuration, indent=2, ensure_ascii=False)
    replace_file(path, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    return Journal(folder / JOURNAL)


def _compare(path: Path, configuration: dict[str, Any]) -> None:
    try:
        there = _flat(json.loads(path.read_text(encoding="utf-8")))
    except (OSError, ValueError) as error:
        raise StudyError(f"{path} is not the configuration of a study: {error}") from error
    here = _flat(configuration)
    keys = [key for key in dict.fromkeys((*there, *here)) if there.get(key, "absent") != here.get(key, "absent")]
    if keys:
        named = [f"{key} is {there.get(key, 'absent')} there, {here.get(key, 'absent')} now" for key in keys[:5]]
        more = f"; and {len(keys) - 5} more" if len(keys) > 5 else ""
        raise StudyError(
            f"{path.parent} holds results of another configuration: {'; '.join(named)}{more}. Give another folder, or "
            "delete this one"
        )


def _flat(value: Any, name: str = "") -> dict[str, str]:
    """Nested settings as one level, with dotted names."""
    if not isinstance(value, dict):
        return {name: json.dumps(value, ensure_ascii=False)}
    parts = (_flat(inner, f"{name}.{key}" if name else key) for key, inner in value.items())
    return {key: text for part in parts for key, text in part.items()}


def _rows_expected(study: Study, grid: Sequence[Trial]) -> int:
    methods = prepared(study)[1]
    lines = sum(len(one.bounds) for trial in grid for one in methods if one.runs(*trial))
    return len(study.sides) * (lines + 2 * len(grid) * study.advice)


def _write(folder: Path, configuration: dict[str, Any], outcomes: Sequence[tuple[Trial, Outcome]]) -> None:
    """The table of raw results, a function of the configuration alone, and apart from it what is not."""
    rows = [(trial, row) for trial, outcome in outcomes for row in outcome.rows]
    domain, study = configuration["domain"]["name"], configuration["study"]
    columns: dict[str, list[Any]] = {
        "study": [study] * len(rows),
        "domain": [domain] * len(rows),
        "n": [trial.n for trial, _ in rows],
        "trial": [trial.number for trial, _ in rows],
        "method": [f"{row.label}/{row.bound}" for _, row in rows],
    }
    columns |= {field.name: [getattr(row, field.name) for _, row in rows] for field in fields(Row)}
    _write_table(folder / RESULTS, columns, configuration)
    times: dict[str, list[Any]] = {
        "n": [trial.n for trial, _ in outcomes],
        "trial": [trial.number for trial, _ in outcomes],
        "cpu_seconds": [outcome.cpu_seconds for _, outcome in outcomes],
    }
    when = datetime.now(UTC).isoformat(timespec="seconds")
    _write_table(folder / TIMINGS, times, {"study": study, "finished": when, "command": sys.argv})


def _write_table(path: Path, columns: dict[str, list[Any]], metadata: dict[str, Any]) -> None:
    import pyarrow as pa
    import pyarrow.parquet

    kinds = {"n": pa.int64(), "trial": pa.int64(), "undefined": pa.int64()}
    kinds |= dict.fromkeys(("value", "estimate", "standard_error", "cpu_seconds"), pa.float64())
    schema = pa.schema([(name, kinds.get(name, pa.string())) for name in columns])
    text = json.dumps(metadata, ensure_ascii=False, sort_keys=True)
    table = pa.table(columns, schema=schema.with_metadata({KEY: text.encode()}))
    try:
        replace_file(path, lambda temporary: pyarrow.parquet.write_table(table, temporary, compression="zstd"))
    except (OSError, DataError) as error:
        raise StudyError(
            f"{path} cannot be written: {error}. The trials are safe; make room and give the same command again"
        ) from error


def _say(text: str) -> None:
    print(visible(text), file=sys.stderr, flush=True)


@contextmanager
def _bar(label: str, total: int, done: int) -> Iterator[Any]:
    """A bar on stderr that counts trials."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(visible(label), total=total, completed=done)
        yield lambda: bar.advance(task)
