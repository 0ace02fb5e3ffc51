"""Tabular models of many replicates at once: count, normalise, evaluate; replicates are the lanes of each loop.

Arrays end in a lane axis. K distinct (state, action, next state, reward) kinds, J distinct (state, action, next state)
arcs grouped by pair, P = S·A pairs, S states; state S is the end.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit

LANES = 8  # one AVX-512 register of float64, in explicit scalars so that the compiler finds it

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
    pair_arcs: Any,
    pseudo: Any,
    arcs: Any,
    arc_totals: Any,
    rewards: Any,
    visits: Any,
    gaps: Any,
    unseen_reward: Any,
) -> None:
    """Transition probabilities ``arcs`` (J, lanes), mean ``rewards`` (P, lanes); totals of arcs and visits by pair.

    ``gaps`` (P,) marks pairs after which some lane saw no next state; a pair that a lane never saw earns unseen_reward.

    A kind whose next state is unknown (arc -1: cut off by the horizon) tells of the reward only.
    """
    arcs[:] = pseudo
    for pair in range(len(visits)):
        arc_totals[pair, :] = pseudo * (pair_arcs[pair + 1] - pair_arcs[pair])
    rewards[:] = 0.0
    visits[:] = 0.0
    gaps[:] = False
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
            else:
                rewards[pair, lane] = unseen_reward
            gaps[pair] |= arc_totals[pair, lane] == 0.0
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
    gaps: Any,
    rewards: Any,
    ahead: Any,
    discount: Any,
    n_actions: Any,
    unseen: Any,
    unseen_reward: Any,
    steps_left: Any,
    out: Any,
) -> None:
    """q_t (P, lanes) from v_{t+1} ``ahead`` (S+1, lanes); ``steps_left`` is Σ_{k < L-t-1} γ^k."""
    for pair in range(len(rewards)):
        a0 = a1 = a2 = a3 = a4 = a5 = a6 = a7 = 0.0
        for j in range(pair_arcs[pair], pair_arcs[pair + 1]):
            p, v = arcs[j], ahead[arc_next[j]]
            a0 += p[0] * v[0]
            a1 += p[1] * v[1]
            a2 += p[2] * v[2]
            a3 += p[3] * v[3]
            a4 += p[4] * v[4]
            a5 += p[5] * v[5]
            a6 += p[6] * v[6]
            a7 += p[7] * v[7]
        row, reward = out[pair], rewards[pair]
        row[0] = reward[0] + discount * a0
        row[1] = reward[1] + discount * a1
        row[2] = reward[2] + discount * a2
        row[3] = reward[3] + discount * a3
        row[4] = reward[4] + discount * a4
        row[5] = reward[5] + discount * a5
        row[6] = reward[6] + discount * a6
        row[7] = reward[7] + discount * a7
        if gaps[pair]:  # some replicate never saw what follows this pair
            for lane in range(LANES):
                if arc_totals[pair, lane] == 0.0:
                    if unseen == WORST:
                        row[lane] = reward[lane] + discount * unseen_reward * steps_left
                    elif unseen == SELF_LOOP:
                        row[lane] = reward[lane] + discount * ahead[pair // n_actions, lane]
                    else:
                        row[lane] = reward[lane]


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


@njit(cache=True, fastmath={"contract", "nsz"})
def occupy(
    arcs: Any,
    arc_next: Any,
    pair_arcs: Any,
    arc_totals: Any,
    probs: Any,
    occupancy: Any,
    ahead: Any,
    factor: Any,
    discount: Any,
    unseen: Any,
    pair_gain: Any,
    arc_gain: Any,
    following: Any,
) -> None:
    """One step forwards: who is where (S, lanes), and what a change of each reward and arc is worth.

    pair_gain += γ^t d_t(s) π_t(a|s); arc_gain += the same times γ v_{t+1}(s'); following is d_{t+1}.
    """
    n_states, n_actions = probs.shape
    following[:] = 0.0
    for state in range(n_states):
        for action in range(n_actions):
            chance = probs[state, action]
            if chance == 0.0:
                continue
            pair = state * n_actions + action
            for lane in range(LANES):
                pair_gain[pair, lane] += factor * chance * occupancy[state, lane]
            for j in range(pair_arcs[pair], pair_arcs[pair + 1]):
                after = arc_next[j]
                for lane in range(LANES):
                    here = chance * occupancy[state, lane]
                    arc_gain[j, lane] += factor * discount * here * ahead[after, lane]
                    following[after, lane] += here * arcs[j, lane]
            if unseen == SELF_LOOP:
                for lane in range(LANES):
                    if arc_totals[pair, lane] == 0.0:
                        following[state, lane] += chance * occupancy[state, lane]


@njit(cache=True, fastmath={"contract", "nsz"})
def kind_slopes(
    kind_pair: Any,
    kind_arc: Any,
    kind_reward: Any,
    arc_pair: Any,
    arcs: Any,
    arc_totals: Any,
    rewards: Any,
    visits: Any,
    pair_gain: Any,
    arc_gain: Any,
    out: Any,
) -> None:
    """∂V/∂count of each kind (K, lanes), through the mean reward and through the normalised transition row."""
    average = np.zeros(rewards.shape)
    for j in range(len(arc_pair)):
        for lane in range(LANES):
            average[arc_pair[j], lane] += arcs[j, lane] * arc_gain[j, lane]
    for k in range(len(kind_pair)):
        pair, arc = kind_pair[k], kind_arc[k]
        for lane in range(LANES):
            slope = 0.0
            if visits[pair, lane] > 0.0:
                slope = pair_gain[pair, lane] * (kind_reward[k] - rewards[pair, lane]) / visits[pair, lane]
            if arc >= 0 and arc_totals[pair, lane] > 0.0:
                slope += (arc_gain[arc, lane] - average[pair, lane]) / arc_totals[pair, lane]
            out[k, lane] = slope


@njit(cache=True, fastmath={"contract", "nsz"})
def gather(offsets: Any, kinds: Any, starts: Any, kind_slope: Any, start_slope: Any, out: Any) -> None:
    """Each trajectory's slope: the sum over its steps and its start, (n, lanes)."""
    for i in range(len(starts)):
        for lane in range(LANES):
            out[i, lane] = start_slope[starts[i], lane]
        for step in range(offsets[i], offsets[i + 1]):
            kind = kinds[step]
            for lane in range(LANES):
                out[i, lane] += kind_slope[kind, lane]
