"""Every planted mistake still has its one place and its tests; a few are planted, and the planting itself is tested."""

from __future__ import annotations

import os

import pytest

from tests.mutants.page import cell, page
from tests.mutants.planted import TOPICS
from tests.mutants.planting import MisplacedError, Mutant, Package, Topic
from tests.mutants.running import PACKAGE, ROOT, Kept, Outcome, Selection, copy_with, run_all

MUTANTS = [mutant for topic in TOPICS for mutant in topic.mutants]
SAMPLE = (  # cheap ones: a property, a method, a reader
    "the reward range leaves out the 0 of an ended episode",
    "Student's t with the two-sided quantile",
    "a truncated episode is a finished one",
)


def test_every_mistake_has_one_place_and_tests_that_exist():
    package, selection, problems = Package(PACKAGE), Selection(), []
    for topic in TOPICS:
        selection.nodes(topic.wider)
        for mutant in topic.mutants:
            try:
                package.plant(mutant)
                nodes = selection.nodes(mutant.tests)
            except MisplacedError as error:
                problems.append(str(error))
                continue
            if any("test_documentation" in node for node in nodes):
                problems.append(f"{mutant.mistake!r}: text that a script writes anew notices nothing")
    assert not problems, "\n".join(problems)


def test_there_are_enough_and_no_two_are_alike():
    assert len(MUTANTS) >= 120
    assert len({mutant.mistake for mutant in MUTANTS}) == len(MUTANTS)
    assert len({(mutant.where, mutant.find, mutant.put) for mutant in MUTANTS}) == len(MUTANTS)


def test_the_page_holds_every_mistake():
    lines = (ROOT / "docs" / "mutants.md").read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ")[:2] for line in lines if line.startswith("| ") and not line.startswith("| mistake")]
    assert rows == [[f"| {cell(mutant.mistake)}", f"`{mutant.where}`"] for mutant in MUTANTS], "run `make mutants`"


def test_a_sample_is_noticed_and_what_is_no_mistake_is_not(tmp_path):
    """Three mistakes, one that is none, and one that is nonsense, side by side."""
    chosen = [mutant for mutant in MUTANTS if mutant.mistake in SAMPLE]
    assert len(chosen) == len(SAMPLE)
    same = Mutant("none", "Hoeffding.lower", "2 * len(values)", "len(values) * 2", "test_hoeffding_by_hand")
    nonsense = Mutant("nonsense", "Hoeffding.lower", "len(values)", "length", "test_hoeffding_by_hand")
    topic = Topic("sample", "", (*chosen, same, nonsense))
    kept = Kept(tmp_path / "kept.jsonl", Package(PACKAGE), Selection())
    outcomes = dict(run_all([topic], kept, os.cpu_count() or 1))
    missed = {mutant.mistake: outcomes[mutant] for mutant in chosen if not outcomes[mutant].is_right(mutant)}
    assert not missed
    assert outcomes[same] == Outcome("survived")
    assert outcomes[nonsense].verdict == "broken"
    assert "NameError" in outcomes[nonsense].why
    assert dict(run_all([topic], Kept(kept.path, kept.package, kept.selection), 1)) == outcomes  # from disk, at once


# -- finding the place ------------------------------------------------------------------------------------------------

SOURCE = '''
"""A module."""
import numpy as np
LIMIT: float = 0.5
class Thing:
    limit = LIMIT
    def value(self, x):
        """Words."""
        total = (x +
                 1)
        total = total * 2
        return max(total, 0.0) + max(0.0, x)
def value(x):
    return x + 1
'''


@pytest.fixture
def package(tmp_path):
    folder = tmp_path / "package"
    (folder / "thing").mkdir(parents=True)
    (folder / "thing" / "deep.py").write_text(SOURCE)
    (folder / "other.py").write_text("import numba\n@numba.njit\ndef value(x):\n    return x - 1\n")
    return Package(folder)


