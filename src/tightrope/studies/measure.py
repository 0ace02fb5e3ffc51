"""The study behind ``tightrope coverage``: named estimators and bounds on a named domain or on a user's environment."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.adapters import load_policy
from tightrope.adapters.load import named_digest
from tightrope.api import DEFAULT_METHODS
from tightrope.base.errors import StudyError
from tightrope.base.problem import Problem
from tightrope.bounds import method as find_bound
from tightrope.domains import Domain
from tightrope.domains.from_environment import EnvironmentDomain, environment_digest
from tightrope.domains.gym_episodes import horizon_of
from tightrope.estimators import USUAL, is_model_based
from tightrope.estimators import estimator as find_estimator
from tightrope.evaluation.work import is_valid
from tightrope.models import has_tabular
from tightrope.studies.study import Method


@dataclass(frozen=True)
class UserDomain:
    """A domain given by the names of its parts, so that every process can load it."""

    environment: str  # a Gymnasium id, or module:id
    behavior: str  # module:object, or a table of probabilities
    candidate: str
    horizon: int | None = None  # None: where the environment cuts episodes off
    discount: float = 1.0
    truth_rollouts: int = 10_000
    reward_range: tuple[float, float] | None = None
    seed: int = 0

    def content(self) -> dict[str, str]:
        """Hashes of the files and sources that the words name."""
        self._look_here()
        return {
            "environment": environment_digest(self.environment),
            "behavior": named_digest(self.behavior),
            "candidate": named_digest(self.candidate),
        }

    def load(self) -> EnvironmentDomain:
        """The domain itself; importing a module runs its code."""
        self._look_here()
        return EnvironmentDomain(
            self.environment,
            load_policy(self.behavior),
            load_policy(self.candidate),
            horizon_of(self.environment, self.horizon),
            self.discount,
            self.truth_rollouts,
            self.seed,
            self.reward_range,
            (self.behavior, self.candidate),
        )

    def _look_here(self) -> None:
        if str(Path.cwd()) not in sys.path:
            sys.path.insert(0, str(Path.cwd()))  # where the user's modules are, the environment's among them


def named_methods(estimators: Sequence[str], bounds: Sequence[str]) -> Any:
    """What a study takes: the methods by name, as a function of the domain."""
    for name in estimators:
        find_estimator(name)
    for name in bounds:
        find_bound(name)
    return partial(_methods, tuple(estimators), tuple(bounds))


def _methods(estimators: tuple[str, ...], bounds: tuple[str, ...], domain: Domain) -> tuple[Method, ...]:
    """All estimators, or the named ones, each with the bounds that are valid for it."""
    few = Problem(domain.logs(2, rng=np.random.default_rng(0)), domain.candidate)
    # A continuous model takes its time: only when asked for.
    every = [name for name in USUAL if has_tabular(few) or not is_model_based(name)]
    methods = []
    for name in estimators or every:
        chosen = find_estimator(name)
        valid = tuple(bound for bound in bounds or DEFAULT_METHODS if is_valid(chosen, find_bound(bound)))
        if valid:
            methods.append(Method(name, chosen, valid))
    if not methods:
        raise StudyError(
            "none of these methods is valid for these estimators: exact bounds need an estimator that is a mean over "
            "episodes, IS or PDIS"
        )
    return tuple(methods)
