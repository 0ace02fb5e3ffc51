"""Rehearsal, compiled: simulate logs, compute WDR with its standard error on each, and the truth in the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tightrope.base.compiled import compiled


@compiled
def draw(rng: Any, low: Any, high: Any) -> Any:
    """A whole number from low up to high, high excluded."""
    return low + int(rng.random() * (high - low))


@compiled
def outcome(
    rng: Any, state: Any, action: Any, t: Any, n_actions: Any, edges: Any, pool_edges: Any, pool: Any, timed_edges: Any,
    timed: Any, worst: Any,
) -> Any:  # fmt: skip
    """Which logged step to repeat after this state and action at this time; −1: the worst that was declared.

    Steps of the same pair (and time, where ``timed_edges`` is not empty) count one each; one pseudo-visit goes to the
    steps of the state whatever the action, or to all where there are none; ``worst`` pseudo-visits to the worst.
    """
    n_states = len(pool_edges) - 1
    pair = state * n_actions + action
    if len(timed_edges):
        place = t * n_states * n_actions + pair
        count = timed_edges[place + 1] - timed_edges[place]
        if rng.random() * (count + 1.0) < count:
            return timed[draw(rng, timed_edges[place], timed_edges[place + 1])]
    count = edges[pair + 1] - edges[pair]
    spot = rng.random() * (count + 1.0 + worst)
    if spot < count:
        return draw(rng, edges[pair], edges[pair + 1])
    if spot >= count + 1.0:
        return -1
    if pool_edges[state + 1] > pool_edges[state]:
        return pool[draw(rng, pool_edges[state], pool_edges[state + 1])]
    return draw(rng, 0, len(pool))


@compiled
def simulate(
    rng: Any, starts: Any, base: Any, behavior: Any, edges: Any, following: Any, earned: Any, pool_edges: Any,
    pool: Any, timed_edges: Any, timed: Any, worst: Any, lowest: Any, states: Any, actions: Any, rewards: Any,
    lengths: Any, final: Any,
) -> None:  # fmt: skip
    """Episodes of the behaviour policy (T, S, A) in the model, into arrays (n, T) and (n,)."""
    horizon, n_states, n_actions = behavior.shape
    end = len(base)
    for i in range(len(lengths)):
        place, lengths[i], final[i] = starts[draw(rng, 0, len(starts))], horizon, -1
        for t in range(horizon):
            state = base[place]
            spot, action = rng.random(), 0
            while action < n_actions - 1 and spot >= behavior[t, state, action]:
                spot -= behavior[t, state, action]
                action += 1
            step = outcome(rng, place, action, t, n_actions, edges, pool_edges, pool, timed_edges, timed, worst)
            states[i, t], actions[i, t] = state, action
            rewards[i, t] = lowest if step < 0 else earned[step]
            place = end if step < 0 else following[step]
            if place == end:
                lengths[i], final[i] = t + 1, n_states if t + 1 < horizon else -1
                break


@compiled
def true_value(
    policy: Any, discount: Any, starts: Any, base: Any, edges: Any, following: Any, earned: Any, pool_edges: Any,
    pool: Any, timed_edges: Any, timed: Any, worst: Any, lowest: Any,
) -> Any:  # fmt: skip
    """A policy's (T, S, A) value in the model, by backward induction."""
    horizon, _, n_actions = policy.shape
    end = len(base)
    values, ahead = np.zeros(end + 1), np.zeros(end + 1)
    for t in range(horizon - 1, -1, -1):
        anywhere = 0.0
        for step in range(len(earned)):
            anywhere += earned[step] + discount * ahead[following[step]]
        anywhere /= len(earned)
        for place in range(end):
            pooled, count = anywhere, pool_edges[place + 1] - pool_edges[place]
            if count > 0:
                pooled = 0.0
                for k in range(pool_edges[place], pool_edges[place + 1]):
                    pooled += (earned[pool[k]] + discount * ahead[following[pool[k]]]) / count
            values[place] = 0.0
            for action in range(n_actions):
                chance = policy[t, base[place], action]
                if chance == 0.0:
                    continue
                pair = place * n_actions + action
                total, count = pooled + worst * lowest, edges[pair + 1] - edges[pair]
                for step in range(edges[pair], edges[pair + 1]):
                    total += earned[step] + discount * ahead[following[step]]
                worth = total / (count + 1.0 + worst)
                if len(timed_edges):
                    spot = t * end * n_actions + pair
                    total, count = worth, timed_edges[spot + 1] - timed_edges[spot]
                    for k in range(timed_edges[spot], timed_edges[spot + 1]):
                        total += earned[timed[k]] + discount * ahead[following[timed[k]]]
                    worth = total / (count + 1.0)
                values[place] += chance * worth
        values, ahead = ahead, values
    mean = 0.0
    for place in starts:
        mean += ahead[place] / len(starts)
    return mean


