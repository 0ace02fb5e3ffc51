"""Episodes of a Gymnasium environment, logged with the probabilities that importance sampling needs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tightrope.adapters.load import formed
from tightrope.base.checks import is_number
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import NoOverlapError, PolicyError, TightropeError
from tightrope.base.names import suggests_keywords
from tightrope.domains.episodes import Progress
from tightrope.domains.gym_episodes import GymEpisodes, horizon_of


@suggests_keywords
def log_episodes(
    env: Any,
    policy: Any,
    *,
    episodes: int,
    epsilon: float | None = None,
    sigma: Sequence[float] | float | None = None,
    deterministic: bool = False,
    horizon: int | None = None,
    discount: float = 1.0,
    seed: int | np.random.Generator = 0,
    progress: Progress | None = None,
) -> TrajectoryDataset:
    """Let a policy act in a Gymnasium environment, and log every step with the probability of its action.

    - ``env``: the id of an environment, an environment, or a function that makes one. Of an id or a function several
      are made and stepped side by side.
    - ``policy``: anything that ``evaluate`` takes, or the path of a policy. An action outside the environment's box is
      logged as it is, with its density, and clipped for the environment.
    - ``epsilon``, ``sigma``: noise that is added to the policy, as in ``softened``.
    - ``deterministic``: the greedy form of the policy, to which noise may be added.
    - ``horizon``: how many steps count; None takes the environment's own limit. An episode that ends before it must
      have ended for good.
    - ``seed``: the same whole number gives the same logs.
    - ``progress``: a function that is called with the share done, from 0 to 1.

    >>> import tightrope
    >>> logs = tightrope.log_episodes("CartPole-v1", tightrope.UniformPolicy(2), episodes=5, horizon=10)
    >>> logs
    <TrajectoryDataset: 5 episodes, 50 steps, horizon 10, discount 1>
    >>> tightrope.write(logs, "logs.parquet")
    """
    if not is_number(episodes) or episodes < 1 or episodes % 1 != 0:
        raise TightropeError(f"episodes must be a whole number, at least 1; got {episodes!r}")
    behavior = formed(policy, epsilon=epsilon, sigma=sigma, deterministic=deterministic)
    try:
        rng = np.random.default_rng(seed)
    except (TypeError, ValueError) as error:
        raise TightropeError(f"seed must be a whole number, 0 or more, or a generator; got {seed!r}") from error
    gym = GymEpisodes(env, horizon_of(env, horizon))
    try:
        return gym.logs(behavior, int(episodes), rng, logged=True, progress=progress, discount=discount)
    except NoOverlapError as error:
        raise PolicyError(
            "policy must have a density to be logged, and without noise over continuous actions it has none: logs of "
            "it say nothing about another policy. Add noise: sigma=0.1 (--sigma 0.1)"
        ) from error
