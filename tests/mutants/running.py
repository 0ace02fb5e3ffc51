"""Plants mistakes into copies of the package, runs the tests that must notice them, and keeps what came out.

The working tree is never changed: a copy goes onto PYTHONPATH before it. The copy keeps what numba compiled before, but
not where a compiled module changes: its callers in other modules would not notice.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import astuple, dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

from tests.mutants.planting import MisplacedError, Mutant, Package, Planted, Topic

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "tightrope"
TESTS = ROOT / "tests"
TIMEOUT = 900  # seconds
FAILED = 1  # exit code of pytest: a test failed; others mean that nothing was tested
PLUGINS = ("cacheprovider", "hypothesispytest", "xdist")  # that no mistake needs and that take long to start
NO_MISTAKE = ("NameError", "UnboundLocalError", "ImportError", "SyntaxError", "TypingError")  # but nonsense

Verdict = Literal["noticed", "survived", "timeout", "broken", "misplaced"]


@dataclass(frozen=True)
class Outcome:
    """What became of a mistake."""

    verdict: Verdict
    test: str = ""  # that noticed it
    why: str = ""  # as that test put it; else what went wrong

    def is_right(self, mutant: Mutant) -> bool:
        """Whether it is noticed, or declared equivalent and not noticed."""
        return self.verdict == ("survived" if mutant.equivalent else "noticed")


@dataclass(frozen=True)
class Selection:
    """The tests by name, wherever their files are."""

    root: Path = ROOT

    def nodes(self, names: str) -> list[str]:
        """What to tell pytest: every file or test of these names, relative to the root."""
        found = []
        for name in names.split():
            plain, bracket, rest = name.partition("[")
            places = self._index.get(plain, [])
            if not places:
                raise MisplacedError(f"no test and no file of tests is called {plain}")
            found += [f"{place}{bracket}{rest}" for place in places]
        return list(dict.fromkeys(found))

    @cached_property
    def _index(self) -> dict[str, list[str]]:
        index: dict[str, list[str]] = defaultdict(list)
        for path in sorted((self.root / "tests").rglob("test_*.py")):
            place = str(path.relative_to(self.root))
            index[path.stem].append(place)
            for node in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                    index[node.name].append(f"{place}::{node.name}")
        return index


def run_one(mutant: Mutant, package: Package, selection: Selection, wider: str = "") -> Outcome:
    """Plant one mistake and run its tests, then wider ones if those do not notice."""
    try:
        planted, nodes = package.plant(mutant), selection.nodes(mutant.tests)
    except MisplacedError as error:
        return Outcome("misplaced", why=str(error))
    with tempfile.TemporaryDirectory(prefix="mutant-") as folder:
        copy_with(package.folder, planted, Path(folder))
        outcome = run_tests(nodes, Path(folder))
        if outcome.verdict == "survived" and wider:
            outcome = run_tests(selection.nodes(wider), Path(folder))
        return outcome


def copy_with(package: Path, planted: Planted, folder: Path) -> None:
    """The package with one module changed, in another folder; what was compiled before comes along where it may."""
    stale = shutil.ignore_patterns("*.nbi", "*.nbc") if planted.compiled else None
    shutil.copytree(package, folder / package.name, ignore=stale)  # times of change are kept, by which caches go
    path = folder / package.name / planted.path
    path.write_text(planted.source, encoding="utf-8")
    for old in (path.parent / "__pycache__").glob(f"{path.stem}.*"):
        old.unlink()


def run_tests(nodes: Sequence[str], path: Path) -> Outcome:
    """Run tests until one fails, with a folder first on the path."""
    with tempfile.TemporaryDirectory(prefix="hypothesis-") as examples:
        environment = {**os.environ, "PYTHONPATH": str(path), "HYPOTHESIS_STORAGE_DIRECTORY": examples}
        environment["COLUMNS"] = "300"  # of the line in which pytest says why
        environment |= dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
        environment.pop("NUMBA_CACHE_DIR", None)
        without = [word for plugin in PLUGINS for word in ("-p", f"no:{plugin}")]
        command = [sys.executable, "-m", "pytest", "-x", "-rfE", "--tb=line", *without, *nodes]
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            try:
                output, _ = process.communicate(timeout=TIMEOUT)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)  # the tests' own processes too
                return Outcome("timeout", why=f"after {TIMEOUT} s")
    if process.returncode == 0:
        return Outcome("survived")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+::\w+)(.*)", output, flags=re.MULTILINE)
    if process.returncode != FAILED or failed is None:
        return Outcome("broken", why=output[-2000:])
    why = failed[2].partition(" - ")[2]  # after the parameters
    return Outcome("broken" if any(name in why for name in NO_MISTAKE) else "noticed", failed[1], why)


class Kept:
    """Outcomes on disk, so that a run that was stopped goes on; each holds for its sources and tests alone."""

    def __init__(self, path: Path, package: Package, selection: Selection):
        self.path, self.package, self.selection = path, package, selection
        support = [
            one for one in TESTS.rglob("*.py") if not one.name.startswith("test_") and "mutants" not in one.parts
        ]
        self.sources = _digest([*package.folder.rglob("*.py"), *support])
        self.known: dict[str, Outcome] = {}
        if path.exists():
            for line in path.read_text(encoding="utf-8").splitlines():
                key, *outcome = json.loads(line)
                self.known[key] = Outcome(*outcome)

    def key(self, mutant: Mutant) -> str:
        """What the outcome hangs on: the mistake, all sources, and the files of its tests."""
        files = sorted({ROOT / node.partition("::")[0] for node in self.selection.nodes(mutant.tests)})
        text = f"{self.sources} {_digest(files)} {astuple(mutant)}"
        return hashlib.sha256(text.encode()).hexdigest()

    def add(self, key: str, outcome: Outcome) -> None:
        """Keep one; what was stopped by the clock is tried again."""
        self.known[key] = outcome
        if outcome.verdict != "timeout":
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps([key, *astuple(outcome)]) + "\n")


def run_all(topics: Sequence[Topic], kept: Kept, jobs: int) -> Iterator[tuple[Mutant, Outcome]]:
    """Each mistake with what became of it, as they finish."""

    def run(mutant: Mutant, wider: str) -> Outcome:
        try:
            key = kept.key(mutant)
        except MisplacedError as error:
            return Outcome("misplaced", why=str(error))
        if key not in kept.known:
            kept.add(key, run_one(mutant, kept.package, kept.selection, wider))
        return kept.known[key]

    with ThreadPoolExecutor(jobs) as pool:
        waiting = {pool.submit(run, mutant, topic.wider): mutant for topic in topics for mutant in topic.mutants}
        try:
            for done in as_completed(waiting):
                yield waiting[done], done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _digest(paths: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for path in sorted(paths):
        digest.update(f"{path.relative_to(ROOT)}\n".encode() + path.read_bytes())
    return digest.hexdigest()
