"""Decisions on logs of patients with several episodes each: how often they err by patient, and without the patients."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.policy import TabularPolicy
from tightrope.decisions.comparing import compare
from tightrope.decisions.distribution import distribution
from tightrope.decisions.improve import improve
from tightrope.decisions.tails.outcomes import tail_mean
from tightrope.domains import FiniteMDP, SmallProblem, small
from tightrope.studies.clustering import LARGEST
from tightrope.studies.comparing import FEW, equals
from tightrope.studies.counts import counted_grid, generator, return_distribution
from tightrope.studies.pages.by_patient import COMPARED, IMPROVED, OFTEN, TAILS, TITLE, WAYS, render
from tightrope.studies.pages.sections import write_section
from tightrope.studies.tails import CLOSE, SHARE, is_outside, is_wrong

FACTOR = 2.0  # of all that half of the patients earn from an action; the others earn nothing from it
LEVEL, RESAMPLES, COMPARING = 0.2, 1000, 4000  # the level is where this share of the returns lies below
Result = Mapping[str, float]


def responses(problem: SmallProblem, n: int, rng: np.random.Generator, most: int = LARGEST) -> TrajectoryDataset:
    """Logs of n patients with up to ``most`` episodes, who earn twice the usual from an action, or nothing, each time.

    The factor of each patient and action is 0 or 2, so that its mean is one and every policy has the value that it has
    without; but a policy that suits this sample's patients is no better for others.
    """
    sizes = rng.integers(1, most + 1, size=n)
    whose = np.repeat(np.arange(n), sizes)
    data = problem.mdp.simulate(problem.behavior, int(sizes.sum()), rng=rng)
    assert data.actions is not None
    factor = FACTOR * rng.integers(0, 2, size=(n, problem.behavior.table.shape[1]))
    low, high = data.value_range or (0.0, 0.0)
    assert low >= 0 or high <= 0
    return replace(
        data, rewards=data.rewards * factor[np.repeat(whose, data.lengths), data.actions], reward_range=None,
        return_range=(FACTOR * min(low, 0.0), FACTOR * max(high, 0.0)), clusters=whose,
    )  # fmt: skip


def _ways(data: TrajectoryDataset) -> dict[str, tuple[TrajectoryDataset, bool]]:
    """The logs with or without their patients, and whether to be exact, by the names of ``WAYS``."""
    return dict(zip(WAYS, ((data, False), (replace(data, clusters=None), False), (data, True)), strict=True))


def compared(ways: Sequence[str], name: str, n: int, seed: int) -> Result:
    """Candidates of which none is better: who is called better, whose value is too high, who is not the best."""
    problem = small(name)
    data, result = responses(problem, n, generator(name, n, seed)), {}
    candidates = _equals(name)
    for way in ways:
        logs, strict = _ways(data)[way]
        outcome = compare(logs, candidates, strict=strict, n_resamples=COMPARING, seed=seed, n_jobs=1)
        values = {one.name: one.value.value for one in outcome if one.value is not None}
        result[f"{way} better"] = any(one.better for one in outcome)
        result[f"{way} value"] = any(value > problem.behavior_value + CLOSE for value in values.values())
        result[f"{way} winner"] = values.get(outcome.chosen, -np.inf) > problem.behavior_value + CLOSE
        result[f"{way} best"] = len(outcome.may_be_best) < FEW
    return result


@cache
def _equals(name: str) -> dict[str, object]:
    return {str(place): policy for place, policy in enumerate(equals(small(name), FEW, 1))}


@cache
def alike() -> SmallProblem:
    """Two groups and three treatments that cure half of the patients each: every policy has the same value."""
    groups, treatments = 2, 3
    transition, rewards = np.zeros((2, groups, treatments, groups + 1))
    transition[..., 0], transition[..., groups], rewards[..., groups] = 0.5, 0.5, 1.0
    behavior = TabularPolicy(np.full((groups, treatments), 1 / treatments))
    process = FiniteMDP(transition, rewards, np.full(groups, 1 / groups), horizon=1)
    return SmallProblem("alike", "two groups, three treatments", process, behavior, behavior, max_ratio=1.0)


def proposed(name: str, n: int, seed: int) -> Result:
    """Whether a policy is returned, where none is better: whatever is returned is wrong."""
    data, result = responses(alike(), n, generator(name, n, seed), OFTEN), {}
    for way, (logs, strict) in _ways(data).items():
        result[f"{way} wrong"] = improve(logs, strict=strict, seed=seed, n_resamples=RESAMPLES).success
    return result


@cache
def truth(name: str) -> tuple[SmallProblem, Array, Array]:
    """A problem, and the candidate's returns over all patients with the distribution function there."""
    problem = small(name)
    mass: dict[float, float] = {}
    actions = problem.behavior.table.shape[1]
    for factors in product((0.0, FACTOR), repeat=actions):
        rewards = problem.mdp.rewards * np.array(factors)[None, :, None]
        values, probs = return_distribution(replace(problem, mdp=replace(problem.mdp, rewards=rewards)))
        for value, p in zip(values.tolist(), probs.tolist(), strict=True):
            mass[value + 0.0] = mass.get(value + 0.0, 0.0) + p / 2**actions
    known = np.array(sorted(mass))
    return problem, known, np.cumsum([mass[value] for value in known.tolist()])


def tailed(name: str, n: int, seed: int) -> Result:
    """What is wrong about the tail: both ends of a level, the median and CVaR, and the band anywhere."""
    problem, values, heights = truth(name)
    data = responses(problem, n, generator(name, n, seed))
    place = int(np.searchsorted(heights, LEVEL))
    level = float(values[place]) - CLOSE
    true = (
        float(np.append(0.0, heights)[place]),
        float(values[np.searchsorted(heights, 0.5 - 1e-12)]),
        float(tail_mean(values, heights, SHARE)),
    )
    result: dict[str, float] = {}
    for way, (logs, strict) in _ways(data).items():
        shape = distribution(
            logs, problem.candidate, levels=[level], quantiles=[0.5], shares=[SHARE], strict=strict, seed=seed,
            n_resamples=RESAMPLES,
        )  # fmt: skip
        for key, tail, right in zip(TAILS, shape.tails, true, strict=False):
            result[f"{way} {key}"] = is_outside((tail.lower, tail.upper), right)
        result[f"{way} band"] = is_wrong(shape.lower, shape.upper, values, heights)
    return result


Trial = Callable[[str, int, int], Result]
PARTS: dict[str, tuple[Trial, Sequence[str], dict[int, int]]] = {  # with data sets by number of patients
    "compared": (partial(compared, WAYS[:2]), COMPARED, {50: 400, 200: 400}),
    "improved": (proposed, IMPROVED, {50: 1000, 200: 1000}),
    "tails": (tailed, ("walker", "decline"), {50: 400, 200: 200}),
    "exactly": (partial(compared, WAYS[2:]), COMPARED, {50: 300, 200: 150}),
}


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/decisions.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path(
        "build/by_patient"
    ),
    most: Annotated[int | None, typer.Option(help="Data sets a cell, at most; more can be added later.")] = None,
) -> None:
    """Measure decisions by patient and without, and write their section of the page of decisions."""
    cells = {
        part: counted_grid(results / part, names, {n: min(count, most or count) for n, count in trials.items()}, trial)
        for part, (trial, names, trials) in PARTS.items()
    }
    write_section(out, TITLE, render(cells))


if __name__ == "__main__":
    typer.run(main)
