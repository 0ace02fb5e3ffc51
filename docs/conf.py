"""Sphinx: pages in Markdown, a reference from docstrings, commands from themselves."""

from __future__ import annotations

import dataclasses
import inspect
import re
import tokenize
from collections.abc import Iterator
from typing import Any

import tightrope

project = "tightrope"
author = "the tightrope authors"
release = version = tightrope.__version__
extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = f"tightrope {release}"
html_copy_source = False
html_static_path = ["static"]
html_css_files = ["tightrope.css"]
html_show_copyright = False
myst_heading_anchors = 3
myst_enable_extensions = ["dollarmath"]
html_math_renderer = "mathml"  # in the page itself: nothing is fetched to show it
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
add_module_names = False
python_maximum_signature_line_length = 100
smartquotes = False  # they would turn --option into a dash

COMMANDS = "reference/commands"
SHARED = re.compile(r"same keywords as ``(\w+)``|keywords are those of ``(\w+)``")
SPECIAL = re.compile(r"(``.*?``)|([|*])")


def setup(app: Any) -> None:
    """Hook in what is ours."""
    app.connect("source-read", _add_commands)
    app.connect("autodoc-process-docstring", _docstring)
    app.add_html_math_renderer(
        "mathml", (_inline_formula, None), (_displayed_formula, None)
    )


def _inline_formula(visitor: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    visitor.body.append(_mathml(node.astext(), "inline"))
    raise SkipNode


def _displayed_formula(visitor: Any, node: Any) -> None:
    from docutils.nodes import SkipNode

    formula = _mathml(node.astext(), "block")
    visitor.body.append(f'<div class="math">{formula}</div>\n')
    raise SkipNode


def _mathml(formula: str, display: str) -> str:
    from latex2mathml.converter import convert

    return str(convert(formula, display=display))


def _add_commands(app: Any, name: str, source: list[str]) -> None:
    if name == COMMANDS:
        source[0] += "\n".join(_commands())


def _commands() -> Iterator[str]:
    """Every command with its options as the program has them, in Markdown."""
    import typer.main

    from tightrope.cli import app

    group: Any = typer.main.get_command(app)
    for name, command in sorted(group.commands.items()):
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        words = [
            one.name.upper() if one.required else f"[{one.name.upper()}]"
            for one in arguments
        ]
        usage = " ".join(["tightrope", name, *words, "[OPTIONS]"])
        yield f"\n## {name}\n\n{command.help}\n\n```sh\n{usage}\n```\n"
        yield "| | |\n|---|---|"
        for one in command.params:
            names = ", ".join(f"`{word}`" for word in one.opts)
            told = (getattr(one, "help", None) or "").replace("|", "\\|")
            yield f"| {names} | {told}{_default(one, told)} |"


def _default(option: Any, told: str) -> str:
    silent = option.default is None or option.default is False or option.required
    return "" if silent or "Default:" in told else f" Default: `{option.default}`."


def _docstring(
    app: Any, what: str, name: str, item: Any, options: Any, lines: list[str]
) -> None:
    """Bars and stars are mathematics, not markup; fields come with their comments."""
    lines[:] = _without_markup(with_keywords(item, lines))
    told = field_comments(item) if what == "class" else {}
    fields = [
        f"* ``{name}``: {SPECIAL.sub(_escaped, text)}" for name, text in told.items()
    ]
    if fields:
        lines += ["", *fields, ""]


def with_keywords(item: Any, lines: list[str]) -> list[str]:
    """The lines of a function, with the keywords that it shares with another one."""
    found = SHARED.search(" ".join(lines))
    if found is None or not callable(item):
        return lines
    own = set(_keywords(lines))
    takes = inspect.signature(item).parameters
    others = [
        line
        for names, bullet in _shared(found[1] or found[2]).items()
        if not own.intersection(names) and takes.keys() >= set(names)
        for line in bullet
    ]
    at = next((k for k, line in enumerate(lines) if ">>>" in line), len(lines))
    return [*lines[:at], *others, "", *lines[at:]]


def _shared(name: str) -> dict[tuple[str, ...], list[str]]:
    """The keywords of a public function, those included that it shares itself."""
    item = getattr(tightrope, name)
    lines = with_keywords(item, inspect.getdoc(item).splitlines())
    bullets: dict[tuple[str, ...], list[str]] = {}
    inside = False
    for line in lines:
        if line.startswith("- ``"):
            names = tuple(_keywords([line]))
            bullets[names], inside = [line], True
        elif inside and line.startswith("  "):
            bullets[names].append(line)
        else:
            inside = False
    return bullets


def _keywords(lines: list[str]) -> Iterator[str]:
    """The names that a list of keywords explains."""
    for line in lines:
        if line.startswith("- ``"):
            yield from re.findall(r"``(\w+)", line.partition(": ")[0])


def _without_markup(lines: list[str]) -> list[str]:
    """Bars and stars escaped, but not in examples (from >>> to an empty line)."""
    result, example = [], False
    for line in lines:
        example = bool(line.strip()) and (example or line.lstrip().startswith(">>>"))
        result.append(line if example else SPECIAL.sub(_escaped, line))
    return result


def _escaped(found: re.Match[str]) -> str:
    return found[1] or "\\" + found[2]


def field_comments(cls: type) -> dict[str, str]:
    """Names and trailing comments of a record's fields, those of its parents first."""
    if not (dataclasses.is_dataclass(cls) or hasattr(cls, "__total__")):
        return {}
    parents = [one for one in reversed(cls.__mro__) if one.__module__ != "builtins"]
    return {name: text for one in parents for name, text in _own_comments(one)}


def _own_comments(cls: type) -> Iterator[tuple[str, str]]:
    """Names and trailing comments of the fields in a class's own source."""
    if not cls.__module__.startswith("tightrope"):
        return
    source = inspect.getsource(cls).splitlines(keepends=True)
    for token in tokenize.generate_tokens(iter(source).__next__):
        if token.type == tokenize.COMMENT:
            field = re.match(r"    (\w+): [^#]*#", token.line)
            if field:
                yield field[1], token.string.lstrip("# ")
