"""The command line: it parses, calls and prints. The commands import heavy modules themselves, when they run."""

from __future__ import annotations

from typing import Annotated

import typer

import tightrope
from tightrope.cli.compare import compare
from tightrope.cli.constrain import constrain
from tightrope.cli.domains import demo, truth
from tightrope.cli.improve import improve
from tightrope.cli.log import log
from tightrope.cli.logs import evaluate, inspect
from tightrope.cli.monitor import monitor
from tightrope.cli.plan import plan
from tightrope.cli.shared import BAD_INPUT, EXITS, GATE, NO_ANSWER
from tightrope.cli.studies import coverage, reproduce
from tightrope.cli.tail import tail
from tightrope.cli.terminal import Commands, say

app = typer.Typer(
    cls=Commands,
    help="How good is this policy, at worst, judging only from logs of another policy?",
    epilog=EXITS,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for command in (
    evaluate,
    compare,
    plan,
    tail,
    constrain,
    improve,
    monitor,
    inspect,
    log,
    demo,
    coverage,
    reproduce,
    truth,
):
    app.command(epilog=GATE if command in (evaluate, compare, constrain, monitor) else EXITS)(command)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"tightrope {tightrope.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """How good is this policy, at worst, judging only from logs of another policy?"""


__all__ = ["BAD_INPUT", "NO_ANSWER", "app"]
