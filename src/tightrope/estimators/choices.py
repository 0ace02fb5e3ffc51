"""What the candidate and the behaviour policy could have done at each logged step, not only what was done.

A tether must hold whichever action comes. Where both policies list their probabilities, the choices of a step are the
actions; where they do not, there is one choice, "some action", whose ratio has a known or a declared ceiling.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tightrope.base import folder
from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array, IntArray
from tightrope.base.errors import BoundError
from tightrope.base.folder import distinct, parts
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
    ratios = step_ratios(problem)
    result = _limited(problem, ratios)
    if result is None and not exact:
        result = _one(problem, ratios, max(1.0, float(ratios.max())))
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
        for steps in parts(len(ratios)):
            _check(problem, steps, ratios[steps], problem.max_step_ratio, "max_step_ratio is exceeded")
        result = result or _one(problem, ratios, problem.max_step_ratio)
    return result


def step_ratios(problem: Problem) -> Array:
    """The importance ratio of every logged step, (N,)."""
    data = problem.dataset if problem.behavior is None else problem.ratios.dataset
    assert data.behavior_log_probs is not None
    result = data.scratch.empty(data.n_steps)
    for steps in parts(data.n_steps):
        result[steps] = np.exp(problem.eval_log_probs[steps] - data.behavior_log_probs[steps])
    return result


def _listed(problem: Problem, ratios: Array) -> Choices | None:
    """Each action as a choice, where both policies list their probabilities."""
    problem = problem.coded
    data, candidate = problem.dataset, problem.policy
    behavior = data.behavior if problem.behavior is None else None
    if not (isinstance(candidate, DiscretePolicy) and isinstance(behavior, DiscretePolicy)):
        return None
    assert data.actions is not None
    first = _probs(problem, candidate, 0, 1).shape[1]
    labels = distinct(data.actions).astype(np.int64)
    columns = np.concatenate([np.arange(first), labels[labels >= first]])  # as a tabular model has them
    room, shape = data.scratch, (data.n_steps, len(columns))
    result = Choices(room.empty(shape), room.empty(shape), room.empty(data.n_steps, np.int64), ratios)
    for start, stop in data.ranges(folder.PART):
        steps = data.steps(start, stop)
        probs, others = np.zeros((2, steps.stop - steps.start, len(columns)))
        probs[:, :first], theirs = _probs(problem, candidate, start, stop), _probs(problem, behavior, start, stop)
        known = columns < theirs.shape[1]
        others[:, known] = theirs[:, columns[known]]
        taken = np.searchsorted(columns, data.actions[steps])
        reach = np.divide(probs, others, out=np.zeros_like(probs), where=others > 0)
        _check_implied(problem, steps, ratios[steps], reach[np.arange(len(taken)), taken])
        result.probs[steps], result.taken[steps] = probs, taken
        result.reach[steps] = np.where(others > 0, np.maximum(reach, TINY), 0.0)
    return result


def _probs(problem: Problem, policy: DiscretePolicy, start: int, stop: int) -> Array:
    """The probabilities of all actions at the steps of episodes start..stop, (steps, actions)."""
    data = problem.dataset
    assert data.states is not None
    return numbers("probs", policy.probs(lent(data.states[data.steps(start, stop)]), lent(data.times_of(start, stop))))


def _check_implied(problem: Problem, steps: slice, ratios: Array, implied: Array) -> None:
    """Refuse ratios that the policies contradict: then nobody knows the ratios of other actions either."""
    apart = np.flatnonzero(np.abs(ratios - implied) > AGREE * np.maximum(ratios, implied))
    if len(apart):
        step = int(apart[0])
        raise BoundError(
            f"{problem.dataset.where(steps.start + step)} has an importance ratio of {ratios[step]:.6g} by its logged "
            f"probabilities, and of {implied[step]:.6g} by the behaviour policy given; mend the probabilities or the "
            "policy"
        )


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
    result = _one(problem, ratios, 1.0)
    for start, stop in data.ranges(folder.PART):
        steps, times = data.steps(start, stop), data.times_of(start, stop)
        states = data.states[steps]
        apart = candidate.mean(lent(states), lent(times)) - behavior.mean(lent(states), lent(times))
        apart = np.asarray(apart, dtype=np.float64).reshape(len(times), -1)
        squares = np.einsum("ij,ij->i", apart, np.linalg.solve(wider, apart.T).T)
        with np.errstate(over="ignore"):  # no ceiling that a float64 holds
            reach = np.exp(candidate.max_log_density - behavior.max_log_density + 0.5 * squares)
        _check(problem, steps, ratios[steps], reach, "the policies' densities say otherwise")
        result.reach[steps, 0] = reach
    return result


def _one(problem: Problem, ratios: Array, reach: float) -> Choices:
    """One choice at every step, with this ceiling of its ratio."""
    room, n = problem.dataset.scratch, len(ratios)
    result = Choices(room.empty((n, 1)), room.empty((n, 1)), room.empty(n, np.int64), ratios)
    result.probs[:], result.reach[:], result.taken[:] = 1.0, reach, 0
    return result


def _check(problem: Problem, steps: slice, ratios: Array, most: Array | float, why: str) -> None:
    """Refuse logged ratios above what was said of them: the tether would not hold."""
    above = np.flatnonzero(ratios > most * (1.0 + AGREE))
    if len(above):
        step = int(above[0])
        ceiling = np.broadcast_to(most, ratios.shape)[step]
        raise BoundError(
            f"{problem.dataset.where(steps.start + step)} has an importance ratio of {ratios[step]:.6g}, above "
            f"{ceiling:.6g}: {why}; mend the probabilities or what was declared"
        )
