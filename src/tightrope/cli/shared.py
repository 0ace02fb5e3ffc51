"""What all commands share: exit codes, errors in one line, printing of results, and a progress bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

import typer

from tightrope.cli.terminal import console, say

if TYPE_CHECKING:
    from rich.progress import TaskID

    from tightrope.base.beside import Provenance
    from tightrope.base.plain import Record
    from tightrope.functional.engines import Progress
    from tightrope.report.evaluation import Evaluation


ANSWERED, BAD_INPUT, NO_ANSWER = 0, 2, 3
EXITS = "Exit codes: 0 answered; 2 bad input or arguments, nothing was written; 3 the data cannot answer."
# With --exit-code, by the verdict. None is 1: that is how Python exits when a program fails, which is no verdict.
VERDICTS = {"yes": 0, "broken": NO_ANSWER, "no": 4, "cannot tell": 5}
GATE = (
    f"{EXITS[:-1]}. With --exit-code: 0 yes; 4 no; 5 cannot tell, or a yes by a model alone; 2 and 3 as before. "
    "Only 0 is a yes."
)


@contextmanager
def errors() -> Iterator[None]:
    """Print our own errors in one line on stderr; any other error is a bug and keeps its traceback."""
    from tightrope.base.errors import NoOverlapError, TightropeError

    try:
        yield
    except TightropeError as error:
        say(f"error: {error}", err=True)
        raise typer.Exit(NO_ANSWER if isinstance(error, NoOverlapError) else BAD_INPUT) from None
    except MemoryError as error:
        say(
            f"error: there is not enough memory: {error}; use fewer resamples, or a larger machine",
            err=True,
        )
        raise typer.Exit(BAD_INPUT) from None


def show(result: Evaluation, json: bool, *, everything: bool = False) -> None:
    """Print the result: the answer and a short table, or ``everything``."""
    if json:
        say(result.to_json())
    else:
        from tightrope.report.table import evaluation_table

        console().print(evaluation_table(result, everything=everything))


def show_record(result: Record, json: bool) -> None:
    """Print a record as it shows itself, or as JSON."""
    if json:
        say(result.to_json())
    else:
        console().print(result)


def write_report(report: Path | None, write: Callable[[Path], object]) -> None:
    """Write the report, if one is asked for, and say where it is."""
    if report is None:
        return
    with errors():
        write(report)
    say(f"report: {report}", err=True)


def leave(result: Evaluation, *, by_verdict: bool = False, model_is_enough: bool = False) -> None:
    """Exit with the code that says whether there is an answer, or (``by_verdict``) which one.

    A yes that rests on a model alone opens no gate, unless whoever asked named the estimators: without probabilities
    that are right, nothing in the logs corrects a model.
    """
    if by_verdict:
        assert result.verdict is not None
        kind = result.verdict.kind
        bounds = result.believed_gains if result.verdict.about == "gain" else result.believed
        alone = any(bound.hangs_on_model for bound in bounds)
        if kind == "yes" and alone and not model_is_enough:
            say("This yes rests on a model alone, so it opens no gate (exit code 5); --estimator mb would.", err=True)
            kind = "cannot tell"
        raise typer.Exit(VERDICTS[kind])
    if not result.believed:
        raise typer.Exit(NO_ANSWER)


@contextmanager
def reading_bar() -> Iterator[Callable[[int, int], None] | None]:
    """A bar of rows on stderr, if that is a terminal: how fast they come, and how long it will take."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import BarColumn, TextColumn, TimeRemainingColumn
    from rich.progress import Progress as Bar

    words = TextColumn("{task.description}")
    with Bar(BarColumn(), words, TimeRemainingColumn(), console=console(stderr=True), transient=True) as bar:
        task, began = bar.add_task("reading", visible=False), monotonic()

        def advance(done: int, whole: int) -> None:
            speed = done / max(monotonic() - began, 1e-9)
            rows = f"{done:,} of {whole:,} rows, {speed:,.0f} a second"
            bar.update(task, total=whole, completed=done, description=rows, visible=True)

        yield advance


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """A progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.progress import Progress as Bar

    from tightrope.base.progress import watched

    with Bar(console=console(stderr=True), transient=True) as bar:
        tasks: dict[str, TaskID] = {}

        def show(name: str, share: float) -> None:
            """Each kind of work has a bar of its own, from its beginning on."""
            if name not in tasks:
                tasks[name] = bar.add_task(name, total=1.0)
            bar.update(tasks[name], completed=share)

        with watched(show):
            yield lambda share: show(what, share)


def origin(known: Provenance | None, logs: list[str], policy: str, policy_sha256: str = "") -> Provenance:
    """Where numbers come from: the command as it was typed, the file that it read, the day, and the policy in words."""
    import shlex
    from dataclasses import replace
    from datetime import date

    from tightrope.base.errors import visible
    from tightrope.evaluation.provenance import with_origin

    assert known is not None
    command = shlex.join(["tightrope", *sys.argv[1:]])
    whole = with_origin(known, command, logs, date.today().isoformat())
    return replace(whole, policy=visible(policy), policy_sha256=policy_sha256)
