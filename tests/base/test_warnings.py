"""Warnings are data: one registry of codes, every code in use, and nowhere is the text of one taken apart."""

from __future__ import annotations

import ast
import copy
import pickle
from pathlib import Path

import numpy as np
import pytest

import tightrope
from tightrope import Caution, DataError, TightropeError, TrajectoryDataset
from tightrope.base.warnings import CODES, caution, coded, codes_of
from tightrope.domains import small

SOURCES = Path(tightrope.__file__).parent
PARSERS = {"startswith", "endswith", "partition", "rpartition", "split", "rsplit", "removeprefix", "find", "index"}
TOLD = {"warning", "warnings", "caution", "cautions", "note", "notes"}


def names(node):
    """Every name and attribute in an expression."""
    found = {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}
    return found | {one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)}


def constants(node):
    return {one.value for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def speaks_of_codes(node):
    """Whether an expression holds a code of a warning, or the beginning of one up to a hyphen."""
    known = set(CODES) | {f"{code}:" for code in CODES} | {code.partition("-")[0] for code in CODES}
    return bool({text.strip().removesuffix(":") for text in constants(node)} & known)


def parsed(tree):
    """Lines on which the text of a warning is taken apart, compared or looked through."""
    told = TOLD | {one for node in ast.walk(tree) for one in looped(node)}
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Attribute()):
                wrong = is_cut(node, told)
            case ast.Compare(left=left, comparators=others):
                wrong = any(is_text(one, told) for one in (left, *others))
            case ast.Subscript(value=value):
                wrong = is_text(value, told)
            case _:
                wrong = False
        if wrong:
            yield node.lineno


def looped(node):
    """The variables of a loop over warnings."""
    if isinstance(node, (ast.For, ast.comprehension)) and names(node.iter) & TOLD and isinstance(node.target, ast.Name):
        yield node.target.id


def is_cut(call, told):
    """Whether a parsing method is called on a warning or its text or with a code, or a pattern matched against it."""
    if isinstance(call.func.value, ast.Name) and call.func.value.id == "re":
        return any(names(argument) & told for argument in call.args)
    if call.func.attr not in PARSERS:
        return False
    return bool(names(call.func.value) & told) or any(speaks_of_codes(argument) for argument in call.args)


def is_text(node, told):
    """Whether an expression is the text of a warning: its ``text``, or ``str`` of it."""
    if isinstance(node, ast.Attribute):
        return node.attr == "text" and bool(names(node.value) & told)
    is_str = isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "str"
    return is_str and any(names(argument) & told for argument in node.args)


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES)))
def test_no_text_of_a_warning_is_taken_apart(path):
    assert list(parsed(ast.parse(path.read_text(encoding="utf-8")))) == []


@pytest.mark.parametrize(
    "code",
    [
        'codes = {text.split(":")[0] for text in bound.warnings}',
        'wrong = [text for text in self.found.warnings if text.startswith("mean-ratio")]',
        'any(not text.startswith(("unlogged", "no-spread")) for text in bound.warnings)',
        'none[0].removeprefix("no-overlap: ")',
        'code, _, rest = str(warning).partition(":")',
        'warning.text.startswith("a few")',
        'note.split(":")',
        'x.startswith("dropped:")',
        'any("of another shape" in one.text for one in bound.warnings)',
        'for one in bound.warnings:\n    if one.text == "words": pass',
        'for one in notes:\n    one.split(":")',
        're.match("skew", warning.text)',
        'str(warning)[:4] == "skew"',
    ],
)
def test_the_test_finds_texts_that_are_taken_apart(code):
    assert list(parsed(ast.parse(code)))


def made_codes():
    """The codes of all calls of ``caution`` in the package."""
    for path in SOURCES.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "caution":
                assert isinstance(node.args[0], ast.Constant), f"{path}, line {node.lineno}: a code is written out"
                yield node.args[0].value


def test_every_code_is_registered_and_used():
    assert set(made_codes()) == set(CODES)


def asked_codes(source):
    """The codes by which ``coded`` is asked for warnings."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "coded":
            yield from (one.value for one in node.args[1:] if isinstance(one, ast.Constant))


@pytest.mark.parametrize("path", sorted(SOURCES.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCES)))
def test_nobody_asks_for_a_code_that_does_not_exist(path):
    """It would never be found, and what it guards against would pass."""
    assert set(asked_codes(path.read_text(encoding="utf-8"))) <= set(CODES)


def test_the_test_sees_the_codes_that_are_asked_for():
    assert list(asked_codes('if coded(found.warnings, "skew", "no-such"): pass')) == ["skew", "no-such"]


def test_every_code_has_a_meaning_and_a_remedy():
    for code, one in CODES.items():
        assert code == code.lower().strip()
        assert one.meaning
        assert one.remedy


def test_a_code_that_is_not_registered_is_refused():
    with pytest.raises(TightropeError, match=r"code must be one of no-overlap, .*; got 'no-such'"):
        caution("no-such", "text")


def test_a_warning_prints_as_code_and_text_and_keeps_its_numbers():
    made = caution("low-overlap", "10 episodes carry little", episodes=10, worth=1.5)
    assert str(made) == "low-overlap: 10 episodes carry little"
    assert (made.against, made.numbers) == ("resampling", {"episodes": 10.0, "worth": 1.5})
    assert Caution.from_json(made.to_json()) == made
    assert pickle.loads(pickle.dumps(made)) == copy.deepcopy(made) == made
    assert list(dict.fromkeys([made, made])) == [made]


def test_a_text_cannot_command_a_terminal():
    assert "\x1b" not in str(Caution("mine", "a\x1b[31m"))


def test_warnings_by_code():
    some = (caution("skew", "a"), caution("vacuous", "b"), caution("skew", "c"))
    assert codes_of(some) == ["skew", "vacuous"]
    assert [one.text for one in coded(some, "skew", "undefined")] == ["a", "c"]


def test_results_carry_records_whose_numbers_are_those_of_the_text():
    problem = small("walker")
    result = tightrope.evaluate(problem.logs(20, rng=np.random.default_rng(1)), problem.candidate, n_resamples=40)
    told = [warning for bound in result.bounds for warning in bound.warnings]
    assert told
    for warning in told:
        assert warning.against == CODES[warning.code].against
    (low,) = coded(result.overlap.warnings, "low-overlap")
    assert low.numbers["worth"] == result.overlap.effective_sample_size[-1]
    written = result.to_dict()["overlap"]["warnings"][0]
    assert set(written) == {"code", "text", "against", "numbers"}


def test_notes_of_a_dataset_are_records():
    steps = {"offsets": [0, 1], "rewards": [1.0], "terminated": [True], "horizon": 1}
    with pytest.raises(DataError, match="notes must hold Caution records, as bounds do; got 'a note'"):
        TrajectoryDataset(**steps, notes=("a note",))
