"""Whole rows of weights through counting, evaluation and derivatives in one call, so that threads run side by side.

A block of rows takes less than a tenth of a millisecond in small models. Were each part of it a call from Python,
threads would wait for each other most of the time.
"""

from __future__ import annotations

from typing import Any

from tightrope.base.compiled import compiled
from tightrope.models.tabular.blocks import LANES
from tightrope.models.tabular.kernels import begin, count, fold, meet, normalize, sweep
from tightrope.models.tabular.rows import load, splat, store
from tightrope.models.tabular.step_kernels import gain, gather, induce, kind_slopes

TURNED = 64  # episodes whose weights are turned together: a block of them stays in the first-level cache


@compiled
def values(weights: Any, logs: Any, model: Any, block: Any, walking: Any, out: Any) -> None:
    """The value in the model of each row of weights (rows, n), to out (rows,)."""
    for first in range(0, len(weights), LANES):
        turn(weights, first, block)
        fit(block, logs, model)
        value(model, walking)
        for row in range(first, min(first + LANES, len(weights))):
            out[row] = walking.sums[0, row - first]


@compiled
def influences(weights: Any, logs: Any, no_steps: Any, model: Any, block: Any, moving: Any, out: Any) -> None:
    """∂value/∂w_i under each row of weights (rows, n), to out (rows, n)."""
    none = moving.q[:0]
    for first in range(0, len(weights), LANES):
        turn(weights, first, block)
        fit(block, logs, model)
        induce(model, no_steps, moving.q, moving.later, none, none)
        begin_slopes(model.start_counts, moving.later[0], moving.occupancy, moving.start_slope, moving.sums)
        pull_back(model, logs, no_steps, none, none, moving)
        turn_back(moving.slopes, first, out)


@compiled
def turn(weights: Any, first: Any, block: Any) -> None:
    """Rows ``first`` on of weights (rows, n) as a block (n, lanes); past the last one, that one again."""
    for start in range(0, len(block), TURNED):
        for lane in range(LANES):
            row = min(first + lane, len(weights) - 1)
            for i in range(start, min(start + TURNED, len(block))):
                block[i, lane] = weights[row, i]


@compiled
def turn_back(block: Any, first: Any, out: Any) -> None:
    """A block (n, lanes) as rows ``first`` on of out (rows, n)."""
    for start in range(0, len(block), TURNED):
        for row in range(first, min(first + LANES, len(out))):
            for i in range(start, min(start + TURNED, len(block))):
                out[row, i] = block[i, row - first]


@compiled
def fit(weights: Any, logs: Any, model: Any) -> None:
    """Count and normalise under weights (n, lanes)."""
    count(weights, logs.start_edges, logs.start_members, model.start_counts)
    begin(model.pair_arcs, model.pseudo, model.arcs, model.arc_totals, model.rewards, model.visits)
    counts = model.counts
    for first in range(0, len(logs.kind_pair), len(counts)):
        stop = min(first + len(counts), len(logs.kind_pair))
        count(weights, logs.step_edges[first : stop + 1], logs.step_members, counts[: stop - first])
        meet(
            counts,
            logs.kind_pair[first:stop],
            logs.kind_arc[first:stop],
            logs.kind_reward[first:stop],
            model.arcs,
            model.arc_totals,
            model.rewards,
            model.visits,
        )
    finish(model)


@compiled
def finish(model: Any) -> None:
    """Probabilities and mean rewards from the counts; rewards that are known are not estimated."""
    normalize(
        model.arc_pair, model.arcs, model.arc_totals, model.rewards, model.visits, model.gaps, model.unseen_reward
    )
    for pair in range(len(model.known_rewards)):
        store(model.rewards, pair, splat(model.known_rewards[pair]))


@compiled
def value(model: Any, walking: Any) -> None:
    """V̂ of each lane, to the first of ``walking.sums``: the start distribution's average of v_0, by the chain."""
    ahead, spare, steps_left = walking.ahead, walking.spare, 0.0
    ahead[:] = 0.0
    for run in range(len(walking.runs)):
        fold(
            model.arcs,
            model.pair_arcs,
            model.arc_totals,
            model.gaps,
            model.rewards,
            model.probs[walking.runs[run, 0]],
            model.discount,
            walking.states,
            walking.links,
            walking.moves,
            walking.earned,
            walking.open_mass,
            walking.opened,
        )
        ahead, spare, steps_left = sweep(
            walking.moves,
            walking.nexts,
            walking.edges,
            walking.earned,
            walking.open_mass,
            walking.opened,
            model.unseen,
            model.unseen_reward,
            model.discount,
            walking.runs[run, 1],
            steps_left,
            ahead,
            spare,
        )
    for r in range(len(walking.states)):
        store(walking.starts, r, load(model.start_counts, walking.states[r]))
    average(walking.starts, ahead, walking.sums)


@compiled
def average(counts: Any, of: Any, sums: Any) -> None:
    """The mean ``of`` some numbers by their counts, and the sum of the counts, to sums (2, lanes)."""
    sums[:] = 0.0
    for state in range(len(counts)):
        for lane in range(LANES):  # not by rows: those would round a product and a sum only once
            sums[0, lane] += counts[state, lane] * of[state, lane]
            sums[1, lane] += counts[state, lane]
    store(sums, 0, load(sums, 0) / load(sums, 1))  # no weight, no value


@compiled
def begin_slopes(start_counts: Any, first: Any, occupancy: Any, start_slope: Any, sums: Any) -> None:
    """Where the candidate starts, and what one more start in each state would gain; ``first`` is v_0."""
    average(start_counts, first, sums)
    for state in range(len(start_counts)):
        store(occupancy, state, load(start_counts, state) / load(sums, 1))
        store(start_slope, state, (load(first, state) - load(sums, 0)) / load(sums, 1))


@compiled
def pull_back(model: Any, logs: Any, steps: Any, q_slopes: Any, v_slopes: Any, moving: Any) -> None:
    """What each episode moves by its steps and its start, to ``moving.slopes``; its occupancy is overwritten."""
    moving.pair_gain[:] = 0.0
    moving.arc_gain[:] = 0.0
    gain(
        model,
        steps,
        moving.later,
        q_slopes,
        v_slopes,
        moving.sources,
        moving.occupancy,
        moving.following,
        moving.pair_gain,
        moving.arc_gain,
    )
    if len(model.known_rewards):
        moving.pair_gain[:] = 0.0  # a known reward does not move with the counts
    kind_slopes(
        logs.kind_pair,
        logs.kind_arc,
        logs.kind_reward,
        model.arc_pair,
        model.arcs,
        model.arc_totals,
        model.rewards,
        model.visits,
        moving.pair_gain,
        moving.arc_gain,
        moving.kind_slope,
    )
    gather(logs.offsets, logs.kinds, logs.starts, moving.kind_slope, moving.start_slope, moving.slopes)
