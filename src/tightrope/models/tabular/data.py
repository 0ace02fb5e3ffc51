"""Logs reduced to what a tabular model counts, and the models of any weights: values, control variates, derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset, steps_of
from tightrope.base.errors import DataError
from tightrope.models.tabular.chain import Chain, Index, Meetings, Timeline
from tightrope.models.tabular.rollouts import Rollouts

if TYPE_CHECKING:
    from tightrope.models.tabular.fit import TabularFit

MOST_ARCS = 2_000_000  # that smoothing may fill in


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
    rollouts: Rollouts | None

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
        rollouts: Rollouts | None,
    ) -> TabularData:
        """Find the distinct kinds and arcs; all arcs, seen or not, where they are smoothed."""
        _, n_states, n_actions = probs.shape
        arc_key = pair * (n_states + 2) + following + 1  # unknown (-1) comes first
        rewards, reward_of = np.unique(data.rewards, return_inverse=True)
        found, arc_of = np.unique(arc_key, return_inverse=True)  # keys of keys would not fit into 64 bits
        kind_key, kinds = np.unique(arc_of * len(rewards) + reward_of, return_inverse=True)
        kind_arc_key = found[kind_key // len(rewards)]
        known = kind_arc_key % (n_states + 2) > 0
        arc_keys = np.unique(kind_arc_key[known])
        if smoothing > 0:
            size = n_states * n_actions * (n_states + 1)
            if size > MOST_ARCS:
                raise DataError(
                    f"smoothing must make at most {MOST_ARCS} transitions; with {n_states} states it makes {size}"
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
            rollouts,
        )

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return len(self.starts)

    @property
    def trajectories(self) -> IntArray:
        """Which trajectory each step belongs to, (N,)."""
        return np.repeat(np.arange(self.n_trajectories), np.diff(self.offsets))

    @cached_property
    def step_meetings(self) -> Meetings:
        """Which episodes took each kind of step."""
        return Meetings.of(self.kinds, self.trajectories, len(self.kind_pair))

    @cached_property
    def start_meetings(self) -> Meetings:
        """Which episodes started in each state."""
        return Meetings.of(self.starts, np.arange(self.n_trajectories), self.probs.shape[1])

    @cached_property
    def timeline(self) -> Timeline:
        """The steps sorted by time."""
        return Timeline.of(self)

    @cached_property
    def chain(self) -> Chain:
        """The states that the candidate can reach."""
        return Chain.of(self)

    def values(self, weights: Array) -> Array:
        """The candidate's value in the model of each row of weights."""
        result = np.empty(len(weights))
        for rows, block in self._blocks(weights):
            result[rows] = self._value(self._fit(block))[: rows.stop - rows.start]
        return result

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every step under weights (n,)."""
        ((_, block),) = self._blocks(weights[None])
        line = self.timeline
        q_values, state_values = np.empty(len(line.order)), np.empty(len(line.order))
        for t, q, v, _ in self._fit(block).backwards():
            now = slice(line.edges[t], line.edges[t + 1])
            q_values[line.order[now]] = q[line.pairs[now], 0]
            state_values[line.order[now]] = v[line.pairs[now] // self.probs.shape[2], 0]
        return q_values, state_values

    def action_values(self, weights: Array, wanted: Sequence[IntArray]) -> list[Array]:
        """q̂_t(S_t, a) of every action and each step of the episodes wanted of each row of weights, (steps, actions)."""
        n_actions, (states, times) = self.probs.shape[2], self._places
        results = []
        for rows, block in self._blocks(weights):
            parts = [steps_of(self.offsets, episodes) for episodes in wanted[rows]]
            orders = [np.argsort(times[steps], kind="stable") for steps in parts]
            counts = [np.bincount(times[steps], minlength=len(self.probs)) for steps in parts]
            edges = [np.append(0, np.cumsum(count)) for count in counts]
            tables = [np.zeros((len(steps), n_actions)) for steps in parts]
            for t, q, _, _ in self._fit(block).backwards():
                by_state = q.reshape(-1, n_actions, q.shape[1])
                for lane, table in enumerate(tables):
                    now = orders[lane][edges[lane][t] : edges[lane][t + 1]]
                    table[now] = by_state[states[parts[lane][now]], :, lane]
            taught = weights[rows].sum(axis=1) > 0
            results += [table if taught[lane] else np.zeros_like(table) for lane, table in enumerate(tables)]
        return results

    @cached_property
    def _places(self) -> tuple[IntArray, IntArray]:
        """The state and the time of each step, (N,) each."""
        states = self.kind_pair[self.kinds] // self.probs.shape[2]
        return states, np.arange(len(self.kinds)) - np.repeat(self.offsets[:-1], np.diff(self.offsets))

    def correction_sums(self, weights: Array, factors: Array) -> Array:
        """Σ_i w_i v̂_0(S_0) and, for every time, Σ_i w_i f_t δ_t under each row, (rows, 1 + horizon)."""
        result, in_order = np.empty((len(weights), 1 + len(self.probs))), factors[self.timeline.order]
        for rows, block in self._blocks(weights):
            result[rows] = self._fit(block).correction_sums(block, in_order).T[: rows.stop - rows.start]
        return result

    def influences(self, weights: Array) -> Array:
        """∂value/∂w_i under each row of weights, (rows, n), of the exact value: roll-outs move in jumps."""
        result = np.empty(weights.shape)
        for rows, block in self._blocks(weights):
            result[rows] = self._fit(block).slopes().T[: rows.stop - rows.start]
        return result

    def simulated_values(self, n_resamples: int, *, seed: int) -> Array:
        """Values of models fitted to data drawn from the model of all logs, (n_resamples,): the parametric bootstrap.

        Every pair keeps its number of visits; their outcomes are drawn anew from the fitted distribution, and so are
        the starts. Unlike resampled trajectories, a replicate never loses a pair that the logs hold.
        """
        from tightrope.models.tabular.fit import TabularFit
        from tightrope.models.tabular.rows import LANES, lanes

        data, shares, visits = self._outcomes()
        edges = np.searchsorted(data.kind_pair, np.arange(len(visits) + 1))  # kinds are sorted by pair
        starts = np.bincount(self.starts, minlength=self.probs.shape[1])
        values = []
        for block in range(-(-n_resamples // LANES)):
            rng = np.random.default_rng([seed, block])
            drawn, start_counts = lanes(len(shares)), lanes(len(starts))
            for pair in np.flatnonzero(visits):
                inside = slice(edges[pair], edges[pair + 1])
                drawn[inside] = rng.multinomial(int(visits[pair]), shares[inside], size=LANES).T
            start_counts[:] = rng.multinomial(len(self.starts), starts / len(self.starts), size=LANES).T
            fit = TabularFit.from_counts(data, drawn, start_counts)
            values.append(self._value(fit))
        return np.concatenate(values)[:n_resamples]

    def _outcomes(self) -> tuple[TabularData, Array, Array]:
        """Each kind of step that the model of all logs can take, its probability given the pair, and the pairs' visits.

        Smoothing makes transitions possible that were never logged: each becomes a kind with the pair's mean reward.
        """
        n_pairs = self.probs.shape[1] * self.probs.shape[2]
        counts = np.bincount(self.kinds, minlength=len(self.kind_pair)).astype(np.float64)
        visits: Array = np.bincount(self.kind_pair, weights=counts, minlength=n_pairs).astype(np.float64)
        if self.pseudo == 0:
            return self, counts / visits[self.kind_pair], visits
        known = self.kind_arc >= 0
        logged = np.bincount(self.kind_arc[known], weights=counts[known], minlength=len(self.arc_pair))
        added = np.flatnonzero((logged == 0) & (visits[self.arc_pair] > 0))
        earned = np.bincount(self.kind_pair, weights=counts * self.kind_reward, minlength=n_pairs)
        pair = np.concatenate([self.kind_pair, self.arc_pair[added]])
        arc = np.concatenate([self.kind_arc, added.astype(np.int32)])
        reward = np.concatenate([self.kind_reward, (earned / np.maximum(visits, 1))[self.arc_pair[added]]])
        smoothed = logged + self.pseudo
        by_arc = smoothed / np.bincount(self.arc_pair, weights=smoothed, minlength=n_pairs)[self.arc_pair]
        weighted = np.bincount(
            self.kind_pair[known], weights=counts[known], minlength=n_pairs
        )  # visits whose next is known
        part = np.where(known, counts / np.maximum(logged[self.kind_arc], 1), 0.0)  # of the arc's visits, by reward
        part = np.concatenate([part, np.ones(len(added))])
        shares = part * by_arc[arc] * weighted[pair] / visits[pair]
        unknown = np.flatnonzero(~known)
        shares[unknown] = counts[unknown] / visits[self.kind_pair[unknown]]
        order = np.argsort(pair, kind="stable")
        data = replace(self, kind_pair=pair[order], kind_arc=arc[order], kind_reward=reward[order])
        return data, shares[order], visits

    def unseen_mass(self) -> float:
        """The share of the candidate's steps, in the model of all logs, that fall on pairs never logged.

        Nothing is known of what follows such a step, so it is the last one counted, whatever ``unseen`` says.
        """
        return self.weak_masses()[0]

    def weak_masses(self) -> tuple[float, float]:
        """The shares of the candidate's steps on pairs never logged, and on pairs that a single trajectory holds.

        About a third of all resamples lose the latter.
        """
        ((_, block),) = self._blocks(np.ones((1, self.n_trajectories)))
        n_pairs = self.probs.shape[1] * self.probs.shape[2]
        held = np.unique(self.kind_pair[self.kinds].astype(np.int64) * self.n_trajectories + self.trajectories)
        holders = np.bincount(held // self.n_trajectories, minlength=n_pairs)
        steps, unseen, fragile = self._fit(block).occupancies(holders == 1)
        return (unseen / steps, fragile / steps) if steps > 0 else (0.0, 0.0)

    def _value(self, fit: TabularFit) -> Array:
        """V̂ of each lane, by exact backward induction unless roll-outs were asked for."""
        return fit.value() if self.rollouts is None else self.rollouts.value(fit)

    def _fit(self, block: Array) -> TabularFit:
        """The models of a block of weights (n, lanes)."""
        from tightrope.models.tabular.fit import TabularFit

        return TabularFit.of(self, block)

    def _blocks(self, weights: Array) -> Iterator[tuple[slice, Array]]:
        """Weights (rows, n) as blocks (n, lanes); the last one is padded with its last row."""
        from tightrope.models.tabular.rows import LANES, lanes

        for first in range(0, len(weights), LANES):
            rows = slice(first, min(first + LANES, len(weights)))
            block = lanes(self.n_trajectories)
            block[:, : rows.stop - first] = weights[rows].T
            block[:, rows.stop - first :] = weights[rows.stop - 1][:, None]
            yield rows, block
