"""Files and functions stay small enough to be read at once; what is longer stands here with its reason."""

from __future__ import annotations

import ast
from pathlib import Path

import tightrope

SOURCES = Path(tightrope.__file__).parent
LINES, BODY = 300, 40

LONG_FILES = {
    "api.py": "half of it is five public signatures with all keywords visible, and examples; the calls belong together",
}
LONG_BODIES: dict[str, str] = {}  # "file:function" and why


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """From the first statement after the docstring to the end."""
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def long_bodies(source: str) -> list[str]:
    functions = [one for one in ast.walk(ast.parse(source)) if isinstance(one, (ast.FunctionDef, ast.AsyncFunctionDef))]
    return [one.name for one in functions if body_lines(one) > BODY]


def files() -> dict[str, str]:
    paths = sorted(SOURCES.rglob("*.py"))
    return {path.relative_to(SOURCES).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def test_no_file_is_long_without_a_reason():
    assert {name for name, source in files().items() if len(source.splitlines()) > LINES} == LONG_FILES.keys()


def test_no_body_is_long_without_a_reason():
    found = {f"{name}:{function}" for name, source in files().items() for function in long_bodies(source)}
    assert found == LONG_BODIES.keys()


def test_bodies_are_counted_without_their_docstrings():
    lines = "\n".join("    x = 1" for _ in range(BODY))
    signature = 'def f(\n    a,\n    b,\n):\n    """One line.\n\n    More.\n    """\n'
    assert long_bodies(signature + lines) == []
    assert long_bodies(signature + lines + "\n    x = 2") == ["f"]
