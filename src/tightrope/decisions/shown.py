"""The records of comparisons and plans, and how they are shown."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tightrope.decisions import comparison, plans


@dataclass(frozen=True)
class Comparison(comparison.Comparison):
    """Several candidates on the same logs: which is surely better than the baseline, and which may be the best.

    ``result["B"]`` looks a candidate up, a loop goes through them, and ``result.to_html("page.html")`` writes a page.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> clinic = small("clinic")
    >>> logs = clinic.logs(600, rng=np.random.default_rng(0))
    >>> result = tightrope.compare(logs, {"new": clinic.candidate, "coin": tightrope.UniformPolicy(2)})
    >>> result.chosen, result["new"].better, [one.name for one in result if one.may_be_best]
    ('new', True, ['new'])
    """

    def __rich__(self) -> Any:
        from tightrope.decisions.tables import comparison_table

        return comparison_table(self)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> str:
        """One self-contained page with the verdict, a forest plot and all bounds; also written to ``path`` if given."""
        from tightrope.decisions.pages import comparison_page
        from tightrope.io.write import write_text

        text = comparison_page(self, title or "")
        if path is not None:
            write_text(Path(path), text)
        return text


@dataclass(frozen=True)
class Plan(plans.Plan):
    """How many episodes would settle whether the candidate is better, with the range that these logs leave.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> clinic = small("clinic")
    >>> logs = clinic.logs(150, rng=np.random.default_rng(1))
    >>> result = tightrope.plan(logs, clinic.candidate, effect=0.05)
    >>> result.kind, 500 < result.episodes < 5000, result.least < result.episodes < result.most
    ('yes', True, True)
    """

    def __rich__(self) -> Any:
        from tightrope.decisions.tables import plan_table

        return plan_table(self)

    def to_html(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None) -> str:
        """One self-contained page with a curve of the chance of an answer; also written to ``path`` if given."""
        from tightrope.decisions.pages import plan_page
        from tightrope.io.write import write_text

        text = plan_page(self, title or "")
        if path is not None:
            write_text(Path(path), text)
        return text
