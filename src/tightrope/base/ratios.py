"""Importance ratios, always as logarithms: 3^100 is 5e47, and some horizons have 10,000 steps.

``ratio[:, t]`` is the product of the step ratios of actions 0..t (0-based; the paper's ρ_L with L+1 factors is a slip).
After an episode's end the ratio stays what it was: a finished episode stays in every later denominator.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tightrope.base.checks import check_log_probs, lent, numbers, read_only
from tightrope.base.dataset import Array, BoolArray, TrajectoryDataset
from tightrope.base.errors import DataError, NoOverlapError, PolicyError, TightropeError
from tightrope.base.policy import Policy, as_policy
from tightrope.base.threads import passed

ALIKE = 1e-9  # of log ρ: rounding
ASKED = 1 << 18  # steps that a policy is asked about at once, in memory or not: a network rounds as its batches are cut


@dataclass(frozen=True, eq=False)
class Ratios:
    """Cumulative log importance ratios of a candidate over a dataset, made chunk by chunk."""

    dataset: TrajectoryDataset
    eval_log_probs: Array  # (N,)

    def log(self, start: int, stop: int) -> Array:
        """log ρ_t of episodes start..stop, (stop - start, horizon); -inf after an action it never takes."""
        from tightrope.base import kernels

        data = self.dataset
        assert data.behavior_log_probs is not None
        steps, result = data.steps(start, stop), np.empty((stop - start, data.horizon))
        kernels.cumulate(
            self.eval_log_probs[steps], data.behavior_log_probs[steps], data.lengths_of(start, stop), result
        )
        return result

    @cached_property
    def log_max(self) -> Array:
        """The largest log ratio at each time, (horizon,)."""
        largest = np.full(self.dataset.horizon, -np.inf)
        for part in passed(lambda chunk: self.log(*chunk).max(axis=0), self.dataset.chunks()):
            np.maximum(largest, part, out=largest)
        return largest

    @cached_property
    def differ(self) -> BoolArray:
        """Whether the two policies act differently in each episode, as far as logged actions show it, (n,)."""
        result: BoolArray = self.dataset.per_episode(
            lambda start, stop: np.abs(self.log(start, stop)).max(axis=1) > ALIKE, np.bool_
        )
        return result


def ratios(dataset: TrajectoryDataset, policy: Any = None) -> Ratios:
    """The ratios of ``policy``, or of the logged ``eval_prob`` column when it is None.

    Fails when the logs hold no behaviour probabilities, and when no logged episode could have come from the candidate.
    """
    if dataset.behavior_log_probs is None:
        raise DataError(
            "the logs hold no behaviour probabilities, and importance sampling divides by them. Add a column "
            'behavior_prob or behavior_log_prob; or name your column: read(..., columns={"behavior_prob": "..."}) '
            "(--column behavior_prob=...); or give the behaviour policy: read(..., behavior=policy); or have it "
            f'estimated from the logged states and actions: behavior="auto" (--behavior auto){_also(dataset, policy)}'
        )
    result = Ratios(dataset, eval_log_probs(dataset, policy))
    zero = np.flatnonzero(np.isneginf(result.log_max))
    if len(zero):
        raise NoOverlapError(
            f"all importance weights are zero at step {zero[0]}: in none of the {dataset.n_trajectories} episodes "
            "would the candidate have taken the logged actions. Importance sampling learns nothing about it "
            "from these logs; it needs logs of a policy that sometimes acts as the candidate does"
        )
    return result


def _unasked(dataset: TrajectoryDataset) -> str:
    """The columns that a policy is asked about and the logs do not hold."""
    parts = {"state (or obs_*)": dataset.states, "action (or action_*)": dataset.actions}
    return " and a column ".join(name for name, values in parts.items() if values is None)


def _also(dataset: TrajectoryDataset, policy: Any) -> str:
    """What else is missing, so that all of it is said at once."""
    lacking = "" if policy is None else _unasked(dataset)
    return f". The logs also lack a column {lacking}, and the policy is asked about that" if lacking else ""


def eval_log_probs(dataset: TrajectoryDataset, policy: Any = None) -> Array:
    """The candidate's log-probabilities of the logged actions, (N,), checked."""
    if policy is None:
        if dataset.eval_log_probs is None:
            raise PolicyError(
                "policy must be given, because the logs hold no eval_prob column; or add to the logs the candidate's "
                "probabilities of the logged actions as a column eval_prob or eval_log_prob"
            )
        return dataset.eval_log_probs
    lacking = _unasked(dataset)
    if lacking:
        raise PolicyError(f"the logs must have a column {lacking}, because the policy is asked about logged steps")
    result, candidate = dataset.scratch.empty(dataset.n_steps), as_policy(policy)
    for start, stop in dataset.ranges(ASKED):
        result[dataset.steps(start, stop)] = _log_probs(dataset, candidate, start, stop)
    name = "the policy's log-probability"
    check_log_probs(name, result, dataset.discrete_actions, dataset.where, zero=True, error=PolicyError)
    return read_only(result)


def _log_probs(dataset: TrajectoryDataset, policy: Policy, start: int, stop: int) -> Array:
    """The policy's log-probabilities of the actions of episodes start..stop."""
    assert dataset.states is not None
    assert dataset.actions is not None
    steps = dataset.steps(start, stop)
    try:
        values = policy.log_prob(
            lent(dataset.states[steps]), lent(dataset.actions[steps]), lent(dataset.times_of(start, stop))
        )
    except PolicyError as error:
        if error.row is None:
            raise
        raise PolicyError(f"{error} (at {dataset.where(steps.start + error.row)})") from error
    except TightropeError:
        raise
    except Exception as error:  # the user's own code
        raise PolicyError(
            f"the policy failed on the logged states and actions: {type(error).__name__}: {error}"
        ) from error
    result = numbers("the policy's log_prob", values)
    if result.shape != (steps.stop - steps.start,):
        raise PolicyError(
            f"the policy must return one log-probability per step, shape ({steps.stop - steps.start},); got shape "
            f"{result.shape}"
        )
    return result
