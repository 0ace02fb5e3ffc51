"""Counting one batch: bets on its episodes in their order, and plans where they are due."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tightrope.base.dataset import IntArray
from tightrope.base.joined import joined
from tightrope.base.problem import Problem
from tightrope.decisions.monitoring.past import capacity, sampled
from tightrope.decisions.monitoring.state import GROWTH, SIDES, Look, State
from tightrope.estimators import TDR
from tightrope.evaluation.overlap import evidence, wagered
from tightrope.models import Model

Progress = Callable[[float], None]


def count_batch(
    state: State, problem: Problem, model: str | Model, label: str, every: int | None, progress: Progress | None
) -> State:
    """The state after the problem's episodes; the one given is used up.

    A piece ends where a plan is due. Its models learned from earlier pieces, and so did its tethers and bets.
    """
    data, before = problem.dataset, len(state.tables["lower"])
    n, most, kept, start = data.n_trajectories, capacity(data.horizon), np.arange(before), 0
    values = {
        side: TDR(model).anchored(anchor).continued_values(problem, state.past, limited=state.terms.limited)
        for side, anchor in SIDES.items()
    }
    for side, table in state.tables.items():
        state.tables[side] = np.concatenate([table, np.empty((n, table.shape[1]))])
    while start < n:
        stop = min(n, start + state.edge - state.count)
        piece, ends = np.arange(before + start, before + stop), _ends(start, stop, every)
        reached = {}
        for side, game in state.games.items():
            table = values[side].learned([(kept, piece)], game.tethers)
            state.tables[side][piece] = table
            reached[side] = game.bet(table, ends - start)
        looked = [place for place, end in enumerate(ends) if end == n or (every and end % every == 0)]
        state.looks += [
            _look(state, int(ends[i]) - start, reached["lower"][i], reached["upper"][i], label) for i in looked
        ]
        kept = sampled(kept, piece, state.count, most)
        state.count, start = state.count + stop - start, stop
        _plan(state, kept)
        if progress is not None:
            progress(start / n)
    _wager(state, problem)
    state.past = (data if state.past is None else joined(state.past, data)).take(kept)
    state.tables = {side: table[kept] for side, table in state.tables.items()}
    return state


def _wager(state: State, problem: Problem) -> None:
    """Bet that the ratios of the batch average above 1, which true probabilities make a losing game."""
    data = problem.dataset
    assert data.behavior_log_probs is not None
    steps = problem.eval_log_probs - data.behavior_log_probs
    state.wagers = state.wagers + wagered(np.add.reduceat(steps, data.offsets[:-1]))
    state.evidence = max(state.evidence, evidence(state.wagers))


def _ends(start: int, stop: int, every: int | None) -> IntArray:
    """Where in the batch to look between start and stop, and the stop itself."""
    looks = np.arange(start - start % every + every, stop, every) if every else np.zeros(0, dtype=np.int64)
    return np.append(looks, stop)


def _look(state: State, more: int, below: int, above: int, label: str) -> Look:
    """What is known after so many more episodes, with so many means refuted from below and from above."""
    lower = state.low + state.games["lower"].refuted(below)
    upper = state.high - state.games["upper"].refuted(above)
    return Look(state.count + more, float(lower), float(upper), label)


def _plan(state: State, kept: IntArray) -> None:
    """Make new plans where they are due."""
    if state.count < state.edge:
        return
    for side, game in state.games.items():
        game.plan(state.tables[side][kept], state.count)
    state.edge = int(np.ceil(GROWTH * state.edge))