@pytest.mark.parametrize(
    ("where", "find", "put", "line"),
    [
        ("Thing.value", "x + 1", "x - 1", "total = x - 1"),
        ("Thing.value", "total=x+1\ntotal = total*2", "total = 0", "total = 0\n        return"),
        ("Thing.value", "max(total, 0.0)", "total", "return total + max(0.0, x)"),
        ("Thing.value", "", "return 3", "def value(self, x):\n        return 3"),
        ("value", "x + 1", "x", "return x\n"),  # the name is taken twice, the expression is not
        ("LIMIT", "", "7.0", "LIMIT: float = 7.0"),
        ("Thing.limit", "LIMIT", "2 * LIMIT", "limit = 2 * LIMIT"),
    ],
)
def test_a_place_is_found_by_name_and_expression(package, where, find, put, line):
    planted = package.plant(Mutant("one", where, find, put, "test_x"))
    assert str(planted.path) == os.path.join("thing", "deep.py")
    assert line in planted.source + "\n"
    assert not planted.compiled


@pytest.mark.parametrize(
    ("where", "find", "put", "why"),
    [
        ("Thing.gone", "x", "y", "nothing is called Thing.gone any more"),
        ("Thing.value", "x + 2", "x", "holds 'x \\+ 2' 0 times instead of once"),
        ("Thing.value", "x", "y", "holds 'x' 2 times instead of once"),
        ("value", "x", "y", "holds 'x' 2 times"),
        ("Thing.value", "x + 1", "x+1", "changes nothing"),
        ("LIMIT", "", "0.5", "changes nothing"),
    ],
)
def test_what_has_no_place_is_said(package, where, find, put, why):
    with pytest.raises(MisplacedError, match=why):
        package.plant(Mutant("one", where, find, put, "test_x"))


@pytest.mark.parametrize(("find", "left"), [("x + 1", ["next.f-2.py311.nbi"]), ("x - 1", [])])
def test_what_was_compiled_before_does_not_outlive_a_change(package, tmp_path, find, left):
    """Other modules may hold the old code of a function that numba compiles; that of a plain one nobody holds."""
    cache = package.folder / "thing" / "__pycache__"
    cache.mkdir()
    for name in ("deep.value-1.py311.nbi", "deep.cpython-311.pyc", "next.f-2.py311.nbi"):
        (cache / name).touch()
    planted = package.plant(Mutant("one", "value", find, "x", "test_x"))
    copy_with(package.folder, planted, tmp_path / "copy")
    copied = tmp_path / "copy" / "package"
    assert (copied / planted.path).read_text() == planted.source
    assert [path.name for path in copied.rglob("*.nbi")] == left
    assert (copied / "thing" / "__pycache__" / "deep.cpython-311.pyc").exists() == (find == "x - 1")


def test_tests_are_found_by_name_wherever_they_are(tmp_path):
    (tmp_path / "tests" / "deep").mkdir(parents=True)
    (tmp_path / "tests" / "test_one.py").write_text("def test_this(): ...\ndef test_that(): ...\n")
    (tmp_path / "tests" / "deep" / "test_two.py").write_text("def test_this(): ...\n")
    selection = Selection(tmp_path)
    assert selection.nodes("test_that[x] test_that[x]") == ["tests/test_one.py::test_that[x]"]
    assert selection.nodes("test_this") == ["tests/deep/test_two.py::test_this", "tests/test_one.py::test_this"]
    assert selection.nodes("test_two") == ["tests/deep/test_two.py"]
    with pytest.raises(MisplacedError, match="no test and no file of tests is called test_gone"):
        selection.nodes("test_gone")


def test_a_page_by_hand():
    """One noticed, one that nobody can notice."""
    one, two = (Mutant(f"{word} | mistake", "f", "a", "b", "test_x", why) for word, why in (("a", ""), ("b", "same")))
    text = page([Topic("Things", "", (one, two))], {one: Outcome("noticed", "t.py::test_x"), two: Outcome("survived")})
    assert "2 mistakes" in text
    assert "1 are noticed, 1 is declared equivalent" in text
    assert "| a \\| mistake | `f` | `test_x` |" in text
    assert "| b \\| mistake | `f` | equivalent: same |" in text
