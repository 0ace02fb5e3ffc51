"""No module imports one that imports it: not inside a function, not for types alone."""

from __future__ import annotations

import ast
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import tightrope

SOURCES = Path(tightrope.__file__).parent


def modules(folder):
    """The sources by the names of their modules."""
    found = {}
    for path in folder.rglob("*.py"):
        parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path.read_text(encoding="utf-8")
    return found


def imported(source, known):
    """What a module imports of its own package, wherever in it."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in known else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def check(sources):
    edges = {name: {one for one in imported(source, sources) if one in sources} for name, source in sources.items()}
    list(TopologicalSorter(edges).static_order())


def test_no_module_imports_one_that_imports_it():
    check(modules(SOURCES))


@pytest.mark.parametrize(
    "second",
    [
        "from package.first import thing",
        "def f():\n    from package.first import thing",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from package import first",
    ],
)
def test_a_circle_is_found_however_it_is_hidden(second):
    sources = {"package": "", "package.first": "import package.second", "package.second": second}
    with pytest.raises(CycleError):
        check(sources)
