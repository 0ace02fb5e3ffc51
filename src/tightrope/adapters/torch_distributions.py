"""Distributions of torch: log-probabilities as torch computes them, actions by inversion of given noise."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tightrope.adapters.outputs import DensityPolicy, Times, labelled
from tightrope.base.errors import PolicyError
from tightrope.base.policy import Policy
from tightrope.base.policy.base import Anything, Array


def is_distribution(thing: Any) -> bool:
    """Whether it is a torch distribution, found out without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(thing, torch.distributions.Distribution)


def from_distributions(make: Callable[[Anything, Times], Any], example: Any) -> Policy:
    """The policy whose distributions ``make(states, t)`` gives; ``example`` shows of what kind they are."""
    from torch import distributions as kinds

    if isinstance(example, kinds.Categorical):
        _check_batch(example)
        return labelled(lambda s, t: to_numpy(make(s, t).logits), np.arange(example.logits.shape[-1]))
    if isinstance(example, kinds.Bernoulli) and len(example.batch_shape) == 1:
        return labelled(lambda s, t: _two_columns(make(s, t).logits), np.arange(2))
    if example.support.is_discrete:
        raise PolicyError(
            "the policy must return a Categorical or a Bernoulli for discrete actions; it returns a "
            f"{type(example).__name__}"
        )
    width = _check_batch(example)
    return DensityPolicy(
        lambda s, a, t: log_density(make(s, t), a), lambda s, t, u: to_numpy(quantile(make(s, t), u)), width
    )


def log_density(distribution: Any, actions: Array) -> Array:
    """The log-density of actions (N, k), (N,)."""
    import torch

    shape = (*distribution.batch_shape, *distribution.event_shape)
    wide = torch.as_tensor(actions).reshape(shape)
    with torch.no_grad():
        try:
            log_probs = distribution.log_prob(wide)
        except RuntimeError:  # matrices of float32 do not multiply with float64
            log_probs = distribution.log_prob(wide.float())
    return to_numpy(log_probs).reshape(len(actions))


def quantile(distribution: Any, uniforms: Array) -> Any:
    """Draws from the distribution, in its shape, made from uniforms (N, k) by inversion."""
    import torch
    from scipy.special import ndtri
    from torch import distributions as kinds

    if isinstance(distribution, kinds.Independent):
        return quantile(distribution.base_dist, uniforms)
    if isinstance(distribution, kinds.TransformedDistribution):
        value = quantile(distribution.base_dist, uniforms)
        for transform in distribution.transforms:
            value = transform(value)
        return value
    shape = (*distribution.batch_shape, *distribution.event_shape)
    if isinstance(distribution, kinds.MultivariateNormal):
        noise = torch.as_tensor(ndtri(uniforms)).reshape(*shape, 1)
        return distribution.loc + (distribution.scale_tril.double() @ noise)[..., 0]
    if isinstance(distribution, kinds.Normal):
        return distribution.loc + distribution.scale * torch.as_tensor(ndtri(uniforms)).reshape(shape)
    try:
        return distribution.icdf(torch.as_tensor(uniforms).reshape(shape))
    except NotImplementedError:
        raise PolicyError(
            f"torch cannot invert a {type(distribution).__name__}, so the policy cannot act in a model. Importance "
            "sampling still works"
        ) from None


def to_numpy(tensor: Any) -> Array:
    """A tensor as floats, wherever it lies."""
    return np.asarray(tensor.detach().cpu().numpy(), dtype=np.float64)


def _two_columns(logits: Any) -> Array:
    value = to_numpy(logits)
    return np.stack([np.zeros_like(value), value], axis=1)


def _check_batch(distribution: Any) -> int:
    """Refuse distributions that are not one per state; how many numbers an action has."""
    batch, event = tuple(distribution.batch_shape), tuple(distribution.event_shape)
    if len(batch) == 1 and len(event) <= 1:
        return int(np.prod(event, dtype=int))
    if len(batch) == 2 and batch[1] == 1 and not event:
        return 1
    raise PolicyError(
        f"the policy must return one distribution per state, batch shape (N,); it returns a "
        f"{type(distribution).__name__} with batch shape {batch} and event shape {event}. For independent components "
        "wrap it: torch.distributions.Independent(distribution, 1)"
    )
