"""What the candidate and the behaviour policy could have done at each logged step, not only what was done.

A tether must hold whichever action comes. Where both policies list their probabilities, the choices of a step are the
actions; where they do not, there is one choice, "some action", whose ratio has a known or a declared ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import BoundError
from tightrope.base.policy import DiscretePolicy, GaussianPolicy
from tightrope.base.problem import Problem

AGREE = 1e-6  # how far, relatively, a logged ratio may lie from what the policies say


@dataclass(frozen=True, eq=False)
class Choices:
    """The choices of every step, N in all."""

    probs: Array  # (N, choices): how likely the candidate makes each choice
    reach: Array  # (N, choices): the largest importance ratio with that choice; 0: the behaviour policy never makes it
    taken: IntArray  # (N,): which was made
    ratios: Array  # (N,): of the logged actions

    def after(self, n_steps: int) -> Choices:
        """The same behind so many steps of which nothing is known, and whose values nobody asks for."""
        return Choices(
            np.concatenate([np.zeros((n_steps, self.probs.shape[1])), self.probs]),
            np.concatenate([np.zeros((n_steps, self.probs.shape[1])), self.reach]),
            np.concatenate([np.zeros(n_steps, dtype=np.int64), self.taken]),
            np.concatenate([np.zeros(n_steps), self.ratios]),
        )

    @property
    def are_actions(self) -> bool:
        """Whether each action is a choice of its own."""
        return int(self.probs.shape[1]) > 1


def choices(problem: Problem, *, exact: bool) -> Choices:
    """What could have been done; ``exact`` refuses where no ceiling of the step ratio is known or declared."""
    problem.check_memory("tdr")
    ratios = step_ratios(problem)
    result = _limited(problem, ratios)
    if result is None and not exact:
        result = _one(ratios, np.full(len(ratios), max(1.0, float(ratios.max()))))
    if result is None:
        raise BoundError(
            "a tether needs to know how large the importance ratio of one step can be: read the logs with the "
            "behaviour policy itself (read(behavior=policy), --behavior-policy), or declare a number that no "
            "step's ratio can exceed (max_step_ratio=..., --max-step-ratio). is and pdis do without"
        )
    return result


def is_limited(problem: Problem) -> bool:
    """Whether it is known or declared how large a step's ratio can be, so that there is an exact tether."""
    return _limited(problem, step_ratios(problem)) is not None


def _limited(problem: Problem, ratios: Array) -> Choices | None:
    result = _listed(problem, ratios) or _gaussian(problem, ratios)
    if problem.max_step_ratio is not None:
        declared = np.full(len(ratios), problem.max_step_ratio)
        _check(problem, ratios, declared, "max_step_ratio is exceeded")
        result = result or _one(ratios, declared)
    return result


def step_ratios(problem: Problem) -> Array:
    """The importance ratio of every logged step, (N,)."""
    data = problem.dataset if problem.behavior is None else problem.ratios.dataset
    assert data.behavior_log_probs is not None
    result: Array = np.exp(problem.eval_log_probs - data.behavior_log_probs)
    return result


def _listed(problem: Problem, ratios: Array) -> Choices | None:
    """Each action as a choice, where both policies list their probabilities."""
    problem = problem.coded
    data, candidate = problem.dataset, problem.policy
    behavior = data.behavior if problem.behavior is None else None
    if not (isinstance(candidate, DiscretePolicy) and isinstance(behavior, DiscretePolicy)):
        return None
    assert data.states is not None
    assert data.actions is not None
    candidates, theirs = (
        numbers("probs", policy.probs(lent(data.states), lent(data.times))) for policy in (candidate, behavior)
    )
    labels = np.unique(data.actions.astype(np.int64))
    columns = np.concatenate(
        [np.arange(candidates.shape[1]), labels[labels >= candidates.shape[1]]]
    )  # as a tabular model has them
    probs, others = np.zeros((2, data.n_steps, len(columns)))
    probs[:, : candidates.shape[1]] = candidates
    known = columns < theirs.shape[1]
    others[:, known] = theirs[:, columns[known]]
    possible = others > 0
    taken = np.searchsorted(columns, data.actions)
    reach = np.divide(probs, others, out=np.zeros_like(probs), where=possible)
    implied = reach[np.arange(len(taken)), taken]
    apart = np.flatnonzero(np.abs(ratios - implied) > AGREE * np.maximum(ratios, implied))
    if len(apart):  # then nobody knows the ratios of other actions either
        step = int(apart[0])
        raise BoundError(
            f"{data.where(step)} has an importance ratio of {ratios[step]:.6g} by its logged probabilities, and of "
            f"{implied[step]:.6g} by the behaviour policy given; mend the probabilities or the policy"
        )
    return Choices(probs, np.where(possible, np.maximum(reach, TINY), 0.0), taken, ratios)


TINY = np.finfo(np.float64).tiny  # a choice that the candidate never makes is still one that the behaviour policy can


def _gaussian(problem: Problem, ratios: Array) -> Choices | None:
    """One choice, with the largest ratio of two normal densities around different means, where it is finite."""
    data, candidate = problem.dataset, problem.policy
    behavior = data.behavior if problem.behavior is None else None
    if not (isinstance(candidate, GaussianPolicy) and isinstance(behavior, GaussianPolicy)):
        return None
    wider = behavior.covariance - candidate.covariance
    if np.linalg.eigvalsh(wider).min() <= 1e-12 * np.trace(behavior.covariance):
        return None
    assert data.states is not None
    apart = candidate.mean(lent(data.states), lent(data.times)) - behavior.mean(lent(data.states), lent(data.times))
    apart = np.asarray(apart, dtype=np.float64).reshape(data.n_steps, -1)
    squares = np.einsum("ij,ij->i", apart, np.linalg.solve(wider, apart.T).T)
    with np.errstate(over="ignore"):  # no ceiling that a float64 holds
        reach = np.exp(candidate.max_log_density - behavior.max_log_density + 0.5 * squares)
    _check(problem, ratios, reach, "the policies' densities say otherwise")
    return _one(ratios, reach)


def _one(ratios: Array, reach: Array) -> Choices:
    n = len(ratios)
    return Choices(np.ones((n, 1)), reach[:, None], np.zeros(n, dtype=np.int64), ratios)


def _check(problem: Problem, ratios: Array, most: Array, why: str) -> None:
    """Refuse logged ratios above what was said of them: the tether would not hold."""
    above = np.flatnonzero(ratios > most * (1.0 + AGREE))
    if len(above):
        step = int(above[0])
        raise BoundError(
            f"{problem.dataset.where(step)} has an importance ratio of {ratios[step]:.6g}, above {most[step]:.6g}: "
            f"{why}; mend the probabilities or what was declared"
        )
