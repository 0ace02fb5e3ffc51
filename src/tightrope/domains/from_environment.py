"""A Gymnasium environment and two policies as a domain: logs of one policy, and the other's value by roll-outs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np

from tightrope.base.content import digest, imported_digest
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.policy import Policy
from tightrope.domains.gym_episodes import GymEpisodes, one_of

Range = tuple[float, float]

BLOCK = 1000  # episodes kept in memory when only their returns are wanted


@dataclass(frozen=True, eq=False)
class EnvironmentDomain:
    """Logs are episodes of at most ``horizon`` steps of the behaviour policy in the environment."""

    environment: str  # an id, or module:id
    behavior: Policy
    candidate: Policy
    horizon: int
    discount: float = 1.0
    truth_rollouts: int = 10_000
    seed: int = 0
    reward_range: Range | None = None
    names: tuple[str, str] = ("", "")  # of the policies, where the configuration should say more than their classes

    max_ratio = None

    def __post_init__(self) -> None:
        if self.truth_rollouts < 2:
            raise TightropeError(f"truth_rollouts must be at least 2, for a standard error; got {self.truth_rollouts}")
        object.__setattr__(self, "_gym", GymEpisodes(self.environment, self.horizon))

    def __reduce__(self) -> tuple[Any, ...]:
        """The state for other processes: the arguments, without the environments."""
        return type(self), tuple(getattr(self, field.name) for field in fields(self))

    @property
    def name(self) -> str:
        """The environment's id."""
        return self.environment

    @property
    def about(self) -> str:
        """One line."""
        return f"the Gymnasium environment {self.environment}, {self.horizon} steps, discount {self.discount:g}"

    def logs(self, n: int, *, rng: np.random.Generator) -> TrajectoryDataset:
        """n episodes of the behaviour policy."""
        return self._episodes(self.behavior, n, rng, logged=True)

    def _episodes(self, policy: Policy, n: int, rng: np.random.Generator, *, logged: bool = False) -> TrajectoryDataset:
        env: GymEpisodes = self._gym  # type: ignore[attr-defined]
        return env.logs(policy, n, rng, logged=logged, discount=self.discount, reward_range=self.reward_range)

    @property
    def true_value(self) -> float:
        """The candidate's mean return over the roll-outs."""
        return self._truth[0]

    @property
    def true_value_error(self) -> float:
        """Its standard error."""
        return self._truth[1]

    @property
    def behavior_value(self) -> float:
        """The behaviour policy's mean return over as many roll-outs."""
        return self._behavior_truth[0]

    @property
    def behavior_value_error(self) -> float:
        """Its standard error."""
        return self._behavior_truth[1]

    def configuration(self) -> dict[str, Any]:
        """The numbers of the domain."""
        behavior, candidate = self.names
        return {
            "environment": self.environment,
            "behavior": behavior or type(self.behavior).__name__,
            "candidate": candidate or type(self.candidate).__name__,
            "horizon": self.horizon,
            "discount": self.discount,
            "reward_range": self.reward_range,
            "truth_rollouts": self.truth_rollouts,
            "truth_seed": self.seed,
            "gymnasium": version("gymnasium"),
            "parts": {
                "environment": environment_digest(self.environment),
                "behavior": digest(self.behavior),
                "candidate": digest(self.candidate),
            },
        }

    @cached_property
    def _truth(self) -> tuple[float, float]:
        return self._mean_return(self.candidate, 0)

    @cached_property
    def _behavior_truth(self) -> tuple[float, float]:
        return self._mean_return(self.behavior, 1)

    def _mean_return(self, policy: Policy, which: int) -> tuple[float, float]:
        rng = np.random.default_rng([self.seed, which, self.truth_rollouts])
        sizes = [min(BLOCK, self.truth_rollouts - first) for first in range(0, self.truth_rollouts, BLOCK)]
        returns = np.concatenate([self._episodes(policy, size, rng).returns for size in sizes])
        return float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(len(returns)))


def environment_digest(environment: str) -> str:
    """A hash of how the environment was registered, its arguments among it, and of the source of what makes it."""
    specification = _specification(environment)
    makers = [one for one in (specification.entry_point, specification.vector_entry_point) if one is not None]
    sources = [imported_digest(one.partition(":")[0] if isinstance(one, str) else one.__module__) for one in makers]
    return digest(specification, sources)


def _specification(environment: str) -> Any:
    env = one_of(environment)  # unlike ``spec``, this imports the module that the id names
    env.close()
    return env.spec
