"""Classifiers like those of scikit-learn, with ``predict_proba`` and ``classes_``; pipelines too."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.adapters.outputs import Times, as_logits, labelled
from tightrope.base.checks import numbers
from tightrope.base.errors import PolicyError
from tightrope.base.policy import Policy
from tightrope.base.policy.base import Anything, Array


def from_classifier(model: Any) -> Policy | None:
    """The policy that takes each class with its predicted probability; columns follow ``classes_``."""
    if not hasattr(model, "predict_proba"):
        return None
    name = type(model).__name__
    classes = getattr(model, "classes_", None)
    if classes is None or isinstance(classes, list):
        raise PolicyError(
            f"the {name} has no classes_: it is not fitted"
            if classes is None
            else f"the {name} predicts several labels"
        )
    width = getattr(model, "n_features_in_", None)

    def scores(states: Anything, t: Times) -> Array:
        rows = states.reshape(len(states), -1)
        if width is not None and rows.shape[1] != width:
            raise PolicyError(
                f"states must have {width} features, as the {name} was fitted to; the logs hold {rows.shape[1]} (shape "
                f"{states.shape})"
            )
        return as_logits("probabilities", numbers("predict_proba", model.predict_proba(rows)))

    return labelled(scores, np.asarray(classes))
