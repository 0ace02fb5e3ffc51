"""One planted mistake, and where it goes: found by names and expressions, so that files may move.

The package is searched for functions, methods or constants of the given qualified name, and those for an expression or
for statements, compared as syntax trees: formatting does not matter. There must be exactly one place.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock

_ONE_AT_A_TIME = Lock()  # Python 3.11 loses count when several threads make syntax trees (python/cpython#106905)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Assign | ast.AnnAssign


@dataclass(frozen=True)
class Mutant:
    """A mistake that somebody could make."""

    mistake: str  # in words; no two alike
    where: str  # Class.method, function or CONSTANT; after "cli/logs.py:" where two files have one of that name
    find: str  # what in it; "": all of it
    put: str  # what to put there
    tests: str  # which tests, or files of tests, must notice; separated by spaces
    equivalent: str = ""  # why no test can notice it, where that is so


@dataclass(frozen=True)
class Topic:
    """Mistakes of one kind."""

    title: str
    wider: str  # tests to ask where those that were named do not notice
    mutants: tuple[Mutant, ...]


class MisplacedError(Exception):
    """The mistake has no place, or more than one."""


@dataclass(frozen=True)
class Planted:
    """A module with the mistake in it."""

    path: Path  # within the package
    tree: ast.Module
    compilers: frozenset[str]  # what may compile functions

    @property
    def compiled(self) -> bool:
        """Whether numba compiles some of it."""
        return _is_compiled(self.tree, self.compilers)

    @property
    def source(self) -> str:
        """As text."""
        return ast.unparse(self.tree)


@dataclass(frozen=True)
class Package:
    """The sources in a folder."""

    folder: Path

    def plant(self, mutant: Mutant) -> Planted:
        """The module that changes, changed."""
        with _ONE_AT_A_TIME:
            return self._plant(mutant)

    def _plant(self, mutant: Mutant) -> Planted:
        swap = _swap(mutant)
        places = [path for path, node in self._definitions[mutant.where] for _ in range(swap.count_in(node))]
        if len(places) != 1:
            raise MisplacedError(self._why(mutant, len(places)))
        tree = ast.parse(self._sources[places[0]])
        definitions = [node for name, node in _named(tree) if name == mutant.where.rpartition(":")[2]]
        before = [ast.dump(node) for node in definitions]
        for node in definitions:
            swap.visit(node)
        if [ast.dump(node) for node in definitions] == before:
            raise MisplacedError(f"{mutant.mistake!r} changes nothing: {mutant.put!r} is what stands there")
        return Planted(places[0], ast.fix_missing_locations(tree), self._compilers)

    def _why(self, mutant: Mutant, count: int) -> str:
        places = ", ".join(dict.fromkeys(str(path) for path, _ in self._definitions[mutant.where]))
        if not places:
            return f"{mutant.mistake!r}: nothing is called {mutant.where} any more"
        return f"{mutant.mistake!r}: {mutant.where} ({places}) holds {mutant.find!r} {count} times instead of once"

    @cached_property
    def _sources(self) -> dict[Path, str]:
        paths = sorted(self.folder.rglob("*.py"))
        return {path.relative_to(self.folder): path.read_text(encoding="utf-8") for path in paths}

    @cached_property
    def _compilers(self) -> frozenset[str]:
        """The last names of the modules that use numba, and its own: what they give may compile a function."""
        users = {
            path.stem for path, source in self._sources.items() if "numba" in _imported(ast.parse(source)).values()
        }
        return frozenset(users | {"numba"})

    @cached_property
    def _definitions(self) -> dict[str, list[tuple[Path, Definition]]]:
        """Where each name is defined."""
        found: dict[str, list[tuple[Path, Definition]]] = defaultdict(list)
        for path, source in self._sources.items():
            for name, node in _named(ast.parse(source)):
                found[name].append((path, node))
                found[f"{path.as_posix()}:{name}"].append((path, node))
        return found


def _named(parent: ast.AST, prefix: str = "") -> Iterator[tuple[str, Definition]]:
    """Functions, methods and assigned names of a module, with their qualified names."""
    for node in ast.iter_child_nodes(parent):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield f"{prefix}{node.name}", node
        elif isinstance(node, ast.ClassDef):
            yield from _named(node, f"{prefix}{node.name}.")
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            yield from ((f"{prefix}{target.id}", node) for target in targets if isinstance(target, ast.Name))


def _swap(mutant: Mutant) -> _Swap:
    """What makes the mistake."""
    find, put = _expression(mutant.find), _expression(mutant.put)
    if not mutant.find:
        return _SwapAll([], [put] if put is not None else ast.parse(mutant.put).body)
    if find is not None and put is not None:
        return _Swap([find], [put])
    return _Swap(ast.parse(mutant.find).body, ast.parse(mutant.put).body)


class _Swap(ast.NodeTransformer):
    """Puts one thing where another stands: an expression, or a run of statements."""

    def __init__(self, find: Sequence[ast.AST], put: Sequence[ast.AST]):
        self.find, self.put = [ast.dump(node) for node in find], list(put)
        self.first = type(find[0]) if find else None  # told apart by their types, most things need no closer look

    def count_in(self, definition: Definition) -> int:
        """How many places there are."""
        return sum(self._fits(node) + len(self._starts(node)) for node in ast.walk(definition))

    def visit(self, node: ast.AST) -> ast.AST:
        if self._fits(node):
            return self.put[0]
        for name, first in self._starts(node):
            run = getattr(node, name)
            run[first : first + len(self.find)] = self.put
        return self.generic_visit(node)

    def _fits(self, node: ast.AST) -> bool:
        return type(node) is self.first and isinstance(node, ast.expr) and self.find == [ast.dump(node)]

    def _starts(self, node: ast.AST) -> list[tuple[str, int]]:
        """In which lists of statements the run begins, and where."""
        found = []
        for name, value in ast.iter_fields(node):
            if isinstance(value, list) and value and isinstance(value[0], ast.stmt) and self.first in map(type, value):
                texts = [ast.dump(one) for one in value]
                size = len(self.find)
                found += [(name, k) for k in range(len(texts)) if texts[k : k + size] == self.find]
        return found


class _SwapAll(_Swap):
    """Puts something in the place of a whole body or value."""

    def count_in(self, definition: Definition) -> int:
        return 1

    def visit(self, node: ast.AST) -> ast.AST:
        if isinstance(node, ast.Assign | ast.AnnAssign):
            node.value = self.put[0]  # type: ignore[assignment]
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = self.put  # type: ignore[assignment]
        return node


def _expression(text: str) -> ast.expr | None:
    """The text as an expression; None where it is a statement."""
    try:
        return ast.parse(text.strip(), mode="eval").body
    except SyntaxError:
        return None


def _is_compiled(tree: ast.Module, compilers: frozenset[str]) -> bool:
    """Whether a function is decorated with something that comes from a compiler."""
    imported = _imported(tree)
    decorators = [one for node in ast.walk(tree) for one in getattr(node, "decorator_list", ())]
    names = {name.id for one in decorators for name in ast.walk(one) if isinstance(name, ast.Name)}
    return any(imported.get(name) in compilers for name in names)


def _imported(tree: ast.Module) -> dict[str, str]:
    """The names that a module imports, and where each comes from: numba, or the last part of another module's name."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            for alias in node.names:
                parts = (alias.name if isinstance(node, ast.Import) else node.module or "").split(".")
                found[alias.asname or alias.name] = "numba" if parts[0] == "numba" else parts[-1]
    return found
