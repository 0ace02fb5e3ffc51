"""Cliff world: the second domain of "Bootstrapping with Models", a point mass that must pass between two cliffs.

A platform of 5 × 5 with a wall of cliffs across it that leaves one gap. State (x, y, vx, vy), action a push (ax, ay):

    p' = p + 0.2 v + N(0, 0.01²),   v' = v + 0.2 a + N(0, 0.02²),   r = -(|p - goal|₁ + |a|₁)

The dynamics are linear, so a linear model is right and a polynomial without linear terms wrong. Being on a cliff or off
the platform after a step is a fall: 100 less, and the episode ends. Being within 0.3 of the goal in both coordinates
ends it too. The paper does not give its geometry and numbers; these are ours:

- the reward of a step counts the position before it; falls and the goal are judged by the position after it;
- the controller pushes towards a waypoint, (p* - p) - 1.8 v, at most 2 either way: (0.75, 2.5) while it is short of the
  cliffs and not level with the gap, then (2.75, 2.5) until the cliffs are behind it, then the goal;
- both policies add Gaussian noise to it, the behaviour policy with 1.5 times the candidate's variance (so that
  importance ratios are bounded).

``origin`` says where the platform's lower left corner lies in the logged coordinates. It changes nothing but the
features of a polynomial model, whose bias depends on it.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array, BoolArray, TrajectoryDataset
from tightrope.base.policy import GaussianPolicy
from tightrope.domains.episodes import mean_return, simulate

Anything = npt.NDArray[Any]
Pair = tuple[float, float]

# Mean returns of 1,000,000 roll-outs with the numbers below and their standard errors, from seed 0;
# recomputed by: tightrope truth cliff-world --rollouts 1000000
CANDIDATE_VALUE: Pair = (-251.19569320292277, 0.015849967196195417)
BEHAVIOR_VALUE: Pair = (-258.5877715988639, 0.020284658724456336)
ROLLOUTS = 100_000  # for configurations of one's own


@dataclass(frozen=True)
class CliffWorld:
    """The point mass between the cliffs. Lengths are in platform coordinates, whatever the origin."""

    name: str = "cliff-world"
    about: str = "steer a point mass through a gap between cliffs: continuous states and actions, costly falls"

    origin: Pair = (-2.5, -2.5)  # the platform's lower left corner in logged coordinates; here its centre is at 0
    time_step: float = 0.2
    position_noise: float = 0.01
    velocity_noise: float = 0.02
    horizon: int = 60
    discount: float = 1.0
    size: float = 5.0
    cliffs: Pair = (1.5, 2.5)  # they lie between these x
    gap: Pair = (2.1, 2.9)  # except between these y
    start_position: Pair = (0.5, 0.5)
    start_spread: float = 0.1  # uniform, either way
    goal: Pair = (4.5, 4.5)
    goal_radius: float = 0.3
    fall_cost: float = 100.0
    stiffness: float = 1.0
    damping: float = 1.8
    max_push: float = 2.0
    before_gap: float = 0.75  # x of the first waypoint
    behind_gap: float = 2.75  # x of the second
    candidate_noise: float = 0.4
    variance_ratio: float = 1.5  # the behaviour policy's variance over the candidate's

    # -- the process -------------------------------------------------------------------------------------------

    def start(self, n: int, rng: np.random.Generator) -> Array:
        """Near the lower left corner, at rest, (n, 4)."""
        states = np.zeros((n, 4))
        spread = rng.uniform(-self.start_spread, self.start_spread, (n, 2))
        states[:, :2] = np.add(self.start_position, self.origin) + spread
        return states

    def step(self, states: Anything, actions: Anything, rng: np.random.Generator) -> tuple[Array, Array, BoolArray]:
        """One step of every state, (K, 4), under its action, (K, 2)."""
        noise = rng.standard_normal(states.shape)
        after = states.copy()
        after[:, :2] += self.time_step * states[:, 2:] + self.position_noise * noise[:, :2]
        after[:, 2:] += self.time_step * actions + self.velocity_noise * noise[:, 2:]
        now = np.zeros(len(states), dtype=np.int64)  # neither rewards nor ends depend on the time
        return after, self.reward(states, actions, after, now), self.terminated(states, actions, after, now)

    def reward(self, states: Anything, actions: Anything, next_states: Anything, t: Anything) -> Array:
        """Distance to the goal before the step, size of the push, and what a fall costs, all negative, (K,)."""
        # Column by column: sums over a short last axis are slow, and models roll out through here.
        cost: Array = np.abs(actions[:, 0]) + np.abs(actions[:, 1])
        for k in (0, 1):
            cost += np.abs(states[:, k] - (self.goal[k] + self.origin[k]))
        return -cost - self.fall_cost * self.fallen(next_states)

    def terminated(self, states: Anything, actions: Anything, next_states: Anything, t: Anything) -> BoolArray:
        """Fallen or arrived, (K,)."""
        gap = np.abs(next_states[:, :2] - np.add(self.goal, self.origin))
        arrived: BoolArray = np.maximum(gap[:, 0], gap[:, 1]) < self.goal_radius
        return self.fallen(next_states) | arrived

    def fallen(self, states: Anything) -> BoolArray:
        """Off the platform or on a cliff, (K,)."""
        x, y = states[:, 0] - self.origin[0], states[:, 1] - self.origin[1]
        off = (x < 0) | (x > self.size) | (y < 0) | (y > self.size)
        blocked = (x > self.cliffs[0]) & (x < self.cliffs[1]) & ((y < self.gap[0]) | (y > self.gap[1]))
        fallen: BoolArray = off | blocked
        return fallen

    # -- the policies ------------------------------------------------------------------------------------------

    def controller(self, states: Anything, t: Anything) -> Array:
        """The push towards the waypoint of each state, (K, 2)."""
        x, y = states[:, 0] - self.origin[0], states[:, 1] - self.origin[1]
        middle = 0.5 * (self.gap[0] + self.gap[1])
        level = np.abs(y - middle) < 0.5 * (self.gap[1] - self.gap[0])
        short, passed = (x < self.cliffs[0]) & ~level, x >= self.cliffs[1]
        push = np.empty_like(states[:, :2])  # column by column where the states are
        push[:, 0] = np.where(short, self.before_gap, np.where(passed, self.goal[0], self.behind_gap)) - x
        push[:, 1] = np.where(passed, self.goal[1], middle) - y
        push *= self.stiffness
        push -= self.damping * states[:, 2:]
        return np.clip(push, -self.max_push, self.max_push, out=push)

    @cached_property
    def candidate(self) -> GaussianPolicy:
        """The controller with little noise."""
        return GaussianPolicy(self.controller, self.candidate_noise**2 * np.eye(2))

    @cached_property
    def behavior(self) -> GaussianPolicy:
        """The controller with more noise."""
        return GaussianPolicy(self.controller, self.variance_ratio * self.candidate_noise**2 * np.eye(2))

    # -- the answers -------------------------------------------------------------------------------------------

    @cached_property
    def _values(self) -> tuple[Pair, Pair]:
        """(value, standard error) of the candidate and of the behaviour policy: stored, or simulated."""
        standard = CliffWorld()
        if replace(self, name=standard.name, about=standard.about, origin=standard.origin) == standard:
            return CANDIDATE_VALUE, BEHAVIOR_VALUE
        rng = np.random.default_rng(0)
        return mean_return(self, self.candidate, ROLLOUTS, rng=rng), mean_return(self, self.behavior, ROLLOUTS, rng=rng)

    @property
    def true_value(self) -> float:
        """The candidate's value, from roll-outs."""
        return self._values[0][0]

    @property
    def true_value_error(self) -> float:
        """Its standard error."""
        return self._values[0][1]

    @property
    def behavior_value(self) -> float:
        """The behaviour policy's value, from roll-outs."""
        return self._values[1][0]

    @property
    def behavior_value_error(self) -> float:
        """Its standard error."""
        return self._values[1][1]

    @property
    def max_ratio(self) -> float | None:
        """(σ_b / σ_e)² at the controller's own push, to the power of the horizon; None where it grows away from it."""
        return float(self.variance_ratio**self.horizon) if self.variance_ratio >= 1 else None

    def logs(self, n: int, *, rng: np.random.Generator) -> TrajectoryDataset:
        """n episodes of the behaviour policy. Pushes are unbounded, so rewards have a ceiling and no floor."""
        return simulate(
            self, self.behavior, n, rng=rng, candidate=self.candidate, reward_range=(-np.inf, 0.0), return_range=None
        )

    def configuration(self) -> dict[str, Any]:
        """Every number."""
        return {name: value for name, value in asdict(self).items() if name != "about"}
