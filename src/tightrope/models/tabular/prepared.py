"""Tabular models of any weights: values, control variates, derivatives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING

import numpy as np

from tightrope.base import folder
from tightrope.base.arrays import pieces, steps_of, times_of
from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.models.tabular.blocks import LANES, blocks, lanes
from tightrope.models.tabular.data import TabularData
from tightrope.models.tabular.parts import Logs, Moving, Steps, Walking
from tightrope.models.tabular.rollouts import Rollouts
from tightrope.models.tabular.sorting import stretches

if TYPE_CHECKING:
    from tightrope.models.tabular.fit import TabularFit


@dataclass(frozen=True, eq=False)
class PreparedTabular:
    """A tabular model that can be fitted to the counted logs under any weights."""

    data: TabularData
    rollouts: Rollouts | None = None  # None: values by exact backward induction

    @property
    def n_trajectories(self) -> int:
        """How many weights a fit takes."""
        return self.data.n_trajectories

    def values(self, weights: Array) -> Array:
        """The candidate's value in the model of each row of weights."""
        result = np.empty(len(weights))
        if self.rollouts is None:
            from tightrope.models.tabular import tile_kernels  # compiles
            from tightrope.models.tabular.fit import TabularFit

            model, block, walking = (
                TabularFit.blank(self.data).parts,
                self.data.lanes_of_weights(),
                Walking.of(self.data),
            )
            tile_kernels.values(_plain(weights), Logs.of(self.data), model, block, walking, result)
            return result
        for rows, block in blocks(weights, self.data.scratch):
            result[rows] = self.rollouts.value(self._fit(block))[: rows.stop - rows.start]
        return result

    def control_variates(self, weights: Array, wanted: BoolArray | None = None) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every step under weights (n,)."""
        ((_, block),) = blocks(weights[None], self.data.scratch)
        data, horizon = self.data, len(self.data.probs)
        n_actions = data.probs.shape[2]
        q_table, v_table = np.empty((horizon, data.probs[0].size)), np.empty((horizon, data.probs.shape[1]))
        for t, q, v, _ in self._fit(block).backwards():
            q_table[t], v_table[t] = q[:, 0], v[:-1, 0]
        q_values, state_values = (data.scratch.empty(len(data.kinds)) for _ in range(2))
        for some in stretches(data.offsets):
            pairs, times = data.kind_pair[data.kinds[some.steps]], some.times
            q_values[some.steps] = q_table[times, pairs]
            state_values[some.steps] = v_table[times, pairs // n_actions]
        return q_values, state_values

    def action_values(self, weights: Array, wanted: Sequence[IntArray]) -> Iterator[tuple[int, slice, Array]]:
        """q̂_t(S_t, a) of every action and each step of the episodes wanted of each row of weights, some at a time."""
        horizon, n_states, _ = self.data.probs.shape
        size = max(folder.PART, horizon * n_states)  # so that going backwards once more for each piece costs little
        for rows, block in blocks(weights, self.data.scratch):
            fit, taught = self._fit(block), weights[rows].sum(axis=1) > 0
            cuts = [pieces(self.data.offsets, episodes, size) for episodes in wanted[rows]]
            for some in zip_longest(*cuts, fillvalue=slice(0)):
                episodes = [all_of[part] for all_of, part in zip(wanted[rows], some, strict=True)]
                for lane, table in enumerate(self._told(fit, episodes)):
                    if len(episodes[lane]):
                        yield rows.start + lane, some[lane], table if taught[lane] else np.zeros_like(table)

    def _told(self, fit: TabularFit, wanted: Sequence[IntArray]) -> list[Array]:
        """q̂_t(S_t, a) of the steps of the episodes wanted of each lane, (steps, actions) each."""
        data, n_actions = self.data, self.data.probs.shape[2]
        states = [data.kind_pair[data.kinds[steps_of(data.offsets, episodes)]] // n_actions for episodes in wanted]
        times = [times_of(data.offsets, episodes) for episodes in wanted]
        orders = [np.argsort(values, kind="stable") for values in times]
        edges = [np.append(0, np.cumsum(np.bincount(values, minlength=len(data.probs)))) for values in times]
        tables = [np.zeros((len(values), n_actions)) for values in times]
        for t, q, _, _ in fit.backwards():
            by_state = q.reshape(-1, n_actions, q.shape[1])
            for lane, table in enumerate(tables):
                now = orders[lane][edges[lane][t] : edges[lane][t + 1]]
                table[now] = by_state[states[lane][now], :, lane]
        return tables

    def correction_sums(self, weights: Array, factors: Array) -> Array:
        """Σ_i w_i v̂_0(S_0) and, for every time, Σ_i w_i f_t δ_t under each row, (rows, 1 + horizon)."""
        result, in_order = np.empty((len(weights), 1 + len(self.data.probs))), self._in_order(factors)
        for rows, block in blocks(weights, self.data.scratch):
            result[rows] = self._fit(block).correction_sums(block, in_order).T[: rows.stop - rows.start]
        return result

    def step_values(self, weights: Array) -> tuple[Array, Array]:
        """q̂_t(S_t, A_t) and v̂_t(S_t) of every step under each row, (rows, N) each."""
        result = np.empty((2, len(weights), len(self.data.kinds)))
        for rows, block in blocks(weights, self.data.scratch):
            for values, out in zip(self._fit(block).step_values(), result, strict=True):
                out[rows] = values.T[: rows.stop - rows.start]
        return result[0], result[1]

    def pull_back(self, weights: Array, q_slopes: Array, state_slopes: Array) -> Array:
        """∂f/∂w_i through q̂ and v̂ under each row, (rows, n), of any f with these derivatives by them, (rows, N)."""
        result = np.empty(weights.shape)
        parts = blocks(weights), blocks(q_slopes), blocks(state_slopes)
        for (rows, block), (_, q), (_, v) in zip(*parts, strict=True):
            result[rows] = self._fit(block).pulled_back(q, v).T[: rows.stop - rows.start]
        return result

    def influences(self, weights: Array) -> Array:
        """∂value/∂w_i under each row of weights, (rows, n), of the exact value: roll-outs move in jumps."""
        from tightrope.models.tabular import tile_kernels  # compiles
        from tightrope.models.tabular.fit import TabularFit

        result, logs, no_steps = self.data.scratch.empty(weights.shape), Logs.of(self.data), Steps.none(self.data)
        model, block, moving = (
            TabularFit.blank(self.data).parts,
            self.data.lanes_of_weights(),
            Moving.of(self.data),
        )
        tile_kernels.influences(_plain(weights), logs, no_steps, model, block, moving, result)
        return result

    def simulated_values(self, n_resamples: int, *, seed: int) -> Array:
        """Values of models fitted to data drawn from the model of all logs, (n_resamples,): the parametric bootstrap.

        Every pair keeps its number of visits; their outcomes are drawn anew from the fitted distribution, and so are
        the starts. Unlike resampled episodes, a replicate never loses a pair that the logs hold.
        """
        from tightrope.models.tabular.fit import TabularFit  # compiles

        data, shares, visits = self.data.outcomes()
        edges = np.searchsorted(data.kind_pair, np.arange(len(visits) + 1))  # kinds are sorted by pair
        starts = np.bincount(self.data.starts, minlength=self.data.probs.shape[1])
        values = []
        for block in range(-(-n_resamples // LANES)):
            rng = np.random.default_rng([seed, block])
            drawn, start_counts = lanes(len(shares)), lanes(len(starts))
            for pair in np.flatnonzero(visits):
                inside = slice(edges[pair], edges[pair + 1])
                drawn[inside] = rng.multinomial(int(visits[pair]), shares[inside], size=LANES).T
            start_counts[:] = rng.multinomial(len(self.data.starts), starts / len(self.data.starts), size=LANES).T
            fit = TabularFit.from_counts(data, drawn, start_counts)
            values.append(self._value(fit))
        return np.concatenate(values)[:n_resamples]

    def unseen_mass(self) -> float:
        """The share of the candidate's steps, in the model of all logs, that fall on pairs never logged.

        Nothing is known of what follows such a step, so it is the last one counted, whatever ``unseen`` says.
        """
        return self.weak_masses()[0]

    def weak_masses(self) -> tuple[float, float]:
        """The shares of the candidate's steps on pairs never logged, and on pairs that a single episode holds,
        or a single cluster.

        About a third of all resamples lose the latter.
        """
        ((_, block),) = blocks(self.data.scratch.full((1, self.n_trajectories), 1.0), self.data.scratch)
        steps, unseen, fragile = self._fit(block).occupancies(self.data.held_once)
        return (unseen / steps, fragile / steps) if steps > 0 else (0.0, 0.0)

    def _in_order(self, factors: Array) -> Array:
        """The factors sorted by time; the last ones are kept, for the next replicates."""
        last = self._kept.get("factors")
        if last is None or last[0] is not factors:
            self._kept["factors"] = last = factors, self.data.timeline.in_order(factors)
        return last[1]

    @cached_property
    def _kept(self) -> dict[str, tuple[Array, Array]]:
        return {}

    def _value(self, fit: TabularFit) -> Array:
        """V̂ of each lane, by exact backward induction unless roll-outs were asked for."""
        return fit.value() if self.rollouts is None else self.rollouts.value(fit)

    def _fit(self, block: Array) -> TabularFit:
        """The models of a block of weights (n, lanes)."""
        from tightrope.models.tabular.fit import TabularFit  # compiles

        return TabularFit.of(self.data, block)


def _plain(weights: Array) -> Array:
    """Weights as compiled code takes them, whoever made them: it is compiled once for every kind of array."""
    return np.require(weights, np.float64, ["C", "W"])
