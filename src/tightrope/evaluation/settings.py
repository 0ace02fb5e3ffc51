"""What every bound takes by keyword, with defaults, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict

from tightrope.base.behavior import BehaviorModel
from tightrope.base.checks import is_number
from tightrope.base.errors import BoundError
from tightrope.functional.engines.local import Precision, Progress
from tightrope.functional.resampling import Seed, WeightScheme, check_resamples, scheme, seed_of


class Options(TypedDict, total=False):
    """What every bound takes, by keyword. Defaults stand in ``Settings``."""

    confidence: float  # of each one-sided bound, or of the whole interval; in (0.5, 1)
    n_resamples: int  # bootstrap replicates, the paper's B
    rng: Seed  # a whole number or a numpy Generator; one seed gives the same bits
    resampling: str | WeightScheme  # "multinomial", "bayesian", "poisson", or a scheme such as Multinomial(size=m)
    max_ratio: float | None  # no cumulative importance ratio ρ_t can exceed it, at any step; hoeffding, emp.-bernstein
    behavior: Any  # "logged", or how to estimate it: "auto", "tabular", "logistic", "gaussian", an object, a classifier
    precision: Precision  # "float32" is faster on wide problems and loses under 1e-4 standard errors
    progress: Progress | None  # called with the share done, 0 to 1


@dataclass(frozen=True)
class Settings:
    """The options with their defaults, checked."""

    confidence: float = 0.95
    n_resamples: int = 2000
    rng: Seed = 0
    resampling: str | WeightScheme = "multinomial"
    max_ratio: float | None = None
    behavior: Any = "logged"
    precision: Precision = "float64"
    progress: Progress | None = None

    def __post_init__(self) -> None:
        if not (is_number(self.confidence) and 0.5 < self.confidence < 1.0):
            raise BoundError(f"confidence is {self.confidence!r}; it must lie between 0.5 and 1, such as 0.95")
        check_resamples(self.n_resamples)
        if self.max_ratio is not None and not (is_number(self.max_ratio) and self.max_ratio > 0):
            raise BoundError(f"max_ratio is {self.max_ratio!r}; it must be positive")
        if self.precision not in ("float64", "float32"):
            raise BoundError(f'precision is {self.precision!r}; "float64" or "float32"')
        object.__setattr__(self, "n_resamples", int(self.n_resamples))
        object.__setattr__(self, "rng", seed_of(self.rng))
        object.__setattr__(self, "resampling", scheme(self.resampling))

    def shown(self, behavior: BehaviorModel | None) -> dict[str, Any]:
        """What of them decides the numbers, for the record."""
        return {
            "confidence": self.confidence,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "behavior": "logged" if behavior is None else behavior.name,
        }

    @property
    def seed(self) -> int:
        """The 64-bit key."""
        return seed_of(self.rng)
