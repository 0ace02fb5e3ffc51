"""Run our laws on the estimators of other libraries, each in an environment of its own, and write docs/conformance.md.

``python benchmarks/conformance/run.py --out docs/conformance.md`` installs the libraries under build/conformance
(once), asks each of them twice, and compares the two answers. A library that was asked before and has not changed since
is not asked again. ``--only scope_rl`` asks one.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import page
import problems
from libraries import LIBRARIES, Library

HERE = Path(__file__).parent
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
RUNS = 2


def environment(library: Library, build: Path) -> Path:
    """The Python of a library, installed if it is not there yet."""
    if not library.installs:
        return Path(sys.executable)
    folder = build / library.key
    python, marker = folder / "bin" / "python", folder / ".installed"
    wanted = repr(library.installs)
    if marker.exists() and marker.read_text() == wanted:
        return python
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    for arguments in library.installs:
        pip(python, *arguments)
    marker.write_text(wanted)
    return python


def pip(python: Path, *arguments: str) -> None:
    """Install, or raise with the last line of what pip said."""
    command = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        lines = [line for line in done.stderr.splitlines() if line.strip() and not line.startswith("WARNING")]
        raise RuntimeError(f"pip install {' '.join(arguments)}: {lines[-1] if lines else done.returncode}")


def answers(library: Library, build: Path, asked: Path, kept_only: bool) -> dict[str, Any]:
    """What the library says, asked twice; kept until the problems or its runner change."""
    sources = [asked, HERE / "harness.py", HERE / library.runner]
    if library.key == "tightrope":
        sources += sorted((HERE.parents[1] / "src").rglob("*.py"))
    key = hashlib.sha256(b"".join(path.read_bytes() for path in sources) + repr(library.installs).encode()).hexdigest()
    kept = build / f"{library.key}.json"
    if kept.exists() and (earlier := json.loads(kept.read_text())).get("key") == key:
        return earlier
    if kept_only:
        return {"library": library.name, "failed": "not asked yet"}
    try:
        python = environment(library, build)
    except (RuntimeError, subprocess.CalledProcessError) as error:
        return {"library": library.name, "failed": str(error)}
    runs = [once(library, python, asked, build / f"{library.key}.run{number}.json") for number in range(RUNS)]
    failed = next((run for run in runs if "failed" in run), None)
    result = failed or {**runs[0], "key": key, "repeated": without_times(runs[0]) == without_times(runs[1])}
    if failed is None:
        kept.write_text(json.dumps(result), encoding="utf-8")
    return result


def once(library: Library, python: Path, asked: Path, out: Path) -> dict[str, Any]:
    """One run of a runner."""
    command = [str(python), str(HERE / library.runner), "--problems", str(asked), "--out", str(out)]
    plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH" or not library.installs}
    done = subprocess.run(command, env={**plain, **THREADS}, capture_output=True, text=True)
    if done.returncode:
        return {"library": library.name, "failed": done.stderr.strip().splitlines()[-1]}
    answer: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    return answer


def without_times(result: dict[str, Any]) -> dict[str, Any]:
    """All that must be the same in both runs."""
    estimators = {name: {**one, "times": None} for name, one in result["estimators"].items()}
    return {**result, "estimators": estimators}


def main() -> None:
    """Ask all libraries, or those named, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--kept", action="store_true", help="write the page from earlier answers, and ask nobody")
    parser.add_argument("--build", type=Path, default=Path("build/conformance"))
    given = parser.parse_args()
    asked = given.build.resolve() / "problems.json"
    made = problems.write(asked)
    results = []
    for library in LIBRARIES:
        if not given.only or library.key in given.only:
            print(library.name, flush=True)
            results.append((library, answers(library, given.build.resolve(), asked, given.kept)))
    if given.out is not None:
        given.out.write_text(page.rendered(json.loads(json.dumps(made)), results), encoding="utf-8")


if __name__ == "__main__":
    main()
