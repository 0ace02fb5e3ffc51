"""Stable-Baselines3: PPO and A2C by their distribution, SAC with its action scaling undone, the rest without noise.

Continuous actions are those of the distribution, as the rollout buffer holds them; ``predict`` clips PPO's to the
bounds of the action space, and a clipped action has no density: logs with actions exactly on a bound are refused.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.adapters.outputs import DensityPolicy, Times, labelled
from tightrope.adapters.torch_distributions import to_numpy
from tightrope.adapters.torch_modules import evaluating
from tightrope.base.errors import PolicyError
from tightrope.base.policy import CallablePolicy, DeterministicControl, DeterministicPolicy, Policy
from tightrope.base.policy.base import Anything, Array, in_chunks

LARGEST_SQUASHED = 1.0 - float(np.finfo(np.float32).eps)  # where Stable-Baselines3 stops inverting tanh


def recognise(model: Any) -> Policy | None:
    """The policy of a model or policy of Stable-Baselines3, DQN's as the greedy one; None for anything else."""
    if not any(cls.__module__.startswith("stable_baselines3.") for cls in type(model).__mro__):
        return None
    policy, name = getattr(model, "policy", model), type(model).__name__
    kinds = {cls.__name__ for cls in type(policy).__mro__}
    if getattr(model, "get_vec_normalize_env", lambda: None)() is not None:
        raise PolicyError(
            f"the {name} was trained on normalised observations (VecNormalize). If the logs hold normalised ones, give "
            "model.policy; if not, give a function that normalises first"
        )
    if type(policy).__name__.startswith("Recurrent"):
        raise PolicyError(
            f"{name} remembers earlier steps, so its probabilities do not follow from the logged state alone"
        )
    if getattr(policy, "use_sde", False):
        raise PolicyError(
            f"{name} was trained with state-dependent exploration (use_sde=True): its noise is held over several "
            "steps, so the probabilities of an episode's actions do not multiply"
        )
    if "ActorCriticPolicy" in kinds:
        return _actor_critic(policy)
    if "SACPolicy" in kinds:
        return _squashed(policy)
    if "DQNPolicy" in kinds:
        return DeterministicPolicy(lambda s, t: _predict(policy, s), int(policy.action_space.n))
    if "TD3Policy" in kinds:
        return DeterministicControl(lambda s, t: _predict(policy, s), _width(policy))
    raise PolicyError(f"the model must be PPO, A2C, SAC, TD3, DDPG or DQN; got {name}. Wrap its probabilities yourself")


def _actor_critic(policy: Any) -> Policy:
    """PPO, A2C and their kin."""
    space = type(policy.action_space).__name__
    if space == "Discrete":
        return labelled(
            lambda s, t: to_numpy(_distribution(policy, s).distribution.logits), np.arange(policy.action_space.n)
        )
    if space == "Box":
        return _gaussian(policy)

    def several(states: Anything, actions: Anything, t: Times) -> Array:
        import torch

        given = torch.as_tensor(actions, dtype=torch.float32).reshape(len(actions), -1)
        return to_numpy(_distribution(policy, states).log_prob(given))

    return CallablePolicy(lambda s, a, t: in_chunks(several, s, a, t), log=True)


def _gaussian(policy: Any) -> Policy:
    """A diagonal Gaussian, not clipped."""
    low, high = policy.action_space.low.reshape(-1), policy.action_space.high.reshape(-1)

    def parts(states: Anything) -> tuple[Array, Array]:
        normal = _distribution(policy, states).distribution
        return to_numpy(normal.mean), to_numpy(normal.stddev)

    def density(states: Anything, actions: Array, t: Times) -> Array:
        clipped = ((actions == low) | (actions == high)).any(axis=1)
        if clipped.any():
            raise PolicyError(
                f"a logged action lies exactly on the bounds of the policy's action space ({clipped.mean():.0%} do): "
                "predict() clipped it, and its density is lost. Log the actions before they are clipped",
                row=int(np.argmax(clipped)),
            )
        return _normal_log_density(actions, *parts(states))

    def draw(states: Anything, t: Times, uniforms: Array) -> Array:
        from scipy.special import ndtri

        mean, deviation = parts(states)
        return np.asarray(mean + deviation * ndtri(uniforms))

    return DensityPolicy(density, draw, _width(policy))


def _squashed(policy: Any) -> Policy:
    """SAC: a = low + (tanh(u) + 1)(high − low)/2 with Gaussian u, so that p(a) = p(u) / |da/du|."""
    low, high = (
        np.asarray(end, dtype=np.float64).reshape(-1) for end in (policy.action_space.low, policy.action_space.high)
    )
    slack = float(policy.actor.action_dist.epsilon)  # as in the library's own log-densities

    def parts(states: Anything) -> tuple[Array, Array]:
        import torch

        with evaluating(policy), torch.no_grad():
            mean, log_deviation, _ = policy.actor.get_action_dist_params(_observe(policy, states))
        return to_numpy(mean), np.exp(to_numpy(log_deviation))

    def density(states: Anything, actions: Array, t: Times) -> Array:
        scaled = 2.0 * (actions - low) / (high - low) - 1.0
        inside = np.clip(scaled, -LARGEST_SQUASHED, LARGEST_SQUASHED)
        flattened = np.log(1.0 - np.square(np.clip(scaled, -1.0, 1.0)) + slack) + np.log((high - low) / 2.0)
        result = _normal_log_density(np.arctanh(inside), *parts(states)) - flattened.sum(axis=1)
        return np.where((np.abs(scaled) > 1.0 + 1e-6).any(axis=1), -np.inf, result)

    def draw(states: Anything, t: Times, uniforms: Array) -> Array:
        from scipy.special import ndtri

        mean, deviation = parts(states)
        return np.asarray(low + (np.tanh(mean + deviation * ndtri(uniforms)) + 1.0) * (high - low) / 2.0)

    return DensityPolicy(density, draw, _width(policy))


def _normal_log_density(values: Array, mean: Array, deviation: Array) -> Array:
    """Σ_k log N(value_k; mean_k, deviation_k), (N,)."""
    each = -0.5 * np.square((values - mean) / deviation) - np.log(deviation) - 0.5 * np.log(2 * np.pi)
    total: Array = each.sum(axis=1)
    return total


def _distribution(policy: Any, states: Anything) -> Any:
    import torch

    with evaluating(policy), torch.no_grad():
        return policy.get_distribution(_observe(policy, states))


def _predict(policy: Any, states: Anything) -> Anything:
    """The action without noise, in the environment's units."""

    def ask(rows: Anything) -> Anything:
        with evaluating(policy):
            return np.asarray(policy.predict(_rows(policy, rows), deterministic=True)[0])

    return in_chunks(ask, states)


def _observe(policy: Any, states: Anything) -> Any:
    return policy.obs_to_tensor(_rows(policy, states))[0]


def _rows(policy: Any, states: Anything) -> Anything:
    """States in the shape and type of the policy's observations."""
    space = policy.observation_space
    if space.shape is None or type(space).__name__ in ("Dict", "Tuple"):
        raise PolicyError(
            "the policy must observe one array of numbers per step, as logs hold it; it observes a "
            f"{type(space).__name__}"
        )
    if np.prod(space.shape, dtype=int) != np.prod(states.shape[1:], dtype=int):
        raise PolicyError(
            f"states must have shape {space.shape} per step for this policy; the logs hold {states.shape[1:]}"
        )
    return states.reshape(len(states), *space.shape).astype(space.dtype)


def _width(policy: Any) -> int:
    return int(np.prod(policy.action_space.shape, dtype=int))
