"""Records of what stands beside the bounds of an evaluation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tightrope.base.plain import Record


@dataclass(frozen=True)
class Provenance(Record):
    """Where an evaluation comes from."""

    versions: dict[str, str]
    command: str = ""  # as typed; empty when called from Python
    source: str = ""  # the file's name
    sha256: str = ""  # of the file's content
    policy: str = ""  # which policy in which form, where a command named one
    policy_sha256: str = ""  # of the policy's file, or of the module that it comes from
    date: str = ""  # of the day, as 2026-01-31


@dataclass(frozen=True)
class Lift(Record):
    """The believed gain as a share of the behaviour policy's mean return."""

    estimate: float
    lower: float | None = None
    upper: float | None = None


@dataclass(frozen=True)
class Influence(Record):
    """The influence of one episode, or of one cluster of them, on an estimate."""

    episode: str  # by its name, or the cluster's
    share: float | None  # of the final importance weights; None: the estimator does not use them
    episode_return: float  # or the mean of the cluster's
    influence: float  # what it adds to the estimate, to first order
    without: float  # the estimate without it; NaN where nothing is left


@dataclass(frozen=True)
class Details(Record):
    """More about one bound: the believed one, or the first one if none is believed."""

    bound: int  # which of the bounds
    edges: tuple[float, ...] = ()  # of the bins of its estimator's replicates, one more than counts
    counts: tuple[int, ...] = ()
    n_beyond: int = 0  # replicates far outside the bins
    n_undefined: int = 0
    influential: tuple[Influence, ...] = ()  # the largest first


@dataclass(frozen=True)
class Rehearsal(Record):
    """How often one bound was wrong on logs that were simulated from a model of the logs at hand."""

    estimator: str
    method: str
    side: Literal["lower", "upper"]
    errors: int
    trials: int
