"""What a bound is: approximate ones work from replicates, exact ones from independent values, one from the counts."""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol, TypeGuard, runtime_checkable

import numpy as np

from tightrope.base.dataset import Array
from tightrope.base.errors import BoundError
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Side
from tightrope.base.warnings import Caution
from tightrope.functional.engines import Replicates
from tightrope.functional.values import SequentialValues, TrajectoryValues
from tightrope.models import Model

Need = Literal["values", "leave_one_out", "standard_errors"]
LAST = 100  # the place of a bound whose error rates nobody has measured


@runtime_checkable
class BootstrapBound(Protocol):
    """An approximate bound: its error rate tends to the nominal one as n grows, with no promise at any n.

    Derive from this class, or from one of the two below: what you do not say of yours is as it stands here.
    """

    name: ClassVar[str]
    needs: ClassVar[frozenset[Need]]
    second_order: ClassVar[bool] = False  # whether it corrects for skewness, to leading order
    expects_smooth: ClassVar[bool] = True  # whether it errs more often where an estimate changes by rare jumps
    preference: ClassVar[int] = LAST  # its place in the order of advice, the lowest first

    def lower(self, replicates: Replicates, *, delta: float) -> tuple[float, list[Caution]]:
        """The lower bound at level 1 − delta, and what to be told about it."""
        ...


@runtime_checkable
class ExactBound(Protocol):
    """A bound that errs with probability at most delta at every n, whatever the distribution of the values."""

    name: ClassVar[str]
    sequential: ClassVar[bool] = False  # whether it takes values that are learned on the way (see ``learns``)
    uses_seed: ClassVar[bool] = False  # whether its own random numbers have a say
    preference: ClassVar[int] = LAST

    def lower(self, sample: TrajectoryValues, *, delta: float, seed: int) -> float:
        """A lower bound on the mean of independent values ≥ 0."""
        ...


class SequentialBound(Protocol):
    """An exact bound that also takes values which are learned on the way."""

    name: ClassVar[str]
    sequential: ClassVar[bool]

    def lower(self, sample: SequentialValues, *, delta: float, seed: int) -> float:
        """A lower bound on the mean of values, each of which lies above its tether."""
        ...


@runtime_checkable
class ProcessBound(Protocol):
    """A bound that looks at the whole process, not at replicates or values; it says itself what it guarantees."""

    name: ClassVar[str]
    of: ClassVar[str]  # the estimator whose value it bounds
    preference: ClassVar[int] = LAST

    def bound(self, problem: Problem, *, confidence: float, side: Side, seed: int, about: About) -> Bound:
        """The bound on the candidate's value, or on its gain; refuses what it cannot bound."""
        ...


@runtime_checkable
class ModelledBound(ProcessBound, Protocol):
    """A process bound that computes its estimator itself, and so must know the model which that one corrects."""

    def with_model(self, model: str | Model | None) -> ProcessBound:
        """The same bound for an estimator with this model; None: it has none."""
        ...


Method = BootstrapBound | ExactBound | ProcessBound


def is_exact(method: Method) -> bool:
    """Whether a bound needs independent values rather than replicates."""
    return isinstance(method, ExactBound)


def learns(method: ExactBound) -> TypeGuard[SequentialBound]:
    """Whether an exact bound takes values that are learned on the way."""
    return method.sequential


def rank(delta: float, n_resamples: int) -> int:
    """Algorithm 1's l = ⌊δB⌋, one-based; refuses when it is 0, for then no replicate is low enough."""
    position = int(np.floor(delta * n_resamples + 1e-9))
    if position < 1:
        raise BoundError(
            f"n_resamples is {n_resamples}, too few for confidence {1 - delta:g}; at least "
            f"{int(np.ceil(1 / delta - 1e-9))} "
            "are needed"
        )
    return position


def lowest(values: Array, position: int) -> float:
    """The position-th smallest replicate, undefined ones counting as −∞."""
    return float(np.sort(np.where(np.isnan(values), -np.inf, values))[position - 1])


def highest(values: Array, position: int) -> float:
    """The position-th largest replicate, undefined ones counting as +∞."""
    return -lowest(-values, position)


def ceiling(sample: TrajectoryValues, name: str) -> float:
    """The declared largest value, which this bound cannot do without."""
    if sample.ceiling is None:
        raise BoundError(
            f"{name} needs the largest possible value to be declared, not taken from the sample; missing: "
            f"{sample.missing} (max_ratio=..., --max-ratio). betting, anderson and cut do without it"
        )
    return sample.ceiling
