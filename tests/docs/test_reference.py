"""Every estimator and every bound has its formula, and the words of the results are explained."""

from __future__ import annotations

import inspect
import pkgutil
import re

import pytest

import tightrope
from tests.docs.test_documentation import DOCS, load
from tightrope.bounds import METHODS, PROCESS_METHODS
from tightrope.estimators import ESTIMATORS

FORMULAS = (DOCS / "reference" / "formulas.md").read_text(encoding="utf-8")
GLOSSARY = (DOCS / "guide" / "glossary.md").read_text(encoding="utf-8")


def formulas(text):
    """The displayed formulas below the heading of each name."""
    parts = re.split(r"^##+ ", text, flags=re.MULTILINE)
    named = ((re.match(r"`([\w-]+)`", part), part) for part in parts)
    return {name[1]: re.findall(r"^\$\$.+\$\$$", part, re.MULTILINE) for name, part in named if name}


@pytest.mark.parametrize("name", [*ESTIMATORS, *METHODS, *PROCESS_METHODS])
def test_every_estimator_and_every_bound_has_its_formula(name):
    assert formulas(FORMULAS)[name]


def test_nothing_has_a_formula_that_does_not_exist():
    assert set(formulas(FORMULAS)) == {*ESTIMATORS, *METHODS, *PROCESS_METHODS}


def test_a_name_without_a_formula_is_found():
    assert formulas("## Bounds\n\n### `one`\n\n$$x$$\n\n### `two`\n\nWords, $x$.\n") == {"one": ["$$x$$"], "two": []}


def test_the_glossary_is_in_order_and_explains_the_words_of_results():
    words = re.findall(r"^- \*\*(.*?)\.\*\*", GLOSSARY, re.MULTILINE)
    assert words == sorted(words, key=str.lower)
    asked = (
        "Episode, Behaviour policy, Candidate, Importance ratio, Effective sample size, Exact, Approximate, Believed"
    )
    assert set(f"{asked}, Recommended, Rehearsal".split(", ")) <= set(words)


conf = load(DOCS / "conf.py")
SMALL_PRINT = {"MountainCar", "CliffWorld"}  # numbers of the process, whose names say what they are


def explained(item):
    """The names that the reference explains: in the docstring, by a comment at the field, or by another function."""
    text = "\n".join(conf.with_keywords(item, (inspect.getdoc(item) or "").splitlines()))
    fields = conf.field_comments(item) if isinstance(item, type) else {}
    return {*re.findall(r"\w+", text), *fields}


@pytest.mark.parametrize("page", sorted((DOCS / "reference").glob("*.md")), ids=lambda page: page.stem)
def test_every_parameter_in_the_reference_is_explained(page):
    missing = {}
    for name in re.findall(r"\.\. auto(?:function|class):: (tightrope[\w.]*)$", page.read_text(), re.MULTILINE):
        module, _, last = name.rpartition(".")
        item = getattr(pkgutil.resolve_name(module), last)
        if last in SMALL_PRINT or getattr(item, "_is_protocol", False):
            continue
        takes = set(inspect.signature(item).parameters) - explained(item) - {"self", "args", "kwargs", "_fields"}
        missing |= {name: takes} if takes else {}
    assert missing == {}


def test_shared_keywords_are_copied_once_and_only_those_that_are_taken():
    lines = conf.with_keywords(tightrope.interval, inspect.getdoc(tightrope.interval).splitlines())
    listed = [line for line in lines if line.startswith("- ``")]
    assert len(listed) == len(set(listed)) >= 12
    assert sum("``n_resamples``" in line for line in listed) == 1
    assert lines.index(listed[-1]) < next(k for k, line in enumerate(lines) if ">>>" in line)
    assert conf.with_keywords(tightrope.read, ["Words."]) == ["Words."]
