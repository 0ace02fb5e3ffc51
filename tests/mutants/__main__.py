"""Plant every mistake of the list, or some, and say which of them no test notices: ``python -m tests.mutants``."""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from tests.mutants.page import page
from tests.mutants.planted import TOPICS
from tests.mutants.planting import Mutant, Package, Topic
from tests.mutants.running import PACKAGE, ROOT, Kept, Outcome, Selection, run_all, run_tests

KEPT = ROOT / "build" / "mutants.jsonl"


def main() -> int:
    """Exit code 0: every mistake was noticed, or is declared equivalent and was not."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("--only", default="", help="those with this in their words, place or topic")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--page", type=Path, help="where to write the table, once all have been planted")
    asked = parser.parse_args()
    topics = [found for topic in TOPICS if (found := _chosen(topic, asked.only)).mutants]
    kept = Kept(KEPT, Package(PACKAGE), Selection())
    if not _pass_unchanged(topics, kept):
        return 1
    outcomes = _run(topics, kept, asked.jobs)
    wrong = [(mutant, outcome) for mutant, outcome in outcomes.items() if not outcome.is_right(mutant)]
    for mutant, outcome in wrong:
        print(f"{outcome.verdict}: {mutant.mistake} ({mutant.where}) {outcome.test}\n  {outcome.why}")
    print(f"{len(outcomes)} planted, {len(outcomes) - len(wrong)} as they should be")
    if asked.page and not asked.only and not wrong:
        asked.page.write_text(page(topics, outcomes), encoding="utf-8")
    return int(bool(wrong) or not outcomes)


def _chosen(topic: Topic, only: str) -> Topic:
    words = only.lower()
    some = tuple(one for one in topic.mutants if words in f"{topic.title} {one.mistake} {one.where}".lower())
    return replace(topic, mutants=some)


def _pass_unchanged(topics: list[Topic], kept: Kept) -> bool:
    """Whether the tests pass without any mistake: else they would notice everything."""
    every = " ".join(dict.fromkeys(" ".join(one.tests for topic in topics for one in topic.mutants).split()))
    nothing = Mutant("none", "", "", "", every)
    key = kept.key(nothing)
    if key not in kept.known:
        print("the tests, without any mistake ...", file=sys.stderr)
        kept.add(key, run_tests(kept.selection.nodes(every), PACKAGE.parent))
    outcome = kept.known[key]
    if outcome.verdict != "survived":
        print(f"without any mistake: {outcome.verdict}, {outcome.test} {outcome.why}")
    return outcome.verdict == "survived"


def _run(topics: list[Topic], kept: Kept, jobs: int) -> dict[Mutant, Outcome]:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found: dict[Mutant, Outcome] = {}
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("mistakes", total=sum(len(topic.mutants) for topic in topics))
        for mutant, outcome in run_all(topics, kept, jobs):
            found[mutant] = outcome
            bar.advance(task)
            if not outcome.is_right(mutant):
                bar.console.print(f"{outcome.verdict}: {mutant.mistake}", markup=False, highlight=False)
    return found


if __name__ == "__main__":
    sys.exit(main())
