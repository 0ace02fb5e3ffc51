"""The tabular model: maximum-likelihood transitions, start distribution and rewards over finite states and actions.

Fitted from weighted episodes, so that a refit per replicate is a count, a division and a backward induction, done
for eight replicates at a time. What the model says of a pair that the (re)sample does not hold is an explicit choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, TypeGuard

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import lent, numbers
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError, PolicyError
from tightrope.base.folder import distinct, parts
from tightrope.base.names import must_be_one_of
from tightrope.base.policy import DiscretePolicy
from tightrope.base.problem import Problem
from tightrope.models.tabular.data import TabularData
from tightrope.models.tabular.following import END, Following
from tightrope.models.tabular.prepared import PreparedTabular
from tightrope.models.tabular.rollouts import Rollouts
from tightrope.models.tabular.sorting import Stretch

Unseen = Literal["worst", "self-loop", "terminate"]

_UNSEEN: dict[str, int] = {"worst": 0, "self-loop": 1, "terminate": 2}


@dataclass(frozen=True)
class TabularModel:
    """Settings of a tabular model.

    ``unseen`` says what follows a state-action pair that was never logged: "self-loop" (the state stays; the paper's
    choice, after Jiang and Li), "worst" (its reward on every step to come) or "terminate" (nothing). ``unseen_reward``
    is what such a pair earns; by default the lowest possible reward for a lower bound, the highest for an upper one. A
    self-loop of reward 0 with negative rewards makes lower bounds err nearly always (docs/coverage.md).
    """

    name: ClassVar[str] = "tabular"
    in_pieces: ClassVar[bool] = True

    n_states: int | None = None  # None: as many as the logs hold
    n_actions: int | None = None  # the same of actions
    unseen: Unseen = "self-loop"
    unseen_reward: float | None = None
    rewards: tuple[tuple[float, ...], ...] | None = None  # (S, A) where the reward function is known; else estimated
    smoothing: float = 0.0  # Dirichlet: this many pseudo-visits of every pair, spread evenly over all next states
    rollouts: Rollouts | None = None  # None: exact evaluation; else the paper's Monte Carlo, for comparison

    def __post_init__(self) -> None:
        if not self.smoothing >= 0:
            raise DataError(f"smoothing must be a number of pseudo-visits, 0 or more; got {self.smoothing}")
        if self.rewards is not None:
            table = np.atleast_2d(numbers("rewards", self.rewards, DataError))
            object.__setattr__(self, "rewards", tuple(tuple(float(r) for r in row) for row in table))
        if self.unseen not in _UNSEEN:
            raise DataError(must_be_one_of("unseen", self.unseen, _UNSEEN))
        if self.unseen_reward is not None and not np.isfinite(self.unseen_reward):
            raise DataError(f"unseen_reward must be a finite number or None; got {self.unseen_reward}")

    def prepare(self, problem: Problem, *, anchor: str) -> PreparedTabular:
        """The logs in the form that counting needs; refuses logs and policies that are not finite."""
        self._check_names(problem)
        data, policy = problem.coded.dataset, problem.coded.policy
        check_numbered("state", data.states)
        check_numbered("action", data.actions)
        assert data.states is not None
        assert data.actions is not None
        if not isinstance(policy, DiscretePolicy):
            raise PolicyError(
                "a tabular model must have the policy itself (probs(states, t)), because it evaluates the candidate "
                "beyond the logged actions; its probabilities of the logged actions are not enough"
            )
        following = Following.of(data)
        logged = np.union1d(distinct(data.states).astype(np.int64), following.open_ends)
        labels = _labels("state", self.n_states, logged)
        taken = distinct(data.actions).astype(np.int64)
        probs, actions = policy_table(policy, labels, taken, data.horizon, self.n_actions)
        counted = TabularData.build(
            data,
            partial(_places, following, labels, actions),
            _starts(data, labels),
            probs=probs,
            unseen=_UNSEEN[self.unseen],
            unseen_reward=self.reward_of_unseen(data, anchor),
            known_rewards=self._known_rewards(labels, actions),
            smoothing=self.smoothing,
        )
        return PreparedTabular(counted, self.rollouts)

    def _check_names(self, problem: Problem) -> None:
        """Refuse settings and policies that are about numbers where states or actions are text."""
        held = problem.dataset.actions
        if isinstance(problem.policy, DiscretePolicy) and not isinstance(problem.coded.policy, DiscretePolicy):
            assert held is not None
            raise DataError(
                f"actions must be one integer per step for a table whose columns are numbers; the logs hold "
                f"{held.dtype}. Give the candidate as a table with columns state, action, prob, which names the actions"
            )
        numbers_of = {"n_states": self.n_states, "n_actions": self.n_actions, "rewards": self.rewards}
        given = [name for name, value in numbers_of.items() if value is not None]
        if given and problem.coded is not problem:
            raise DataError(
                f"{given[0]} must be left out where states or actions are text, because nobody says which number a "
                "name has; number them"
            )

    def _known_rewards(self, labels: IntArray, actions: IntArray) -> Array | None:
        """The reward function of the states and actions that count as (P,), checked."""
        if self.rewards is None:
            return None
        table, shape = np.asarray(self.rewards, dtype=np.float64), (int(labels[-1]) + 1, int(actions[-1]) + 1)
        if table.shape != shape or not np.isfinite(table).all():
            raise DataError(f"rewards must be finite numbers of shape {shape}; got shape {table.shape}")
        return table[np.ix_(labels, actions)].reshape(-1)

    def reward_of_unseen(self, data: TrajectoryDataset, anchor: str) -> float:
        """The reward of an unseen pair: as set, or the worst end of the declared range, or of the sample."""
        if self.unseen_reward is not None:
            return self.unseen_reward
        low, high = data.step_range or (-np.inf, np.inf)
        end = low if anchor == "low" else high
        seen = data.rewards.min() if anchor == "low" else data.rewards.max()
        return float(end if np.isfinite(end) else seen)


def is_numbered(values: npt.NDArray[Any] | None) -> TypeGuard[npt.NDArray[Any]]:
    """Whether logged states or actions are one integer per step."""
    return values is not None and values.ndim == 1 and values.dtype.kind in "iub"


def check_numbered(name: str, values: npt.NDArray[Any] | None) -> None:
    """Refuse logged states or actions that are no integers from 0."""
    if not is_numbered(values):
        held = "none" if values is None else f"{values.dtype} of shape {values.shape}"
        raise DataError(f"{name}s must be one integer per step for a table; the logs hold {held}")
    if values.min() < 0:
        raise DataError(f"{name}s must be numbered from 0 for a table; got {values.min()}")
    if values.max() >= 2**63:
        raise DataError(f"{name}s must fit into 63 bits; got {values.max()}. Number them from 0")


def numbered(name: str, values: npt.NDArray[Any] | None) -> IntArray:
    """The logged states or actions as integers from 0, (N,)."""
    check_numbered(name, values)
    assert values is not None
    return values.astype(np.int64)


def _labels(name: str, given: int | None, logged: IntArray) -> IntArray:
    """The numbers that count: those in the logs, or all below the given number of them."""
    if given is None:
        return np.unique(logged)
    if logged.max() >= given:
        raise DataError(
            f"n_{name}s must be at least {logged.max() + 1}, because the logs hold {name} {logged.max()}; got {given}"
        )
    return np.arange(given)


def _starts(data: TrajectoryDataset, labels: IntArray) -> npt.NDArray[np.int32]:
    """The place of each episode's first state among the labels, (n,)."""
    assert data.states is not None
    result: npt.NDArray[np.int32] = data.scratch.empty(data.n_trajectories, np.int32)
    for part in parts(data.n_trajectories):
        result[part] = np.searchsorted(labels, data.states[data.offsets[:-1][part]].astype(np.int64))
    return result


