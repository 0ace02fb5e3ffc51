"""Fitted Q evaluation as an estimator: the candidate's value by regressions backwards over time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from tightrope.base.errors import TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.estimators.model_based import MB
from tightrope.models import FittedQ, Model


@dataclass(frozen=True)
class FQE(MB):
    """Fitted Q evaluation: mean of v̂_0(S_0), with q̂_t regressed on r + γ v̂_{t+1}(S'), anew under every weight row.

    It rests on its regression alone, as MB rests on its model: nothing corrects q̂ where the features cannot hold it,
    and no resampling shows that. DR(FittedQ()) and WDR(FittedQ()) correct it. With one feature per pair of a numbered
    state and action it is MB with the tabular model. Le, Voloshin and Yue (2019), "Batch Policy Learning under
    Constraints".

    Its bootstrap resamples whole episodes. Steps of one episode hang together, and resampling them one by one gives
    intervals that are too short: Hao et al. (2021), "Bootstrapping Fitted Q-Evaluation for Off-Policy Inference".
    """

    name: ClassVar[str] = "fqe"

    model: str | Model = "fitted-q"  # "auto" and "fitted-q": FittedQ(); or FittedQ with settings

    def __post_init__(self) -> None:
        if self.model == "auto":
            object.__setattr__(self, "model", "fitted-q")
        if not isinstance(self.model, FittedQ) and self.model != "fitted-q":
            held = self.model if isinstance(self.model, str) else type(self.model).__name__
            raise TightropeError(must_be_one_of("model", held, ("auto", "fitted-q"), "FittedQ(...); others are for mb"))
