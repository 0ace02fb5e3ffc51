"""The section on safe improvement. Counts come in, text goes out."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tightrope.base.dataset import Array
from tightrope.studies.counts import rate

TITLE = "Safe improvement"
Cells = Mapping[tuple[bool, str, int], Mapping[str, Array]]


def render(cells: Cells) -> str:
    """Exact tests first, then approximate ones, each with the naive way beside it."""
    return "\n".join(
        [
            "`improve`, with a confidence of 95 %: how often it returns a policy, and how often that policy is no "
            "better than the behaviour policy, by the true values; both in percent of all data sets (exact 95 % "
            "interval). *Gain*: the true gain of what is returned, 0 where nothing is. *Naive*: the policy "
            "whose bound is best on all logs, tested on the same logs. In *equal* (twenty groups of patients, five "
            "treatments) all policies have the same value, so that whatever is returned is wrong; in *traps* the "
            "behaviour policy takes the best of five treatments four times in five, and few logs show the others.",
            "",
            "**Exact test.** Nominal is at most 5.",
            "",
            *_table(cells, strict=True),
            "",
            "**Approximate test.** Nominal is 5.",
            "",
            *_table(cells, strict=False),
        ]
    )


def _table(cells: Cells, *, strict: bool) -> list[str]:
    rows = [
        "| problem | n | data sets | returned | wrong | gain | naive: returned | naive: wrong | naive: gain |",
        "|---|" + "---:|" * 8,
    ]
    for (kind, name, n), cell in cells.items():
        if kind == strict:
            parts = [
                part
                for prefix in ("", "naive ")
                for part in (
                    rate(cell[f"{prefix}returned"]),
                    rate(cell[f"{prefix}wrong"]),
                    f"{round(float(np.mean(cell[f'{prefix}gain'])), 4) + 0.0:g}",
                )
            ]
            rows.append(f"| {name} | {n} | {len(cell['wrong']):,} | {' | '.join(parts)} |")
    return rows
