"""Models of the environment, one small file each, fitted from weighted episodes, and their names."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tightrope.base.checks import accepted
from tightrope.base.errors import TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.base.policy import DiscretePolicy
from tightrope.base.problem import Problem
from tightrope.models.base import (
    BatchedModel,
    CountedModel,
    Evaluated,
    Model,
    ParametricModel,
    PiecewiseModel,
    PreparedModel,
    SimulatedModel,
    SmoothModel,
    TracedModel,
)
from tightrope.models.fitted_q import FittedQ
from tightrope.models.given import GivenValues
from tightrope.models.regression import LinearModel, PolynomialModel
from tightrope.models.simulator import RegressorModel, SimulatorModel
from tightrope.models.tabular.model import TabularModel, is_numbered
from tightrope.models.tabular.rollouts import Rollouts

MODELS: dict[str, Callable[[], Model]] = {
    "tabular": TabularModel,
    "linear": LinearModel,
    "polynomial": PolynomialModel,
    "fitted-q": FittedQ,
}


def model(chosen: str | Model, problem: Problem) -> Model:
    """The ``chosen`` model by name or as it is; "auto" is tabular where the ``problem`` is discrete, else linear."""
    if not isinstance(chosen, str):
        check_model(chosen)
        return chosen
    if chosen == "auto":
        chosen = "tabular" if is_discrete(problem) else "linear"
    if chosen not in MODELS:
        raise TightropeError(must_be_one_of("model", chosen, ("auto", *MODELS), "a model object"))
    return MODELS[chosen]()


def check_model(chosen: Any) -> None:
    """Refuse an object that is not a model, before anything uses it as one."""
    if isinstance(chosen, type):
        raise TightropeError(f"model must be an instance, such as {chosen.__name__}(); got the class {chosen.__name__}")
    if not isinstance(chosen, Model) or "anchor" not in accepted(chosen.prepare):
        raise TightropeError(
            f"model must be a name ({', '.join(MODELS)}) or a model, such as those of tightrope.models (--model "
            f"module:object); got type {type(chosen).__name__}"
        )


def prepared_model(chosen: str | Model, problem: Problem, anchor: str) -> PreparedModel:
    """The model prepared for these logs and this candidate; all estimators that use it share one."""

    def prepare() -> tuple[str | Model, PreparedModel]:
        settings = model(chosen, problem)
        if not (isinstance(settings, PiecewiseModel) and settings.in_pieces):
            problem.check_memory(f"the {settings.name} model")
        return chosen, settings.prepare(problem, anchor=anchor)

    return problem.once(("prepared", model_key(chosen), anchor), prepare)[1]


def model_key(chosen: str | Model) -> str | int:
    """The name of a model, or the id of an object, which need not be hashable. Keep the object as long as the key."""
    return chosen if isinstance(chosen, str) else id(chosen)


def is_discrete(problem: Problem) -> bool:
    """Whether logged states and actions are numbered, or names that can be."""
    data = problem.coded.dataset
    return is_numbered(data.states) and is_numbered(data.actions)


def has_tabular(problem: Problem) -> bool:
    """Whether a tabular model can be fitted and the candidate evaluated in it."""
    return is_discrete(problem) and isinstance(problem.coded.policy, DiscretePolicy)


__all__ = [
    "MODELS",
    "BatchedModel",
    "CountedModel",
    "Evaluated",
    "FittedQ",
    "GivenValues",
    "LinearModel",
    "Model",
    "ParametricModel",
    "PiecewiseModel",
    "PolynomialModel",
    "PreparedModel",
    "RegressorModel",
    "Rollouts",
    "SimulatedModel",
    "SimulatorModel",
    "SmoothModel",
    "TabularModel",
    "TracedModel",
    "has_tabular",
    "is_discrete",
    "model",
]
