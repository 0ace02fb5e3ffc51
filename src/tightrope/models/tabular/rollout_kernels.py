"""Episodes simulated in one tabular model, compiled."""

from __future__ import annotations

from typing import Any

from tightrope.base.compiled import compiled
from tightrope.models.tabular.kernels import SELF_LOOP, WORST


@compiled
def roll_out(
    arcs: Any,
    arc_next: Any,
    pair_arcs: Any,
    arc_totals: Any,
    rewards: Any,
    probs: Any,
    starts: Any,
    uniforms: Any,
    discount: Any,
    unseen: Any,
    rest: Any,
    out: Any,
) -> None:
    """Returns (m,) of episodes in one model, arrays without lanes: action and next state by inverse distributions.

    ``rest`` (L,) is what the steps after an unseen pair at each time are worth where that is the worst.
    """
    horizon, n_states, n_actions = probs.shape
    for m in range(len(out)):
        state, total, factor = starts[m], 0.0, 1.0
        for t in range(horizon):
            pair = state * n_actions + inverse(probs[t, state], 0, n_actions, uniforms[m, t, 0])
            total += factor * rewards[pair]
            if arc_totals[pair] > 0.0:
                state = arc_next[inverse(arcs, pair_arcs[pair], pair_arcs[pair + 1], uniforms[m, t, 1])]
            elif unseen != SELF_LOOP:
                if unseen == WORST:
                    total += factor * rest[t]
                break
            factor *= discount
            if state == n_states:
                break
        out[m] = total


@compiled
def inverse(chances: Any, first: Any, stop: Any, uniform: Any) -> Any:
    """Which of first..stop a uniform number in [0, 1) falls to; rounding never chooses what has no chance."""
    below, chosen = 0.0, first
    for j in range(first, stop):
        if chances[j] > 0.0:
            chosen = j
            below += chances[j]
            if uniform < below:
                break
    return chosen
