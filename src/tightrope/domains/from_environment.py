"""A Gymnasium environment and two policies as a domain: logs of one policy, and the other's value by roll-outs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from importlib.metadata import version
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.content import digest, imported_digest
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.extras import load_extra
from tightrope.base.policy import Policy, as_actor, open_uniforms, resolved

Anything = npt.NDArray[Any]
Range = tuple[float, float]

WIDTH = 32  # environments stepped side by side
BLOCK = 1000  # episodes kept in memory when only their returns are wanted


@dataclass(frozen=True, eq=False)
class EnvironmentDomain:
    """Episodes of at most ``horizon`` steps; an action outside the environment's box is logged as it is and clipped."""

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
        if self.horizon < 1:
            raise TightropeError(f"horizon must be at least 1; got {self.horizon}")
        if self.truth_rollouts < 2:
            raise TightropeError(f"truth_rollouts must be at least 2, for a standard error; got {self.truth_rollouts}")
        object.__setattr__(self, "_vectors", {})

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

    def _episodes(self, policy: Policy, n: int, rng: np.random.Generator, *, logged: bool = False) -> TrajectoryDataset:
        """n episodes, some side by side, each batch from a fresh seed of its own."""
        parts: list[dict[str, Anything]] = []
        width = min(n, WIDTH)
        for first in range(0, n, width):
            parts += self._batch(policy, first, min(width, n - first), width, rng)
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
            discount=self.discount,
            behavior_log_probs=policy.log_prob(states, actions, flat["t"]) if logged else None,
            states=states,
            actions=actions,
            final_states=flat["next"][last] if self._shows_last(width) else None,
            reward_range=self.reward_range,
            behavior=policy if logged else None,
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
            action = actor.act(state, np.full(width, t), open_uniforms(rng, (width, actor.noise_width)))
            observed, reward, terminated, truncated, _ = envs.step(_allowed(envs.single_action_space, action))
            after = self._states(observed, width)
            step = {"state": state, "action": action, "reward": reward, "next": after, "terminated": terminated}
            columns = {name: np.array(values)[alive] for name, values in step.items()}
            record.append({"episode": first + alive, "t": np.full(len(alive), t), **columns})
            if (truncated & ~terminated)[alive].any() and t + 1 < self.horizon:
                raise TightropeError(
                    f"{self.environment} cut an episode off after {t + 1} steps, before the horizon of {self.horizon}: "
                    f"what it would have earned is not known. Give a horizon of {t + 1} or less"
                )
            alive, state = alive[~terminated[alive]], after
            if not len(alive):
                break
        return record

    def _vector(self, width: int) -> Any:
        """That many environments, made once."""
        vectors: dict[int, Any] = self._vectors  # type: ignore[attr-defined]
        if width not in vectors:
            gymnasium = load_extra("gymnasium", "gym", "a Gymnasium environment as a domain")
            try:
                vectors[width] = gymnasium.make_vec(self.environment, num_envs=width)
            except (gymnasium.error.Error, ImportError) as error:
                raise TightropeError(f"environment {self.environment!r} cannot be made: {error}") from error
        return vectors[width]

    def _shows_last(self, width: int) -> bool:
        """Whether the state after an episode's last step is seen, not the first one of the next episode."""
        mode = self._vector(width).metadata.get("autoreset_mode")
        return getattr(mode, "name", None) in ("NEXT_STEP", "DISABLED")

    def _states(self, observed: Any, width: int) -> Anything:
        """One number or one row of numbers per environment."""
        if not isinstance(observed, np.ndarray) or observed.dtype.kind not in "iuf":
            raise TightropeError(
                f"{self.environment} must observe numbers or rows of numbers; it observes "
                f"{type(observed).__name__}. Wrap it in gymnasium.wrappers.FlattenObservation and register that"
            )
        if observed.dtype.kind in "iu" and observed.ndim == 1:
            return observed.astype(np.int64)
        return observed.reshape(width, -1).astype(np.float64)


def _allowed(space: Any, actions: Anything) -> Anything:
    """The actions as the environment takes them."""
    if hasattr(space, "n"):
        moved: Anything = actions + space.start
        return moved
    shaped = actions.reshape(len(actions), *space.shape)
    clipped: Anything = np.clip(shaped, space.low, space.high).astype(space.dtype)
    return clipped


def longest_episode(environment: str) -> int | None:
    """After how many steps the environment cuts an episode off; None where it never does."""
    steps: int | None = _specification(environment).max_episode_steps
    return steps


def environment_digest(environment: str) -> str:
    """A hash of how the environment was registered, its arguments among it, and of the source of what makes it."""
    specification = _specification(environment)
    makers = [one for one in (specification.entry_point, specification.vector_entry_point) if one is not None]
    sources = [imported_digest(one.partition(":")[0] if isinstance(one, str) else one.__module__) for one in makers]
    return digest(specification, sources)


def _specification(environment: str) -> Any:
    gymnasium = load_extra("gymnasium", "gym", "a Gymnasium environment as a domain")
    try:
        instance = gymnasium.make(environment)  # unlike ``spec``, this imports the module that the id names
    except (gymnasium.error.Error, ImportError) as error:
        raise TightropeError(f"environment {environment!r} cannot be made: {error}") from error
    instance.close()
    return instance.spec
