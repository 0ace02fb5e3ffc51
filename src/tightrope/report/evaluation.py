"""The evaluation that users hold: they look bounds up in it, and it shows itself as text, page, table or figure.

The record that it extends is plain data, which the reports read; here the two meet.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, overload

from tightrope.base import records
from tightrope.base.clusters import counted
from tightrope.base.errors import MissingBoundError, visible
from tightrope.base.names import must_be_one_of
from tightrope.base.records import Bound
from tightrope.report.figures import FigureKind


class Evaluation(records.Evaluation):
    """Many bounds on one candidate, what the logs look like, and which bound to believe.

    ``result["wdr"]`` gives all bounds of an estimator, ``result["wdr", "bca"]`` one bound, and
    ``result["wdr", "bca", "upper"]`` one where both sides were computed. ``len(result)`` counts the bounds, a loop over
    the result goes through them, and ``result.believed`` holds those to believe.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> result = tightrope.evaluate(logs, walker.candidate, estimators=["is", "pdis"], methods="anderson")
    >>> len(result), [bound.method for bound in result["pdis"]]
    (2, ['anderson'])
    >>> result.believed[0] in [result["is", "anderson"], result["pdis", "anderson"]]
    True
    """

    def __len__(self) -> int:
        return len(self.bounds)

    def __contains__(self, key: object) -> bool:
        names = (key,) if isinstance(key, str) else key
        return isinstance(names, tuple) and any(_names(bound)[: len(names)] == names for bound in self.bounds)

    @overload
    def __getitem__(self, key: str) -> tuple[Bound, ...]: ...

    @overload
    def __getitem__(self, key: tuple[str, str] | tuple[str, str, str]) -> Bound: ...

    def __getitem__(self, key: Any) -> Bound | tuple[Bound, ...]:
        """All bounds of an estimator, or one bound by estimator, method and, where there are two, side."""
        names = (key,) if isinstance(key, str) else key
        if not (isinstance(names, tuple) and 1 <= len(names) <= 3):
            raise MissingBoundError(f'look bounds up by name, such as result["wdr", "bca"]; got {key!r}')
        matches = tuple(bound for bound in self.bounds if _names(bound)[: len(names)] == names)
        if not matches:
            raise MissingBoundError(self._why_missing(names))
        if len(matches) > 1 and isinstance(key, tuple):
            raise MissingBoundError(f"result{list(names)} is not one bound: name estimator, method and side")
        return matches if isinstance(key, str) else matches[0]

    def _why_missing(self, names: tuple[str, ...]) -> str:
        """Which of the names is unknown, or why there is no bound of these names."""
        known = [dict.fromkeys(part) for part in zip(*map(_names, self.bounds), strict=True)]
        reasons = [why for *pair, why in self.skipped if tuple(pair) == names[:2]]
        for argument, name, choices in zip(("estimator", "method", "side"), names, known, strict=False):
            if name not in choices and not reasons:
                return must_be_one_of(argument, name, choices)
        return ": ".join([f"there is no {names[1]} bound on {names[0].upper()}", *reasons[:1]])

    def __repr__(self) -> str:
        bounds = [str(bound).splitlines()[0] for bound in self.believed] or ["none; the data cannot answer"]
        lines = [
            f"{len(self)} bounds from {counted(self.summary.n_trajectories, self.summary.n_clusters)}",
            *(f"believed: {text}" for text in bounds),
            "result.advice says why, result.to_frame() lists all bounds",
        ]
        return visible(f"<Evaluation: {chr(10).join(lines)}>")

    def _repr_html_(self) -> str:
        from tightrope.report.html import fragment

        return fragment(self)

    def __rich__(self) -> Any:
        from tightrope.report.table import evaluation_table

        return evaluation_table(self)

    def to_html(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        title: str | None = None,
        metric: str = "value",
        unit: str = "",
    ) -> str:
        """The report as one self-contained page; also written to ``path`` if given.

        ``metric`` says what a return is, such as "clicks per visit", and ``unit`` what it is counted in.
        """
        from tightrope.io.write import write_text
        from tightrope.report.html import page
        from tightrope.report.words import Labels

        text = page(self, Labels(title or "", metric, unit))
        if path is not None:
            write_text(Path(path), text)
        return text

    def to_table(self) -> Any:
        """One row for each bound, as a pyarrow table."""
        from tightrope.report.frame import bounds_table

        return bounds_table(self)

    def to_frame(self) -> Any:
        """One row for each bound, as a pandas data frame."""
        from tightrope.report.frame import bounds_frame

        return bounds_frame(self)

    def figure(self, kind: FigureKind = "forest") -> Any:
        """A matplotlib figure: "forest", "overlap", "bootstrap" or "rehearsal"."""
        from tightrope.report.figures import figure

        return figure(self, kind)

    def log(self, to: Any, *, step: int | None = None) -> None:
        """Log numbers and report to a run already open: the mlflow module, a wandb run, or a SummaryWriter."""
        from tightrope.report.log import log

        log(self, to, step=step)


def _names(bound: Bound) -> tuple[str, str, str]:
    """What a bound is looked up by."""
    return bound.estimator, bound.method, bound.side
