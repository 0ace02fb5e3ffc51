"""The map of the field: who wins a cell, and the table behind the picture. Raw results come in, text goes out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tightrope.base.dataset import Array, BoolArray, IntArray
from tightrope.studies.pages.advice import NOMINAL, Counted
from tightrope.studies.pages.labels import printed
from tightrope.studies.summary import Results, is_wrong

TITLE = "The map"
PICTURE = "pictures/field-map.svg"
SEEN, SIMPLE, HIDDEN = "all seen", "models too simple", "a part hidden"
SHOWN = 3  # of the pairs that are about as good


class Place(NamedTuple):
    """A place of the map, but for the number of episodes."""

    hidden: int  # values of what the log does not show; 1: nothing is hidden
    horizon: int
    overlap: float  # what a logged episode is worth of the candidate's
    simple: bool = False  # whether all models are too simple for what is logged

    @property
    def state(self) -> str:
        """What the log shows of it, and what models make of that, in words."""
        if self.hidden > 1:
            return HIDDEN
        return SIMPLE if self.simple else SEEN


@dataclass(frozen=True)
class Sample:
    """The results of one problem of a place, and the scale on which they are compared with those of others."""

    results: Results
    spread: float  # the standard deviation of the candidate's return
    span: tuple[float, float]  # the lowest and highest return that can occur


@dataclass(frozen=True)
class Tally:
    """One estimator with one bound on all data sets of a cell; distances in standard deviations of the return."""

    name: str
    problem: IntArray  # (K,): which of the cell's problems a data set is of
    wrong: BoolArray  # (K,)
    distance: Array  # (K,): truth − bound; where there is no bound, to the lowest possible return
    error: Array  # (K,): estimate − truth
    absent: int  # data sets without a bound

    def counted(self, where: BoolArray) -> Counted:
        """Errors among some of the data sets."""
        return Counted(int(self.wrong[where].sum()), int(where.sum()))

    def holds(self, where: BoolArray) -> bool:
        """Whether it errs no more often than it may, beyond noise: in all, and in each problem by itself."""
        parts = [where, *(where & (self.problem == one) for one in np.unique(self.problem))]
        return not any(self.counted(part).over for part in parts)


@dataclass(frozen=True)
class Cell:
    """Who wins at one place with so many episodes: chosen on one half of the data sets, reported on the other."""

    place: Place
    n: int
    winner: str  # estimator/bound; "" where none held its level
    errors: Counted
    distance: float
    alike: tuple[str, ...]  # pairs that held their level too and are not farther away beyond noise
    estimator: str  # with the smallest mean squared error
    error: float  # the root of that, in standard deviations of the return
    levels: Mapping[str, Counted]  # errors of every pair on all data sets
    absent: Mapping[str, int]  # data sets on which a pair gave no bound

    def line(self) -> str:
        """In one line, for somebody who watches the run."""
        where = f"{self.place.state}, {self.place.horizon} steps, overlap {self.place.overlap:g}, n = {self.n}"
        return f"{where}: {self.winner or 'none'} {self.distance:.3g}, {self.errors} %; {self.estimator}"


def cell(place: Place, n: int, samples: Sequence[Sample]) -> Cell:
    """Choose on the first half of each problem's data sets, report on the second."""
    tallies, chooses = tallied(n, samples)
    able = [one for one in tallies if one.holds(chooses)]
    best = min(able, key=lambda one: float(one.distance[chooses].mean()), default=None)
    sharpest = min(tallies, key=lambda one: float(np.mean(one.error[chooses] ** 2)))
    reports = ~chooses
    return Cell(
        place=place,
        n=n,
        winner=best.name if best else "",
        errors=best.counted(reports) if best else Counted(0, 0),
        distance=float(best.distance[reports].mean()) if best else np.nan,
        alike=tuple(one.name for one in able if best and one is not best and _is_alike(one, best, reports)),
        estimator=sharpest.name.partition("/")[0],
        error=float(np.sqrt(np.mean(sharpest.error[reports] ** 2))),
        levels={one.name: one.counted(np.ones_like(chooses)) for one in tallies},
        absent={one.name: one.absent for one in tallies},
    )


def tallied(n: int, samples: Sequence[Sample]) -> tuple[list[Tally], BoolArray]:
    """Every pair on all data sets with so many episodes, and which of the data sets choose."""
    names = list(dict.fromkeys(samples[0].results.columns["method"]))
    return [_tally(name, n, samples) for name in names], np.concatenate([_first_half(n, one) for one in samples])


def _first_half(n: int, sample: Sample) -> BoolArray:
    columns = sample.results.columns
    rows = (columns["n"] == n) & (columns["method"] == columns["method"][0])
    trials = columns["trial"][rows]
    return np.asarray(trials < (trials.max() + 1) / 2)


def _tally(name: str, n: int, samples: Sequence[Sample]) -> Tally:
    problem, wrong, distance, error, absent = [], [], [], [], 0
    for number, one in enumerate(samples):
        columns, truth = one.results.columns, one.results.true_value
        rows = (columns["method"] == name) & (columns["n"] == n)
        values, estimates = columns["value"][rows], columns["estimate"][rows]
        problem.append(np.full(len(values), number))
        absent += int((~np.isfinite(values)).sum())
        wrong.append(is_wrong(values, "lower", truth, one.results.true_value_error))
        # A bound that is not there, or below what is possible, says no more than the lowest possible return.
        distance.append((truth - np.fmax(values, one.span[0])) / one.spread)
        worst = one.span[1] - one.span[0]
        error.append(np.where(np.isfinite(estimates), estimates - truth, worst) / one.spread)
    problems, errs = np.concatenate(problem), np.concatenate(wrong)
    return Tally(name, problems, errs, np.concatenate(distance), np.concatenate(error), absent)


