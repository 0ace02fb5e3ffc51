"""Safe improvement, measured: how often a policy that is returned is worse, and how often it is better."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.policy import TabularPolicy
from tightrope.decisions.improve import improve, named, passes, tested
from tightrope.decisions.improvement.proposals import policies, values_of
from tightrope.decisions.improvement.record import policy_of
from tightrope.decisions.improvement.tables import Coded, TableModel
from tightrope.domains import FiniteMDP, SmallProblem, small
from tightrope.evaluation.settings import Settings
from tightrope.studies.counts import counted, generator
from tightrope.studies.pages.improving import TITLE, render
from tightrope.studies.pages.sections import write_section

CLOSE = 1e-9  # a gain that differs from zero by less is rounding
GROUPS = 20
TRIALS = {50: 1000, 200: 1000}  # data sets by size


def _clinic(name: str, first: float, others: float, share: float) -> SmallProblem:
    """Twenty groups of patients and five treatments, cured or not: room to be fooled by small counts."""
    cured = np.tile([first, others, others, others, others], (GROUPS, 1))
    transition, rewards = np.zeros((2, GROUPS, 5, GROUPS + 1))
    transition[..., GROUPS], transition[..., 0], rewards[..., GROUPS] = cured, 1.0 - cured, 1.0
    behavior = TabularPolicy(np.tile([share, *[(1 - share) / 4] * 4], (GROUPS, 1)))
    process = FiniteMDP(transition, rewards, np.full(GROUPS, 1 / GROUPS), horizon=1)
    return SmallProblem(name, "twenty groups, five treatments", process, behavior, behavior, max_ratio=1.0)


PROBLEMS: dict[str, Callable[[], SmallProblem]] = {
    "equal": partial(_clinic, "equal", 0.5, 0.5, 0.2),
    "traps": partial(_clinic, "traps", 0.6, 0.3, 0.8),
    **{name: partial(small, name) for name in ("clinic", "bonus", "decline")},
}


@cache
def problem(name: str) -> SmallProblem:
    """A problem by its name."""
    return PROBLEMS[name]()


def gain(name: str, states: Array, table: Array) -> float:
    """The true gain of a policy; in states that the logs do not hold it acts as the behaviour policy."""
    case = problem(name)
    whole = case.behavior.table.copy()
    whole[states.astype(np.int64)] = table
    return case.mdp.value(TabularPolicy(whole)) - case.behavior_value


def trial(name: str, n: int, strict: bool, seed: int) -> Mapping[str, float]:
    """Of one data set: whether a policy is returned, and whether it is better, or not; the naive way beside it."""
    logs = problem(name).logs(n, rng=generator(name, n, seed))
    result = improve(logs, strict=strict, seed=seed, n_resamples=1000)
    true = gain(name, *_table(result.policy)) if result.success else 0.0
    naive, passed = _naive(logs, seed, strict)
    other = gain(name, *_table(naive)) if passed else 0.0
    return {
        "returned": result.success,
        "wrong": result.success and true <= CLOSE,
        "gain": true,
        "naive returned": passed,
        "naive wrong": passed and other <= CLOSE,
        "naive gain": other,
    }


def _table(policy: object) -> tuple[Array, Array]:
    assert isinstance(policy, TabularPolicy)
    return policy.states, policy.table


def _naive(logs: TrajectoryDataset, seed: int, strict: bool) -> tuple[object, bool]:
    """Fit a model to all logs, take the policy with the best bound on the same logs, and test it there too."""
    coded, settings = Coded.of(logs), Settings(seed=seed, n_resamples=1000)
    model = TableModel(coded)
    tables = [table for _, table in policies(model)]
    gains = [values_of(table, model, coded) - logs.returns for table in tables]
    best = int(np.argmax([one.mean() - 1.645 * one.std() / np.sqrt(len(one)) for one in gains]))
    policy = policy_of(named(coded, tables[best]))
    return policy, passes(tested(logs, policy, "behavior", settings, strict=strict), "behavior")


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/decisions.md"),
    results: Annotated[Path, typer.Option(help="Folder of raw results; a stopped run goes on.")] = Path(
        "build/improving"
    ),
) -> None:
    """Measure safe improvement and write its section of the page of decisions."""
    cells = {
        (strict, name, n): counted(results, f"{name}-{n}-{strict}", trials, partial(trial, name, n, strict))
        for strict in (True, False)
        for n, trials in TRIALS.items()
        for name in PROBLEMS
    }
    write_section(out, TITLE, render(cells))


if __name__ == "__main__":
    typer.run(main)
