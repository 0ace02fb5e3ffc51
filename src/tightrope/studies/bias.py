"""How tight the model-bias bounds are, on random processes and models of them fitted to draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from tightrope.base.dataset import Array
from tightrope.base.policy import TabularPolicy
from tightrope.bounds.model_bias.bias import BiasBound, Form, bias_bound, step_cross_entropies, step_kls
from tightrope.bounds.model_bias.finite_model import smooth
from tightrope.domains import FiniteMDP
from tightrope.io.write import replace_file

SETTINGS = ((50, 0.95), (10, 1.0))  # horizon and discount
MODELS = ((1.0, 10), (1.0, 100), (1.0, 1000), (0.01, 1000))  # Dirichlet concentration of rows; draws of each
FORMS: tuple[Form, ...] = ("printed", "tight", "per-step")
ROWS = (*FORMS, "per-step, cross-entropy")
_STATES, _ACTIONS = 6, 2

_ABOUT = """# How tight the model-bias bounds are

Written by `python -m tightrope.studies.bias`: {cases} random processes a table, {states} states, {actions} actions,
no end before the horizon, rewards uniform in [0, 1] and known. Next-state rows are Dirichlet(1) (noisy) or
Dirichlet({sure:g}) (nearly deterministic); the model is Laplace's rule on draws from each row. The trivial range is
g_max − g_min, which no error can exceed; *below* it means by more than 0.1 %. Medians are of the formula before it is
capped at that range.

*printed* is Corollary 1 of "Bootstrapping with Models" as printed; *tight* has the right constant and the better of
Pinsker's and Bretagnolle and Huber's inequalities; *per-step* bounds each step's reward by itself. These three know the
true divergence. *per-step, cross-entropy* is what unlimited logs would give: the entropy of the process, which logs
cannot tell from the model's error, counts as error. In a noisy process it leaves next to nothing of the bound.
"""


@dataclass(frozen=True)
class Case:
    """One random process and a model of it."""

    error: float  # |V̂ − V|
    bounds: dict[str, BiasBound]


def case(horizon: int, discount: float, concentration: float, draws: int, rng: np.random.Generator) -> Case:
    """A random process without end, a model of it by Laplace's rule, and a random candidate."""
    prior = np.full(_STATES, concentration)
    rows, start = rng.dirichlet(prior, size=(_STATES, _ACTIONS)), rng.dirichlet(prior)
    rewards = np.broadcast_to(rng.random((_STATES, _ACTIONS, 1)), (_STATES, _ACTIONS, _STATES + 1))
    fitted, fitted_start = smooth(rng.multinomial(draws, rows)), smooth(rng.multinomial(draws, start))
    true = FiniteMDP(_endless(rows), rewards, start, horizon, discount)
    model = FiniteMDP(_endless(fitted), rewards, fitted_start, horizon, discount)
    probs = rng.dirichlet(np.ones(_ACTIONS), size=_STATES)
    policy: Array = np.broadcast_to(probs, (horizon, *probs.shape))
    kls, crosses = step_kls(true, model, policy), step_cross_entropies(true, model, policy)
    bounds: dict[str, BiasBound] = {}
    for form in FORMS:
        bounds[form] = bias_bound(kls, reward_range=(0, 1), discount=discount, form=form)
    bounds[ROWS[-1]] = bias_bound(crosses, reward_range=(0, 1), discount=discount)
    candidate = TabularPolicy(probs)
    return Case(abs(model.value(candidate) - true.value(candidate)), bounds)


def _endless(rows: Array) -> Array:
    """Rows (S, A, S) with a probability 0 of the end."""
    return np.concatenate([rows, np.zeros((*rows.shape[:2], 1))], axis=2)


def study(horizon: int, discount: float, concentration: float, draws: int, cases: int) -> list[Case]:
    """Independent cases; the seed is a function of the setting alone."""
    rng = np.random.default_rng([horizon, round(1000 * discount), round(1000 * concentration), draws])
    return [case(horizon, discount, concentration, draws, rng) for _ in range(cases)]


def table(cases: Sequence[Case]) -> list[str]:
    """One row per bound."""
    lines = [
        "| bound | median | share of the trivial range | below it | below half of it | violations |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for name in ROWS:
        cases_of_table = [one.bounds[name] for one in cases]
        share = np.array([bound.uncapped / bound.trivial for bound in cases_of_table])
        violated = sum(one.error > one.bounds[name].value + 1e-12 for one in cases)
        figures = [
            f"{np.median([bound.uncapped for bound in cases_of_table]):.3g}",
            f"{np.median(share):.3g}",
            f"{np.mean(share < 0.999):.1%}",
            f"{np.mean(share < 0.5):.1%}",
            f"{violated} of {len(cases)}",
        ]
        lines.append(f"| {name} | {' | '.join(figures)} |")
    return lines


def page(cases: int) -> str:
    """The whole page."""
    lines = [_ABOUT.format(cases=cases, states=_STATES, actions=_ACTIONS, sure=MODELS[-1][0])]
    for horizon, discount in SETTINGS:
        total = sum(discount**t for t in range(horizon))
        lines += [f"## L = {horizon}, γ = {discount:g}: trivial range {total:.1f}", ""]
        for concentration, draws in MODELS:
            cases_of_table = study(horizon, discount, concentration, draws, cases)
            kind = "Noisy" if concentration == 1.0 else "Nearly deterministic"
            errors = [one.error for one in cases_of_table]
            lines += [
                f"### {kind}, a model from {draws} draws of each row",
                "",
                f"Median |V̂ − V| {np.median(errors):.3g}, largest {np.max(errors):.3g}.",
                "",
                *table(cases_of_table),
                "",
            ]
    return "\n".join(lines)


def main(
    out: Annotated[Path, typer.Option(help="Where to write the tables.")] = Path("docs/bias.md"),
    cases: Annotated[int, typer.Option(help="Random processes per table.")] = 1000,
) -> None:
    """Measure the bias bounds on random processes and write the tables."""
    text = page(cases)
    replace_file(out, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))
    typer.echo(f"wrote {out}")


if __name__ == "__main__":
    typer.run(main)
