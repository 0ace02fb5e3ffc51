"""An evaluation that shows itself: in notebooks, in a terminal, as a page, a table or a figure.

The record itself is plain data below the report, which reads it; here, above the report, the two meet.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tightrope.base import records
from tightrope.report.figures import FigureKind


class Evaluation(records.Evaluation):
    """Many bounds on one question, what the logs look like, and which bound to believe."""

    def _repr_html_(self) -> str:
        from tightrope.report.html import fragment

        return fragment(self)

    def __rich__(self) -> Any:
        from tightrope.report.table import evaluation_table

        return evaluation_table(self)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """The report as one self-contained page; also written to ``path`` if given."""
        from tightrope.io.write import write_text
        from tightrope.report.html import page

        text = page(self)
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
        """A matplotlib figure: "forest", "overlap" or "bootstrap"."""
        from tightrope.report.figures import figure

        return figure(self, kind)

    def log(self, to: Any, *, step: int | None = None) -> None:
        """Log numbers and report to a run already open: the mlflow module, a wandb run, or a SummaryWriter."""
        from tightrope.report.log import log

        log(self, to, step=step)
