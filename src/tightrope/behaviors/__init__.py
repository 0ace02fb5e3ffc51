"""Estimates of the behaviour policy, one small file each, fitted from weighted episodes, and their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tightrope.base.behavior import BehaviorModel
from tightrope.base.checks import accepted
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.behaviors.classifier import ClassifierBehavior
from tightrope.behaviors.gaussian import GaussianRegression
from tightrope.behaviors.logistic import LogisticBehavior
from tightrope.behaviors.tabular import TabularBehavior

BEHAVIORS: dict[str, Callable[[], BehaviorModel]] = {
    "tabular": TabularBehavior,
    "logistic": LogisticBehavior,
    "gaussian": GaussianRegression,
}


def behavior(chosen: Any, dataset: TrajectoryDataset) -> BehaviorModel | None:
    """How to estimate the behaviour policy: by name, an object, or a classifier; None for the logged probabilities.

    "auto" counts numbered states and actions, fits a logistic regression for other states with discrete actions and a
    Gaussian one for continuous actions.

    - ``chosen``: a name ("logged", "auto", "tabular", "logistic", "gaussian"), an object, or a classifier.
    - ``dataset``: the logs that "auto" looks at.
    """
    if chosen is None or (isinstance(chosen, str) and chosen == "logged"):
        return None
    if isinstance(chosen, str):
        name = _suited(dataset) if chosen == "auto" else chosen
        if name not in BEHAVIORS:
            known = ("logged", "auto", *BEHAVIORS)
            raise TightropeError(must_be_one_of("behavior", chosen, known, "a behaviour model", "a classifier"))
        return BEHAVIORS[name]()
    if isinstance(chosen, type):
        raise TightropeError(
            f"behavior must be an instance, such as {chosen.__name__}(); got the class {chosen.__name__}"
        )
    if isinstance(chosen, BehaviorModel) and "dataset" in accepted(chosen.prepare):
        return chosen
    if hasattr(chosen, "fit"):
        return ClassifierBehavior(chosen)
    raise TightropeError(
        f"behavior must be a name ({', '.join(BEHAVIORS)}), a behaviour model or a classifier; got type "
        f"{type(chosen).__name__}"
    )


def _suited(dataset: TrajectoryDataset) -> str:
    if dataset.discrete_actions is False:
        return "gaussian"
    states = dataset.states
    return "tabular" if states is None or (states.ndim == 1 and states.dtype.kind != "f") else "logistic"


__all__ = [
    "BEHAVIORS",
    "BehaviorModel",
    "ClassifierBehavior",
    "GaussianRegression",
    "LogisticBehavior",
    "TabularBehavior",
    "behavior",
]
