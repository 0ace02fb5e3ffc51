"""Every estimator and every bound has its formula, and the words of the results are explained."""

from __future__ import annotations

import re

import pytest

from tests.docs.test_documentation import DOCS
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
