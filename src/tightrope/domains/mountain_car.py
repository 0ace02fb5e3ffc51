"""Mountain car on a grid: the first domain of "Bootstrapping with Models", after Jiang and Li (2016).

A car too weak to climb the hill must swing. An action (push left, none, right) is held for four updates of the usual
dynamics (Gymnasium's MountainCar), and stops at the goal; then the state is snapped to the nearest cell of a grid. The
next cell is a function of cell and action, so this is a finite process in its own right, not an approximation of one,
and values are exact. Every decision costs 1. The episode ends when the snapped position is at the goal.

Starts are uniform over all cells short of the goal: from the valley alone the behaviour policy nearly never arrives,
and importance sampling would need 1e5 episodes.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.base.policy import TabularPolicy
from tightrope.domains.episodes import simulate

Anything = npt.NDArray[Any]
ACTIONS = 3  # push left, none, right


@dataclass(frozen=True)
class MountainCar:
    """The snapped mountain car; the behaviour policy pushes at random, the candidate leans to where the goal is."""

    name: ClassVar[str] = "mountain-car"
    about: ClassVar[str] = "swing a weak car up a hill: a finite process, deterministic moves, a long horizon"

    min_position: float = -1.2
    max_position: float = 0.6
    max_speed: float = 0.07
    goal_position: float = 0.5
    force: float = 0.001
    gravity: float = 0.0025
    held_updates: int = 4  # per decision
    position_cells: int = 32  # per unit; Jiang and Li have 64
    velocity_cells: int = 128  # per unit; Jiang and Li have 256
    horizon: int = 100
    discount: float = 1.0
    decision_reward: float = -1.0
    inverse_temperature: float = 1.0  # β of the candidate's soft values
    mixture: float = 0.324  # the candidate's share of the soft-optimal policy; the rest is uniform

    # -- the process -------------------------------------------------------------------------------------------

    def update(self, position: Array, velocity: Array, actions: Anything) -> tuple[Array, Array]:
        """One update of the dynamics, not snapped: v + 0.001 (a - 1) - 0.0025 cos 3x, then x + v, within limits."""
        velocity = velocity + self.force * (actions - 1) - self.gravity * np.cos(3.0 * position)
        velocity = np.clip(velocity, -self.max_speed, self.max_speed)
        position = np.clip(position + velocity, self.min_position, self.max_position)
        at_wall = (position == self.min_position) & (velocity < 0)
        return position, np.where(at_wall, 0.0, velocity)

    @cached_property
    def _axes(self) -> tuple[IntArray, IntArray]:
        """The cells of positions and of velocities, numbered from the cell of 0."""
        low, high = np.rint(self.position_cells * np.array([self.min_position, self.max_position])).astype(np.int64)
        top = int(np.rint(self.velocity_cells * self.max_speed))
        return np.arange(low, high + 1), np.arange(-top, top + 1)

    @property
    def shape(self) -> tuple[int, int]:
        """How many positions and velocities the grid has; state = position cell · velocities + velocity cell."""
        positions, velocities = self._axes
        return len(positions), len(velocities)

    @cached_property
    def positions(self) -> Array:
        """The position of each state, (S,)."""
        return np.repeat(self._axes[0] / self.position_cells, self.shape[1])

    @cached_property
    def velocities(self) -> Array:
        """The velocity of each state, (S,)."""
        return np.tile(self._axes[1] / self.velocity_cells, self.shape[0])

    @cached_property
    def at_goal(self) -> BoolArray:
        """Whether each state is at the goal, (S,)."""
        reached: BoolArray = self.positions >= self.goal_position
        return reached

    def snap(self, position: Array, velocity: Array) -> IntArray:
        """The state nearest to each position and velocity."""
        cells = (np.rint(self.position_cells * position), np.rint(self.velocity_cells * velocity))
        row, column = (cell.astype(np.int64) - axis[0] for cell, axis in zip(cells, self._axes, strict=True))
        numbers: IntArray = row * self.shape[1] + column
        return numbers

    @cached_property
    def next_states(self) -> IntArray:
        """The state after each decision, (S, A)."""
        actions = np.arange(ACTIONS)
        position, velocity = (np.repeat(part[:, None], ACTIONS, axis=1) for part in (self.positions, self.velocities))
        arrived = np.zeros(position.shape, dtype=np.bool_)
        for _ in range(self.held_updates):
            moved = self.update(position, velocity, actions)
            position, velocity = np.where(arrived, (position, velocity), moved)
            arrived |= position >= self.goal_position
        return self.snap(position, velocity)

    def reward(self, states: Anything, actions: Anything, next_states: Anything, t: Anything) -> Array:
        """The same for every decision, (K,)."""
        return np.full(len(states), self.decision_reward)

    def terminated(self, states: Anything, actions: Anything, next_states: Anything, t: Anything) -> BoolArray:
        """Whether the goal is reached, (K,)."""
        return self.at_goal[next_states]

    def start(self, n: int, rng: np.random.Generator) -> IntArray:
        """Uniform over the cells short of the goal, (n,)."""
        return rng.choice(np.flatnonzero(~self.at_goal), n)

    def step(self, states: Anything, actions: Anything, rng: np.random.Generator) -> tuple[IntArray, Array, BoolArray]:
        """One decision in each state; nothing about it is random."""
        after = self.next_states[states, actions]
        now = np.zeros(len(states), dtype=np.int64)  # neither rewards nor ends depend on the time
        return after, self.reward(states, actions, after, now), self.terminated(states, actions, after, now)

    # -- the policies ------------------------------------------------------------------------------------------

    @cached_property
    def behavior(self) -> TabularPolicy:
        """All actions with the same probability."""
        return TabularPolicy(np.full((len(self.positions), ACTIONS), 1.0 / ACTIONS))

    @cached_property
    def candidate(self) -> TabularPolicy:
        """A mixture of the uniform policy and softmax(β Q), Q soft-optimal for a price of KL to uniform over β.

        V(s) = log(mean_a exp(β Q(s, a))) / β with Q(s, a) = r + γ V(s'), 0 at the goal; as many backups as the horizon.
        """
        beta, value = self.inverse_temperature, np.zeros(len(self.positions))
        for _ in range(self.horizon):
            action_values = self._backup(value)
            top = action_values.max(axis=1, keepdims=True)
            odds = np.exp(beta * (action_values - top))
            value = top[:, 0] + np.log(odds.mean(axis=1)) / beta
        soft = odds / odds.sum(axis=1, keepdims=True)
        return TabularPolicy(self.mixture * soft + (1.0 - self.mixture) * self.behavior.table)

    def _backup(self, value: Array) -> Array:
        """Reward and discounted value of what follows, (S, A)."""
        after: Array = self.decision_reward + self.discount * np.where(self.at_goal, 0.0, value)[self.next_states]
        return after

    # -- the answers -------------------------------------------------------------------------------------------

    def value(self, policy: TabularPolicy) -> float:
        """A policy's value, exactly, by backward induction over the horizon."""
        value = np.zeros(len(self.positions))
        for _ in range(self.horizon):
            value = (policy.table * self._backup(value)).sum(axis=1)
        return float(value[~self.at_goal].mean())

    @cached_property
    def true_value(self) -> float:
        """The candidate's value, exactly."""
        return self.value(self.candidate)

    @cached_property
    def behavior_value(self) -> float:
        """The behaviour policy's value, exactly."""
        return self.value(self.behavior)

    true_value_error: ClassVar[float] = 0.0
    behavior_value_error: ClassVar[float] = 0.0

    @cached_property
    def max_ratio(self) -> float:
        """The largest product of ratios that any episode can have, by backward induction."""
        ratio = self.candidate.table / self.behavior.table
        largest = np.ones(len(self.positions))
        for _ in range(self.horizon):
            largest = (ratio * np.where(self.at_goal, 1.0, largest)[self.next_states]).max(axis=1)
        return float(largest[~self.at_goal].max())

    def logs(self, n: int, *, rng: np.random.Generator) -> TrajectoryDataset:
        """n episodes of the behaviour policy."""
        lowest = self.decision_reward * float(np.power(self.discount, np.arange(self.horizon)).sum())
        return simulate(
            self,
            self.behavior,
            n,
            rng=rng,
            candidate=self.candidate,
            reward_range=(self.decision_reward, 0.0),
            return_range=(lowest, 0.0),
        )

    def configuration(self) -> dict[str, Any]:
        """Every number."""
        return {
            "name": self.name,
            **asdict(self),
            "states": len(self.positions),
            "starts": "uniform over the cells short of the goal",
            "behavior": "uniform",
        }
