"""Episodes of a process under a policy, all stepped side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.policy import Policy, as_actor, open_uniforms
from tightrope.domains.base import Process

BLOCK = 10_000  # episodes simulated together when only their returns are wanted: their arrays stay in cache

Progress = Callable[[float], None]


def simulate(
    process: Process,
    policy: Policy,
    n: int,
    *,
    rng: np.random.Generator,
    candidate: Policy | None = None,
    reward_range: tuple[float, float] | None = None,
    return_range: tuple[float, float] | None = None,
) -> TrajectoryDataset:
    """Logs of n episodes under ``policy``, with the state after every last step.

    - ``process``: what to act in.
    - ``rng``: the generator of all random numbers.
    - ``candidate``: another policy whose probabilities of the logged actions are kept too.
    - ``reward_range``, ``return_range``: what is possible, declared for exact bounds.
    """
    if n < 1:
        raise TightropeError(f"n must be at least 1 episode; got {n}")
    flat, ended = _record(process, policy, n, rng)
    offsets = np.append(np.flatnonzero(flat["t"] == 0), len(flat["t"]))
    last = offsets[1:] - 1
    states, actions, times = flat["state"], flat["action"], flat["t"]
    return TrajectoryDataset(
        offsets=offsets,
        rewards=flat["reward"],
        terminated=ended[last],
        horizon=process.horizon,
        discount=process.discount,
        behavior_log_probs=policy.log_prob(states, actions, times),
        eval_log_probs=None if candidate is None else candidate.log_prob(states, actions, times),
        states=states,
        actions=actions,
        final_states=flat["next"][last],
        reward_range=reward_range,
        return_range=return_range,
        behavior=policy,
    )


def _record(
    process: Process, policy: Policy, n: int, rng: np.random.Generator
) -> tuple[dict[str, npt.NDArray[Any]], npt.NDArray[np.bool_]]:
    """What happened at every step, episode after episode, and which steps were the last for good."""
    actor, state, alive = as_actor(policy), process.start(n, rng), np.arange(n)
    record: dict[str, list[npt.NDArray[Any]]] = {
        name: [] for name in ("episode", "t", "state", "action", "reward", "next", "ended")
    }
    for t in range(process.horizon):
        times = np.full(len(alive), t, dtype=np.int64)
        action = actor.act(state, times, open_uniforms(rng, (len(alive), actor.noise_width)))
        after, reward, ended = process.step(state, action, rng)
        for parts, values in zip(record.values(), (alive, times, state, action, reward, after, ended), strict=True):
            parts.append(values)
        alive, state = alive[~ended], after[~ended]
        if not len(alive):
            break
    flat = {name: np.concatenate(parts) for name, parts in record.items()}
    order = np.argsort(flat["episode"], kind="stable")  # within an episode the steps are in order already
    flat = {name: values[order] for name, values in flat.items()}
    return flat, flat.pop("ended")


def mean_return(
    process: Process, policy: Policy, n: int, *, rng: np.random.Generator, progress: Progress | None = None
) -> tuple[float, float]:
    """The mean return of n episodes of ``policy`` in ``process``, and its standard error.

    ``rng`` draws all random numbers; ``progress`` is called with the share done.
    """
    if n < 2:
        raise TightropeError(f"rollouts must be at least 2, for a standard error; got {n}")
    parts = []
    for first in range(0, n, BLOCK):
        parts.append(simulate(process, policy, min(BLOCK, n - first), rng=rng).returns)
        if progress is not None:
            progress(min(1.0, (first + BLOCK) / n))
    returns = np.concatenate(parts)
    return float(returns.mean()), float(returns.std(ddof=1) / np.sqrt(n))
