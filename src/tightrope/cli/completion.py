"""What the shell offers after the name of an option."""

from __future__ import annotations


def estimators(incomplete: str) -> list[str]:
    """The estimators whose names begin so."""
    from tightrope.estimators import ESTIMATORS

    return [name for name in ESTIMATORS if name.startswith(incomplete)]


def methods(incomplete: str) -> list[str]:
    """The bounds whose names begin so."""
    from tightrope.bounds import METHODS, PROCESS_METHODS

    return [name for name in (*METHODS, *PROCESS_METHODS) if name.startswith(incomplete)]
