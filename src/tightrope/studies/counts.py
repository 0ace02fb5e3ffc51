"""Counting what goes wrong: one function of a seed, many seeds, and a table; finished cells are kept."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import typer

from tightrope.base.dataset import Array, BoolArray
from tightrope.domains import SmallProblem
from tightrope.io.write import write_text
from tightrope.studies.summary import clopper_pearson

ROUND = 9  # digits of a return: what differs behind them is rounding
SEED = 20261116


def counted(folder: Path, cell: str, trials: int, trial: Callable[[int], Mapping[str, float]]) -> dict[str, Array]:
    """What every trial gave, by name, (trials,); what an earlier run finished is read and not run again."""
    name = cell.replace(" ", "-").replace(",", "")
    first, known = _finished(folder, name)
    if first < trials:
        with typer.progressbar(range(first, trials), label=cell, file=sys.stderr) as seeds:
            rows = [trial(seed) for seed in seeds]
        known = {key: [*known.get(key, []), *(float(row[key]) for row in rows)] for key in rows[0]}
        folder.mkdir(parents=True, exist_ok=True)
        write_text(folder / f"{name}-{trials}.json", json.dumps(known))
    return {key: np.array(values[:trials]) for key, values in known.items()}


def _finished(folder: Path, name: str) -> tuple[int, dict[str, list[float]]]:
    """The most trials of a cell that a run finished, and what they gave."""
    files = {
        int(match[1]): path
        for path in folder.glob(f"{name}-*.json")
        if (match := re.fullmatch(rf"{re.escape(name)}-(\d+)\.json", path.name))
    }
    if not files:
        return 0, {}
    known: dict[str, list[float]] = json.loads(files[max(files)].read_text(encoding="utf-8"))
    return max(files), known


def counted_grid(
    folder: Path, names: Sequence[str], trials: Mapping[int, int], trial: Callable[[str, int, int], Mapping[str, float]]
) -> dict[tuple[str, int], dict[str, Array]]:
    """The cells of all problems at all sizes, each with its number of trials; ``trial(name, n, seed)`` is one."""
    return {
        (name, n): counted(folder, f"{name}-{n}", count, partial(trial, name, n))
        for n, count in trials.items()
        for name in names
    }


def rate(wrong: Array | BoolArray) -> str:
    """How often something was wrong, in percent, with the exact 95 % interval."""
    low, high = clopper_pearson(int(wrong.sum()), len(wrong))
    return f"{100 * wrong.mean():.1f} ({100 * low:.1f}–{100 * high:.1f})"


def generator(problem: str, n: int, seed: int) -> np.random.Generator:
    """The random numbers of one data set."""
    return np.random.default_rng([SEED, *problem.encode(), n, seed])


def return_distribution(problem: SmallProblem) -> tuple[Array, Array]:
    """The distinct returns of the candidate and their probabilities, exactly: every history, merged where alike."""
    mdp = problem.mdp
    states = len(mdp.start_probs)
    alive = {(state, 0.0): float(p) for state, p in enumerate(mdp.start_probs) if p > 0}
    ended: dict[float, float] = {}
    for t in range(mdp.horizon):
        following: dict[tuple[int, float], float] = {}
        choices = problem.candidate.probs(np.arange(states), np.full(states, t))
        for (state, earned), p in alive.items():
            for action, after in np.argwhere(mdp.transition_probs[state] * choices[state][:, None] > 0):
                chance = p * choices[state, action] * mdp.transition_probs[state, action, after]
                total = round(earned + mdp.discount**t * float(mdp.rewards[state, action, after]), ROUND)
                if after == states:
                    ended[total] = ended.get(total, 0.0) + chance
                else:
                    following[int(after), total] = following.get((int(after), total), 0.0) + chance
        alive = following
    for (_, total), p in alive.items():
        ended[total] = ended.get(total, 0.0) + p
    values = np.array(sorted(ended))
    return values, np.array([ended[value] for value in values])
