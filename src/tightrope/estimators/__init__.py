"""Estimators by name. A new one is a small frozen dataclass in a file here, and a line in ``ESTIMATORS``.

``USUAL`` are those that a call computes when nobody names any; the others are there for whoever asks for them.
"""

from __future__ import annotations

from collections.abc import Callable

from tightrope.base.errors import TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.estimators.base import Anchor, Estimator, IndependentEstimator, SequentialEstimator
from tightrope.estimators.choosing import Opera, Slope
from tightrope.estimators.clipped import Clipped, Shrunk
from tightrope.estimators.dice import DICE
from tightrope.estimators.doubly_robust import DR, WDR
from tightrope.estimators.drl import DRL
from tightrope.estimators.fitted_q import FQE
from tightrope.estimators.importance import IS, PDIS
from tightrope.estimators.magic import MAGIC
from tightrope.estimators.mis import MIS
from tightrope.estimators.model_based import MB
from tightrope.estimators.tethered import TDR
from tightrope.estimators.weighted import PDWIS, WIS
from tightrope.models import Model, check_model

ESTIMATORS: dict[str, Callable[..., Estimator]] = {
    cls.name: cls
    for cls in (
        *(IS, PDIS, WIS, PDWIS, MB, DR, WDR, TDR),
        *(FQE, MAGIC, MIS, DRL, DICE, Clipped, Shrunk, Slope, Opera),
    )
}
USUAL = ("is", "pdis", "wis", "pdwis", "mb", "dr", "wdr", "tdr")


def estimator(chosen: str | Estimator, *, model: str | Model = "auto") -> Estimator:
    """The ``chosen`` estimator by name with its default settings and this ``model``, or as it is."""
    if isinstance(chosen, type):
        raise TightropeError(f"estimator is the class {chosen.__name__}; give an instance, {chosen.__name__}()")
    if not isinstance(model, str):
        check_model(model)
    if isinstance(chosen, Estimator):
        return _hashable(chosen)
    if not isinstance(chosen, str) or chosen not in ESTIMATORS:
        raise TightropeError(must_be_one_of("estimator", chosen, ESTIMATORS, "an estimator object"))
    settings = {"model": model} if is_model_based(chosen) else {}
    return _hashable(ESTIMATORS[chosen](**settings))


def _hashable(chosen: Estimator) -> Estimator:
    """The estimator, if its results can be kept under it."""
    try:
        hash(chosen)
    except TypeError as error:
        raise TightropeError(
            f"the estimator {chosen.name} cannot be told from others ({error}): make it, and a model in it, a frozen "
            "dataclass, or give it __hash__"
        ) from error
    return chosen


def is_model_based(name: str) -> bool:
    """Whether the estimator of this name fits a model."""
    return name in ESTIMATORS and ESTIMATORS[name]().model is not None


__all__ = [
    "DICE",
    "DR",
    "DRL",
    "ESTIMATORS",
    "FQE",
    "IS",
    "MAGIC",
    "MB",
    "MIS",
    "PDIS",
    "PDWIS",
    "TDR",
    "USUAL",
    "WDR",
    "WIS",
    "Anchor",
    "Clipped",
    "Estimator",
    "IndependentEstimator",
    "Opera",
    "SequentialEstimator",
    "Shrunk",
    "Slope",
    "estimator",
    "is_model_based",
]
