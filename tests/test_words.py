"""The words of the sources: users read "episode", and what a function holds has the name of a thing."""

from __future__ import annotations

import ast
import io
import re
import tokenize
from pathlib import Path

import pytest

import tightrope

SOURCES = Path(tightrope.__file__).parent
FILES = sorted(SOURCES.rglob("*.py"))
NO_NOUNS = {"asked", "found", "heard", "made", "mine", "offered", "said", "told"}


def spoken(source):
    """All strings, docstrings and comments, without what stands between backticks."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type in (tokenize.STRING, tokenize.COMMENT):
            yield token.start[0], re.sub(r"``.*?``", "", token.string)


def trajectories(source):
    """Lines of text that speak of a trajectory; names such as ``n_trajectories`` are no text."""
    return [line for line, text in spoken(source) if re.search(r"\btrajector(y|ies)\b", text, re.IGNORECASE)]


def no_nouns(source):
    """Variables and arguments that are named by a verb."""
    for node in ast.walk(ast.parse(source)):
        name = node.id if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) else None
        name = node.arg if isinstance(node, ast.arg) else name
        if name in NO_NOUNS:
            yield node.lineno, name


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_users_read_episode(path):
    assert trajectories(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.relative_to(SOURCES).as_posix())
def test_names_are_nouns(path):
    assert list(no_nouns(path.read_text(encoding="utf-8"))) == []


def test_the_tests_find_what_they_look_for():
    assert trajectories('x = f"{n} trajectories"\n# a trajectory\nn_trajectories = "``trajectories``"\n') == [1, 2]
    assert list(no_nouns("def f(told):\n    found = [said for said in told]\n")) == [
        (1, "told"),
        (2, "found"),
        (2, "said"),
    ]
