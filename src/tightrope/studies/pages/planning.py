"""The section on plans. What was planned comes in, text goes out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from tightrope.evaluation.needed import Needed
from tightrope.studies.summary import clopper_pearson

TITLE = "How much more data"
FACTOR = 1.5


@dataclass(frozen=True)
class Case:
    """A candidate that exceeds its threshold by this much, and how it is bounded."""

    problem: str
    distance: float
    recommended: bool = False  # by the whole rule, rehearsals included; else by its main part


@dataclass
class Planned:
    """What was planned from each pilot, beside the truth."""

    case: Case
    truth: float = math.nan  # episodes at which the answer is yes at the promised chance
    as_it_looks: list[Needed] = field(default_factory=list)
    by_effect: list[Needed] = field(default_factory=list)
    unsettled: list[bool] = field(default_factory=list)  # whether the pilot itself says no yes


@dataclass
class Looks:
    """Wrong answers at a first look and at a second one, of a candidate exactly at its threshold."""

    problem: str
    pilots: int
    yes: int = 0  # at once
    planned: int = 0  # of the others: those that looked better, and near enough for a plan
    together: int = 0  # wrong, of these, with the pilot's episodes among the new ones
    alone: int = 0  # wrong, of these, with new ones alone


def render(results: Sequence[Planned], looks: Sequence[Looks] = ()) -> str:
    """One line for each case."""
    return "\n".join(
        [
            "The candidate's value exceeds a threshold by a known distance. *Needed* is the number of episodes at "
            "which the lower bound lies above the threshold in 80 % of data sets, measured. Plans come from pilots of "
            "200 episodes. With the distance declared (`effect`) a plan has to know only how much values spread; the "
            "first columns show the median of its numbers, how many of them are right within a factor of 1.5, and how "
            "many of its ranges (80 %) hold the needed number. Without, it takes the candidate as it looks in the "
            "pilot: then single numbers are far off, as they must be where the pilot itself cannot tell, and the range "
            "says so.",
            "",
            "| problem | bound | distance | pilots | needed | planned by effect | within 1.5 | range holds "
            "| planned as it looks | within 1.5 | range holds | range holds, unsettled pilots |",
            "|---|---|" + "---:|" * 10,
            *(_row(one) for one in results),
            "",
            "The walker's values have heavy tails: some pilots hold an episode that makes up most of the spread, and "
            "others do not. Its plans are right within that factor in the middle, and not one by one.",
            *(_second(looks) if looks else ()),
        ]
    )


def _second(looks: Sequence[Looks]) -> list[str]:
    return [
        "",
        "**A second look.** The candidate is worth exactly the threshold, so that every yes is wrong. Pilots of 200 "
        "episodes whose bound says yes stop. Of the others, those that look better are planned (unless that takes more "
        "than 20 times as many), and the planned number of episodes is judged once, with the pilot's among them, which "
        "were judged before, or new ones alone. Nominal is 5 %; only new ones alone keep it.",
        "",
        "| problem | pilots | yes at once | planned | wrong, together | wrong, new ones alone |",
        "|---|" + "---:|" * 5,
        *(
            f"| {one.problem} | {one.pilots:,} | {_rate(one.yes, one.pilots)} | {one.planned:,} "
            f"| {_rate(one.together, one.planned)} | {_rate(one.alone, one.planned)} |"
            for one in looks
        ),
    ]


def _row(one: Planned) -> str:
    bound = "recommended" if one.case.recommended else "TDR, percentile"
    settled = [need for need, is_open in zip(one.as_it_looks, one.unsettled, strict=True) if is_open]
    cells = [one.case.problem, bound, f"{one.case.distance:g}", f"{len(one.by_effect):,}", f"{one.truth:,.0f}"]
    cells += [_median(one.by_effect), _near(one.by_effect, one.truth), _held(one.by_effect, one.truth)]
    cells += [_median(one.as_it_looks), _near(one.as_it_looks, one.truth), _held(one.as_it_looks, one.truth)]
    return f"| {' | '.join([*cells, _held(settled, one.truth)])} |"


def _median(needs: Sequence[Needed]) -> str:
    return f"{np.median([need.total for need in needs]):,.0f}"


def _near(needs: Sequence[Needed], truth: float) -> str:
    return f"{100 * np.mean([truth / FACTOR <= need.total <= truth * FACTOR for need in needs]):.0f} %"


def _held(needs: Sequence[Needed], truth: float) -> str:
    held = sum(need.least <= truth <= need.most for need in needs)
    low, high = clopper_pearson(held, len(needs))
    return f"{100 * held / len(needs):.0f} % ({100 * low:.0f}–{100 * high:.0f})"


def _rate(count: int, total: int) -> str:
    low, high = clopper_pearson(count, total)
    return f"{100 * count / total:.1f} % ({100 * low:.1f}–{100 * high:.1f})"
