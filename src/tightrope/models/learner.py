"""Somebody's regressor: copied, fitted under weights, and asked, with what it returns checked."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array
from tightrope.base.errors import DataError


@dataclass(frozen=True, eq=False)
class Learner:
    """A regressor with ``fit(X, Y, sample_weight=...)`` and ``predict(X)``, of which every fit is a copy."""

    regressor: Any
    seed: int  # of a ``random_state`` left at None: fits differ by their data alone

    def __post_init__(self) -> None:
        for method in ("fit", "predict"):
            if not callable(getattr(self.regressor, method, None)):
                raise DataError(f"regressor must have {method}(); {type(self.regressor).__name__} has none")

    def learn(self, inputs: Array, targets: Array, weights: Array) -> Any:
        """A copy fitted to inputs (N, p) and targets (N, q), from the rows of positive weight."""
        learner = copy.deepcopy(self.regressor)
        settings = learner.get_params() if hasattr(learner, "get_params") else {}
        if settings.get("random_state", 0) is None:
            learner.set_params(random_state=self.seed % 2**32)
        used = weights > 0
        targets = targets[used, 0] if targets.shape[1] == 1 else targets[used]
        try:
            learner.fit(inputs[used], targets, sample_weight=weights[used])
        except TypeError as error:
            raise DataError(
                f"regressor must have a fit that takes sample_weight, so that episodes can be weighted; "
                f"{type(learner).__name__} does not ({error})"
            ) from error
        except ValueError as error:
            raise DataError(f"regressor {type(learner).__name__} does not fit these logs: {error}") from error
        return learner

    @staticmethod
    def predict(learner: Any, inputs: Array, width: int) -> Array:
        """What a fitted copy says, (K, width)."""
        predictions = numbers("regressor", learner.predict(lent(inputs)), DataError)
        if predictions.size != len(inputs) * width or len(predictions) != len(inputs):
            raise DataError(f"regressor must predict shape ({len(inputs)}, {width}); got shape {predictions.shape}")
        if not np.isfinite(predictions).all():
            first = predictions[~np.isfinite(predictions)][0]
            raise DataError(f"regressor {type(learner).__name__} must predict finite numbers; got {first}")
        return predictions.reshape(len(inputs), width)
