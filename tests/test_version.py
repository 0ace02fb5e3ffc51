"""The version stands in one place, and everything that names it reads it there."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

from typer.testing import CliRunner

import tightrope
from tightrope.cli import app

ROOT = Path(__file__).parents[1]


def test_the_command_tells_the_version_of_the_code_that_runs(monkeypatch):
    """Not that of what was installed once: sources may have moved on."""
    monkeypatch.setattr(tightrope, "__version__", "12.34.56")
    done = CliRunner().invoke(app, ["--version"])
    assert done.output == "tightrope 12.34.56\n"


def test_the_package_is_built_with_the_version_of_the_code():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert "version" not in settings["project"]
    assert "version" in settings["project"]["dynamic"]
    source = (ROOT / settings["tool"]["hatch"]["version"]["path"]).read_text(encoding="utf-8")
    assert source.count(f'__version__ = "{tightrope.__version__}"') == 1


def test_no_other_file_repeats_it():
    """Where it would be forgotten; the changelog speaks of every version, and pages of results of theirs."""
    files = [ROOT / "README.md", ROOT / "CITATION.cff", ROOT / "Makefile", ROOT / "docs" / "conf.py"]
    files += [path for path in (ROOT / "src").rglob("*.py") if path != ROOT / "src" / "tightrope" / "__init__.py"]
    assert [path.name for path in files if tightrope.__version__ in path.read_text(encoding="utf-8")] == []


def test_every_python_that_is_claimed_is_tested():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    claimed = [words.split(" :: ")[-1] for words in settings["project"]["classifiers"] if "Python :: 3." in words]
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text(encoding="utf-8")
    assert claimed
    assert f"python: {json.dumps(claimed)}" in workflow
    assert settings["project"]["requires-python"] == f">={claimed[0]}"
