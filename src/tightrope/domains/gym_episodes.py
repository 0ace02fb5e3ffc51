"""Episodes of a Gymnasium environment under a policy, some side by side."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import TightropeError, policy_failed
from tightrope.base.extras import load_extra
from tightrope.base.policy import Actor, Policy, as_actor, open_uniforms, resolved
from tightrope.domains.episodes import Progress

Anything = npt.NDArray[Any]

WIDTH = 32  # environments stepped side by side


class GymEpisodes:
    """Episodes of at most ``horizon`` steps; an action outside the environment's box is logged as it is and clipped.

    ``environment`` is an id (or module:id), a function that makes an environment, or an environment itself. Of the
    first two several are made and stepped side by side.
    """

    def __init__(self, environment: Any, horizon: int):
        if horizon < 1:
            raise TightropeError(f"horizon must be at least 1; got {horizon}")
        self.environment, self.horizon = environment, horizon
        self._vectors: dict[int, Any] = {}

    @cached_property
    def name(self) -> str:
        """The environment, for people."""
        return name_of(self.environment)

    def logs(
        self,
        policy: Policy,
        n: int,
        rng: np.random.Generator,
        *,
        logged: bool = False,
        progress: Progress | None = None,
        **declared: Any,
    ) -> TrajectoryDataset:
        """n episodes, each batch from a fresh seed of its own; ``logged`` with the policy's probabilities."""
        parts: list[dict[str, Anything]] = []
        width = min(n, WIDTH) if isinstance(self.environment, str) or callable(self.environment) else 1
        for first in range(0, n, width):
            parts += self._batch(policy, first, min(width, n - first), width, rng)
            if logged and first == 0:  # refuse a policy without probabilities now, and not after all episodes
                policy.log_prob(parts[0]["state"], parts[0]["action"], parts[0]["t"])
            if progress is not None:
                progress(min(1.0, (first + width) / n))
        flat = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.argsort(flat["episode"], kind="stable")
        flat = {name: values[order] for name, values in flat.items()}
        offsets = np.append(np.flatnonzero(flat["t"] == 0), len(order))
        last, states, actions = offsets[1:] - 1, flat["state"], flat["action"]
        return TrajectoryDataset(
            offsets=offsets,
            rewards=flat["reward"],
            terminated=flat["terminated"][last],
            horizon=self.horizon,
            behavior_log_probs=policy.log_prob(states, actions, flat["t"]) if logged else None,
            states=states,
            actions=actions,
            final_states=flat["next"][last] if self._shows_last(width) else None,
            behavior=policy if logged else None,
            **declared,
        )

    def _batch(
        self, policy: Policy, first: int, count: int, width: int, rng: np.random.Generator
    ) -> list[dict[str, Anything]]:
        """The steps of ``count`` episodes by time; environments that have ended go on unrecorded until all have."""
        envs = self._vector(width)
        state = self._states(envs.reset(seed=int(rng.integers(2**62)))[0], width)
        actor = as_actor(resolved(policy, state, np.zeros(width, dtype=np.int64)))
        alive, record = np.arange(count), []
        for t in range(self.horizon):
            action = _chosen(actor, state, np.full(width, t), open_uniforms(rng, (width, actor.noise_width)))
            allowed = self._allowed(envs.single_action_space, action)
            observed, reward, terminated, truncated, _ = envs.step(allowed)
            after = self._states(observed, width)
            step = {"state": state, "action": action, "reward": reward, "next": after, "terminated": terminated}
            there = {name: np.array(values)[alive] for name, values in step.items()}
            record.append({"episode": first + alive, "t": np.full(len(alive), t), **there})
            if (truncated & ~terminated)[alive].any() and t + 1 < self.horizon:
                raise TightropeError(
                    f"{self.name} cut an episode off after {t + 1} steps, before the horizon of {self.horizon}: "
                    f"what it would have earned is not known. Give a horizon of {t + 1} or less"
                )
            alive, state = alive[~terminated[alive]], after
            if not len(alive):
                break
        return record

    def _vector(self, width: int) -> Any:
        """That many environments, made once."""
        if width not in self._vectors:
            gymnasium = _gymnasium()
            one = self.environment
            with _making(one):
                if isinstance(one, str):
                    self._vectors[width] = gymnasium.make_vec(one, num_envs=width)
                else:
                    make = one if callable(one) else lambda: one
                    self._vectors[width] = gymnasium.vector.SyncVectorEnv([make] * width)
        return self._vectors[width]

    def _shows_last(self, width: int) -> bool:
        """Whether the state after an episode's last step is seen, not the first one of the next episode."""
        mode = self._vector(width).metadata.get("autoreset_mode")
        return getattr(mode, "name", None) in ("NEXT_STEP", "DISABLED")

    def _states(self, observed: Any, width: int) -> Anything:
        """One number or one row of numbers per environment."""
        if not isinstance(observed, np.ndarray) or observed.dtype.kind not in "iuf":
            raise TightropeError(
                f"{self.name} must observe numbers or rows of numbers; it observes "
                f"{type(observed).__name__}. Wrap it in gymnasium.wrappers.FlattenObservation and register that"
            )
        if observed.dtype.kind in "iu" and observed.ndim == 1:
            return observed.astype(np.int64)
        return observed.reshape(width, -1).astype(np.float64)

    def _allowed(self, space: Any, actions: Anything) -> Anything:
        """The actions as the environment takes them."""
        if hasattr(space, "n") and space.shape == ():
            if actions.ndim != 1 or actions.dtype.kind not in "iu" or not ((actions >= 0) & (actions < space.n)).all():
                raise TightropeError(
                    f"the policy must take actions 0 to {space.n - 1}, whole numbers, in {self.name}; it took "
                    f"{actions[0]!r} ({actions.dtype})"
                )
            moved: Anything = actions + space.start
            return moved
        width = int(np.prod(space.shape or (), dtype=int))
        if not hasattr(space, "low") or actions.dtype.kind != "f" or actions.size != len(actions) * width:
            raise TightropeError(
                f"the policy must take actions of {space} in {self.name}, and these must be numbered or boxes of "
                f"floats; it took {actions[0]!r} ({actions.dtype})"
            )
        shaped = actions.reshape(len(actions), *space.shape)
        clipped: Anything = np.clip(shaped, space.low, space.high).astype(space.dtype)
        return clipped


