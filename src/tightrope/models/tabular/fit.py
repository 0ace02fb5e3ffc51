"""Fitted tabular models, a block of replicates at a time: evaluation backwards, derivatives forwards."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from tightrope.base.dataset import Array, BoolArray
from tightrope.base.folder import parts
from tightrope.models.tabular import kernels, step_kernels
from tightrope.models.tabular.blocks import LANES, lanes, several
from tightrope.models.tabular.data import TabularData
from tightrope.models.tabular.parts import Parts, Steps

KINDS = 1 << 16  # that are counted together


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
        assert weights.shape[1] == LANES
        start_counts, steps = lanes(data.probs.shape[1]), data.step_meetings
        kernels.count(weights, data.start_meetings.edges, data.start_meetings.members, start_counts)

        def counted() -> Iterator[tuple[slice, Array]]:
            for part in parts(len(data.kind_pair), KINDS):
                counts = lanes(part.stop - part.start)
                kernels.count(weights, steps.edges[part.start : part.stop + 1], steps.members, counts)
                yield part, counts

        return cls._normalized(data, counted(), start_counts)

    @classmethod
    def from_counts(cls, data: TabularData, kind_counts: Array, start_counts: Array) -> TabularFit:
        """Normalise counts of kinds (K, lanes) and of starts (S, lanes)."""
        assert kind_counts.shape[1] == start_counts.shape[1] == LANES
        return cls._normalized(data, [(slice(0, len(kind_counts)), kind_counts)], start_counts)

    @classmethod
    def _normalized(
        cls, data: TabularData, kind_counts: Iterable[tuple[slice, Array]], start_counts: Array
    ) -> TabularFit:
        """The models of these counts, which come for some kinds at a time."""
        n_pairs = data.probs.shape[1] * data.probs.shape[2]
        arcs, arc_totals, rewards, visits = several(len(data.arc_pair), n_pairs, n_pairs, n_pairs)
        gaps = np.empty(n_pairs, dtype=np.bool_)
        kernels.begin(data.pair_arcs, data.pseudo, arcs, arc_totals, rewards, visits)
        for some, counts in kind_counts:
            kernels.meet(
                counts,
                data.kind_pair[some],
                data.kind_arc[some],
                data.kind_reward[some],
                arcs,
                arc_totals,
                rewards,
                visits,
            )
        kernels.normalize(data.arc_pair, arcs, arc_totals, rewards, visits, gaps, data.unseen_reward)
        if data.known_rewards is not None:
            rewards[:] = data.known_rewards[:, None]
        return cls(data, arcs, arc_totals, gaps, rewards, visits, start_counts)

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
        data, chain = self.data, self.data.chain
        moves, earned, open_mass, ahead, spare = several(len(chain.nexts), *[len(chain.states)] * 4)
        opened = np.empty(len(chain.states), dtype=np.bool_)
        steps_left = 0.0
        for first, n_steps in chain.runs:
            kernels.fold(
                self.arcs,
                data.pair_arcs,
                self.arc_totals,
                self.gaps,
                self.rewards,
                data.probs[first],
                data.discount,
                chain.states,
                chain.links,
                moves,
                earned,
                open_mass,
                opened,
            )
            ahead, spare, steps_left = kernels.sweep(
                moves,
                chain.nexts,
                chain.edges,
                earned,
                open_mass,
                opened,
                data.unseen,
                data.unseen_reward,
                data.discount,
                n_steps,
                steps_left,
                ahead,
                spare,
            )
        return self._average(self.start_counts[chain.states], ahead)

    def _average(self, start_counts: Array, first: Array) -> Array:
        with np.errstate(invalid="ignore", divide="ignore"):
            result: Array = (start_counts * first).sum(axis=0) / start_counts.sum(axis=0)
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
        q_values, state_values = several(len(self.data.kinds), len(self.data.kinds))
        self._later(Steps.of(self.data), q_values, state_values)
        return q_values, state_values

    def slopes(self) -> Array:
        """∂V̂/∂w_i of each episode and lane, (n, lanes): occupancies forwards against values backwards."""
        (none,), total, no_steps = several(0), self.start_counts.sum(axis=0), Steps.none(self.data)
        later = self._later(no_steps, none, none)
        occupancy = lanes(later.shape[1])
        with np.errstate(invalid="ignore", divide="ignore"):  # no weight, no value
            occupancy[:-1] = self.start_counts / total
            start_slope = (later[0, :-1] - self._average(self.start_counts, later[0, :-1])) / total
        return self._gathered(*self._gains(occupancy, later, no_steps, none, none), start_slope)

    def pulled_back(self, q_slopes: Array, state_slopes: Array) -> Array:
        """∂f/∂w_i of each episode and lane, (n, lanes), of any f with these derivatives by q̂ and v̂ of every step."""
        (none,), steps = several(0), Steps.of(self.data)
        later = self._later(Steps.none(self.data), none, none)
        gains = self._gains(lanes(later.shape[1]), later, steps, q_slopes, state_slopes)
        return self._gathered(*gains, lanes(later.shape[1] - 1))

    @property
    def _parts(self) -> Parts:
        """The models as kernels take them."""
        data = self.data
        return Parts(
            self.arcs,
            data.arc_next,
            data.pair_arcs,
            self.arc_totals,
            self.gaps,
            self.rewards,
            data.probs,
            float(data.discount),
            data.unseen,
            float(data.unseen_reward),
        )

    def _later(self, steps: Steps, q_values: Array, state_values: Array) -> Array:
        """v_t of every time, (horizon + 1, S + 1, lanes); those of the steps, (N, lanes), are filled in."""
        horizon, n_states, _ = self.data.probs.shape
        flat, q = several((horizon + 1) * (n_states + 1), len(self.rewards))
        later = flat.reshape(horizon + 1, n_states + 1, LANES)
        step_kernels.induce(self._parts, steps, q, later, q_values, state_values)
        return later

    def _gathered(self, pair_gain: Array, arc_gain: Array, start_slope: Array) -> Array:
        """What each episode moves by its steps and its start, (n, lanes)."""
        data = self.data
        slope, result = data.lanes_of_kinds(), lanes(data.n_trajectories)
        step_kernels.kind_slopes(
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
        step_kernels.gather(data.offsets, data.kinds, data.starts, slope, start_slope, result)
        return result

    def _gains(
        self, occupancy: Array, later: Array, steps: Steps, q_slopes: Array, state_slopes: Array
    ) -> tuple[Array, Array]:
        """What one more visit to each pair and to each arc would gain, summed over time (occupancy is overwritten)."""
        n_pairs = len(self.rewards)
        pair_gain, arc_gain, sources, following = several(n_pairs, len(self.arcs), n_pairs, len(occupancy))
        room = sources, occupancy, following
        step_kernels.gain(self._parts, steps, later, q_slopes, state_slopes, *room, pair_gain, arc_gain)
        if self.data.known_rewards is not None:
            pair_gain[:] = 0.0  # a known reward does not move with the counts
        return pair_gain, arc_gain

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
