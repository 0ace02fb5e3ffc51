"""Draw the tree: which bound is recommended when.

``python docs/tree.py`` writes ``docs/pictures/tree.svg``. What stands in a box on the
right is what ``tightrope.evaluation.recommend.rules`` answers for logs of that kind;
here are only the questions and where the boxes stand.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache
from html import escape
from pathlib import Path
from textwrap import wrap
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from tightrope import CallablePolicy, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.base.warnings import caution
from tightrope.behaviors import behavior
from tightrope.domains import small
from tightrope.evaluation.recommend import FEWEST, Part, Rule, rules

PICTURE = Path(__file__).parent / "pictures" / "tree.svg"

WIDTH, MARGIN, TOP = 832, 16, 66
LEFT, RIGHT = 340, 408  # widths of the questions and of the answers
LINE, PAD, GAP = 21, 15, 26

STYLE = """
  svg { --page: #fbfaf7; --box: #ffffff; --edge: #c4cad2; --text: #1d232b;
        --soft: #55606d; --yes: #1f63b5; --exact: #15703c; }
  @media (prefers-color-scheme: dark) {
    svg { --page: #15191f; --box: #20262e; --edge: #46515e; --text: #e8ebef;
          --soft: #a5b0bd; --yes: #85b7f7; --exact: #6fce93; } }
  text { font-family: system-ui, -apple-system, "Segoe UI", "DejaVu Sans", sans-serif;
         font-size: 14px; fill: var(--soft); }
  .page { fill: var(--page); }
  .box { fill: var(--box); stroke: var(--edge); stroke-width: 1.2; }
  .answer { fill: var(--box); stroke: var(--yes); stroke-width: 1.6; }
  .exact { stroke: var(--exact); }
  .title { font-size: 18px; font-weight: 650; fill: var(--text); }
  .asked { font-size: 15.5px; font-weight: 650; fill: var(--text); }
  .bound { font-size: 15px; fill: var(--text); }
  .first { font-weight: 650; }
  .way { fill: none; stroke: var(--yes); stroke-width: 2.2; }
  .on { fill: none; stroke: var(--soft); stroke-width: 1.8; }
  .word { font-size: 13.5px; font-weight: 650; fill: var(--yes); }
  .no { fill: var(--soft); }
"""


@cache
def _logs(size: int) -> TrajectoryDataset:
    logs = small("walker").logs(size, rng=np.random.default_rng(0))
    return replace(logs, return_range=(-32, 0), reward_range=(-21, 0))


class Facts(NamedTuple):
    """What the rules look at, and nothing else."""

    strict: bool = False
    no_ratios: bool = False
    little: bool = False  # the logs carry almost no information about the candidate
    estimated: bool = False
    declared: bool = True
    few: bool = False
    table: bool = True
    gain: bool = False
    rewards_only: bool = False  # a range of rewards is declared, none of returns

    def rules(self) -> list[Rule]:
        """What the program recommends, in its order."""
        data = _logs(FEWEST - 1 if self.few else FEWEST)
        if self.rewards_only:
            data = replace(data, return_range=None)
        if not self.declared:
            data = replace(data, return_range=None, reward_range=None)
        candidate: Any = small("walker").candidate
        if not self.table:
            candidate = CallablePolicy(candidate.log_prob, log=True)
        problem = Problem(data, candidate)
        if self.estimated:
            problem = replace(problem, behavior=behavior("tabular", data))
        codes = [("no-overlap", self.no_ratios), ("low-overlap", self.little)]
        warnings = tuple(caution(code, "") for code, is_so in codes if is_so)
        found: Any = SimpleNamespace(warnings=warnings)
        about = "gain" if self.gain else "value"
        return rules(problem, found, "lower", about, strict=self.strict)


class Question(NamedTuple):
    """A question, the logs for which its answer is yes, and what else to say."""

    asked: str
    means: str
    facts: Facts
    notes: tuple[str, ...] = ()

    def answers(self, facts: Facts) -> bool:
        """Whether the answer is yes for these logs, if all earlier ones were no."""
        return any(
            all(getattr(facts, name) == value for name, value in one.items())
            for one in WHEN[self.asked]
        )


EXACT = "Must the bound be exact?"
NONE = "Are there no importance ratios?"
LITTLE = "Almost no overlap, and no floor?"
ESTIMATED = "Is the behaviour policy estimated?"
OPEN = "Is no lowest reward declared?"
FEW = f"Are there fewer than {FEWEST} episodes?"
TABLE = "Can states and actions be counted?"
LAST = "Otherwise"
WHEN: dict[str, list[dict[str, bool]]] = {
    EXACT: [{"strict": True}],
    NONE: [{"no_ratios": True}],
    LITTLE: [{"little": True, "estimated": True}, {"little": True, "declared": False}],
    ESTIMATED: [{"estimated": True}],
    OPEN: [{"declared": False}],
    FEW: [{"few": True}],
    TABLE: [{"table": True}],
    LAST: [{}],
}
QUESTIONS = (
    Question(
        EXACT,
        "strict=True, --strict",
        Facts(strict=True),
        ("PDIS before IS where only a range of rewards is declared.",),
    ),
    Question(
        NONE,
        "No propensities, no common actions, or a candidate without a density: "
        "warning no-overlap.",
        Facts(no_ratios=True),
    ),
    Question(
        LITTLE,
        "Warning low-overlap or one-episode, and the behaviour policy is estimated or "
        "the lowest reward not declared.",
        Facts(little=True, declared=False),
        ("Where states and actions cannot be counted: no answer.",),
    ),
    Question(ESTIMATED, 'behavior="auto" and the like', Facts(estimated=True)),
    Question(
        OPEN,
        "reward_range or return_range; for an upper bound, the highest one.",
        Facts(declared=False),
    ),
    Question(
        FEW,
        "So few may miss what matters, and resampling them cannot show it.",
        Facts(few=True),
        ("For the gain at 1/5 of the error rate.",),
    ),
    Question(
        TABLE,
        "Discrete states and actions, and a candidate that lists its probabilities.",
        Facts(),
    ),
    Question(LAST, "States or actions are vectors.", Facts(table=False)),
)


def asked(facts: Facts) -> Question:
    """The first question whose answer is yes."""
    return next(one for one in QUESTIONS if one.answers(facts))


def share(part: Part) -> str:
    """How much of the error rate a bound may use."""
    part_of = Fraction(part.share).limit_denominator(20)
    return "" if part_of == 1 else f" at {part_of} of the error rate"


def words(rule: Rule) -> str:
    """One rule as the picture says it."""
    parts = [
        f"{part.estimator.upper()} with {part.method}{share(part)}"
        for part in rule.parts
    ]
    return parts[0] if len(parts) == 1 else f"the better of {' and '.join(parts)}"


def in_order(found: list[Rule]) -> list[str]:
    """All rules of an answer, those of one estimator on one line."""
    sentences: list[str] = []
    before = ""
    for rule in found:
        estimator = "+".join(part.estimator for part in rule.parts)
        if estimator == before:
            sentences[-1] += f", else with {rule.parts[0].method}"
        else:
            sentences.append(f"else {words(rule)}" if sentences else words(rule))
        before = estimator
    return [sentences[0][0].upper() + sentences[0][1:], *sentences[1:]]


def lines_of(question: Question) -> Iterator[tuple[str, str]]:
    """The lines of an answer, each with its style."""
    found = question.facts.rules()
    for place, text in enumerate(in_order(found)):
        style = "bound first" if place == 0 else "bound"
        for line in wrap(text, 44 if place == 0 else 52):
            yield line, style
    reasons = [why for why in dict.fromkeys(rule.why for rule in found) if why]
    for note in (*(f"No first choice: {why}." for why in reasons), *question.notes):
        for line in wrap(note, 50, break_on_hyphens=False):
            yield line, "note"


def draw() -> str:
    """The picture."""
    body: list[str] = []
    top = TOP
    for number, question in enumerate(QUESTIONS):
        lines = list(lines_of(question))
        means = wrap(question.means, 41, break_on_hyphens=False)
        height = max(2 * PAD + LINE * (1 + len(means)), 2 * PAD + LINE * len(lines))
        height -= 6
        last = question.asked == LAST
        body += _row(question, lines, means, top, height, last=last)
        top += height
        if number < len(QUESTIONS) - 1:
            body += _on(top, GAP)
            top += GAP
    foot = (
        "The first bound of a box that can be computed is used; nothing here looks at "
        "a reward.",
        "Where states and actions cannot be counted, WDR is left out. Where they can, "
        "and the bound says",
        f"nothing, MB with percentile stands in (from {FEWEST} episodes on, unless "
        "something speaks against",
        "the model). Otherwise these logs cannot answer.",
    )
    body += [
        f'<text x="{MARGIN}" y="{top + 30 + 20 * place}">{escape(line)}</text>'
        for place, line in enumerate(foot)
    ]
    height = top + 30 + 20 * len(foot)
    told = "; ".join(
        f"{one.asked} {', '.join(text for text, _ in lines_of(one))}"
        for one in QUESTIONS
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
            f' width="{WIDTH}" height="{height}" role="img">',
            "<title>Which bound is recommended when</title>",
            f"<desc>{escape(told)}</desc>",
            f"<style>{STYLE}</style>",
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="8.5" refY="5"'
            ' markerWidth="11" markerHeight="11" markerUnits="userSpaceOnUse"'
            ' orient="auto"><path d="M0 0 10 5 0 10z" style="fill: var(--yes)"/>'
            "</marker></defs>",
            f'<rect class="page" width="{WIDTH}" height="{height}" rx="10"/>',
            f'<text class="title" x="{MARGIN}" y="30">'
            "Which bound is recommended when</text>",
            f'<text x="{MARGIN}" y="51">Ask from the top; the first yes decides.'
            "</text>",
            *body,
            "</svg>",
            "",
        ]
    )


def _row(
    question: Question,
    lines: list[tuple[str, str]],
    means: list[str],
    top: float,
    height: float,
    *,
    last: bool,
) -> Iterator[str]:
    x = WIDTH - MARGIN - RIGHT
    level = top + height / 2
    yield _box(MARGIN, top, LEFT, height, "box")
    first = level - LINE * len(means) / 2 + 5
    yield (
        f'<text class="asked" x="{MARGIN + 14}" y="{first:g}">'
        f"{escape(question.asked)}</text>"
    )
    for place, line in enumerate(means, start=1):
        yield (
            f'<text x="{MARGIN + 14}" y="{first + LINE * place:g}">'
            f"{escape(line)}</text>"
        )
    yield (
        f'<path class="way" d="M{MARGIN + LEFT} {level:g}H{x}" marker-end="url(#tip)"/>'
    )
    if not last:
        yield (
            f'<text class="word" x="{MARGIN + LEFT + 12}" y="{level - 8:g}">yes</text>'
        )
    yield _box(
        x, top, RIGHT, height, "answer exact" if question.asked == EXACT else "answer"
    )
    first = level - LINE * (len(lines) - 1) / 2 + 5
    for place, (line, style) in enumerate(lines):
        yield (
            f'<text class="{style}" x="{x + 14}" y="{first + LINE * place:g}">'
            f"{escape(line)}</text>"
        )


def _on(top: float, gap: float) -> Iterator[str]:
    x = MARGIN + LEFT / 2
    yield f'<path class="on" d="M{x:g} {top:g}v{gap}"/>'
    yield f'<text class="word no" x="{x + 8:g}" y="{top + gap / 2 + 5:g}">no</text>'


def _box(x: float, y: float, width: float, height: float, kind: str) -> str:
    return (
        f'<rect class="{kind}" x="{x:g}" y="{y:g}" width="{width:g}"'
        f' height="{height:g}" rx="8"/>'
    )


if __name__ == "__main__":
    PICTURE.write_text(draw(), encoding="utf-8")
