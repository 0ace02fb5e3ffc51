"""Learned policies that act without noise, and the noise that their owner says they act with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.adapters import d3rlpy_algos, stable_baselines
from tightrope.adapters.outputs import LabelledPolicy
from tightrope.base.checks import numbers
from tightrope.base.errors import PolicyError
from tightrope.base.policy import (
    DeterministicControl,
    DeterministicPolicy,
    GaussianPolicy,
    MixturePolicy,
    Policy,
    TabularPolicy,
    UniformPolicy,
    as_policy,
    epsilon_softened,
)


def from_learner(model: Any) -> Policy | None:
    """A policy of Stable-Baselines3 or d3rlpy; refuses greedy ones, whose exploration only their owner knows."""
    policy = _recognise(model)
    if isinstance(policy, DeterministicPolicy):
        raise PolicyError(
            f"{type(model).__name__} has no action probabilities, only a greedy action. Say how often it acts at "
            "random instead: softened(model, epsilon=0.05), --epsilon 0.05 (0 for never)"
        )
    return policy


def softened(policy: Any, *, epsilon: float | None = None, sigma: npt.ArrayLike | None = None) -> Policy:
    """The policy with explicit noise: discrete actions with ``epsilon``, continuous ones with ``sigma``.

    With probability ε one of all actions at random, else the policy's own; or normal noise of standard deviation σ
    (one number, or one per component) around a deterministic continuous action, not clipped.
    """
    if (epsilon is None) == (sigma is None):
        raise PolicyError(f"epsilon is {epsilon}, sigma is {sigma!r}; give one of them")
    known = _recognise(policy) or as_policy(policy)
    return _with_epsilon(known, epsilon) if epsilon is not None else _with_sigma(known, sigma)


def _recognise(model: Any) -> Policy | None:
    return stable_baselines.recognise(model) or d3rlpy_algos.recognise(model)


def _with_epsilon(policy: Policy, epsilon: float) -> MixturePolicy:
    if isinstance(policy, LabelledPolicy):
        if not 0.0 <= epsilon <= 1.0:
            raise PolicyError(f"epsilon is {epsilon}; it must lie in [0, 1]")
        anything = replace(policy, scores=lambda s, t: np.zeros((len(s), len(policy.labels))))
        return MixturePolicy((policy, anything), (1.0 - epsilon, epsilon))
    if isinstance(policy, (DeterministicPolicy, UniformPolicy)):
        return epsilon_softened(policy, epsilon, policy.n_actions)
    if isinstance(policy, TabularPolicy):
        return epsilon_softened(policy, epsilon, policy.table.shape[-1])
    if isinstance(policy, DeterministicControl):
        raise PolicyError("epsilon is for discrete actions; a policy of continuous ones takes sigma")
    raise PolicyError(
        f"how many actions {type(policy).__name__} has is not known; say it: "
        "epsilon_softened(policy, epsilon, n_actions)"
    )


def _with_sigma(policy: Policy, sigma: Any) -> GaussianPolicy:
    if not isinstance(policy, DeterministicControl):
        raise PolicyError(
            f"sigma softens a deterministic policy of continuous actions (DeterministicControl, TD3, DDPG, d3rlpy); "
            f"this is a {type(policy).__name__}"
        )
    deviations = numbers("sigma", sigma)
    if deviations.shape not in ((), (policy.width,)) or not (deviations > 0).all() or not np.isfinite(deviations).all():
        raise PolicyError(f"sigma is {sigma}; one positive number, or one for each of {policy.width} action components")
    return GaussianPolicy(policy.choose, np.diag(np.square(np.broadcast_to(deviations, policy.width))))
