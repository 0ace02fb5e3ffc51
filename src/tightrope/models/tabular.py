"""The tabular model: maximum-likelihood transitions, start distribution and rewards over finite states and actions.

Fitted from weighted trajectories, so that a refit per replicate is a count, a division and a backward induction, done
for eight replicates at a time. What the model says of a pair that the (re)sample does not hold is an explicit choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tightrope.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.errors import DataError, PolicyError
from tightrope.policy import DiscretePolicy
from tightrope.problem import Problem

Unseen = Literal["worst", "self-loop", "terminate"]
Index = npt.NDArray[np.int32]

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

    n_states: int | None = None  # None: as many as the logs hold
    n_actions: int | None = None
    unseen: Unseen = "self-loop"
    unseen_reward: float | None = None

    def __post_init__(self) -> None:
        if self.unseen not in _UNSEEN:
            raise DataError(f"unseen is {self.unseen!r}; known: {', '.join(_UNSEEN)}")
        if self.unseen_reward is not None and not np.isfinite(self.unseen_reward):
            raise DataError(f"unseen_reward is {self.unseen_reward}; a finite number, or None, expected")

    def prepare(self, problem: Problem, *, anchor: str) -> TabularData:
        """The logs in the form that counting needs; refuses logs and policies that are not finite."""
        data, policy = problem.dataset, problem.policy
        states, actions = numbered("state", data.states), numbered("action", data.actions)
        if not isinstance(policy, DiscretePolicy):
            raise PolicyError(
                "a tabular model evaluates the candidate in states that were not logged with these actions: it "
                "needs the "
                "policy itself (probs(states, t)), not only its probabilities of the logged actions"
            )
        following, final = _following(data, states)
        n_states = _size("state", self.n_states, max(int(states.max()), int(final.max(initial=0))))
        n_actions = _size("action", self.n_actions, int(actions.max()))
        probs = _policy_table(policy, n_states, n_actions, data.horizon)
        n_actions = probs.shape[2]
        following = np.where(following == _END, n_states, following)
        pair = states * n_actions + actions
        return TabularData.build(
            data, pair, following, states[data.offsets[:-1]], probs, _UNSEEN[self.unseen], self._reward(data, anchor)
        )

    def _reward(self, data: TrajectoryDataset, anchor: str) -> float:
        """What an unseen pair earns: as set, the unsafe end of the declared range, or of the sample."""
        if self.unseen_reward is not None:
            return self.unseen_reward
        low, high = data.step_range or (-np.inf, np.inf)
        end = low if anchor == "low" else high
        seen = data.rewards.min() if anchor == "low" else data.rewards.max()
        return float(end if np.isfinite(end) else seen)


_UNKNOWN, _END = -1, -2


def numbered(name: str, values: npt.NDArray[Any] | None) -> IntArray:
    """The logged states or actions as integers from 0, (N,)."""
    if values is None or values.ndim != 1 or values.dtype.kind not in "iub":
        held = "none" if values is None else f"{values.dtype} of shape {values.shape}"
        raise DataError(f"a table needs one integer {name} per step; the logs hold {held}")
    if values.min() < 0:
        raise DataError(f"{name} {values.min()} is below 0; a table numbers them from 0")
    return values.astype(np.int64)


def _size(name: str, given: int | None, largest: int) -> int:
    if given is not None and largest >= given:
        raise DataError(f"{name} {largest} is in the logs, but n_{name}s is {given}: they are numbered 0..{given - 1}")
    return largest + 1 if given is None else given


def _following(data: TrajectoryDataset, states: IntArray) -> tuple[IntArray, IntArray]:
    """The state after each step, (N,): _END or _UNKNOWN where there is none; and the final ones of open episodes.

    Unless the logs hold the state after the horizon's last step for every episode that goes on, that step is unknown
    for all, the ended ones too: keeping those that ended and not the others would count ends more often than they
    happen.
    """
    last, going_on = data.offsets[1:] - 1, ~data.terminated
    following = np.append(states[1:], _UNKNOWN)
    following[last] = _END
    final = data.final_states
    if final is None or final.ndim != 1 or final.dtype.kind not in "iu" or (final[going_on] < 0).any():
        following[last[data.lengths == data.horizon]] = _UNKNOWN
        return following, np.zeros(0, dtype=np.int64)
    following[last[going_on]] = final[going_on]
    return following, final[going_on].astype(np.int64)


def _policy_table(policy: DiscretePolicy, n_states: int, n_actions: int, horizon: int) -> Array:
    """π_t(a|s) as (horizon, S, A), padded with zero where the policy knows fewer actions than the logs."""
    states = np.arange(n_states)
    tables = [np.asarray(policy.probs(states, np.full(n_states, t)), dtype=np.float64) for t in range(horizon)]
    width = max(n_actions, tables[0].shape[1])
    result = np.zeros((horizon, n_states, width))
    for t, table in enumerate(tables):
        result[t, :, : table.shape[1]] = table
    return result


@dataclass(frozen=True, eq=False)
class TabularData:
    """Logs reduced to what counting needs: each step is one of K kinds (pair, next state, reward)."""

    offsets: IntArray  # (n+1,)
    kinds: Index  # (N,)
    starts: Index  # (n,)
    kind_pair: Index  # (K,)
    kind_arc: Index  # (K,): which distinct (pair, next state); -1 unknown
    kind_reward: Array  # (K,)
    arc_pair: Index  # (J,), rising
    arc_next: Index  # (J,): S is the end
    pair_arcs: Index  # (P+1,): the arcs of each pair
    probs: Array  # (L, S, A)
    unseen: int
    unseen_reward: float
    discount: float

    @classmethod
    def build(
        cls,
        data: TrajectoryDataset,
        pair: IntArray,
        following: IntArray,
        starts: IntArray,
        probs: Array,
        unseen: int,
        unseen_reward: float,
    ) -> TabularData:
        """Find the distinct kinds and arcs."""
        _, n_states, n_actions = probs.shape
        arc_key = pair * (n_states + 2) + following + 1  # unknown (-1) comes first
        rewards, reward_of = np.unique(data.rewards, return_inverse=True)
        kind_key, kinds = np.unique(arc_key * len(rewards) + reward_of, return_inverse=True)
        kind_arc_key = kind_key // len(rewards)
        known = kind_arc_key % (n_states + 2) > 0
        arc_keys, arc_of = np.unique(kind_arc_key[known], return_inverse=True)
        kind_arc = np.full(len(kind_key), -1)
        kind_arc[known] = arc_of
        arc_pair = arc_keys // (n_states + 2)
        return cls(
            data.offsets,
            kinds.astype(np.int32),
            starts.astype(np.int32),
            (kind_arc_key // (n_states + 2)).astype(np.int32),
            kind_arc.astype(np.int32),
            rewards[kind_key % len(rewards)],
            arc_pair.astype(np.int32),
            (arc_keys % (n_states + 2) - 1).astype(np.int32),
            np.searchsorted(arc_pair, np.arange(n_states * n_actions + 1)).astype(np.int32),
            probs,
            unseen,
            unseen_reward,
            data.discount,
        )

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return len(self.starts)

    def values(self, weights: Array) -> Array:
        """The candidate's value in the model of each row of weights, by exact backward induction."""
        result = np.empty(len(weights))
        for rows, fit in self._fits(weights):
            result[rows] = fit.value()[: rows.stop - rows.start]
        return result

    def control_variates(self, weights: Array) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every step under weights (n,)."""
        ((_, fit),) = self._fits(weights[None])
        pair = self.kind_pair[self.kinds]
        state = pair // self.probs.shape[2]
        times = np.arange(len(pair)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))
        order = np.argsort(times, kind="stable")
        ends = np.searchsorted(times[order], np.arange(len(self.probs) + 1))
        q_values, state_values = np.empty(len(pair)), np.empty(len(pair))
        for t, q, v, _ in fit.backwards():
            steps = order[ends[t] : ends[t + 1]]
            q_values[steps] = q[pair[steps], 0]
            state_values[steps] = v[state[steps], 0]
        return q_values, state_values

    def influences(self, weights: Array) -> Array:
        """∂value/∂w_i under each row of weights, (rows, n)."""
        result = np.empty(weights.shape)
        for rows, fit in self._fits(weights):
            result[rows] = fit.slopes().T[: rows.stop - rows.start]
        return result

    def unseen_mass(self) -> float:
        """The share of the candidate's steps, in the model of all logs, that fall on pairs never logged.

        Nothing is known of what follows such a step, so it is the last one counted, whatever ``unseen`` says.
        """
        ((_, fit),) = self._fits(np.ones((1, self.n_trajectories)))
        visits, unseen = fit.occupancies()
        return float(unseen / visits) if visits > 0 else 0.0

    def _fits(self, weights: Array) -> Iterator[tuple[slice, TabularFit]]:
        """Models of (rows, n) weights, a block of lanes at a time; the last block is padded with its last row."""
        from tightrope.models.tabular_kernels import LANES

        for first in range(0, len(weights), LANES):
            rows = slice(first, min(first + LANES, len(weights)))
            block = weights[rows]
            if len(block) < LANES:
                block = np.concatenate([block, np.repeat(block[-1:], LANES - len(block), axis=0)])
            yield rows, TabularFit.of(self, np.ascontiguousarray(block.T))


@dataclass(frozen=True, eq=False)
class TabularFit:
    """A block of fitted models; arrays end in a lane axis."""

    data: TabularData
    arcs: Array  # (J, lanes): P̂(s'|s, a)
    arc_totals: Array  # (P, lanes)
    gaps: BoolArray  # (P,): whether some lane never saw what follows the pair
    rewards: Array  # (P, lanes): r̂(s, a)
    visits: Array  # (P, lanes)
    start_counts: Array  # (S, lanes)

    @classmethod
    def of(cls, data: TabularData, weights: Array) -> TabularFit:
        """Count and normalise under weights (n, lanes)."""
        from tightrope.models import tabular_kernels as kernels

        lanes = weights.shape[1]
        _, n_states, n_actions = data.probs.shape
        kind_counts, start_counts = np.empty((len(data.kind_pair), lanes)), np.empty((n_states, lanes))
        kernels.count(weights, data.offsets, data.kinds, data.starts, kind_counts, start_counts)
        arcs = np.empty((len(data.arc_pair), lanes))
        arc_totals, rewards, visits = (np.empty((n_states * n_actions, lanes)) for _ in range(3))
        gaps = np.empty(n_states * n_actions, dtype=np.bool_)
        kernels.normalize(
            kind_counts,
            data.kind_pair,
            data.kind_arc,
            data.kind_reward,
            data.arc_pair,
            arcs,
            arc_totals,
            rewards,
            visits,
            gaps,
            data.unseen_reward,
        )
        return cls(data, arcs, arc_totals, gaps, rewards, visits, start_counts)

    def backwards(self) -> Iterator[tuple[int, Array, Array, Array]]:
        """(t, q_t (P, lanes), v_t (S+1, lanes), v_{t+1}) from the last step to the first; overwritten as it goes."""
        from tightrope.models import tabular_kernels as kernels

        data, lanes = self.data, self.arcs.shape[1]
        horizon, n_states, n_actions = data.probs.shape
        q = np.empty((n_states * n_actions, lanes))
        values, ahead = np.zeros((n_states + 1, lanes)), np.zeros((n_states + 1, lanes))
        steps_left = 0.0
        for t in reversed(range(horizon)):
            kernels.action_values(
                self.arcs,
                data.arc_next,
                data.pair_arcs,
                self.arc_totals,
                self.gaps,
                self.rewards,
                ahead,
                data.discount,
                n_actions,
                data.unseen,
                data.unseen_reward,
                steps_left,
                q,
            )
            kernels.state_values(q, data.probs[t], values)
            yield t, q, values, ahead
            steps_left = 1.0 + data.discount * steps_left
            values, ahead = ahead, values

    def value(self) -> Array:
        """V̂ of each lane: the start distribution's average of v_0."""
        first = np.zeros(0)
        for _, _, values, _ in self.backwards():
            first = values
        return self._average(first)

    def _average(self, first: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Array = (self.start_counts * first[:-1]).sum(axis=0) / self.start_counts.sum(axis=0)
        return result

    def slopes(self) -> Array:
        """∂V̂/∂w_i of each trajectory and lane, (n, lanes): occupancies forwards against values backwards."""
        from tightrope.models import tabular_kernels as kernels

        data, lanes = self.data, self.arcs.shape[1]
        horizon, n_states, _ = data.probs.shape
        later = np.zeros((horizon + 1, n_states + 1, lanes))
        for t, _, values, _ in self.backwards():
            later[t] = values
        total = self.start_counts.sum(axis=0)
        occupancy, following = np.zeros((n_states + 1, lanes)), np.zeros((n_states + 1, lanes))
        with np.errstate(invalid="ignore", divide="ignore"):  # no weight, no value
            occupancy[:-1] = self.start_counts / total
            start_slope = (later[0, :-1] - self._average(later[0])) / total
        pair_gain, arc_gain = np.zeros(self.rewards.shape), np.zeros(self.arcs.shape)
        for t in range(horizon):
            kernels.occupy(
                self.arcs,
                data.arc_next,
                data.pair_arcs,
                self.arc_totals,
                data.probs[t],
                occupancy,
                later[t + 1],
                data.discount**t,
                data.discount,
                data.unseen,
                pair_gain,
                arc_gain,
                following,
            )
            occupancy, following = following, occupancy
        slope = np.empty((len(data.kind_pair), lanes))
        kernels.kind_slopes(
            data.kind_pair,
            data.kind_arc,
            data.kind_reward,
            data.arc_pair,
            self.arcs,
            self.arc_totals,
            self.rewards,
            self.visits,
            pair_gain,
            arc_gain,
            slope,
        )
        result = np.empty((data.n_trajectories, lanes))
        kernels.gather(data.offsets, data.kinds, data.starts, slope, start_slope, result)
        return result

    def occupancies(self) -> tuple[float, float]:
        """Expected steps of the candidate in the first lane's model, and those on pairs it never saw."""
        data = self.data
        pair_next = np.zeros((len(self.rewards), self.start_counts.shape[0] + 1))
        np.add.at(pair_next, (data.arc_pair, data.arc_next), self.arcs[:, 0])
        alive = self.start_counts[:, 0] / self.start_counts[:, 0].sum()
        steps = unseen = 0.0
        for probs in data.probs:
            pairs = (alive[:, None] * probs).reshape(-1)
            steps += float(pairs.sum())
            unseen += float(pairs[self.visits[:, 0] == 0].sum())
            alive = (pairs @ pair_next)[:-1]
        return steps, unseen
