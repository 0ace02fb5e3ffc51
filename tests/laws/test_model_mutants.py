"""Mistakes in model-based estimators found in print and in public software, each of which at least one law rejects.

Every test runs the same law on the real thing first: a law that rejects everything would prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.laws import laws
from tests.laws.test_models import (
    DATA,
    EARLY,
    EPISODES,
    LAWS,
    MODES,
    TABULAR,
    finite,
    on,
    policy_of,
    slow,
    true_values,
    wrong_values,
)
from tests.laws.test_mutants import with_columns
from tests.oracle import mdps
from tightrope import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.estimators import DR, MB, WDR
from tightrope.functional.standard_errors import standard_error
from tightrope.functional.statistic import RatioSum
from tightrope.models import GivenValues, TabularModel
from tightrope.models.tabular import kernels as tabular_kernels
from tightrope.models.tabular.blocks import blocks
from tightrope.models.tabular.fit import TabularFit
from tightrope.models.tabular.prepared import PreparedTabular

# -- WDR as printed ------------------------------------------------------------------------------------------------


def first_weight_one(estimator):
    """w_{-1} = 1 instead of 1/n: v̂_0 is summed, not averaged."""

    def make(problem):
        real = estimator(problem)
        coefficients = real.combine.coefficients.copy()
        coefficients[0] *= real.n_trajectories
        return replace(real, combine=RatioSum(coefficients))

    return make


def finished_dropped(estimator):
    """Finished episodes leave the denominators."""

    def make(problem):
        real, data = estimator(problem), problem.dataset

        def drop(start, columns):
            alive = np.arange(data.horizon) < data.lengths[start : start + len(columns), None]
            columns = columns.copy()
            columns[:, 1 : data.horizon + 1] *= alive
            return columns

        return with_columns(real, drop)

    return make


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (first_weight_one, "integer weights"),
        (first_weight_one, "duplication"),
        (finished_dropped, "padding"),
        (finished_dropped, "shift"),
    ],
)
def test_law_catches(mutant, law):
    real = MODES["wdr-given"]
    LAWS[law](on(real))
    with pytest.raises(AssertionError):
        LAWS[law](on(mutant(real)))


@pytest.mark.parametrize(
    ("mutant", "values"),
    # Without the finished episodes a true q̂ still leaves nothing to correct: it takes a wrong one to tell.
    [(first_weight_one, wrong_values), (first_weight_one, true_values), (finished_dropped, wrong_values)],
)
def test_enumeration_catches(mutant, values):
    real = WDR(values(EARLY))
    laws.law_enumeration(on(real, policy_of(EARLY)), EARLY)
    with pytest.raises(AssertionError):
        laws.law_enumeration(on(mutant(real), policy_of(EARLY)), EARLY)


def test_first_weight_one_returns_n_values():
    """About n·V."""
    behavior = TabularPolicy([[EARLY.behavior(s, t) for s in range(2)] for t in range(EARLY.horizon)])
    data = finite(EARLY).simulate(behavior, 2000, rng=np.random.default_rng(1))
    value = first_weight_one(WDR(true_values(EARLY)))(Problem(data, policy_of(EARLY))).estimate
    assert value / 2000 == pytest.approx(EARLY.value(EARLY.candidate), rel=0.01)


@pytest.mark.parametrize("factor", [0.5, 1.5])
def test_dropping_finished_episodes_is_not_doubly_robust(factor):
    """On the logs that show double robustness it converges elsewhere."""
    behavior = TabularPolicy([[EARLY.behavior(s, t) for s in range(2)] for t in range(EARLY.horizon)])
    data = finite(EARLY).simulate(behavior, 100_000, rng=np.random.default_rng(12))
    problem = Problem(data, policy_of(EARLY))
    real = WDR(GivenValues(factor * true_values(EARLY).q_values))
    error = standard_error(real(problem).influence())
    assert abs(real(problem).estimate - EARLY.value(EARLY.candidate)) < 4 * error
    assert abs(finished_dropped(real)(problem).estimate - EARLY.value(EARLY.candidate)) > 20 * error


# -- value functions that are not the candidate's ------------------------------------------------------------------


def maximum(q, probs, out):
    """The greedy value of a state, where the candidate's average belongs."""
    n_states, n_actions = probs.shape
    out[:n_states] = q.reshape(n_states, n_actions, -1).max(axis=1)


def maximum_values(made, weights):
    """The start distribution's average of greedy values: they are no Markov chain of the candidate's."""
    parts = []
    for rows, block in blocks(weights):
        fit = TabularFit.of(made.data, block)
        *_, (_, _, first, _) = fit.backwards()
        means = (fit.start_counts * first[:-1]).sum(axis=0) / fit.start_counts.sum(axis=0)
        parts.append(means[: rows.stop - rows.start])
    return np.concatenate(parts)


def maximise(patch):
    patch.setattr(tabular_kernels, "state_values", maximum)
    patch.setattr(PreparedTabular, "values", maximum_values)


@pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))
@pytest.mark.parametrize("estimator", [MB(TabularModel()), DR(TABULAR, fit="refit"), WDR(TABULAR, fit="shared")])
def test_maximising_is_caught(estimator, mdp, monkeypatch):
    make = on(estimator, policy_of(mdp))
    laws.law_enumeration(make, mdp)
    maximise(monkeypatch)
    with pytest.raises(AssertionError):
        laws.law_enumeration(make, mdp)


def test_maximising_is_caught_by_the_slow_definition(monkeypatch):
    ones = [1.0] * len(EPISODES)
    for mode in ("mb-tabular", "dr-shared", "wdr-cross"):
        expected = slow(mode, EPISODES, ones)
        laws.same(on(MODES[mode])(Problem(DATA)).estimate, expected)
        with monkeypatch.context() as patch:
            maximise(patch)
            mutant = on(MODES[mode])(Problem(DATA)).estimate
        assert abs(mutant - expected) > 0.01


@dataclass(frozen=True)
class OtherStateValues:
    """A model whose v̂ is the average of its q̂ under another policy: the one that made the logs."""

    name = "other"
    model: object
    other: TabularPolicy

    def prepare(self, problem, *, anchor):
        right = self.model.prepare(problem, anchor=anchor)
        wrong = self.model.prepare(Problem(problem.dataset, self.other), anchor=anchor)
        return Mixed(right, wrong)


@dataclass(frozen=True)
class Mixed:
    right: object
    wrong: object

    @property
    def n_trajectories(self):
        return self.right.n_trajectories

    def control_variates(self, weights):
        return self.right.control_variates(weights)[0], self.wrong.control_variates(weights)[1]


@pytest.mark.parametrize("mdp", mdps(), ids=lambda mdp: mdp.name.replace(" ", "-"))
@pytest.mark.parametrize("cls", [DR, WDR])
def test_state_values_of_another_policy_are_caught(cls, mdp):
    behavior = TabularPolicy([[mdp.behavior(s, t) for s in range(2)] for t in range(mdp.horizon)])
    for model in (wrong_values(mdp), true_values(mdp), TABULAR):
        laws.law_enumeration(on(cls(model, fit="shared"), policy_of(mdp)), mdp)
        with pytest.raises(AssertionError):
            laws.law_enumeration(on(cls(OtherStateValues(model, behavior), fit="shared"), policy_of(mdp)), mdp)
