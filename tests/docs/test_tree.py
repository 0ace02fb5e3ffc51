"""The tree of recommendations is drawn from the rules, leads every kind of logs to theirs, and names each of them."""

from __future__ import annotations

import html
import itertools
import re

import pytest

from tests.docs.test_documentation import DOCS, load

tree = load(DOCS / "tree.py")
KINDS = [
    tree.Facts(*values)
    for values in itertools.product((False, True), repeat=len(tree.Facts._fields))
    if not (values[-1] and not values[4])  # a range of rewards that is not declared
]


@pytest.fixture(scope="module")
def picture():
    return tree.PICTURE.read_text(encoding="utf-8")


def spoken(text):
    """The words of a picture, without the breaks of its lines."""
    return " ".join(html.unescape(line) for line in re.findall(r"<text[^>]*>([^<]*)</text>", text))


def test_the_picture_is_up_to_date(picture):
    assert picture == tree.draw(), "run `python docs/tree.py`"


def test_every_rule_occurs_in_the_words_of_the_picture(picture):
    words = spoken(picture).lower()
    for facts in KINDS:
        for rule in facts.rules():
            assert rule.why in words
            for part in rule.parts:
                assert f"{part.estimator} with " in words
                assert f"with {part.method}" in words
                assert tree.share(part) in words


def drawn(facts):
    """What the picture says to logs of this kind: its boxes, and the notes below them."""
    question = tree.asked(facts)
    found = [tree.words(rule) for rule in question.facts.rules()]
    if question.asked == tree.EXACT:
        return [found[0], *found[:0:-1]] if facts.rewards_only else found
    if question.asked == tree.FEW and facts.gain:
        found[0] = found[0].replace("3/5", "1/5")
    if facts.table or question.asked == tree.NONE:
        return found
    counted = "MB with" if question.asked == tree.LITTLE else "WDR with"
    return [words for words in found if counted not in words]


def test_the_questions_lead_to_the_rules_of_the_program():
    recommended = {facts: [tree.words(rule) for rule in facts.rules()] for facts in KINDS}
    assert recommended == {facts: drawn(facts) for facts in KINDS}


def test_a_question_too_many_would_be_noticed():
    assert {tree.asked(facts).asked for facts in KINDS} == {question.asked for question in tree.QUESTIONS}
