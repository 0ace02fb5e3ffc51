"""Policies that act without noise, and the noise that their owner declares."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.adapters import d3rlpy_algos, stable_baselines
from tightrope.adapters.outputs import LabelledPolicy
from tightrope.base.checks import numbers
from tightrope.base.errors import PolicyError
from tightrope.base.names import suggests_keywords
from tightrope.base.policy import (
    DeterministicControl,
    DeterministicPolicy,
    GaussianPolicy,
    MixturePolicy,
    Policy,
    TabularPolicy,
    UniformPolicy,
    as_policy,
)


def from_learner(model: Any) -> Policy | None:
    """A policy of Stable-Baselines3 or d3rlpy; refuses greedy ones: only their owner knows how they explore."""
    policy = recognise(model)
    if isinstance(policy, DeterministicPolicy):
        raise PolicyError(
            f"{type(model).__name__} has no action probabilities, only a greedy action. Say how often it acts at "
            "random instead: softened(model, epsilon=0.05), --epsilon 0.05 (0 for never)"
        )
    return policy


@suggests_keywords
def softened(
    policy: Any,
    *,
    epsilon: float | None = None,
    sigma: npt.ArrayLike | None = None,
    n_actions: int | None = None,
) -> Policy:
    """The policy with noise that you declare: ``epsilon`` for discrete actions, ``sigma`` for continuous ones.

    With ``epsilon`` it takes one of all actions at random with probability ε, and else acts as the policy does;
    ``n_actions`` says how many actions there are, where the policy itself does not. With ``sigma`` it adds normal noise
    of that standard deviation (one number, or one per component) to a deterministic continuous action, without
    clipping.

    >>> import numpy as np, tightrope
    >>> greedy = tightrope.DeterministicPolicy(lambda states, t: 0 * states, n_actions=2)
    >>> tightrope.softened(greedy, epsilon=0.1).probs(np.array([0]), np.array([0])).round(3)
    array([[0.95, 0.05]])
    """
    if (epsilon is None) == (sigma is None):
        raise PolicyError(f"give either epsilon or sigma; got epsilon={epsilon!r} and sigma={sigma!r}")
    known = recognise(policy) or as_policy(policy)
    return _with_epsilon(known, epsilon, n_actions) if epsilon is not None else _with_sigma(known, sigma)


def recognise(model: Any) -> Policy | None:
    """The policy of a learner, greedy where it has no probabilities; None for anything else."""
    return stable_baselines.recognise(model) or d3rlpy_algos.recognise(model)


def _with_epsilon(policy: Policy, epsilon: float, n_actions: int | None) -> MixturePolicy:
    if not 0.0 <= epsilon <= 1.0:
        raise PolicyError(f"epsilon must lie between 0 and 1; got {epsilon!r}")
    if isinstance(policy, DeterministicControl):
        raise PolicyError("epsilon is for discrete actions; a policy over continuous actions takes sigma")
    own = _own_actions(policy)
    count = n_actions if own is None else own
    if count is None:
        raise PolicyError(
            f"n_actions must be given, because {type(policy).__name__} does not say how many actions it has: "
            "softened(policy, epsilon=..., n_actions=...)"
        )
    if n_actions not in (None, count):
        raise PolicyError(f"n_actions must be {count}, as the policy has it; got {n_actions!r}")
    uniform: Policy = UniformPolicy(count)
    if isinstance(policy, LabelledPolicy):  # its actions have labels, which a UniformPolicy does not know
        uniform = replace(policy, scores=lambda s, t: np.zeros((len(s), count)))
    return MixturePolicy((policy, uniform), (1.0 - epsilon, epsilon))


def _own_actions(policy: Policy) -> int | None:
    """How many actions the policy has, where it says so."""
    if isinstance(policy, LabelledPolicy):
        return len(policy.labels)
    if isinstance(policy, (DeterministicPolicy, UniformPolicy)):
        return policy.n_actions
    return int(policy.table.shape[-1]) if isinstance(policy, TabularPolicy) else None


def _with_sigma(policy: Policy, sigma: Any) -> GaussianPolicy:
    if not isinstance(policy, DeterministicControl):
        raise PolicyError(
            "sigma is for a deterministic policy over continuous actions (DeterministicControl, TD3, DDPG, d3rlpy); "
            f"got a {type(policy).__name__}"
        )
    deviations = numbers("sigma", sigma)
    if deviations.shape not in ((), (policy.width,)) or not (deviations > 0).all() or not np.isfinite(deviations).all():
        raise PolicyError(
            f"sigma must be one positive number, or one for each of the {policy.width} action components; got {sigma!r}"
        )
    return GaussianPolicy(policy.choose, np.diag(np.square(np.broadcast_to(deviations, policy.width))))
