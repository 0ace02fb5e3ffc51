"""A study is data: a grid of sizes, trials and methods on one domain, with a readable id."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from platform import python_version
from typing import Any

import numpy as np

from tightrope.base.content import digest, package_digest, text_without_addresses
from tightrope.base.errors import StudyError
from tightrope.base.records import About, Side
from tightrope.bounds import method as find_bound
from tightrope.bounds.base import rank
from tightrope.domains import Domain
from tightrope.domains import domain as find_domain
from tightrope.estimators import Estimator
from tightrope.evaluation.settings import Settings
from tightrope.studies.identity import Words, sample_digest

FORMAT = 3  # of the results folder
_LIBRARIES = ("tightrope", "numpy", "scipy", "numba", "pyarrow")


@dataclass(frozen=True)
class Method:
    """One estimator with its settings, under a label, and the bounds made from its one set of replicates.

    Each bound is a line of the tables, named ``label/bound``. A slow method may be run at fewer sizes, or on the first
    ``trials`` data sets only.
    """

    label: str
    estimator: Estimator
    bounds: tuple[str, ...]
    smallest: int = 1  # n below it: not run
    largest: int | None = None  # n above it: not run
    trials: int | None = None  # None: as many as the study has

    def __post_init__(self) -> None:
        if not self.bounds or isinstance(self.bounds, str):
            raise StudyError(f"bounds of {self.label!r} must be a tuple of names, at least one; got {self.bounds!r}")
        for name in self.bounds:
            find_bound(name)

    def runs(self, n: int, trial: int) -> bool:
        """Whether it is run on this data set."""
        return (
            self.smallest <= n
            and (self.largest is None or n <= self.largest)
            and (self.trials is None or trial < self.trials)
        )


@dataclass(frozen=True)
class Study:
    """What is to be run. Everything in it can be sent to another process, so functions are module-level ones."""

    id: str
    domain: Any  # the name of a domain; or one; or, where it cannot be sent, the words that name its parts
    sizes: tuple[int, ...]
    trials: int
    methods: Callable[[Domain], tuple[Method, ...]]  # of the domain, since models may need to know its rewards
    n_resamples: int = 2000
    confidence: float = 0.95
    sides: tuple[Side, ...] = ("lower",)
    seed: int = 0
    advice: bool = False  # also lines for the bound that ``evaluate`` recommends and for the exact one beside it
    about: str = ""
    about_what: About = "value"  # or the gain over the behaviour policy
    behavior: str = "logged"  # or how to estimate the behaviour policy; the logged probabilities are then not seen

    def __post_init__(self) -> None:
        if not self.sizes or any(not isinstance(n, int) or n < 1 for n in self.sizes):
            raise StudyError(f"sizes must be numbers of episodes, each at least 1; got {self.sizes!r}")
        if len(set(self.sizes)) < len(self.sizes):
            raise StudyError(f"sizes must hold each size once; got {self.sizes!r}")
        if self.trials < 1:
            raise StudyError(f"trials must be at least 1; got {self.trials!r}")
        settings = Settings(confidence=self.confidence, n_resamples=self.n_resamples, seed=self.seed)
        rank(1 - settings.confidence, settings.n_resamples)  # checks the settings now instead of in every trial

    def configuration(self) -> dict[str, Any]:
        """Everything that decides the results, as plain data."""
        domain, methods = prepared(self)
        less = domain.behavior_value if self.about_what == "gain" else 0.0
        more_error = domain.behavior_value_error if self.about_what == "gain" else 0.0
        settings: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "study": self.id,
                "domain": {
                    **domain.configuration(),
                    **({"content": self.domain.content()} if isinstance(self.domain, Words) else {}),
                    "sample": sample_digest(domain),
                    "name": domain.name,
                    "true_value": domain.true_value - less,
                    "true_value_error": float(np.hypot(domain.true_value_error, more_error)),
                },
                "sizes": self.sizes,
                "trials": self.trials,
                "methods": {one.label: _described(one) for one in methods},
                "n_resamples": self.n_resamples,
                "confidence": self.confidence,
                "sides": self.sides,
                "seed": self.seed,
                "advice": self.advice,
                "about": self.about_what,
                "behavior": self.behavior,
                "versions": {name: version(name) for name in _LIBRARIES} | {"python": python_version()},
                "sources": package_digest(),
            }
        )
        return settings


@cache
def prepared(study: Study) -> tuple[Domain, tuple[Method, ...]]:
    """The domain and the methods on it, made once per process."""
    domain: Domain
    if isinstance(study.domain, str):
        domain = find_domain(study.domain)
    else:
        domain = study.domain.load() if isinstance(study.domain, Words) else study.domain
    methods = study.methods(domain)
    labels = [one.label for one in methods]
    twice = sorted({label for label in labels if labels.count(label) > 1})
    if twice or not methods:
        problem = f"{', '.join(twice)} twice" if twice else "none"
        raise StudyError(f"study {study.id!r} must have at least one method, each once; got {problem}")
    return domain, methods


def plain(value: Any) -> Any:
    """The data as JSON will give it back."""
    return json.loads(json.dumps(value, default=_plain_object))


def _plain_object(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else text_without_addresses(value)


def _described(method: Method) -> dict[str, Any]:
    """The estimator as it prints, and a hash of what it holds: long arrays and functions print less than they are."""
    limits = {"smallest": method.smallest, "largest": method.largest, "trials": method.trials}
    identity = {"estimator": text_without_addresses(method.estimator), "content": digest(method.estimator)}
    return {**identity, "bounds": method.bounds, **limits}
