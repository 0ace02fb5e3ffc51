"""Comparisons, measured: twenty candidates of which none is better, and how often one of them is called better."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from scipy.optimize import brentq

from tightrope.base.blas import one_blas_thread
from tightrope.base.dataset import Array
from tightrope.base.policy import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.bounds.base import lowest, rank
from tightrope.bounds.exact.betting import Betting
from tightrope.decisions.approximate import share
from tightrope.decisions.comparing import compare
from tightrope.decisions.comparison import Standing
from tightrope.decisions.differences import DifferenceValues
from tightrope.decisions.family import band, surely_above
from tightrope.domains import SmallProblem, small
from tightrope.estimators import TDR, Anchor
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import Multinomial, draw_weights
from tightrope.io.write import write_text
from tightrope.studies.pages.comparing import TITLE, render
from tightrope.studies.pages.sections import write_section

HEAD = "# Decisions, measured\n"
CANDIDATES, FEW, DELTA, RESAMPLES = 20, 5, 0.05, 2000
CELLS = (
    ("clinic", 50),
    ("clinic", 100),
    ("bonus", 30),
    ("bonus", 100),
    ("decline", 200),
    ("walker", 100),
    ("rare", 200),
)
WHOLE = (("clinic", 100), ("bonus", 100))
PAIRS = (("clinic", 30), ("bonus", 30), ("decline", 30), ("walker", 30))
ENDS: tuple[Anchor, Anchor] = ("low", "high")
APART = 0.4  # how far candidates may lie from the behaviour policy


@dataclass
class Count:
    """Wrong answers in so many data sets, by what was asked."""

    problem: str
    n: int
    trials: int = 0
    wrong: dict[str, int] = field(default_factory=dict)

    def add(self, **errors: bool) -> None:
        """One more data set."""
        self.trials += 1
        for name, error in errors.items():
            self.wrong[name] = self.wrong.get(name, 0) + error


def equals(problem: SmallProblem, count: int, seed: int) -> list[TabularPolicy]:
    """Policies of exactly the behaviour policy's value: between a better and a worse one that were drawn at random."""
    rng, own = np.random.default_rng(seed), problem.behavior.table

    def over(table: Array) -> float:
        return problem.mdp.value(TabularPolicy(table)) - problem.behavior_value

    policies: list[TabularPolicy] = []
    while len(policies) < count:
        first, second = ((1 - APART) * own + APART * rng.dirichlet(np.ones(own.shape[1]), len(own)) for _ in range(2))
        if over(first) * over(second) < 0:
            between = brentq(lambda w, a=first, b=second: over((1 - w) * a + w * b), 0.0, 1.0, xtol=1e-14)
            policies.append(TabularPolicy((1 - between) * first + between * second))
    return policies


@one_blas_thread
def errors_of(problem: SmallProblem, policies: list[TabularPolicy], n: int, seed: int) -> dict[str, bool]:
    """Who is called better though none is, and whose value is said to be higher than it is."""
    data = problem.logs(n, rng=np.random.default_rng([20261116, n, seed]))
    statistics = [TDR()(Problem(data, policy)) for policy in policies]
    drawn = replicate(statistics, Multinomial(), n_resamples=RESAMPLES, seed=seed, n_jobs=1)
    values = np.column_stack([one.values for one in drawn])
    returns = _mean_returns(data.returns, seed)
    estimates = np.array([one.estimate for one in drawn])
    gains, truth, first = values - returns[:, None], problem.behavior_value, int(estimates.argmax())
    by_gain, by_value, gain_alone, value_alone = (
        DELTA * share(n, about, count) for count in (len(policies), 1) for about in ("gain", "value")
    )
    alone = np.array([lowest(column, rank(gain_alone, RESAMPLES)) for column in gains.T])
    together = band(values, by_value)
    return {
        "any": bool((alone > 0).any()),
        "best": bool(alone[first] > 0),
        "ours": bool(surely_above(gains, by_gain).any()),
        "winner": bool(lowest(values[:, first], rank(value_alone, RESAMPLES)) > truth),
        "corrected": bool(together[int(together.argmax())] > truth),
    }


