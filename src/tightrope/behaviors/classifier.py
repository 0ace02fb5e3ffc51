"""A behaviour policy by any classifier with ``fit(X, y, sample_weight)`` and ``predict_proba``, as scikit-learn's."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from tightrope.base.checks import lent
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.behaviors.logged import Anything, StateFeatures, discrete_actions, require, state_features


@dataclass(frozen=True)
class ClassifierBehavior:
    """π̂_b(a|s) from a classifier, a copy of which is fitted under every row of weights, its randomness frozen.

    It gets the state (a column for each state where they are numbered), or ``features(states, t)``. Slow: every
    replicate is a training. It has no derivatives, so standard errors come from leaving each episode out, and
    studentized bounds are refused.
    """

    name: ClassVar[str] = "classifier"

    classifier: Any
    features: StateFeatures | None = None

    def __post_init__(self) -> None:
        kind = type(self.classifier).__name__
        if not hasattr(self.classifier, "predict_proba"):
            raise TightropeError(
                f"the classifier must have predict_proba, because ratios need probabilities; {kind} has none"
            )
        if "sample_weight" not in inspect.signature(self.classifier.fit).parameters:
            raise TightropeError(
                f"{kind}.fit takes no sample_weight, by which replicates are weighted; use another classifier, such as "
                "logistic regression or a random forest"
            )

    def prepare(self, dataset: TrajectoryDataset) -> ClassifierFits:
        """Features and actions of these logs."""
        levels, choices = discrete_actions(dataset)
        require(len(levels) > 1, f"the logs hold one action only ({levels[0]}): there is no choice to estimate")
        features, names = state_features(dataset, self.features)
        if names[0] == "1":  # the classifier adds its own constant
            features = features[:, 1:]
        return ClassifierFits(_frozen(self.classifier), features, levels, choices, dataset.lengths)


@dataclass(frozen=True, eq=False)
class ClassifierFits:
    """A classifier to be trained under any weights."""

    classifier: Any
    features: Array  # (N, p)
    levels: Anything  # (k,): the actions
    choices: IntArray  # (N,)
    lengths: IntArray  # (n,)

    def fit(self, weights: Array) -> Array:
        """The probabilities of all actions at all steps, flat: what a trained classifier says is kept, not itself."""
        per_step = np.repeat(weights, self.lengths)
        used = per_step > 0
        taken, probs = np.unique(self.choices[used]), np.zeros((len(self.choices), len(self.levels)))
        if len(taken) == 1:  # only one action: there is nothing to learn
            probs[:, taken[0]] = 1.0
            return probs.ravel()
        trained = copy.deepcopy(self.classifier)
        trained.fit(self.features[used], self.levels[self.choices[used]], sample_weight=per_step[used])
        probs[:, np.searchsorted(self.levels, trained.classes_)] = trained.predict_proba(lent(self.features))
        return probs.ravel()

    def log_probs(self, parameters: Array) -> Array:
        """Log-probabilities of all logged actions, (N,)."""
        with np.errstate(divide="ignore"):
            return np.log(self.probs(parameters)[np.arange(len(self.choices)), self.choices])

    def probs(self, parameters: Array) -> Array:
        """Probabilities of all actions at every step, (N, k)."""
        return parameters.reshape(len(self.choices), -1)


def _frozen(classifier: Any) -> Any:
    """A copy whose randomness is the same in every fit."""
    frozen = copy.deepcopy(classifier)
    if hasattr(frozen, "get_params") and frozen.get_params().get("random_state", 0) is None:
        frozen.set_params(random_state=0)
    return frozen
