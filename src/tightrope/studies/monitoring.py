"""A monitor looked at every day for 1,000 days, and what looking every day does to bounds made for one look."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from scipy import stats

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.decisions.monitoring import Monitor
from tightrope.domains import SmallProblem, small
from tightrope.estimators import IS, Anchor
from tightrope.functional.values import TrajectoryValues
from tightrope.studies.pages.sections import write_section
from tightrope.studies.pool import run_all
from tightrope.studies.problems import CORE
from tightrope.studies.summary import clopper_pearson

TITLE = "A monitor, looked at every day"
DAYS, PHASE = 1000, 200  # days, with an episode each; days after which the logging policy may change
FIRST = 20  # episodes: nobody looks at a bound for one look before
CONFIDENCE = 0.95
STREAMS = 250
ENDS: tuple[Anchor, ...] = ("low", "high")
WAYS = ("monitor", "daily", "once")
Task = tuple[str, int]


def phases(problem: SmallProblem, seed: int) -> list[TrajectoryDataset]:
    """1,000 days of logs of a policy that adapts: after good days it acts more like the candidate, else less."""
    rng, share, parts, before = np.random.default_rng([seed, len(problem.name)]), 0.0, [], -np.inf
    for start in range(0, DAYS, PHASE):
        policy = TabularPolicy((1 - share) * problem.behavior.table + share * problem.candidate.table)
        data = problem.mdp.simulate(policy, PHASE, rng=rng)
        parts.append(replace(data, episode_ids=start + np.arange(data.n_trajectories)))
        after = float(data.returns.mean())
        share, before = (min(share + 0.25, 0.5) if after > before else max(share - 0.25, 0.0)), after
    return parts


def stream(task: Task) -> dict[str, tuple[bool, bool, float]]:
    """By way: whether the lower bound was ever wrong, whether the upper one was, and the last lower bound."""
    name, seed = task
    problem = small(name)
    truth, parts = problem.true_value, phases(problem, seed)
    monitor = Monitor(problem.candidate, confidence=CONFIDENCE)
    for part in parts:
        monitor.update(part, every=1)
    looks = monitor.looks
    assert len(looks) == DAYS
    result = {
        "monitor": (
            any(look.lower > truth for look in looks),
            any(look.upper < truth for look in looks),
            looks[-1].lower,
        )
    }
    low, high = (
        _daily(
            [IS(anchor=anchor).trajectory_values(Problem(part, problem.candidate), max_ratio=None) for part in parts]
        )
        for anchor in ENDS
    )
    result["daily"] = (bool((low > truth).any()), bool((high < truth).any()), float(low[-1]))
    result["once"] = (bool(low[-1] > truth), bool(high[-1] < truth), float(low[-1]))
    return result


def _daily(samples: Sequence[TrajectoryValues]) -> Array:
    """Student's t bound of each day, from all episodes so far."""
    values = np.concatenate([sample.values for sample in samples])
    ends = np.arange(FIRST, len(values) + 1)
    mean = np.cumsum(values)[ends - 1] / ends
    spread = np.sqrt(np.maximum(np.cumsum(np.square(values))[ends - 1] / ends - np.square(mean), 0) / (ends - 1))
    bounds = mean - stats.t.ppf(CONFIDENCE, ends - 1) * spread
    return samples[0].origin + samples[0].sign * np.maximum(bounds, 0.0)


def render(results: dict[str, list[dict[str, tuple[bool, bool, float]]]]) -> str:
    """The section's text."""
    trials = sum(len(streams) for streams in results.values())
    lines = [
        f"{trials:,} streams of {DAYS:,} days, one episode and one look a day. Every {PHASE} days the logging "
        "policy changes in response to what it earned. A stream counts as wrong if the bound was on the wrong side of "
        f"the true value on *any* day; nominal is {1 - CONFIDENCE:.0%} for each side (lower, upper). Beside the "
        "monitor, what people do: compute each day a bound that is made for one look (IS with Student's t) from all "
        "episodes so far, and believe it. In the last column of rates that bound is looked at once, on the last day.",
        "",
        "| problem | streams | monitor | t, every day | t, last day | truth | monitor's last lower bound |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, streams in results.items():
        cells = " | ".join(_rates(streams, way) for way in WAYS)
        last = np.mean([one["monitor"][2] for one in streams])
        lines.append(f"| {name} | {len(streams)} | {cells} | {small(name).true_value:.4g} | {last:.4g} |")
    return "\n".join(lines)


def _rates(streams: Sequence[dict[str, tuple[bool, bool, float]]], way: str) -> str:
    """Both sides' error rates; of the monitor also how high they may be."""
    counts = [sum(bool(one[way][side]) for one in streams) for side in (0, 1)]
    rates = ", ".join(f"{count / len(streams):.1%}" for count in counts)
    if way != "monitor":
        return rates
    most = max(clopper_pearson(count, len(streams))[1] for count in counts)
    return f"{rates} (at most {most:.1%})"


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/decisions.md"),
    streams: Annotated[int, typer.Option(help="Streams of each problem.")] = STREAMS,
    workers: Annotated[int, typer.Option(help="Processes.")] = os.cpu_count() or 1,
) -> None:
    """Measure how often a monitor is ever wrong, and write its section of the page of decisions."""
    results: dict[str, list[dict[str, tuple[bool, bool, float]]]] = {}
    for name in CORE:
        tasks = [(name, seed) for seed in range(streams)]
        results[name] = [result for _, result in run_all(stream, tasks, workers)]
        write_section(out, TITLE, render(results))  # what is finished stays


if __name__ == "__main__":
    typer.run(main)
