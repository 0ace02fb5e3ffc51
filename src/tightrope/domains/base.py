"""What a domain is: a process to log, two policies, and the candidate's true value."""

from __future__ import annotations

from typing import Any, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array, BoolArray, TrajectoryDataset
from tightrope.base.policy import Policy

Anything = npt.NDArray[Any]


@runtime_checkable
class Process(Protocol):
    """A Markov process under control; every row is an episode of its own."""

    @property
    def horizon(self) -> int:
        """How many decisions an episode has, at most."""
        ...

    @property
    def discount(self) -> float:
        """γ."""
        ...

    def start(self, n: int, rng: np.random.Generator) -> Anything:
        """First states, (n, ...)."""
        ...

    def step(self, states: Anything, actions: Anything, rng: np.random.Generator) -> tuple[Anything, Array, BoolArray]:
        """Next states, rewards and whether the episode ended for good, one row per row."""
        ...


class Domain(Protocol):
    """A benchmark: logs can be made of it, and the answer is known."""

    @property
    def name(self) -> str:
        """The name it is registered under."""
        ...

    @property
    def about(self) -> str:
        """One line: what it is and what makes it hard."""
        ...

    @property
    def behavior(self) -> Policy:
        """The policy that makes the logs."""
        ...

    @property
    def candidate(self) -> Policy:
        """The policy to evaluate."""
        ...

    @property
    def true_value(self) -> float:
        """The candidate's value."""
        ...

    @property
    def true_value_error(self) -> float:
        """The standard error of ``true_value``; 0 where it is exact."""
        ...

    @property
    def behavior_value(self) -> float:
        """The behaviour policy's value."""
        ...

    @property
    def behavior_value_error(self) -> float:
        """The standard error of ``behavior_value``; 0 where it is exact."""
        ...

    @property
    def max_ratio(self) -> float | None:
        """A number that no cumulative importance ratio exceeds; None if there is none."""
        ...

    def logs(self, n: int, *, rng: np.random.Generator) -> TrajectoryDataset:
        """n episodes of the behaviour policy, with everything declared that is known."""
        ...

    def configuration(self) -> dict[str, Any]:
        """Every number of the domain, as JSON can hold it."""
        ...
