"""Values of the logged steps under many replicates at once, and derivatives by what was counted; see ``kernels.py``."""

from __future__ import annotations

from typing import Any

import numpy as np

from tightrope.base.compiled import compiled
from tightrope.models.tabular.kernels import SELF_LOOP, action_values, state_values
from tightrope.models.tabular.rows import is_zero, load, store


@compiled
def induce(model: Any, steps: Any, q: Any, later: Any, q_out: Any, v_out: Any) -> None:
    """v_t of every time backwards, to later (L+1, S+1, lanes), and q_t and v_t of the steps, to outs (N, lanes)."""
    steps_left, n_actions = 0.0, model.probs.shape[2]
    for t in range(len(model.probs) - 1, -1, -1):
        action_values(
            model.arcs,
            model.arc_next,
            model.pair_arcs,
            model.arc_totals,
            model.gaps,
            model.rewards,
            later[t + 1],
            model.discount,
            n_actions,
            model.unseen,
            model.unseen_reward,
            steps_left,
            q,
        )
        state_values(q, model.probs[t], later[t])
        for i in range(steps.edges[t], steps.edges[t + 1]):
            step = steps.offsets[steps.trajectories[i]] + t
            store(q_out, step, load(q, steps.pairs[i]))
            store(v_out, step, load(later[t], steps.pairs[i] // n_actions))
        steps_left = 1.0 + model.discount * steps_left


@compiled
def gain(
    model: Any,
    steps: Any,
    later: Any,
    q_slopes: Any,
    v_slopes: Any,
    sources: Any,
    occupancy: Any,
    following: Any,
    pair_gain: Any,
    arc_gain: Any,
) -> None:
    """What one more visit to each pair and arc would gain, summed over time; occupancy is overwritten.

    The slopes (N, lanes) are what q_t and v_t of the steps are worth, on top of what the occupancy is worth.
    """
    sourced, n_actions = steps.edges[-1] > 0, model.probs.shape[2]
    for t in range(len(model.probs)):
        if sourced:
            sources[:] = 0.0
        for i in range(steps.edges[t], steps.edges[t + 1]):
            step, pair, state = steps.offsets[steps.trajectories[i]] + t, steps.pairs[i], steps.pairs[i] // n_actions
            store(sources, pair, load(sources, pair) + load(q_slopes, step))
            store(occupancy, state, load(occupancy, state) + load(v_slopes, step))
        occupy(
            model.arcs,
            model.arc_next,
            model.pair_arcs,
            model.arc_totals,
            model.probs[t],
            occupancy,
            later[t + 1],
            sources,
            sourced,
            model.discount,
            model.unseen,
            pair_gain,
            arc_gain,
            following,
        )
        occupancy, following = following, occupancy


@compiled
def occupy(
    arcs: Any,
    arc_next: Any,
    pair_arcs: Any,
    arc_totals: Any,
    probs: Any,
    occupancy: Any,
    ahead: Any,
    sources: Any,
    sourced: Any,
    discount: Any,
    unseen: Any,
    pair_gain: Any,
    arc_gain: Any,
    following: Any,
) -> None:
    """One step forwards: what v_t of each state is worth (S, lanes), and what a change of each reward and arc is.

    For the value of the start that worth is γ^t times the chance to be there, d_t. A pair is worth d_t(s) π_t(a|s),
    and where ``sourced`` what comes from outside (P, lanes); an arc the same times γ v_{t+1}(s'); following is d_{t+1}.
    """
    n_states, n_actions = probs.shape
    following[:] = 0.0
    for state in range(n_states):
        for action in range(n_actions):
            chance = probs[state, action]
            if chance == 0.0 and not sourced:
                continue
            pair = state * n_actions + action
            here = chance * load(occupancy, state) + load(sources, pair)
            store(pair_gain, pair, load(pair_gain, pair) + here)
            later = discount * here
            for j in range(pair_arcs[pair], pair_arcs[pair + 1]):
                after = arc_next[j]
                store(arc_gain, j, load(arc_gain, j) + later * load(ahead, after))
                store(following, after, load(following, after) + later * load(arcs, j))
            if unseen == SELF_LOOP:
                store(following, state, load(following, state) + later * is_zero(load(arc_totals, pair)))


@compiled
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
        store(average, arc_pair[j], load(average, arc_pair[j]) + load(arcs, j) * load(arc_gain, j))
    for k in range(len(kind_pair)):
        pair, arc = kind_pair[k], kind_arc[k]
        missing = is_zero(load(visits, pair))
        moved = load(pair_gain, pair) * (kind_reward[k] - load(rewards, pair))
        slope = (1.0 - missing) * moved / (load(visits, pair) + missing)
        if arc >= 0:
            missing = is_zero(load(arc_totals, pair))
            moved = load(arc_gain, arc) - load(average, pair)
            slope = slope + (1.0 - missing) * moved / (load(arc_totals, pair) + missing)
        store(out, k, slope)


@compiled
def gather(offsets: Any, kinds: Any, starts: Any, kind_slope: Any, start_slope: Any, out: Any) -> None:
    """Each episode's slope: the sum over its steps and its start, (n, lanes)."""
    for i in range(len(starts)):
        total = load(start_slope, starts[i])
        for step in range(offsets[i], offsets[i + 1]):
            total = total + load(kind_slope, kinds[step])
        store(out, i, total)
