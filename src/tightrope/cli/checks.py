"""What can be refused before anything is read or computed."""

from __future__ import annotations

from pathlib import Path

PAGES = (".html", ".htm")


def check_report(report: Path | None) -> None:
    """Refuse a report that cannot be written, or whose name says that it is something else than a page."""
    from tightrope.base.errors import DataError
    from tightrope.io.write import check_writable

    if report is None:
        return
    check_writable(report)
    if report.suffix.lower() not in PAGES:
        raise DataError(f"--report must end in .html, because the report is a web page; got {str(report)!r}")


def check_gate(exit_code: bool, threshold: float | None, baseline: str | None) -> None:
    """Refuse an exit code by the verdict where no verdict is asked for."""
    from tightrope.base.errors import BoundError

    if exit_code and threshold is None and baseline is None:
        raise BoundError(
            "--exit-code must come with --threshold VALUE or --baseline behavior, because the exit code says whether "
            "the value exceeds that"
        )
