"""Estimators by name. A new one is a small frozen dataclass in a file here, and a line in ``ESTIMATORS``."""

from __future__ import annotations

from typing import Any

from tightrope.errors import TightropeError
from tightrope.estimators.base import Anchor, Estimator
from tightrope.estimators.importance import IS, PDIS
from tightrope.estimators.weighted import PDWIS, WIS

ESTIMATORS: dict[str, type[Any]] = {cls.name: cls for cls in (IS, PDIS, WIS, PDWIS)}


def estimator(chosen: str | Estimator) -> Estimator:
    """An estimator by name with its default settings, or as it is."""
    if callable(chosen) and hasattr(chosen, "name"):
        return chosen
    if chosen not in ESTIMATORS:
        raise TightropeError(f"estimator is {chosen!r}; known: {', '.join(ESTIMATORS)}")
    made: Estimator = ESTIMATORS[str(chosen)]()
    return made


__all__ = ["ESTIMATORS", "IS", "PDIS", "PDWIS", "WIS", "Anchor", "Estimator", "estimator"]
