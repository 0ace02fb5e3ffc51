"""The section on decisions by patient. Counts come in, text goes out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tightrope.base.dataset import Array
from tightrope.studies.counts import rate

TITLE = "Decisions by patient"
WAYS = ("by patient", "ignoring patients", "exact, by patient")
COMPARED, IMPROVED, TAILS = ("clinic", "bonus"), ("alike",), ("level", "median", "CVaR 10 %", "band")
OFTEN = 29  # episodes of a patient, where a policy is looked for: 1 to this many
Cells = Mapping[tuple[str, int], Mapping[str, Array]]


def render(parts: Mapping[str, Cells]) -> str:
    """The three tables, each with the naive way beside it."""
    both = {key: {**cell, **parts["exactly"][key]} for key, cell in parts["compared"].items()}
    return "\n".join(
        [
            "A patient has 1 to 9 episodes. What an action earns a patient is twice the usual, each time, or nothing, "
            "each time, with equal chances: episodes of one patient are alike, and a policy that suits these patients "
            "is no better for others. The value of every policy is what it is without. How often an answer is wrong, "
            'in percent (exact 95 % interval), with `cluster="patient"` and without; nominal is 5, and at most 5 for '
            "exact bounds by patient.",
            "",
            "**Which of many.** Five candidates, all of exactly the behaviour policy's value: how often any is called "
            "better, any lower bound on a value is too high, that of the winner is, and any is said not to be the "
            "best.",
            "",
            *_table(both, ("better", "value", "winner", "best")),
            "",
            f"**Safe improvement.** Two groups of patients, with 1 to {OFTEN} episodes each, and three treatments. All "
            "policies have the same value, so that whatever is returned is wrong.",
            "",
            *_table(parts["improved"], ("wrong",)),
            "",
            "**The tail.** Both ends count; where a tail is thin, exact bounds stand in.",
            "",
            *_table(parts["tails"], TAILS),
        ]
    )


def _table(cells: Cells, kinds: Sequence[str]) -> list[str]:
    """One row for each problem, number of patients and way."""
    rows = [
        f"| problem | patients | data sets | bounds | {' | '.join(kinds)} |",
        "|---|---:|---:|---|" + "---:|" * len(kinds),
    ]
    for (name, n), cell in cells.items():
        for way in WAYS:
            count = len(cell[f"{way} {kinds[0]}"])
            numbers = " | ".join(rate(cell[f"{way} {kind}"]) for kind in kinds)
            rows.append(f"| {name} | {n} | {count:,} | {way} | {numbers} |")
    return rows
