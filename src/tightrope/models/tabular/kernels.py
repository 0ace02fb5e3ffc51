"""Tabular models of many replicates at once: count, normalise, evaluate; replicates are the lanes of each row.

Arrays end in a lane axis. K distinct (state, action, next state, reward) kinds, J distinct (state, action, next state)
arcs grouped by pair, P = S·A pairs, S states; state S is the end.
"""

from __future__ import annotations

from typing import Any

from tightrope.base.compiled import compiled
from tightrope.models.tabular.blocks import LANES
from tightrope.models.tabular.rows import is_zero, load, splat, store

WORST, SELF_LOOP, TERMINATE = 0, 1, 2


@compiled
def count(weights: Any, edges: Any, members: Any, out: Any) -> None:
    """Weighted counts, out (K, lanes): kind k was met by episodes members[edges[k]:edges[k+1]]."""
    for k in range(len(out)):
        total = splat(0.0)
        for i in range(edges[k], edges[k + 1]):
            total = total + load(weights, members[i])
        store(out, k, total)


@compiled
def begin(pair_arcs: Any, pseudo: Any, arcs: Any, arc_totals: Any, rewards: Any, visits: Any) -> None:
    """Counts before anything was met: ``arcs`` (J, lanes), and ``arc_totals``, ``rewards``, ``visits`` (P, lanes)."""
    arcs[:] = pseudo
    for pair in range(len(visits)):
        store(arc_totals, pair, splat(pseudo * (pair_arcs[pair + 1] - pair_arcs[pair])))
    rewards[:] = 0.0
    visits[:] = 0.0


@compiled
def meet(
    kind_counts: Any,
    kind_pair: Any,
    kind_arc: Any,
    kind_reward: Any,
    arcs: Any,
    arc_totals: Any,
    rewards: Any,
    visits: Any,
) -> None:
    """Add up some kinds.

    A kind whose next state is unknown (arc -1: cut off by the horizon) tells of the reward only.
    """
    for k in range(len(kind_pair)):
        pair, arc, counted = kind_pair[k], kind_arc[k], load(kind_counts, k)
        store(visits, pair, load(visits, pair) + counted)
        store(rewards, pair, load(rewards, pair) + kind_reward[k] * counted)
        if arc >= 0:
            store(arcs, arc, load(arcs, arc) + counted)
            store(arc_totals, pair, load(arc_totals, pair) + counted)


@compiled
def normalize(
    arc_pair: Any, arcs: Any, arc_totals: Any, rewards: Any, visits: Any, gaps: Any, unseen_reward: Any
) -> None:
    """Transition probabilities ``arcs`` (J, lanes) and mean ``rewards`` (P, lanes) from the counts.

    ``gaps`` (P,) marks pairs after which some lane saw no next state; a pair that a lane never saw earns unseen_reward.
    """
    for pair in range(len(visits)):
        missing = is_zero(load(visits, pair))
        store(rewards, pair, (load(rewards, pair) + unseen_reward * missing) / (load(visits, pair) + missing))
        gaps[pair] = False
        for lane in range(LANES):
            gaps[pair] |= arc_totals[pair, lane] == 0.0
    for j in range(len(arc_pair)):
        total = load(arc_totals, arc_pair[j])
        store(arcs, j, load(arcs, j) / (total + is_zero(total)))


@compiled
def fold(
    arcs: Any,
    pair_arcs: Any,
    arc_totals: Any,
    gaps: Any,
    rewards: Any,
    probs: Any,
    discount: Any,
    states: Any,
    links: Any,
    moves: Any,
    earned: Any,
    open_mass: Any,
    opened: Any,
) -> None:
    """The candidate's Markov chain over R reached states: what it earns and where it goes on average over its actions.

    ``moves`` (M, lanes) are γ Σ_a π(a|s) P(s'|s, a), arc j adding to moves[links[j]]; ``earned`` (R, lanes) the mean
    rewards; ``open_mass`` (R, lanes), where ``opened``, is γ times the chance of a pair with an unknown next state.
    """
    n_actions = probs.shape[1]
    moves[:] = 0.0
    for r in range(len(states)):
        reward, missing = splat(0.0), splat(0.0)
        opened[r] = False
        for action in range(n_actions):
            chance = probs[states[r], action]
            if chance == 0.0:
                continue
            pair = states[r] * n_actions + action
            reward = reward + chance * load(rewards, pair)
            if gaps[pair]:
                opened[r] = True
                missing = missing + (chance * discount) * is_zero(load(arc_totals, pair))
            for j in range(pair_arcs[pair], pair_arcs[pair + 1]):
                if links[j] >= 0:
                    store(moves, links[j], load(moves, links[j]) + (chance * discount) * load(arcs, j))
        store(earned, r, reward)
        store(open_mass, r, missing)


@compiled
def sweep(
    moves: Any,
    nexts: Any,
    edges: Any,
    earned: Any,
    open_mass: Any,
    opened: Any,
    unseen: Any,
    unseen_reward: Any,
    discount: Any,
    n_steps: Any,
    steps_left: Any,
    ahead: Any,
    spare: Any,
) -> tuple[Any, Any, Any]:
    """``n_steps`` backwards through one chain: v_t (R, lanes) from v_{t+1}; ``steps_left`` is Σ_{k < L-t-1} γ^k."""
    for _ in range(n_steps):
        for r in range(len(earned)):
            value = load(earned, r)
            for k in range(edges[r], edges[r + 1]):
                value = value + load(moves, k) * load(ahead, nexts[k])
            if opened[r]:
                if unseen == WORST:
                    value = value + (unseen_reward * steps_left) * load(open_mass, r)
                elif unseen == SELF_LOOP:
                    value = value + load(open_mass, r) * load(ahead, r)
            store(spare, r, value)
        ahead, spare = spare, ahead
        steps_left = 1.0 + discount * steps_left
    return ahead, spare, steps_left


@compiled
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
        later = splat(0.0)
        for j in range(pair_arcs[pair], pair_arcs[pair + 1]):
            later = later + load(arcs, j) * load(ahead, arc_next[j])
        if gaps[pair]:  # some replicate never saw what follows this pair
            missing = is_zero(load(arc_totals, pair))
            if unseen == WORST:
                later = later + (unseen_reward * steps_left) * missing
            elif unseen == SELF_LOOP:
                later = later + missing * load(ahead, pair // n_actions)
        store(out, pair, load(rewards, pair) + discount * later)


@compiled
def state_values(q: Any, probs: Any, out: Any) -> None:
    """v_t (S, lanes) = Σ_a π_t(a|s) q_t(s, a); probs (S, A)."""
    n_states, n_actions = probs.shape
    for state in range(n_states):
        value = splat(0.0)
        for action in range(n_actions):
            chance = probs[state, action]
            if chance > 0.0:
                value = value + chance * load(q, state * n_actions + action)
        store(out, state, value)


@compiled
def correct(
    weights: Any,
    first: Any,
    stop: Any,
    trajectories: Any,
    pairs: Any,
    nexts: Any,
    rewards: Any,
    factors: Any,
    discount: Any,
    q: Any,
    ahead: Any,
    place: Any,
    out: Any,
) -> None:
    """Σ w f (r − q(s, a) + γ v(s')) over steps first..stop, all of one time, to out[place]."""
    total = splat(0.0)
    for i in range(first, stop):
        delta = rewards[i] - load(q, pairs[i]) + discount * load(ahead, nexts[i])
        total = total + (factors[i] * load(weights, trajectories[i])) * delta
    store(out, place, total)
