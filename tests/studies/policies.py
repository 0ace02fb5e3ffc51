"""Policies and an environment of a user, in a module that processes can import."""

import gymnasium
import numpy as np

from tightrope.base.policy import GaussianPolicy, SoftmaxPolicy, TabularPolicy


def _preferences(states, t):
    lean = 2 * (states[:, 2] + states[:, 3])
    return np.stack([-lean, lean], axis=1)


calm = SoftmaxPolicy(_preferences, temperature=2.0)
firm = SoftmaxPolicy(_preferences)
pushes = GaussianPolicy(lambda states, t: np.full((len(states), 1), 2.0), 1.0)
coin = TabularPolicy([[0.5, 0.5], [0.5, 0.5]])
bent = TabularPolicy([[0.2, 0.8], [0.2, 0.8]])


class Switch(gymnasium.Env):
    """The state is the last action; taking 1 earns 1 and ends the episode with probability 1/2."""

    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), float(action), bool(action and self.np_random.random() < 0.5), False, {}


gymnasium.register("Switch-v0", entry_point=Switch, max_episode_steps=3)
gymnasium.register("Endless-v0", entry_point=Switch)
