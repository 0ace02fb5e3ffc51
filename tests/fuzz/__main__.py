"""The fuzzing run: ``python -m tests.fuzz``. Exit code 1 where anything differs or crashes."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.check import run
from tests.fuzz.page import page
from tests.fuzz.runner import run_seeds, smallest


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--questions", type=int, default=25_000, help="how many seeds")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--journal", type=Path, default=Path("build/fuzz.jsonl"), help="finished chunks, to go on from")
    parser.add_argument("--out", type=Path, help="write the counts as a page of the documentation")
    parser.add_argument("--seed", type=int, help="run this seed alone and say everything that it finds")
    asked = parser.parse_args()
    if asked.seed is not None:
        with tempfile.TemporaryDirectory() as folder:
            outcome = run(asked.seed, Path(folder))
        failures = outcome.failures
    else:
        outcome = run_seeds(asked.first, asked.first + asked.questions, asked.workers, asked.journal)
        failures = smallest(outcome.failures)
    for kind, seed, steps, details in failures:
        print(f"\n{kind}, {steps} logged steps: python -m tests.fuzz --seed {seed}\n  {details}")
    print("\n" + ", ".join(f"{name} {count}" for name, count in outcome.counts.most_common()))
    if asked.out is not None:
        asked.out.write_text(page(asked.first, asked.first + asked.questions, outcome), encoding="utf-8")
    return int(outcome.counts["differing"] + outcome.counts["crashed"] > 0)


if __name__ == "__main__":
    sys.exit(main())
