"""The section on comparisons. Counts come in, text goes out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tightrope.studies.summary import clopper_pearson

TITLE = "Which of many"


class Counted(Protocol):
    """Wrong answers in so many data sets."""

    problem: str
    n: int
    trials: int
    wrong: dict[str, int]


def render(counts: Sequence[Counted], whole: Sequence[Counted], pairs: Sequence[Counted]) -> str:
    """Twenty candidates first, then the call as it is."""
    keys = ("any", "best", "ours", "winner", "corrected")
    parts = ("better", "value", "best")
    return "\n".join(
        [
            "Twenty candidates, all of exactly the behaviour policy's value, so that none is better; each answer has a "
            "nominal error rate of 5 %. *Uncorrected* takes every candidate's own recommended bound: one of the twenty "
            "is called better (*any*), or the one with the highest estimate is (*best*). *Together* is what `compare` "
            "does. The last two columns are about the winner's value: how often its lower bound lies above the truth, "
            "taken on its own and allowing for the choice. In brackets: 95 % Clopper-Pearson intervals.",
            "",
            "| problem | n | data sets | any better, uncorrected | best better, uncorrected | better, together "
            "| winner's value, uncorrected | winner's value, together |",
            "|---|" + "---:|" * 7,
            *(_row(one, keys) for one in counts),
            "",
            "The call itself with five such candidates, from shared resamples and exact (`strict`): how often any is "
            "called better, any bound on a value is too high, and any is said not to be the best, though all are.",
            "",
            "| problem | n | data sets | "
            + " | ".join(f"{what}, {kind}" for what in parts for kind in ("resampled", "exact"))
            + " |",
            "|---|" + "---:|" * 8,
            *(_row(one, tuple(f"{kind} {what}" for what in parts for kind in ("shared", "exact"))) for one in whole),
            "",
            "The exact 95 % lower bound on the difference of two candidates, of the problem's own and of one of the "
            "behaviour policy's value, both ways round: how often it lies above the truth.",
            "",
            "| problem | n | data sets | first less second | second less first |",
            "|---|" + "---:|" * 4,
            *(_row(one, ("first", "second")) for one in pairs),
        ]
    )


def _row(one: Counted, keys: Sequence[str]) -> str:
    rates = " | ".join(_rate(one.wrong[key], one.trials) for key in keys)
    return f"| {one.problem} | {one.n} | {one.trials:,} | {rates} |"


def _rate(errors: int, trials: int) -> str:
    low, high = clopper_pearson(errors, trials)
    return f"{100 * errors / trials:.1f} % ({100 * low:.1f}–{100 * high:.1f})"
