"""What can be refused before anything is read or computed."""

from __future__ import annotations

from pathlib import Path

PAGES = (".html", ".htm")


def check_report(report: Path | None, **words: str | None) -> None:
    """Refuse a report that cannot be written, or whose name says that it is something else; and words for no report."""
    from tightrope.base.errors import DataError
    from tightrope.io.write import check_writable

    if report is None:
        needless = [f"--{name}" for name, word in words.items() if word is not None]
        if needless:
            raise DataError(
                f"{', '.join(needless)} must come with --report FILE.html, because only the report shows it"
            )
        return
    check_writable(report)
    if report.suffix.lower() not in PAGES:
        raise DataError(f"--report must end in .html, because the report is a web page; got {str(report)!r}")


def check_drawing(option: str, path: Path | None) -> None:
    """Refuse a drawing that cannot be written, or whose name says that it is something else."""
    from tightrope.base.errors import DataError
    from tightrope.io.write import check_writable

    if path is None:
        return
    check_writable(path)
    if path.suffix.lower() != ".svg":
        raise DataError(f"{option} must end in .svg, because it is a drawing; got {str(path)!r}")


def check_settings(
    estimators: list[str] | None,
    methods: list[str] | None,
    model: str,
    *,
    confidence: float,
    n_resamples: int,
    max_ratio: float | None,
    n_jobs: int | None,
    engine: str,
) -> None:
    """Refuse names that nobody knows, pairs that mean nothing and too few replicates, before the logs are read."""
    from tightrope.base.errors import BoundError, TightropeError
    from tightrope.base.names import must_be_one_of
    from tightrope.bounds import method as find_method
    from tightrope.bounds.base import BootstrapBound, rank
    from tightrope.estimators import estimator as find_estimator
    from tightrope.evaluation.settings import Settings
    from tightrope.evaluation.work import is_valid
    from tightrope.models import MODELS

    Settings(confidence=confidence, n_resamples=n_resamples, max_ratio=max_ratio, n_jobs=n_jobs, engine=engine)
    if ":" not in model and model not in ("auto", *MODELS):
        raise TightropeError(must_be_one_of("model", model, ("auto", *MODELS), "module:object"))
    chosen = [find_estimator(name) for name in estimators or ()]
    bounds = [find_method(name) for name in methods or ()]
    if all(isinstance(bound, BootstrapBound) and "values" in bound.needs for bound in bounds):  # the usual ones too
        rank(1 - confidence, n_resamples)
    if chosen and bounds and not any(is_valid(one, bound) for one in chosen for bound in bounds):
        raise BoundError(
            f"no bound of {', '.join(methods or ())} is valid for {', '.join(estimators or ())}: exact bounds need one "
            "independent value per episode (is, pdis, tdr), robust needs mb, rehearsed needs wdr, bottou needs clipped"
        )


def check_gate(exit_code: bool, threshold: float | None, baseline: str | None) -> None:
    """Refuse an exit code by the verdict where no verdict is asked for."""
    from tightrope.base.errors import BoundError

    if exit_code and threshold is None and baseline is None:
        raise BoundError(
            "--exit-code must come with --threshold VALUE or --baseline behavior, because the exit code says whether "
            "the value exceeds that"
        )
