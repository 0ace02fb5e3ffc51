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

from tightrope.dataset import Array, IntArray, TrajectoryDataset
from tightrope.errors import DataError, PolicyError
from tightrope.models.tabular_fit import TabularFit
from tightrope.policy import DiscretePolicy
from tightrope.problem import Problem

Unseen = Literal["worst", "self-loop", "terminate"]
Index = npt.NDArray[np.int32]

MOST_ARCS = 2_000_000  # that smoothing may fill in
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
    rewards: tuple[tuple[float, ...], ...] | None = None  # (S, A) where the reward function is known; else estimated
    smoothing: float = 0.0  # Dirichlet: this many pseudo-visits of every pair, spread evenly over all next states

    def __post_init__(self) -> None:
        if not self.smoothing >= 0:
            raise DataError(f"smoothing is {self.smoothing}; a number of pseudo-visits ≥ 0 expected")
        if self.rewards is not None:
            table = np.atleast_2d(np.asarray(self.rewards, dtype=np.float64))
            object.__setattr__(self, "rewards", tuple(tuple(float(r) for r in row) for row in table))
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
                "a tabular model evaluates the candidate in states that were not logged with these actions: it needs "
                "the policy itself (probs(states, t)), not only its probabilities of the logged actions"
            )
        following, final = _following(data, states)
        n_states = _size("state", self.n_states, max(int(states.max()), int(final.max(initial=0))))
        n_actions = _size("action", self.n_actions, int(actions.max()))
        probs = policy_table(policy, n_states, n_actions, data.horizon)
        n_actions = probs.shape[2]
        following = np.where(following == _END, n_states, following)
        pair = states * n_actions + actions
        return TabularData.build(
            data,
            pair,
            following,
            states[data.offsets[:-1]],
            probs=probs,
            unseen=_UNSEEN[self.unseen],
            unseen_reward=self._reward(data, anchor),
            known_rewards=self._known_rewards(n_states, n_actions),
            smoothing=self.smoothing,
        )

    def _known_rewards(self, n_states: int, n_actions: int) -> Array | None:
        """The reward function as (P,), checked."""
        if self.rewards is None:
            return None
        table = np.asarray(self.rewards, dtype=np.float64)
        if table.shape != (n_states, n_actions) or not np.isfinite(table).all():
            raise DataError(f"rewards has shape {table.shape}; finite ({n_states}, {n_actions}) expected")
        return table.reshape(-1)

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


def policy_table(policy: DiscretePolicy, n_states: int, n_actions: int, horizon: int) -> Array:
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
    known_rewards: Array | None  # (P,)
    pseudo: float  # added to the count of every arc
    discount: float

    @classmethod
    def build(
        cls,
        data: TrajectoryDataset,
        pair: IntArray,
        following: IntArray,
        starts: IntArray,
        *,
        probs: Array,
        unseen: int,
        unseen_reward: float,
        known_rewards: Array | None,
        smoothing: float,
    ) -> TabularData:
        """Find the distinct kinds and arcs; all arcs, seen or not, where they are smoothed."""
        _, n_states, n_actions = probs.shape
        arc_key = pair * (n_states + 2) + following + 1  # unknown (-1) comes first
        rewards, reward_of = np.unique(data.rewards, return_inverse=True)
        kind_key, kinds = np.unique(arc_key * len(rewards) + reward_of, return_inverse=True)
        kind_arc_key = kind_key // len(rewards)
        known = kind_arc_key % (n_states + 2) > 0
        arc_keys = np.unique(kind_arc_key[known])
        if smoothing > 0:
            size = n_states * n_actions * (n_states + 1)
            if size > MOST_ARCS:
                raise DataError(
                    f"smoothing makes {size} transitions of {n_states} states; at most {MOST_ARCS} are handled"
                )
            pairs, nexts = np.divmod(np.arange(size), n_states + 1)
            arc_keys = pairs * (n_states + 2) + nexts + 1
        kind_arc = np.full(len(kind_key), -1)
        kind_arc[known] = np.searchsorted(arc_keys, kind_arc_key[known])
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
            known_rewards,
            smoothing / (n_states + 1),
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

    def simulated_values(self, n_resamples: int, *, seed: int) -> Array:
        """Values of models fitted to data drawn from the model of all logs, (n_resamples,): the parametric bootstrap.

        Every pair keeps its number of visits; their outcomes are drawn anew from the fitted distribution, and so are
        the starts. Unlike resampled trajectories, a replicate never loses a pair that the logs hold.
        """
        from tightrope.models.tabular_kernels import LANES

        kind_counts = np.bincount(self.kinds, minlength=len(self.kind_pair))
        visits = np.bincount(self.kind_pair, weights=kind_counts, minlength=self.probs.shape[1] * self.probs.shape[2])
        edges = np.searchsorted(self.kind_pair, np.arange(len(visits) + 1))  # kinds are sorted by pair
        starts = np.bincount(self.starts, minlength=self.probs.shape[1])
        values = []
        for block in range(-(-n_resamples // LANES)):
            rng = np.random.default_rng([seed, block])
            drawn = np.zeros((len(kind_counts), LANES))
            for pair in np.flatnonzero(visits):
                inside = slice(edges[pair], edges[pair + 1])
                shares = kind_counts[inside] / visits[pair]
                drawn[inside] = rng.multinomial(int(visits[pair]), shares, size=LANES).T
            start_counts = rng.multinomial(len(self.starts), starts / len(self.starts), size=LANES).T
            fit = TabularFit.from_counts(self, drawn, start_counts.astype(np.float64))
            values.append(fit.value())
        return np.concatenate(values)[:n_resamples]

    def unseen_mass(self) -> float:
        """The share of the candidate's steps, in the model of all logs, that fall on pairs never logged.

        Nothing is known of what follows such a step, so it is the last one counted, whatever ``unseen`` says.
        """
        return self.weak_masses()[0]

    def weak_masses(self) -> tuple[float, float]:
        """The shares of the candidate's steps on pairs never logged, and on pairs that a single trajectory holds.

        About a third of all resamples lose the latter.
        """
        ((_, fit),) = self._fits(np.ones((1, self.n_trajectories)))
        n_pairs = self.probs.shape[1] * self.probs.shape[2]
        trajectory = np.repeat(np.arange(self.n_trajectories), np.diff(self.offsets))
        held = np.unique(self.kind_pair[self.kinds].astype(np.int64) * self.n_trajectories + trajectory)
        holders = np.bincount(held // self.n_trajectories, minlength=n_pairs)
        steps, unseen, fragile = fit.occupancies(holders == 1)
        return (unseen / steps, fragile / steps) if steps > 0 else (0.0, 0.0)

    def _fits(self, weights: Array) -> Iterator[tuple[slice, TabularFit]]:
        """Models of (rows, n) weights, a block of lanes at a time; the last block is padded with its last row."""
        from tightrope.models.tabular_kernels import LANES

        for first in range(0, len(weights), LANES):
            rows = slice(first, min(first + LANES, len(weights)))
            block = weights[rows]
            if len(block) < LANES:
                block = np.concatenate([block, np.repeat(block[-1:], LANES - len(block), axis=0)])
            yield rows, TabularFit.of(self, np.ascontiguousarray(block.T))
