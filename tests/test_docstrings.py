"""Every public name has a short example in its docstring, and each example prints what it says."""

from __future__ import annotations

import doctest

import pytest

import tightrope


def examples(item):
    return doctest.DocTestFinder(recurse=False).find(item, item.__name__, globs={})


@pytest.mark.parametrize("name", tightrope.__all__)
def test_the_example_prints_what_it_says(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (found,) = examples(getattr(tightrope, name))
    assert 1 <= len(found.examples) <= 8, "a short example"
    report = []
    doctest.DocTestRunner(verbose=False, optionflags=doctest.NORMALIZE_WHITESPACE).run(found, out=report.append)
    assert not report, "".join(report)


def test_an_example_that_prints_something_else_is_found():
    def wrong():
        """
        >>> 1 + 1
        3
        """

    (found,) = examples(wrong)
    assert doctest.DocTestRunner().run(found, out=lambda text: None).failed == 1
