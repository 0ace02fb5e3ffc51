"""Tabular models of many replicates at once: count, normalise, evaluate; replicates are the lanes of each loop.

Arrays end in a lane axis. K distinct (state, action, next state, reward) kinds, J distinct (state, action, next state)
arcs grouped by pair, P = S·A pairs, S states; state S is the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

LANES = 16  # two AVX-512 registers of float64; the working set of a thousand states stays in the cache

WORST, SELF_LOOP, TERMINATE = 0, 1, 2


@njit(cache=True, fastmath={"contract", "nsz"})
def count(weights: Any, offsets: Any, kinds: Any, starts: Any, kind_counts: Any, start_counts: Any) -> None:
    """kind_counts (K, lanes) and start_counts (S, lanes) of weighted trajectories; weights (n, lanes)."""
    kind_counts[:] = 0.0
    start_counts[:] = 0.0
    for i in range(len(starts)):
        for lane in range(LANES):
            start_counts[starts[i], lane] += weights[i, lane]
        for step in range(offsets[i], offsets[i + 1]):
            kind = kinds[step]
            for lane in range(LANES):
                kind_counts[kind, lane] += weights[i, lane]


@njit(cache=True, fastmath={"contract", "nsz"})
def normalize(
    kind_counts: Any,
    kind_pair: Any,
    kind_arc: Any,
    kind_reward: Any,
    arc_pair: Any,
    arcs: Any,
    arc_totals: Any,
    rewards: Any,
    visits: Any,
) -> None:
    """Transition probabilities ``arcs`` (J, lanes), mean ``rewards`` (P, lanes); totals of arcs and visits by pair.

    A kind whose next state is unknown (arc -1: cut off by the horizon) tells of the reward only.
    """
    arcs[:] = 0.0
    arc_totals[:] = 0.0
    rewards[:] = 0.0
    visits[:] = 0.0
    for k in range(len(kind_pair)):
        pair, arc, reward = kind_pair[k], kind_arc[k], kind_reward[k]
        for lane in range(LANES):
            visits[pair, lane] += kind_counts[k, lane]
            rewards[pair, lane] += reward * kind_counts[k, lane]
        if arc >= 0:
            for lane in range(LANES):
                arcs[arc, lane] += kind_counts[k, lane]
                arc_totals[pair, lane] += kind_counts[k, lane]
    for pair in range(len(visits)):
        for lane in range(LANES):
            if visits[pair, lane] > 0.0:
                rewards[pair, lane] /= visits[pair, lane]
    for j in range(len(arc_pair)):
        for lane in range(LANES):
            if arc_totals[arc_pair[j], lane] > 0.0:
                arcs[j, lane] /= arc_totals[arc_pair[j], lane]


@njit(cache=True, fastmath={"contract", "nsz"})
def action_values(
    arcs: Any,
    arc_next: Any,
    pair_arcs: Any,
    arc_totals: Any,
    rewards: Any,
    visits: Any,
    ahead: Any,
    discount: Any,
    n_actions: Any,
    unseen: Any,
    unseen_reward: Any,
    steps_left: Any,
    out: Any,
) -> None:
    """q_t (P, lanes) from v_{t+1} ``ahead`` (S+1, lanes); ``steps_left`` is Σ_{k < L-t-1} γ^k."""
    sums = np.empty(LANES)
    for pair in range(len(rewards)):
        sums[:] = 0.0
        for j in range(pair_arcs[pair], pair_arcs[pair + 1]):
            after = arc_next[j]
            for lane in range(LANES):
                sums[lane] += arcs[j, lane] * ahead[after, lane]
        state = pair // n_actions
        for lane in range(LANES):
            reward = rewards[pair, lane] if visits[pair, lane] > 0.0 else unseen_reward
            follow = sums[lane]
            if arc_totals[pair, lane] == 0.0:
                if unseen == WORST:
                    follow = unseen_reward * steps_left
                elif unseen == SELF_LOOP:
                    follow = ahead[state, lane]
                else:
                    follow = 0.0
            out[pair, lane] = reward + discount * follow


@njit(cache=True, fastmath={"contract", "nsz"})
def state_values(q: Any, probs: Any, out: Any) -> None:
    """v_t (S, lanes) = Σ_a π_t(a|s) q_t(s, a); probs (S, A)."""
    n_states, n_actions = probs.shape
    for state in range(n_states):
        for lane in range(LANES):
            out[state, lane] = 0.0
        for action in range(n_actions):
            chance = probs[state, action]
            if chance > 0.0:
                for lane in range(LANES):
                    out[state, lane] += chance * q[state * n_actions + action, lane]