def _mean_returns(returns: Array, seed: int) -> Array:
    """The mean return of the logs in the same resamples."""
    weights = draw_weights(len(returns), RESAMPLES, seed=seed)
    result: Array = weights @ returns / weights.sum(axis=1)
    return result


def family(name: str, n: int, trials: int) -> Count:
    """Twenty candidates on one problem."""
    problem, count = small(name), Count(name, n)
    policies = equals(problem, CANDIDATES, 0)
    for seed in range(trials):
        count.add(**errors_of(problem, policies, n, seed))
    return count


def whole(name: str, n: int, trials: int) -> Count:
    """``compare`` itself with five candidates, resampled and exact: who is called better, and who is not the best."""
    problem, count = small(name), Count(name, n)
    policies = {f"{place}": policy for place, policy in enumerate(equals(problem, FEW, 1))}
    for seed in range(trials):
        logs = problem.logs(n, rng=np.random.default_rng([20261117, n, seed]))
        results = {kind: compare(logs, policies, strict=kind == "exact", seed=seed) for kind in ("shared", "exact")}
        count.add(
            **{f"{kind} better": any(one.better for one in result) for kind, result in results.items()},
            **{f"{kind} value": any(_high(one, problem) for one in result) for kind, result in results.items()},
            **{f"{kind} best": len(result.may_be_best) < FEW for kind, result in results.items()},
        )
    return count


def pair(name: str, n: int, trials: int) -> Count:
    """The exact bound on the difference of two candidates, both ways round."""
    problem, count = small(name), Count(name, n)
    policies, gap = (problem.candidate, equals(problem, 1, 2)[0]), problem.true_value - problem.behavior_value
    for seed in range(trials):
        logs = problem.logs(n, rng=np.random.default_rng([20261118, n, seed]))
        low, high = ([TDR(anchor=end).sequential_values(Problem(logs, policy)) for policy in policies] for end in ENDS)
        both = (DifferenceValues(low[0], high[1]), DifferenceValues(low[1], high[0]))
        first, second = (one.origin + max(0.0, Betting().lower(one, delta=DELTA, seed=seed)) for one in both)
        count.add(first=first > gap, second=second > -gap)
    return count


def counted(make: Callable[[str, int, int], Count], cell: tuple[str, int], trials: int, folder: Path) -> Count:
    """The counts of a cell, kept in a file: a run that was stopped goes on after the last cell."""
    file = folder / f"{make.__name__}-{cell[0]}-{cell[1]}-{trials}.json"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)
        write_text(file, json.dumps(asdict(make(*cell, trials))))
        typer.echo(f"{file.stem}: {file.read_text(encoding='utf-8')}", err=True)
    return Count(**json.loads(file.read_text(encoding="utf-8")))


def _high(one: Standing, problem: SmallProblem) -> bool:
    return one.value is not None and one.value.value > problem.behavior_value  # None: nothing is said of it


def main(
    out: Annotated[Path, typer.Option(help="The page whose section is replaced.")] = Path("docs/decisions.md"),
    results: Annotated[Path, typer.Option(help="Folder of counts; a stopped run goes on.")] = Path("build/comparing"),
    trials: Annotated[int, typer.Option(help="Data sets a cell.")] = 1000,
    calls: Annotated[int, typer.Option(help="Data sets a cell for compare itself.")] = 150,
    pairs: Annotated[int, typer.Option(help="Data sets a cell for exact differences.")] = 500,
) -> None:
    """Measure comparisons and write their section of the page on decisions."""
    families = [counted(family, cell, trials, results) for cell in CELLS]
    wholes = [counted(whole, cell, calls, results) for cell in WHOLE]
    text = render(families, wholes, [counted(pair, cell, pairs, results) for cell in PAIRS])
    write_section(out, TITLE, text, head=HEAD)


if __name__ == "__main__":
    typer.run(main)