def _places(following: Following, labels: IntArray, actions: IntArray, some: Stretch) -> tuple[IntArray, IntArray]:
    """The pair of each step of some episodes, and the state after it: S at an end, -1 unknown; by place in labels."""
    data = following.data
    assert data.states is not None
    assert data.actions is not None
    states = data.states[some.steps].astype(np.int64)
    after = following.after(some, states)
    known = after >= 0
    after[known] = np.searchsorted(labels, after[known])
    after[after == END] = len(labels)
    taken = np.searchsorted(actions, data.actions[some.steps].astype(np.int64))
    return np.searchsorted(labels, states) * len(actions) + taken, after


def policy_table(
    policy: DiscretePolicy, states: IntArray, logged: IntArray, horizon: int, n_actions: int | None = None
) -> tuple[Array, IntArray]:
    """π_t(a|s) in these states as (horizon, S, A), and the actions (A,) of its columns, rising.

    They are those that the policy lists (``n_actions``, if that is more) and, with probability 0, those that are only
    logged: however large the number of a state or an action is, it takes no more room than any other.
    """
    tables = [numbers("probs", policy.probs(lent(states), np.full(len(states), t))) for t in range(horizon)]
    listed = tables[0].shape[1]
    others = _labels("action", n_actions, logged)
    actions = np.concatenate([np.arange(listed), others[others >= listed]])
    result = np.zeros((horizon, len(states), len(actions)))
    for t, table in enumerate(tables):
        result[t, :, :listed] = table
    return result, actions
