"""Laws of every registered model, driven by the registry, and the mistakes that each law is there for.

A model is asked about logs that it can be fitted to: numbered states, or states of two numbers. One that rolls out is
asked with all roll-outs of every start, so that laws hold to rounding and not to a Monte Carlo error.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import pytest

from tests.models import systems
from tightrope.base.errors import DataError, PolicyError
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.models import MODELS, SmoothModel

N = 14
WALKER = small("walker")


def questions():
    """Logs and candidates of the two kinds that models are made for."""
    rng = np.random.default_rng(3)
    yield Problem(WALKER.logs(N, rng=rng), WALKER.candidate)
    yield Problem(systems.logs(N, 3, seed=2), systems.CANDIDATE)


def question_for(model):
    """The first question that the model can be fitted to."""
    for problem in questions():
        try:
            model.prepare(problem, anchor="low")
        except (DataError, PolicyError):
            continue
        return problem
    raise AssertionError(f"{model.name} can be fitted to none of the logs that the laws have")


def near(left, right):
    """Equal up to rounding."""
    np.testing.assert_allclose(left, right, rtol=1e-9, atol=1e-9 * np.abs(right).max())


def rows_of(n=N):
    rng = np.random.default_rng(5)
    return np.stack([np.ones(n), rng.integers(0, 4, n).astype(float), rng.exponential(size=n), 3.0 - np.arange(n) % 3])


def registered(name):
    model = MODELS[name]()
    plain = {
        setting: value for setting, value in systems.PLAIN.items() if setting in {one.name for one in fields(model)}
    }
    return replace(model, **plain)


def law_answers(model):
    """A value for every row of weights, finite where the row has weight and NaN where it has none."""
    problem = question_for(model)
    prepared = model.prepare(problem, anchor="low")
    assert prepared.n_trajectories == N
    values = prepared.values(np.vstack([rows_of(), np.zeros(N)]))
    assert values.shape == (5,)
    assert np.isfinite(values[:-1]).all(), values
    assert np.isnan(values[-1]), values
    q, v = prepared.control_variates(np.ones(N))
    assert q.shape == v.shape == (problem.dataset.n_steps,)
    assert np.isfinite(q).all()
    assert np.isfinite(v).all()


def law_batch(model):
    """Rows together give what each gives by itself."""
    prepared = model.prepare(question_for(model), anchor="low")
    rows = rows_of()
    alone = np.concatenate([prepared.values(row[None]) for row in rows])
    np.testing.assert_allclose(prepared.values(rows), alone, rtol=1e-11)


def law_proportions(model):
    """Only proportions of weights matter."""
    prepared = model.prepare(question_for(model), anchor="low")
    row = rows_of()[1:2]
    near(prepared.values(4.0 * row), prepared.values(row))


def law_refit(model):
    """Whole-number weights are repeats: the model of them is the one fitted to the repeated trajectories."""
    problem = question_for(model)
    weights = rows_of()[1]
    repeated = problem.dataset.take(np.repeat(np.arange(N), weights.astype(int)))
    prepared = model.prepare(problem, anchor="low")
    rebuilt = model.prepare(Problem(repeated, problem.policy), anchor="low")
    other = np.ones((1, repeated.n_trajectories))
    near(prepared.values(weights[None]), rebuilt.values(other))
    assert abs(prepared.values(weights[None])[0] - prepared.values(np.ones((1, N)))[0]) > 0  # the weights have a say


def law_order(model):
    """Which trajectory comes first does not matter."""
    problem, order = question_for(model), np.random.default_rng(1).permutation(N)
    prepared = model.prepare(problem, anchor="low")
    turned = model.prepare(Problem(problem.dataset.take(order), problem.policy), anchor="low")
    row = rows_of()[3:]
    near(turned.values(row[:, order]), prepared.values(row))


def first_steps(data, count):
    """The first steps of the episodes that go on after them, each of them earning 1; none ends."""
    longer = data.take(np.flatnonzero(data.lengths > count))
    kept = longer.times < count
    return replace(
        longer,
        offsets=np.arange(longer.n_trajectories + 1) * count,
        rewards=np.ones(kept.sum()),
        terminated=np.zeros(longer.n_trajectories, dtype=bool),
        horizon=count,
        discount=0.5,
        behavior_log_probs=None,
        eval_log_probs=None,
        states=longer.states[kept],
        actions=longer.actions[kept],
        final_states=longer.states[longer.times == count],
        reward_range=None,
        return_range=None,
    )


def law_constant_reward(model):
    """If every step earns 1 and no episode ends, the candidate is worth Σ γ^t, and so say q̂ and v̂ on the way."""
    problem, count = question_for(model), 2
    data = first_steps(problem.dataset, count)
    prepared = model.prepare(Problem(data, problem.policy), anchor="low")
    ones = np.ones(data.n_trajectories)
    to_go = np.cumsum(0.5 ** np.arange(count))[::-1][data.times]  # Σ γ^k over the steps left
    q, v = prepared.control_variates(ones)
    np.testing.assert_allclose(prepared.values(ones[None]), to_go[0], rtol=1e-6)
    np.testing.assert_allclose(q, to_go, rtol=1e-6)
    np.testing.assert_allclose(v, to_go, rtol=1e-6)


def law_units(model):
    """Rewards in other units give values in them."""
    problem = question_for(model)
    data = problem.dataset
    ranges = {"reward_range": None, "return_range": None}
    plain, scaled = (
        model.prepare(Problem(replace(data, rewards=c * data.rewards, **ranges), problem.policy), anchor="low")
        for c in (1.0, 8.0)
    )
    row = rows_of()[2:3]
    near(scaled.values(row), 8.0 * plain.values(row))


def law_slopes(model):
    """What a model says of its derivative is its derivative, and weights in proportion move nothing."""
    prepared = model.prepare(question_for(model), anchor="low")
    if not isinstance(prepared, SmoothModel):
        pytest.skip("a model that gives no derivative")
    row, step = rows_of()[3], 1e-4
    slopes = prepared.influences(row[None])[0]
    size = np.abs(slopes).max()
    for i in range(0, N, 3):
        up, down = (prepared.values((row + sign * step * (np.arange(N) == i))[None])[0] for sign in (1, -1))
        assert abs((up - down) / (2 * step) - slopes[i]) < 1e-5 * size, i
    assert abs(slopes @ row) < 1e-8 * np.abs(slopes * row).sum()


LAWS = [
    law_answers,
    law_batch,
    law_proportions,
    law_refit,
    law_order,
    law_constant_reward,
    law_units,
    law_slopes,
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("name", MODELS)
def test_model_law(name, law):
    law(registered(name))


# -- mutants -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Mutant:
    """A registered model whose prepared form is spoilt."""

    of: Any
    spoilt: Any
    name: str = "mutant"

    def prepare(self, problem, *, anchor):
        return self.spoilt(self.of.prepare(problem, anchor=anchor), problem)


class Spoilt:
    """As it is, but for what a mutant changes."""

    def __init__(self, real, problem):
        self.real, self.problem, self.n_trajectories = real, problem, real.n_trajectories

    def values(self, weights):
        return self.real.values(weights)

    def control_variates(self, weights, wanted=None):
        return self.real.control_variates(weights, wanted)

    def __getattr__(self, name):
        return getattr(self.real, name)


class Frozen(Spoilt):
    """Fitted once, to all the logs."""

    def values(self, weights):
        return np.where(weights.any(axis=1), self.real.values(np.ones((1, self.n_trajectories)))[0], np.nan)


class Zero(Spoilt):
    """Worth nothing where there is no weight."""

    def values(self, weights):
        return np.nan_to_num(self.real.values(weights))


class Together(Spoilt):
    """Rows that are fitted together."""

    def values(self, weights):
        return self.real.values(weights) + 1e-6 * weights.sum()


class Counts(Spoilt):
    """A value that grows with the total weight."""

    def values(self, weights):
        return self.real.values(weights) * (1 + 1e-6 * weights.sum(axis=1))


class First(Spoilt):
    """Starts where the first trajectory starts."""

    def values(self, weights):
        return self.real.values(weights) + 1e-3 * weights[:, 0] / np.maximum(weights.sum(axis=1), 1e-9)


class OneStepMore(Spoilt):
    """Counts one step too many."""

    def control_variates(self, weights, wanted=None):
        q, v = self.real.control_variates(weights, wanted)
        return q + 0.5 ** (self.problem.dataset.horizon - self.problem.dataset.times), v


class Last(Spoilt):
    """v̂ of a state that the step led to."""

    def control_variates(self, weights, wanted=None):
        q, v = self.real.control_variates(weights, wanted)
        return q, np.append(v[1:], 0.0)


class Shifted(Spoilt):
    """A bonus in the units of one problem."""

    def values(self, weights):
        return self.real.values(weights) + 0.1


class Steep(Spoilt):
    """Derivatives as if each trajectory counted once whatever its weight."""

    def influences(self, weights):
        return self.real.influences(weights) * weights


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (Zero, law_answers),
        (Together, law_batch),
        (Counts, law_proportions),
        (Frozen, law_refit),
        (First, law_order),
        (OneStepMore, law_constant_reward),
        (Last, law_constant_reward),
        (Shifted, law_units),
        (Steep, law_slopes),
    ],
    ids=lambda value: value.__name__,
)
@pytest.mark.parametrize("name", MODELS)
def test_model_mutant_is_caught(name, mutant, law):
    law(Mutant(registered(name), Spoilt))
    with pytest.raises(AssertionError):
        law(Mutant(registered(name), mutant))
