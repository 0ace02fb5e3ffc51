"""The candidate's visits carried through the logged steps, eight replicates at a time, compiled.

Arrays of rows end in a lane axis. Steps are sorted by place, a state at a time; C places, sorted by time, and C is
where every episode goes after its last step.
"""

from __future__ import annotations

from typing import Any

from tightrope.base.compiled import compiled
from tightrope.models.tabular.rows import is_zero, load, splat, store


@compiled
def carry(
    weights: Any,
    edges: Any,
    members: Any,
    nexts: Any,
    ratios: Any,
    earned: Any,
    n_first: Any,
    visits: Any,
    reached: Any,
    out: Any,
) -> None:
    """The candidate's share of each place, ``reached`` (C+1, lanes), and what it earns on its way, ``out`` (1, lanes).

    ``visits`` (C, lanes) are the weights at each place; the first ``n_first`` places are those of the first step.
    """
    total = first_total(visits, n_first)
    reached[:] = 0.0
    for place in range(n_first):
        store(reached, place, load(visits, place) / total)
    value = splat(0.0)
    for place in range(len(visits)):
        seen = load(visits, place)
        share = load(reached, place) / (seen + is_zero(seen))
        for i in range(edges[place], edges[place + 1]):
            moved = ratios[i] * (share * load(weights, members[i]))
            value = value + earned[i] * moved
            store(reached, nexts[i], load(reached, nexts[i]) + moved)
    store(out, 0, value)


@compiled
def look_back(
    weights: Any,
    edges: Any,
    members: Any,
    nexts: Any,
    ratios: Any,
    earned: Any,
    n_first: Any,
    visits: Any,
    reached: Any,
    value: Any,
    ahead: Any,
    by_ratio: Any,
    out: Any,
) -> None:
    """∂value/∂weight of each episode, ``out`` (n, lanes): what is ``ahead`` (C+1, lanes) of a place, from the last.

    ``by_ratio`` (N,) is ∂value/∂log ratio of each step in the first lane.
    """
    total = first_total(visits, n_first)
    ahead[:] = 0.0
    out[:] = 0.0
    for place in range(len(visits) - 1, -1, -1):
        seen = load(visits, place)
        seen = seen + is_zero(seen)
        share = load(reached, place) / seen
        later = splat(0.0)
        for i in range(edges[place], edges[place + 1]):
            gain = ratios[i] * (load(ahead, nexts[i]) + splat(earned[i]))
            later = later + gain * load(weights, members[i])
            by_ratio[i] = share_in_first_lane(reached, visits, place) * weights[members[i], 0] * ratios[i]
            by_ratio[i] *= ahead[nexts[i], 0] + earned[i]
        later = later / seen
        store(ahead, place, later)
        for i in range(edges[place], edges[place + 1]):
            gain = ratios[i] * (load(ahead, nexts[i]) + splat(earned[i]))
            store(out, members[i], load(out, members[i]) + share * (gain - later))
            if place < n_first:
                store(out, members[i], load(out, members[i]) + (later - load(value, 0)) / total)


@compiled
def first_total(visits: Any, n_first: Any) -> Any:
    """The weight at all places of the first step."""
    total = splat(0.0)
    for place in range(n_first):
        total = total + load(visits, place)
    return total


@compiled
def share_in_first_lane(reached: Any, visits: Any, place: Any) -> Any:
    """The candidate's share of a place for each unit of weight there; 0 where there is none."""
    return reached[place, 0] / visits[place, 0] if visits[place, 0] > 0.0 else 0.0
