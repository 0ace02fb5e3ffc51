"""The tabular model: maximum-likelihood transitions, start distribution and rewards over finite states and actions.

Fitted from weighted trajectories, so that a refit per replicate is a count, a division and a backward induction, done
for sixteen replicates at a time. What the model says of a pair that the (re)sample does not hold is an explicit choice.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt

from tightrope.dataset import Array, IntArray, TrajectoryDataset
from tightrope.errors import DataError, PolicyError
from tightrope.policy import DiscretePolicy
from tightrope.problem import Problem

Unseen = Literal["worst", "self-loop", "terminate"]
Anchor = Literal["low", "high"]
Index = npt.NDArray[np.int32]

_UNSEEN: dict[str, int] = {"worst": 0, "self-loop": 1, "terminate": 2}


@dataclass(frozen=True)
class TabularModel:
    """Settings of a tabular model.

    ``unseen`` says what follows a state-action pair that was never logged: "worst" (its reward on every step to come),
    "self-loop" (the state stays; the paper's choice, after Jiang and Li) or "terminate" (nothing). ``unseen_reward`` is
    what such a pair earns per step; by default the lowest possible reward for a lower bound, the highest for an upper
    one. A self-loop of reward 0 with negative rewards makes lower bounds err nearly always.
    """

    name: ClassVar[str] = "tabular"

    n_states: int | None = None  # None: as many as the logs hold
    n_actions: int | None = None
    unseen: Unseen = "worst"
    unseen_reward: float | None = None
    anchor: Anchor = "low"

    def __post_init__(self) -> None:
        if self.unseen not in _UNSEEN:
            raise DataError(f"unseen is {self.unseen!r}; known: {', '.join(_UNSEEN)}")

    def prepare(self, problem: Problem) -> TabularData:
        """The logs in the form that counting needs; refuses logs and policies that are not finite."""
        data, policy = problem.dataset, problem.policy
        states, actions = _finite("state", data.states), _finite("action", data.actions)
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
            data, pair, following, states[data.offsets[:-1]], probs, _UNSEEN[self.unseen], self._reward(data)
        )

    def _reward(self, data: TrajectoryDataset) -> float:
        """What an unseen pair earns: as set, the unsafe end of the declared range, or of the sample."""
        if self.unseen_reward is not None:
            return self.unseen_reward
        low, high = data.step_range or (-np.inf, np.inf)
        end = low if self.anchor == "low" else high
        seen = data.rewards.min() if self.anchor == "low" else data.rewards.max()
        return float(end if np.isfinite(end) else seen)


_UNKNOWN, _END = -1, -2


def _finite(name: str, values: npt.NDArray[np.generic] | None) -> IntArray:
    if values is None or values.ndim != 1 or values.dtype.kind not in "iub":
        held = "none" if values is None else f"{values.dtype} of shape {values.shape}"
        raise DataError(f"a tabular model needs one integer {name} per step; the logs hold {held}")
    if values.min() < 0:
        raise DataError(f"{name} {values.min()} is below 0; a tabular model numbers them from 0")
    return values.astype(np.int64)


def _size(name: str, given: int | None, largest: int) -> int:
    if given is not None and largest >= given:
        raise DataError(f"{name} {largest} is in the logs, but n_{name}s is {given}: they are numbered 0..{given - 1}")
    return largest + 1 if given is None else given


def _following(data: TrajectoryDataset, states: IntArray) -> tuple[IntArray, IntArray]:
    """The state after each step, (N,): _END after termination, _UNKNOWN where the logs stop; and the final "
    "ones known."""
    following = np.append(states[1:], _UNKNOWN)
    last = data.offsets[1:] - 1
    following[last] = _UNKNOWN
    final = np.zeros(0, dtype=np.int64)
    if data.final_states is not None and data.final_states.dtype.kind in "iu":
        open_ended = ~data.terminated
        final = data.final_states[open_ended].astype(np.int64)
        final = np.where(final >= 0, final, _UNKNOWN)
        following[last[open_ended]] = final
    following[last[data.terminated]] = _END
    return following, final


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

    def fits(self, weights: Array) -> Iterator[tuple[slice, TabularFit]]:
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
        )
        return cls(data, arcs, arc_totals, rewards, visits, start_counts)

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
                self.rewards,
                self.visits,
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
        first = np.zeros_like(self.start_counts)
        for _, _, values, _ in self.backwards():
            first = values[:-1]
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Array = (self.start_counts * first).sum(axis=0) / self.start_counts.sum(axis=0)
        return result