def _chosen(actor: Actor, states: Anything, t: Anything, uniforms: Anything) -> Anything:
    """The actions that the user's policy takes."""
    try:
        return np.asarray(actor.act(states, t, uniforms))
    except TightropeError:
        raise
    except Exception as error:  # the user's own code
        raise policy_failed(states, error) from error


def name_of(environment: Any) -> str:
    """The environment, for people."""
    if isinstance(environment, str):
        return environment
    specification = getattr(environment, "spec", None)
    known = getattr(specification, "id", None) or getattr(environment, "__name__", None)
    return str(known or type(getattr(environment, "unwrapped", environment)).__name__)


def horizon_of(environment: Any, horizon: int | None) -> int:
    """How many steps count: as given, or where the environment itself cuts episodes off; refused beyond that."""
    longest = longest_episode(environment)
    wanted = longest if horizon is None else horizon
    if wanted is None:
        raise TightropeError(
            f"horizon must be given (--horizon), because {name_of(environment)} does not say when an episode ends"
        )
    if longest is not None and wanted > longest:
        raise TightropeError(
            f"horizon must be at most {longest}, because {name_of(environment)} cuts episodes off there; got {wanted}"
        )
    return wanted


def longest_episode(environment: Any) -> int | None:
    """After how many steps the environment cuts an episode off; None where it does not say."""
    env = one_of(environment)
    steps: int | None = getattr(env.spec, "max_episode_steps", None)
    layer = env
    while steps is None and layer is not None:  # a TimeLimit around an environment that was never registered
        steps = getattr(layer, "_max_episode_steps", None)
        layer = getattr(layer, "env", None)
    if env is not environment:
        env.close()
    return steps


def one_of(environment: Any) -> Any:
    """One environment: the given one, or a new one of this id or by this function."""
    gymnasium = _gymnasium()
    with _making(environment):
        env = gymnasium.make(environment) if isinstance(environment, str) else environment
        env = env() if callable(env) else env
    if not isinstance(env, gymnasium.Env):
        raise TightropeError(
            "env must be the id of a Gymnasium environment, such as CartPole-v1, an environment, or a function that "
            f"makes one; got {type(env).__name__}"
        )
    return env


def _gymnasium() -> Any:
    return load_extra("gymnasium", "gym", "a Gymnasium environment")


@contextmanager
def _making(environment: Any) -> Iterator[None]:
    """Turn whatever fails while an environment is made into our own error."""
    try:
        yield
    except TightropeError:
        raise
    except Exception as error:  # of Gymnasium, of an import, or of the user's own code
        raise TightropeError(f"environment {name_of(environment)!r} cannot be made: {error}") from error
