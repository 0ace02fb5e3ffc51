"""Estimators by name. A new one is a small frozen dataclass in a file here, and a line in ``ESTIMATORS``."""

from __future__ import annotations

from typing import Any

from tightrope.errors import TightropeError
from tightrope.estimators.base import Anchor, Estimator
from tightrope.estimators.doubly_robust import DR, WDR
from tightrope.estimators.importance import IS, PDIS
from tightrope.estimators.model_based import MB
from tightrope.estimators.weighted import PDWIS, WIS
from tightrope.models import Model

ESTIMATORS: dict[str, type[Any]] = {cls.name: cls for cls in (IS, PDIS, WIS, PDWIS, MB, DR, WDR)}


def estimator(chosen: str | Estimator, *, model: str | Model = "auto") -> Estimator:
    """An estimator by name with its default settings and this model, or as it is."""
    if callable(chosen) and hasattr(chosen, "name"):
        return chosen
    if chosen not in ESTIMATORS:
        raise TightropeError(f"estimator is {chosen!r}; known: {', '.join(ESTIMATORS)}")
    settings = {"model": model} if is_model_based(chosen) else {}
    made: Estimator = ESTIMATORS[str(chosen)](**settings)
    return made


def is_model_based(chosen: str | Estimator) -> bool:
    """Whether an estimator fits a model."""
    return hasattr(ESTIMATORS.get(chosen) if isinstance(chosen, str) else chosen, "model")


__all__ = [
    "DR",
    "ESTIMATORS",
    "IS",
    "MB",
    "PDIS",
    "PDWIS",
    "WDR",
    "WIS",
    "Anchor",
    "Estimator",
    "estimator",
    "is_model_based",
]
