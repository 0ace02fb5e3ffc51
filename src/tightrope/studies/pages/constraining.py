"""The section on several demands at once. Counts come in, text goes out."""

from __future__ import annotations

from collections.abc import Mapping

from tightrope.base.dataset import Array
from tightrope.studies.counts import rate

TITLE = "Several demands at once"
Cells = Mapping[tuple[bool, int], Mapping[str, Array]]


def render(cells: Cells) -> str:
    """One table."""
    columns = ("yes, one fails", "yes, all fail", "no", "naive yes, one fails", "naive no")
    lines = [
        "A clinic with three outcomes (cured, harm, relapse) and a demand on each, at a confidence of 95 %. How often "
        "the answer is wrong, in percent (exact 95 % interval), where the limits lie where the truth does, the hardest "
        "case. *Wrong yes*: one demand just fails and the others are met by far, or all three just fail. *Wrong no*: "
        "all three just hold. *Naive*: the constraint is judged by its estimate, without a bound; a no by any of three "
        "bounds, none corrected. Nominal is at most 5 for exact bounds, 5 for approximate ones.",
        "",
        "| bounds | n | data sets | wrong yes, one fails | wrong yes, all fail | wrong no | naive: wrong yes | "
        "naive: wrong no |",
        "|---|" + "---:|" * 7,
    ]
    for (strict, n), cell in cells.items():
        parts = " | ".join(rate(cell[column]) for column in columns)
        kind = "exact" if strict else "approximate"
        lines.append(f"| {kind} | {n} | {len(cell['no']):,} | {parts} |")
    return "\n".join(lines)
