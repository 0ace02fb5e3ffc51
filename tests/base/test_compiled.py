"""Compiled functions without a place for their cache, with a cache cut short, and on a full disk: all give answers."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tightrope
from tightrope.base.compiled import compiled

PACKAGE = Path(tightrope.__file__).parent
SCRIPT = (
    "import numpy as np\n"
    "from tightrope.base import kernels\n"
    "out = np.empty((2, 3))\n"
    "kernels.cumulate(np.array([1.0, 2.0, 4.0]), np.zeros(3), np.array([1, 2]), out)\n"
    "print(out.tolist(), kernels.cumulate.stats.cache_path, sum(kernels.cumulate.stats.cache_hits.values()))\n"
)
EXPECTED = "[[1.0, 1.0, 1.0], [2.0, 6.0, 6.0]]"


def run(package, **environment):
    """The script in a process of its own."""
    given = {name: value for name, value in os.environ.items() if not name.startswith(("NUMBA", "XDG"))}
    given |= {"PYTHONPATH": str(package.parent), "PYTHONDONTWRITEBYTECODE": "1", **environment}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(EXPECTED)
    return done.stdout.removeprefix(EXPECTED).split()


def test_no_place_for_a_cache(tmp_path):
    """Neither beside the code nor at home: what could be a folder there is a file."""
    package = tmp_path / "tightrope"
    shutil.copytree(PACKAGE, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("no folder")
    (tmp_path / "home").write_text("no folder")
    path, hits = run(package, HOME=str(tmp_path / "home"))
    assert (path, hits) == ("None", "0")


@pytest.fixture(scope="module")
def filled(tmp_path_factory):
    """A cache with the script's function in it."""
    folder = tmp_path_factory.mktemp("cache")
    assert run(PACKAGE, NUMBA_CACHE_DIR=str(folder))[1] == "0"
    return folder


@pytest.mark.parametrize(("which", "share"), [("*.nbi", 0.5), ("*.nbc", 0.5), ("*.nb?", 0.0)])
def test_a_cache_cut_short_is_made_anew(filled, tmp_path, which, share):
    folder = shutil.copytree(filled, tmp_path / "cache")
    files = list(folder.rglob(which))
    assert files
    for file in files:
        content = file.read_bytes()
        file.write_bytes(content[: int(share * len(content))])
    assert run(PACKAGE, NUMBA_CACHE_DIR=str(folder))[1] == "0"
    assert run(PACKAGE, NUMBA_CACHE_DIR=str(folder))[1] == "1"  # whole again


def double(x):
    return 2 * x


@pytest.mark.parametrize("name", ["save", "load", "flush"])
def test_a_cache_that_fails_costs_nothing_but_time(name, monkeypatch, tmp_path):
    from numba.core import caching

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path))

    def full(*arguments):
        raise OSError(28, "No space left on device")

    function = compiled(double)
    monkeypatch.setattr(caching.IndexDataCacheFile, name, full)
    assert function(3) == 6
    np.testing.assert_array_equal(function(np.ones(2)), [2.0, 2.0])
