"""What a policy must be able to do, and the policies that need only NumPy.

A policy has ``log_prob(states, actions, t)``: the log-probability (log-density for continuous actions) of each
action in its state at its time. Policies over a finite action set also have ``probs(states, t)``. States, actions
and times come as arrays with one row per step.

Policies that can act have ``act(states, t, uniforms)``: actions as a function of ``noise_width`` uniform numbers per
step, so that a simulation decides about the noise and can keep it fixed.
"""

from tightrope.base.policy.base import Actor, DiscretePolicy, Policy, PreparedActor, check_probs, open_uniforms
from tightrope.base.policy.combined import (
    ADAPTERS,
    CallablePolicy,
    MixturePolicy,
    as_actor,
    as_policy,
    resolved,
)
from tightrope.base.policy.deterministic import DeterministicControl
from tightrope.base.policy.discrete import DeterministicPolicy, SoftmaxPolicy, TabularPolicy, UniformPolicy
from tightrope.base.policy.gaussian import GaussianPolicy

__all__ = [
    "ADAPTERS",
    "Actor",
    "CallablePolicy",
    "DeterministicControl",
    "DeterministicPolicy",
    "DiscretePolicy",
    "GaussianPolicy",
    "MixturePolicy",
    "Policy",
    "PreparedActor",
    "SoftmaxPolicy",
    "TabularPolicy",
    "UniformPolicy",
    "as_actor",
    "as_policy",
    "check_probs",
    "open_uniforms",
    "resolved",
]
