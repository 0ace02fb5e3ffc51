"""The settings that every bound takes, with their defaults, checked."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tightrope.base.behavior import BehaviorModel
from tightrope.base.checks import is_number
from tightrope.base.cluster import ENGINES, clustered
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import BoundError
from tightrope.base.names import must_be_one_of
from tightrope.functional.engines import Engine, Precision, Progress, cuda
from tightrope.functional.resampling import WeightScheme, check_resamples, scheme, seed_of

PRECISIONS = ("float64", "float32")


@dataclass(frozen=True)
class Settings:
    """What the public calls take by keyword; each of them spells these keywords out, with the same defaults."""

    confidence: float = 0.95  # of each one-sided bound, or of the whole interval; between 0.5 and 1
    n_resamples: int = 2000  # bootstrap replicates, the paper's B
    seed: Any = 0  # a whole number, a numpy Generator or SeedSequence; kept as the 64-bit number that was used
    resampling: str | WeightScheme = "multinomial"  # or "bayesian", "poisson", "model", or a scheme object
    max_ratio: float | None = None  # no cumulative importance ratio ρ_t exceeds it; for hoeffding, empirical-bernstein
    behavior: Any = "logged"  # or how to estimate the behaviour policy: a name, an object, a classifier
    precision: Precision = "float64"  # "float32" is faster on wide problems and loses under 1e-4 standard errors
    progress: Progress | None = None  # called with the share done, from 0 to 1
    engine: Any = "local"  # or "cuda" (a GPU), a dask client, an Engine: bit for bit the same
    n_jobs: int | None = None  # threads; None: one for each core. Their number changes no bit of a result

    def __post_init__(self) -> None:
        if not (is_number(self.confidence) and 0.5 < self.confidence < 1.0):
            raise BoundError(f"confidence must lie between 0.5 and 1, such as 0.95; got {self.confidence!r}")
        check_resamples(self.n_resamples)
        if self.max_ratio is not None and not (is_number(self.max_ratio) and self.max_ratio > 0):
            raise BoundError(f"max_ratio must be a positive number or None; got {self.max_ratio!r}")
        if self.precision not in PRECISIONS:
            raise BoundError(must_be_one_of("precision", self.precision, PRECISIONS))
        object.__setattr__(self, "engine", clustered(self.engine))
        if not isinstance(self.engine, Engine) and self.engine not in ENGINES:
            raise BoundError(must_be_one_of("engine", self.engine, ENGINES, "a dask client or address"))
        if self.n_jobs is not None and not (is_number(self.n_jobs) and self.n_jobs % 1 == 0 and self.n_jobs >= 1):
            raise BoundError(f"n_jobs must be a whole number of threads, at least 1, or None; got {self.n_jobs!r}")
        object.__setattr__(self, "n_resamples", int(self.n_resamples))
        object.__setattr__(self, "seed", seed_of(self.seed))
        object.__setattr__(self, "resampling", scheme(self.resampling))
        if self.engine == "cuda":  # before anything is fitted
            cuda.check_available()
            cuda.check_scheme(scheme(self.resampling))

    def workers(self, dataset: TrajectoryDataset) -> Engine | None:
        """Who makes passes over all episodes: the workers of a cluster, where they can open the logs themselves."""
        return self.engine if isinstance(self.engine, Engine) and dataset.folder is not None else None

    def shown(self, behavior: BehaviorModel | None) -> dict[str, Any]:
        """What of them decides the numbers, for the record."""
        return {
            "confidence": self.confidence,
            "n_resamples": self.n_resamples,
            "seed": self.seed,
            "behavior": "logged" if behavior is None else behavior.name,
        }
