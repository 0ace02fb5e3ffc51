"""What rehearsal needs of logs, whatever their states are: worlds fitted to them, and WDR in each simulated log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

import numpy as np

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import BoundError
from tightrope.base.policy import DiscretePolicy, Policy
from tightrope.base.problem import Problem
from tightrope.base.records import About, Side
from tightrope.base.warnings import Caution

FOLDS = 5  # as WDR has them
World = TypeVar("World")


class Stage(Protocol[World]):
    """Logs to rehearse: rewards are counted so that more is better for the bound's side."""

    @property
    def sign(self) -> float:
        """1 for a lower bound, −1 for an upper one."""
        ...

    @property
    def candidate(self) -> Policy:
        """The candidate, for simulated logs."""
        ...

    @property
    def worlds(self) -> Sequence[World]:
        """Models of the logs to simulate from; the first is the plain one."""
        ...

    @property
    def parallel(self) -> bool:
        """Whether several threads may rehearse at once, a world each."""
        ...

    @property
    def usual_count(self) -> int:
        """How many logs to simulate from each world where nobody says."""
        ...

    @property
    def n_rehearsed(self) -> int:
        """How many episodes each simulated log has: those of the logs, or fewer where these are many."""
        ...

    @property
    def cautions(self) -> tuple[Caution, ...]:
        """What to be told about a bound that was calibrated here."""
        ...

    def check_cost(self, count: int) -> None:
        """Refuse so many rehearsals where they would take hours."""
        ...

    def wdr(self, about: About) -> tuple[float, float]:
        """WDR of the logs themselves and its jackknife standard error, counted as the stage counts."""
        ...

    def truth(self, world: World, about: About) -> tuple[float, float]:
        """What WDR estimates in this world, and the Monte Carlo standard error of it; 0 where it is exact."""
        ...

    def pivots(self, world: World, count: int, seed: int, about: About) -> Array:
        """(WDR − truth)/se on ``count`` logs simulated in this world; +∞ where there is no standard error."""
        ...

    def logs(self, world: World, rng: np.random.Generator, like: TrajectoryDataset) -> TrajectoryDataset:
        """Logs of the behaviour policy in this world, as many and as declared as the ones at hand."""
        ...


def simulated_policies(problem: Problem) -> tuple[DiscretePolicy, DiscretePolicy]:
    """The candidate and the behaviour policy; refuses where one of them does not list its probabilities."""
    candidate, behavior = problem.policy, problem.dataset.behavior
    if not isinstance(candidate, DiscretePolicy):
        raise BoundError(
            "rehearsal simulates logs: it needs discrete actions, and the policy itself with probs(states, t). "
            "For continuous actions use tdr with percentile, or pdwis with studentized"
        )
    if problem.behavior is not None or not isinstance(behavior, DiscretePolicy):
        raise BoundError(
            "rehearsal simulates logs of the behaviour policy: read the logs with it (read(behavior=policy), "
            "--behavior-policy)"
        )
    return candidate, behavior


def signed_range(data: TrajectoryDataset, side: Side) -> tuple[float, float, float]:
    """(sign, lowest, highest): the declared rewards, counted so that more is better; the lowest must be finite."""
    sign = 1.0 if side == "lower" else -1.0
    low, high = data.step_range or (-np.inf, np.inf)
    lowest, highest = (low, high) if sign > 0 else (-high, -low)
    if not np.isfinite(lowest):
        raise BoundError("rehearsal needs the worst reward declared: reward_range=(...) (--reward-range)")
    if data.any_cut:
        raise BoundError("rehearsal needs whole episodes; some of these were cut off")
    return sign, lowest, highest
