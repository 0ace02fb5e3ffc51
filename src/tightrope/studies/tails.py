"""Bounds on the tail of the return, measured: how often they err, and what ignoring multiplicity costs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.bounds.base import highest, lowest, rank
from tightrope.bounds.exact.betting import Betting
from tightrope.decisions.distribution import distribution
from tightrope.decisions.tails.bootstrap import replicated_mass
from tightrope.decisions.tails.exact import CUTS, Points, exact_tails
from tightrope.decisions.tails.outcomes import Outcomes, tail_mean
from tightrope.domains import SmallProblem, small
from tightrope.functional.values import TrajectoryValues
from tightrope.studies.counts import counted_grid, generator, return_distribution
from tightrope.studies.pages.sections import write_section
from tightrope.studies.pages.tails import TITLE, render

PROBLEMS = ("walker", "bonus", "decline", "rare")
TRIALS = {20: 2000, 50: 2000, 200: 1000, 1000: 500}  # data sets by size
SHARE, QUANTILES, LEVEL = 0.1, (0.05, 0.5), 0.2  # the level is where this share of the returns lies below
NAMES = ("level", *(f"quantile {p}" for p in QUANTILES), "cvar")
DELTA, RESAMPLES = 0.05, 1000
CLOSE = 1e-6  # what differs by less is rounding


@cache
def truth(name: str) -> tuple[SmallProblem, Array, Array]:
    """A problem, the candidate's returns and the distribution function there."""
    problem = small(name)
    values, probs = return_distribution(problem)
    return problem, values, np.cumsum(probs)


def trial(name: str, n: int, seed: int) -> Mapping[str, float]:
    """What is wrong on one data set, by name: 1 or 0; and how tight the bounds on the worst are."""
    problem, values, heights = truth(name)
    logs = problem.logs(n, rng=generator(name, n, seed))
    place = int(np.searchsorted(heights, LEVEL))
    true = {"level": float(np.append(0.0, heights)[place])}
    true |= {f"quantile {p}": float(values[np.searchsorted(heights, p - 1e-12)]) for p in QUANTILES}
    true["cvar"] = float(tail_mean(values, heights, SHARE))
    level = float(values[place]) - CLOSE
    outcomes = Outcomes.of(Problem(logs, problem.candidate), exact=True)
    exact = partial(exact_tails, outcomes, delta=DELTA, seed=seed)
    alone = exact(levels=[level], quantiles=(), shares=(), points=0)
    ends = {"level": (alone.lower[0][1], alone.upper[0][1])}
    for p in QUANTILES:
        ends[f"quantile {p}"] = exact(levels=(), quantiles=[p], shares=(), points=0).quantiles[0]
    ends["cvar"] = exact(levels=(), quantiles=(), shares=[SHARE], points=0).means[0]
    band = exact(levels=(), quantiles=(), shares=(), points=10)
    result: dict[str, float] = {f"exact {one}": is_outside(ends[one], true[one]) for one in NAMES}
    result["exact band"] = is_wrong(band.lower, band.upper, values, heights)
    result["exact cvar lower"] = ends["cvar"][0]
    result |= approximately(name, logs, level, true, seed)
    grid = np.unique(np.searchsorted(heights, (np.arange(10) + 0.5) / 10))
    plain = percentiles(outcomes, values[grid] - CLOSE, seed)
    pairs = zip(plain[2:], np.append(0.0, heights)[grid], strict=True)
    result["naive band"] = any(is_outside(pair, height) for pair, height in pairs)
    result["naive percentile quantile"] = is_outside(plain[0], true[NAMES[1]])
    result["naive percentile cvar"] = is_outside(plain[1], true["cvar"])
    result["naive cvar"] = chosen_on_the_same(outcomes, seed) > true["cvar"] + CLOSE
    return result


def percentiles(outcomes: Outcomes, levels: Array, seed: int) -> list[tuple[float, float]]:
    """The naive intervals of the lowest quantile, of the tail mean and of each level: plain percentiles."""
    values, _ = outcomes.steps()
    mass = np.concatenate([rows for _, rows in replicated_mass(outcomes, values, RESAMPLES, seed)])
    with np.errstate(invalid="ignore"):  # a replicate without any weight
        heights = mass / mass[:, -1:]
    lowest_quantile = values[np.minimum((heights < QUANTILES[0] - 1e-12).sum(axis=1), len(values) - 1)]
    below = np.pad(heights, ((0, 0), (1, 0)))[:, np.searchsorted(values, levels)]
    position = rank(DELTA / 2, RESAMPLES)
    columns = (lowest_quantile, tail_mean(values, heights, SHARE), *below.T)
    return [(lowest(one, position), highest(one, position)) for one in columns]


def approximately(
    name: str, logs: TrajectoryDataset, level: float, true: Mapping[str, float], seed: int
) -> dict[str, float]:
    """The same by bootstrap."""
    problem, values, heights = truth(name)
    ask = partial(distribution, logs, problem.candidate, seed=seed, n_resamples=RESAMPLES)
    shape = ask(levels=[level], quantiles=QUANTILES, shares=[SHARE])
    ends = dict(zip(NAMES, ((tail.lower, tail.upper) for tail in shape.tails), strict=True))
    result: dict[str, float] = {f"approximate {one}": is_outside(ends[one], true[one]) for one in NAMES}
    result["approximate band"] = is_wrong(shape.lower, shape.upper, values, heights)
    result["approximate cvar lower"] = ends["cvar"][0]
    return result


def is_outside(ends: tuple[float, float], true: float) -> bool:
    """Whether the truth lies beyond one of the ends."""
    return not ends[0] - CLOSE <= true <= ends[1] + CLOSE


def is_wrong(lower: Points, upper: Points, values: Array, heights: Array) -> bool:
    """Whether a band leaves the distribution function out somewhere."""
    up_to = np.append(0.0, heights)
    low = any(p > up_to[np.searchsorted(values, x + CLOSE)] + CLOSE for x, p in lower)
    return low or any(p < up_to[np.searchsorted(values, x - CLOSE)] - CLOSE for x, p in upper)


def chosen_on_the_same(outcomes: Outcomes, seed: int) -> float:
    """The naive bound on the worst: the best of several cuts, each with an exact bound from the same episodes."""
    results = []
    for cut in np.unique(outcomes.quantiles(np.minimum(SHARE * np.array(CUTS), 1.0))):
        kept = outcomes.weighed(np.maximum(np.minimum(outcomes.returns, cut) - outcomes.low, 0.0))
        mean = Betting().lower(TrajectoryValues(kept, 0.0, 1.0, None), delta=DELTA, seed=seed)
        results.append(cut - (cut - outcomes.low - mean) / SHARE)
    return float(max(results))


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/decisions.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path("build/tails"),
) -> None:
    """Measure the bounds on the tail and write their section of the page of decisions."""
    cells = counted_grid(results, PROBLEMS, TRIALS, trial)
    means = {name: float(tail_mean(*truth(name)[1:], SHARE)) for name in PROBLEMS}
    write_section(out, TITLE, render(cells, means))


if __name__ == "__main__":
    typer.run(main)