def _is_alike(one: Tally, best: Tally, where: BoolArray) -> bool:
    """Whether it is no farther away than the winner beyond two standard errors of the difference, pair by pair."""
    farther = one.distance[where] - best.distance[where]
    noise = 2 * farther.std(ddof=1) / np.sqrt(len(farther)) if len(farther) > 1 else np.inf
    return bool(farther.mean() <= noise)


def render(cells: Sequence[Cell], *, seeds: Sequence[int], trials: int, resamples: int) -> str:
    """The picture, what it says, how to read it, and the table behind it."""
    over = [one for one in cells if one.errors.over]
    estimators = list(dict.fromkeys(name.partition("/")[0] for one in cells for name in one.levels))
    wins = Counter(one.winner.partition("/")[0] or "none" for one in cells)
    sharp = Counter(one.estimator for one in cells)
    lines = [
        "![Which estimator and bound come nearest to the truth, by horizon, overlap, model error, hidden state and n]"
        f"({PICTURE})",
        "",
        f"- Cells won: {_told(wins)}. Best estimates: {_told(sharp)}. Of {len(estimators)} estimators that took part: "
        f"{', '.join(map(printed, estimators))}.",
        f"- Winners that err more often than 5 % beyond noise on fresh data: {len(over) or 'none'} of {len(cells)}.",
        "",
        _design(seeds, trials, resamples),
        "",
        "| state | steps | overlap | n | best bound | errors % | distance | as good | best estimate | its error |",
        "|---|---:|---:|---:|---|---:|---:|---|---|---:|",
        *(_row(one) for one in cells),
        "",
        "### Who holds the level where",
        "",
        f"Cells of {len(cells)} whose error rate over all data sets is above {NOMINAL:.0%} beyond noise; in brackets "
        "the highest rate. *Won*: cells whose best bound is this estimator's.",
        "",
        *_levels(cells, estimators, wins),
    ]
    return "\n".join(lines)


def _design(seeds: Sequence[int], trials: int, resamples: int) -> str:
    """How it was measured."""
    reported = (trials - (trials + 1) // 2) * len(seeds)
    return (
        f"Each cell: {len(seeds)} processes of six states and three actions, drawn to order (`drawn_problem`, seeds "
        f"{seeds[0]} to {seeds[-1]}), {trials} data sets each, 95 % lower bounds, B = {resamples}. *Overlap* is what "
        "one logged episode is worth of the candidate's at the last step (`evaluate` prints the effective number of "
        "episodes: divide it by n). "
        "*A part hidden*: actions change something that the log does not show, for better in half of the processes "
        "and for worse in the others, so every model is wrong. *Models too simple*: all is logged, but every model has "
        "q̂ on a straight line over the number of the state, one for each action (`FittedQ`), and DICE its ratios "
        "likewise, though the numbers mean nothing; MB and MIS, which know tables alone, are left out there. "
        "DRL has the visits from a table there too, and one right part is enough for it. All of these candidates are "
        "better than the policy that logged, and a model that is too simple sees too little of that: there FQE lies "
        "far below the truth, so that its lower bounds are useless rather than wrong; of a worse candidate they would "
        "be wrong. "
        "**Best bound**: the pair with the smallest mean "
        "distance from bound to truth among those whose error rate is not above 5 % beyond noise (Clopper–Pearson), in "
        "all and in each process. One half of the data sets chooses it; its errors (in percent) and its distance are "
        f"those on the other half, {reported} data sets. *As good*: pairs that held their level too and are not "
        "farther away beyond noise. **Best estimate**: the smallest root mean squared error, chosen and reported "
        "likewise. Distances and errors are in standard deviations of the candidate's return; a bound below the lowest "
        "possible return counts as that."
    )


def _told(counts: Counter[str]) -> str:
    return ", ".join(f"{printed(name)} {count}" for name, count in counts.most_common())


def _pair(name: str) -> str:
    return printed(name.replace("/", " ")) if name else "none"


def _row(one: Cell) -> str:
    alike = [_pair(name) for name in one.alike]
    more = f" and {len(alike) - SHOWN} more" if len(alike) > SHOWN else ""
    place = f"{one.place.state} | {one.place.horizon} | {100 * one.place.overlap:g} %"
    return (
        f"| {place} | {one.n} | {_pair(one.winner)} | {one.errors} | {one.distance:.3g} | "
        f"{', '.join(alike[:SHOWN]) or '–'}{more} | {printed(one.estimator)} | {one.error:.3g} |"
    )


def _levels(cells: Sequence[Cell], estimators: Sequence[str], wins: Counter[str]) -> list[str]:
    bounds = list(dict.fromkeys(name.partition("/")[2] for one in cells for name in one.levels))
    rows = [f"| estimator | {' | '.join(bounds)} | no bound | won |", "|---|" + "---:|" * (len(bounds) + 2)]
    for name in estimators:
        pairs = [f"{name}/{bound}" for bound in bounds]
        absent = sum(one.absent.get(pair, 0) for one in cells for pair in pairs)
        counts = " | ".join(_level([one.levels[pair] for one in cells if pair in one.levels]) for pair in pairs)
        rows.append(f"| {printed(name)} | {counts} | {absent:,} | {wins[name]} |")
    return rows


def _level(counts: Sequence[Counted]) -> str:
    if not counts:
        return "–"
    worst = max(one.errors / one.trials for one in counts)
    return f"{sum(one.over for one in counts)} ({worst:.0%})"
