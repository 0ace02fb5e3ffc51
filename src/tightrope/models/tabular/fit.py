"""Fitted tabular models, a block of replicates at a time: evaluation backwards, derivatives forwards."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from tightrope.base.dataset import Array, BoolArray
from tightrope.models.tabular import kernels, step_kernels, tile_kernels
from tightrope.models.tabular.blocks import LANES, lanes, several
from tightrope.models.tabular.data import TabularData
from tightrope.models.tabular.parts import Logs, Moving, Parts, Steps, Walking

KINDS = 1 << 10  # that are counted together


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
    def blank(cls, data: TabularData) -> TabularFit:
        """Room for a block of models."""
        n_states, n_pairs = data.probs.shape[1], data.probs.shape[1] * data.probs.shape[2]
        arcs, arc_totals, rewards, visits, starts = several(len(data.arc_pair), n_pairs, n_pairs, n_pairs, n_states)
        return cls(data, arcs, arc_totals, np.empty(n_pairs, dtype=np.bool_), rewards, visits, starts)

    @classmethod
    def of(cls, data: TabularData, weights: Array) -> TabularFit:
        """Count and normalise under weights (n, lanes)."""
        assert weights.shape[1] == LANES
        fit = cls.blank(data)
        tile_kernels.fit(weights, Logs.of(data), fit.parts)
        return fit

    @classmethod
    def from_counts(cls, data: TabularData, kind_counts: Array, start_counts: Array) -> TabularFit:
        """Normalise counts of kinds (K, lanes) and of starts (S, lanes)."""
        assert kind_counts.shape[1] == start_counts.shape[1] == LANES
        fit = replace(cls.blank(data), start_counts=start_counts)
        counted = fit.arcs, fit.arc_totals, fit.rewards, fit.visits
        kernels.begin(data.pair_arcs, data.pseudo, *counted)
        kernels.meet(kind_counts, data.kind_pair, data.kind_arc, data.kind_reward, *counted)
        tile_kernels.finish(fit.parts)
        return fit

    def backwards(self) -> Iterator[tuple[int, Array, Array, Array]]:
        """(t, q_t (P, lanes), v_t (S+1, lanes), v_{t+1}) from the last step to the first; overwritten as it goes."""
        data = self.data
        horizon, n_states, n_actions = data.probs.shape
        q, values, ahead = several(n_states * n_actions, n_states + 1, n_states + 1)
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
        """V̂ of each lane: the start distribution's average of v_0, by the candidate's Markov chain."""
        walking = Walking.of(self.data)
        tile_kernels.value(self.parts, walking)
        result: Array = walking.sums[0]
        return result

    def correction_sums(self, weights: Array, factors: Array) -> Array:
        """Σ_i w_i v̂_0(S_0), then Σ_i w_i f_t δ_t of every time, (1 + horizon, lanes); factors (N,) sorted by time."""
        data, line = self.data, self.data.timeline
        result = lanes(1 + len(data.probs))
        for t, q, values, ahead in self.backwards():
            kernels.correct(
                weights,
                line.edges[t],
                line.edges[t + 1],
                line.trajectories,
                line.pairs,
                line.nexts,
                line.rewards,
                factors,
                data.discount,
                q,
                ahead,
                1 + t,
                result,
            )
            if t == 0:
                result[0] = (self.start_counts * values[:-1]).sum(axis=0)
        return result

    def step_values(self) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every logged step, (N, lanes) each."""
        horizon, n_states, _ = self.data.probs.shape
        count = len(self.data.kinds)
        q_values, state_values, q, flat = several(count, count, len(self.rewards), (horizon + 1) * (n_states + 1))
        later = flat.reshape(horizon + 1, n_states + 1, LANES)
        step_kernels.induce(self.parts, Steps.of(self.data), q, later, q_values, state_values)
        return q_values, state_values

    def pulled_back(self, q_slopes: Array, state_slopes: Array) -> Array:
        """∂f/∂w_i of each episode and lane, (n, lanes), of any f with these derivatives by q̂ and v̂ of every step."""
        (none,), moving = several(0), Moving.of(self.data)
        step_kernels.induce(self.parts, Steps.none(self.data), moving.q, moving.later, none, none)
        logs, steps = Logs.of(self.data), Steps.of(self.data)
        tile_kernels.pull_back(self.parts, logs, steps, q_slopes, state_slopes, moving)
        return moving.slopes

    @property
    def parts(self) -> Parts:
        """The models as kernels take them."""
        data, known = self.data, self.data.known_rewards
        return Parts(
            self.arcs,
            data.arc_pair,
            data.arc_next,
            data.pair_arcs,
            self.arc_totals,
            self.gaps,
            self.rewards,
            self.visits,
            self.start_counts,
            lanes(KINDS),
            data.probs,
            np.zeros(0) if known is None else known,
            float(data.pseudo),
            float(data.discount),
            data.unseen,
            float(data.unseen_reward),
        )

    def occupancies(self, held_once: BoolArray) -> tuple[float, float, float]:
        """Expected steps of the candidate in the first lane's model: all, on unknown pairs, and on pairs held once.

        A pair is unknown where it was never logged, or where what follows it was not and something follows.
        """
        data = self.data
        alive = self.start_counts[:, 0] / self.start_counts[:, 0].sum()
        steps = unseen = fragile = 0.0
        for t, probs in enumerate(data.probs):
            pairs = (alive[:, None] * probs).reshape(-1)
            known = self.arc_totals[:, 0] > 0 if t < len(data.probs) - 1 else self.visits[:, 0] > 0
            steps += float(pairs.sum())
            unseen += float(pairs[~known].sum())
            fragile += float(pairs[held_once].sum())
            moved = pairs[data.arc_pair] * self.arcs[:, 0]
            alive = np.bincount(data.arc_next, weights=moved, minlength=len(alive) + 1)[:-1]
        return steps, unseen, fragile
