"""The paper's domains as Gymnasium environments, one at a time or many side by side.

Importing this module registers them; Gymnasium does it too when the id names the module:

    gymnasium.make("tightrope.domains.environments:tightrope/CliffWorld-v0")
    gymnasium.make_vec("tightrope/MountainCar-v0", num_envs=64, vectorization_mode="vector_entry_point")

Numbers of a domain are given by name, ``gymnasium.make(..., fall_cost=50.0)``; the horizon is Gymnasium's
``max_episode_steps``. Both kinds step the domain's own ``step``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tightrope.base.extras import load_extra
from tightrope.domains.base import Process
from tightrope.domains.cliff_world import CliffWorld
from tightrope.domains.mountain_car import ACTIONS, MountainCar

if TYPE_CHECKING:
    import gymnasium
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space
else:
    gymnasium = load_extra("gymnasium", "gym", "tightrope.domains.environments")
    from gymnasium import spaces
    from gymnasium.vector import AutoresetMode, VectorEnv
    from gymnasium.vector.utils import batch_space

MAX_PUSH = 5.0  # declared, not enforced: either policy pushes harder once in 1e9 steps
Spaces = tuple["spaces.Space[Any]", "spaces.Space[Any]"]


class DomainEnv(gymnasium.Env[Any, Any]):
    """One episode at a time."""

    metadata: dict[str, Any] = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(self, process: Process, spaces: Spaces):
        self.process = process
        self.observation_space, self.action_space = spaces
        self.render_mode = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """A new episode; there are no options."""
        super().reset(seed=seed)
        self._states = self.process.start(1, self.np_random)
        return self._states[0], {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One decision."""
        self._states, reward, ended = self.process.step(self._states, np.asarray(action)[None], self.np_random)
        return self._states[0], float(reward[0]), bool(ended[0]), False, {}


class DomainVectorEnv(VectorEnv[Any, Any, Any]):
    """Many episodes side by side; one that is over starts again at the next step, whose action is not used."""

    metadata: dict[str, Any] = {"render_modes": [], "autoreset_mode": AutoresetMode.NEXT_STEP}  # noqa: RUF012

    def __init__(self, process: Process, spaces: Spaces, num_envs: int, max_episode_steps: int | None):
        self.process, self.num_envs = process, num_envs
        self.max_episode_steps = process.horizon if max_episode_steps is None else max_episode_steps
        self.single_observation_space, self.single_action_space = spaces
        self.observation_space, self.action_space = (batch_space(space, num_envs) for space in spaces)
        self.render_mode = None

    def reset(self, *, seed: Any = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        """New episodes everywhere, all from one generator; there are no options."""
        super().reset(seed=seed)
        self._states = self.process.start(self.num_envs, self.np_random)
        self._steps = np.zeros(self.num_envs, dtype=np.int64)
        self._over = np.zeros(self.num_envs, dtype=np.bool_)
        return self._states.copy(), {}

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """One decision in every episode that goes on, a start in the others."""
        over, going = self._over, ~self._over
        rewards, ended = np.zeros(self.num_envs), np.zeros(self.num_envs, dtype=np.bool_)
        after, rewards[going], ended[going] = self.process.step(
            self._states[going], np.asarray(actions)[going], self.np_random
        )
        self._states[going] = after
        self._states[over] = self.process.start(int(over.sum()), self.np_random)
        self._steps = np.where(over, 0, self._steps + 1)
        truncated = self._steps >= self.max_episode_steps
        self._over = ended | truncated
        return self._states.copy(), rewards, ended, truncated, {}


def _mountain_car(**numbers: Any) -> tuple[Process, Spaces]:
    car = MountainCar(**numbers)
    return car, (spaces.Discrete(len(car.positions)), spaces.Discrete(ACTIONS))


def _cliff_world(**numbers: Any) -> tuple[Process, Spaces]:
    """Pushes up to MAX_PUSH, and what they and noise of ten standard deviations can lead to; nothing is clipped."""
    world = CliffWorld(**numbers)
    speed = world.horizon * (world.time_step * MAX_PUSH + 10 * world.velocity_noise)
    beyond = world.time_step * speed + 10 * world.position_noise
    low = np.array([world.origin[0] - beyond, world.origin[1] - beyond, -speed, -speed])
    high = np.array([world.origin[0] + world.size + beyond, world.origin[1] + world.size + beyond, speed, speed])
    return world, (spaces.Box(low, high, dtype=np.float64), spaces.Box(-MAX_PUSH, MAX_PUSH, (2,), np.float64))


class MountainCarEnv(DomainEnv):
    """One mountain car; observes the number of its cell."""

    def __init__(self, **numbers: Any):
        super().__init__(*_mountain_car(**numbers))


class MountainCarVectorEnv(DomainVectorEnv):
    """Many mountain cars."""

    def __init__(self, num_envs: int = 1, max_episode_steps: int | None = None, **numbers: Any):
        super().__init__(*_mountain_car(**numbers), num_envs, max_episode_steps)


class CliffWorldEnv(DomainEnv):
    """One cliff world; observes position and velocity."""

    def __init__(self, **numbers: Any):
        super().__init__(*_cliff_world(**numbers))


class CliffWorldVectorEnv(DomainVectorEnv):
    """Many cliff worlds."""

    def __init__(self, num_envs: int = 1, max_episode_steps: int | None = None, **numbers: Any):
        super().__init__(*_cliff_world(**numbers), num_envs, max_episode_steps)


for _name, _horizon in (("MountainCar", MountainCar.horizon), ("CliffWorld", CliffWorld.horizon)):
    gymnasium.register(
        f"tightrope/{_name}-v0",
        entry_point=f"{__name__}:{_name}Env",
        vector_entry_point=f"{__name__}:{_name}VectorEnv",
        max_episode_steps=_horizon,
    )
