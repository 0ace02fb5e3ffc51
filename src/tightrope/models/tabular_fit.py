"""Fitted tabular models, a block of replicates at a time: evaluation backwards, derivatives forwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from tightrope.dataset import Array, BoolArray

if TYPE_CHECKING:
    from tightrope.models.tabular import TabularData


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

        lanes, n_states = weights.shape[1], data.probs.shape[1]
        kind_counts, start_counts = np.empty((len(data.kind_pair), lanes)), np.empty((n_states, lanes))
        kernels.count(weights, data.offsets, data.kinds, data.starts, kind_counts, start_counts)
        return cls.from_counts(data, kind_counts, start_counts)

    @classmethod
    def from_counts(cls, data: TabularData, kind_counts: Array, start_counts: Array) -> TabularFit:
        """Normalise counts of kinds (K, lanes) and of starts (S, lanes)."""
        from tightrope.models import tabular_kernels as kernels

        lanes = kind_counts.shape[1]
        _, n_states, n_actions = data.probs.shape
        arcs = np.empty((len(data.arc_pair), lanes))
        arc_totals, rewards, visits = (np.empty((n_states * n_actions, lanes)) for _ in range(3))
        gaps = np.empty(n_states * n_actions, dtype=np.bool_)
        kernels.normalize(
            kind_counts,
            data.kind_pair,
            data.kind_arc,
            data.kind_reward,
            data.arc_pair,
            data.pair_arcs,
            data.pseudo,
            arcs,
            arc_totals,
            rewards,
            visits,
            gaps,
            data.unseen_reward,
        )
        if data.known_rewards is not None:
            rewards[:] = data.known_rewards[:, None]
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
        if data.known_rewards is not None:
            pair_gain[:] = 0.0  # a known reward does not move with the counts
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

    def occupancies(self, held_once: BoolArray) -> tuple[float, float, float]:
        """Expected steps of the candidate in the first lane's model: all, on unknown pairs, and on pairs held once.

        A pair is unknown where it was never logged, or where what follows it was not and something follows.
        """
        data = self.data
        pair_next = np.zeros((len(self.rewards), self.start_counts.shape[0] + 1))
        np.add.at(pair_next, (data.arc_pair, data.arc_next), self.arcs[:, 0])
        alive = self.start_counts[:, 0] / self.start_counts[:, 0].sum()
        steps = unseen = fragile = 0.0
        for t, probs in enumerate(data.probs):
            pairs = (alive[:, None] * probs).reshape(-1)
            known = self.arc_totals[:, 0] > 0 if t < len(data.probs) - 1 else self.visits[:, 0] > 0
            steps += float(pairs.sum())
            unseen += float(pairs[~known].sum())
            fragile += float(pairs[held_once].sum())
            alive = (pairs @ pair_next)[:-1]
        return steps, unseen, fragile