@compiled
def fit(
    states: Any, actions: Any, rewards: Any, lengths: Any, final: Any, fold: Any, left_out: Any,
    policy: Any, discount: Any, unseen: Any, q_values: Any, v_values: Any,
) -> None:  # fmt: skip
    """q̂ (T, S, A) and v̂ (T + 1, S) of the tabular model of all episodes but one fold's, as the library's has them."""
    horizon, n_states, n_actions = policy.shape
    counts = np.zeros((n_states * n_actions, n_states + 1))
    known, visits, earned = np.zeros(len(counts)), np.zeros(len(counts)), np.zeros(len(counts))
    for i in range(len(lengths)):
        if fold[i] == left_out:
            continue
        for t in range(lengths[i]):
            pair = states[i, t] * n_actions + actions[i, t]
            visits[pair] += 1.0
            earned[pair] += rewards[i, t]
            after = states[i, t + 1] if t + 1 < lengths[i] else final[i]
            if after >= 0:
                counts[pair, after] += 1.0
                known[pair] += 1.0
    arc_edges = np.zeros(len(counts) + 1, dtype=np.int64)
    arc_next, arc_share = np.empty(counts.size, dtype=np.int64), np.empty(counts.size)
    size = 0
    for pair in range(len(counts)):
        if known[pair] == 0.0:
            arc_next[size], arc_share[size] = pair // n_actions, 1.0  # never seen to lead anywhere: the state stays
            size += 1
        else:
            for after in range(n_states):
                if counts[pair, after] > 0.0:
                    arc_next[size], arc_share[size] = after, counts[pair, after] / known[pair]
                    size += 1
        earned[pair] = earned[pair] / visits[pair] if visits[pair] > 0.0 else unseen
        arc_edges[pair + 1] = size
    v_values[horizon] = 0.0
    for t in range(horizon - 1, -1, -1):
        for state in range(n_states):
            v_values[t, state] = 0.0
            for action in range(n_actions):
                pair = state * n_actions + action
                worth = 0.0
                for arc in range(arc_edges[pair], arc_edges[pair + 1]):
                    worth += arc_share[arc] * v_values[t + 1, arc_next[arc]]
                q_values[t, state, action] = earned[pair] + discount * worth
                v_values[t, state] += policy[t, state, action] * q_values[t, state, action]


@compiled
def jackknife(plain: Any, weights: Any, terms: Any) -> Any:
    """Mean of plain (n,) plus, for every time, Σ terms / Σ weights (n, T), and its jackknife error; NaN: undefined."""
    n, horizon = weights.shape
    total_weight, total_term = np.zeros(horizon), np.zeros(horizon)
    for i in range(n):
        for t in range(horizon):
            total_weight[t] += weights[i, t]
            total_term[t] += terms[i, t]
    base = plain.sum()
    estimate = base / n
    for t in range(horizon):
        if total_weight[t] <= 0.0:
            return np.nan, np.nan
        estimate += total_term[t] / total_weight[t]
    mean = square = 0.0
    for i in range(n):
        without = (base - plain[i]) / (n - 1)
        for t in range(horizon):
            rest = total_weight[t] - weights[i, t]
            if rest <= 1e-9 * total_weight[t]:
                return estimate, np.nan
            without += (total_term[t] - terms[i, t]) / rest
        mean += (without - estimate) / n
        square += (without - estimate) ** 2 / n
    return estimate, math.sqrt(max(0.0, (square - mean * mean) * (n - 1)))


@compiled
def wdr(
    states: Any, actions: Any, rewards: Any, lengths: Any, final: Any, fold: Any, ratios: Any, policy: Any,
    discount: Any, unseen: Any, gain: Any,
) -> Any:  # fmt: skip
    """Cross-fitted WDR (with ``gain`` less the mean return) and its jackknife standard error; NaN where undefined."""
    horizon, n_states, n_actions = policy.shape
    n, folds = len(lengths), fold.max() + 1
    q_values, v_values = np.empty((folds, horizon, n_states, n_actions)), np.empty((folds, horizon + 1, n_states))
    for k in range(folds):
        fit(states, actions, rewards, lengths, final, fold, k, policy, discount, unseen, q_values[k], v_values[k])
    plain, weights, terms = np.zeros(n), np.zeros((n, horizon)), np.zeros((n, horizon))
    for i in range(n):
        k, weight, shrink = fold[i], 1.0, 1.0
        plain[i] = v_values[k, 0, states[i, 0]]
        for t in range(horizon):
            if t < lengths[i]:
                weight *= ratios[i, t]
                ahead = v_values[k, t + 1, states[i, t + 1]] if t + 1 < lengths[i] else 0.0
                error = rewards[i, t] - q_values[k, t, states[i, t], actions[i, t]] + discount * ahead
                terms[i, t] = shrink * weight * error
                if gain:
                    plain[i] -= shrink * rewards[i, t]
                shrink *= discount
            weights[i, t] = weight
    return jackknife(plain, weights, terms)


@compiled
def rehearse(
    rng: Any, n: Any, truth: Any, gain: Any, unseen: Any, folds: Any, policy: Any, discount: Any, ratio_table: Any,
    starts: Any, base: Any, behavior: Any, edges: Any, following: Any, earned: Any, pool_edges: Any, pool: Any,
    timed_edges: Any, timed: Any, worst: Any, lowest: Any, pivots: Any,
) -> None:  # fmt: skip
    """(WDR − truth)/se on each simulated log, into pivots; +∞ where there is no standard error."""
    horizon = behavior.shape[0]
    states, actions = np.zeros((n, horizon), dtype=np.int64), np.zeros((n, horizon), dtype=np.int64)
    rewards, ratios = np.zeros((n, horizon)), np.zeros((n, horizon))
    lengths, final = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
    fold = np.arange(n) % min(folds, n)
    for m in range(len(pivots)):
        simulate(
            rng, starts, base, behavior, edges, following, earned, pool_edges, pool, timed_edges, timed, worst,
            lowest, states, actions, rewards, lengths, final,
        )  # fmt: skip
        for i in range(n):
            for t in range(lengths[i]):
                ratios[i, t] = ratio_table[t, states[i, t], actions[i, t]]
        estimate, error = wdr(states, actions, rewards, lengths, final, fold, ratios, policy, discount, unseen, gain)
        pivots[m] = (estimate - truth) / error if error > 0.0 else np.inf
