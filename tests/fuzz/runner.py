"""Many seeds over several processes, kept chunk by chunk, so that a run can be stopped and goes on where it was."""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from tests.fuzz.check import Outcome, run
from tightrope.studies.pool import run_all

ROOT = Path(__file__).parents[2]
CHUNK = 50  # seeds


class Chunk(NamedTuple):
    """Some seeds in a row."""

    first: int
    stop: int


def run_chunk(chunk: Chunk) -> Outcome:
    """What came of them."""
    total = Outcome()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(*chunk):
            try:
                total.add(run(seed, Path(folder)))
            except Exception as error:
                raise RuntimeError(f"seed {seed}: the harness itself failed") from error
    return total


def run_seeds(first: int, stop: int, workers: int, journal: Path) -> Outcome:
    """Every seed from first up to stop; chunks that the journal holds of the same code are not run again."""
    chunks = [Chunk(start, min(start + CHUNK, stop)) for start in range(first, stop, CHUNK)]
    code, done = code_digest(), _read(journal)
    total = Outcome()
    for chunk in chunks:
        if (code, *chunk) in done:
            total.add(done[code, *chunk])
    waiting = [chunk for chunk in chunks if (code, *chunk) not in done]
    journal.parent.mkdir(parents=True, exist_ok=True)
    with journal.open("a") as file:
        for position, outcome in run_all(run_chunk, waiting, workers):
            total.add(outcome)
            file.write(_line(code, waiting[position], outcome))
            file.flush()
            counts = total.counts
            print(
                f"{counts['questions']} of {stop - first} questions, {counts['inputs']} inputs: "
                f"{counts['differing']} differing, {counts['crashed']} crashed",
                flush=True,
            )
    return total


def smallest(failures: Sequence[tuple[str, int, int, str]]) -> list[tuple[str, int, int, str]]:
    """Of each kind of failure the one with the fewest logged steps."""
    found: dict[str, tuple[str, int, int, str]] = {}
    for failure in sorted(failures, key=lambda f: (f[2], f[1])):
        found.setdefault(failure[0], failure)
    return list(found.values())


def code_digest() -> str:
    """What the results depend on: the library, the oracles and this harness."""
    paths = [
        *(ROOT / "src").rglob("*.py"),
        *(ROOT / "tests" / "fuzz").glob("*.py"),
        *(ROOT / "tests").glob("*oracle.py"),
    ]
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    return digest.hexdigest()[:16]


def _line(code: str, chunk: Chunk, outcome: Outcome) -> str:
    parts = [code, *chunk, outcome.counts, outcome.reasons, outcome.parts, outcome.failures]
    return json.dumps(parts) + "\n"


def _read(journal: Path) -> dict[tuple[str, int, int], Outcome]:
    """The chunks on disk; a line that a kill left half written is passed over."""
    done = {}
    for line in journal.read_text().splitlines() if journal.exists() else []:
        try:
            code, first, stop, counts, reasons, parts, failures = json.loads(line)
        except ValueError:
            continue
        made = Outcome(Counter(counts), Counter(reasons), Counter(parts), [tuple(each) for each in failures])
        done[code, first, stop] = made
    return done
