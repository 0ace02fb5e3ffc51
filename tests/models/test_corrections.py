"""DR and WDR refitted for many rows at once: what one row after the other would give."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws.laws import same
from tests.laws.test_models import DATA, POLICY, TABULAR, with_finals
from tests.model_oracle import arbitrary
from tightrope import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.estimators import DR, WDR
from tightrope.estimators.refit import Refitted, RefittedAtOnce
from tightrope.models import TabularModel


class OneByOne:
    """The same model without its batches."""

    name = "one by one"

    def __init__(self, model):
        self.model = model

    def prepare(self, problem, *, anchor):
        prepared = self.model.prepare(problem, anchor=anchor)
        self.n_trajectories, self.control_variates = prepared.n_trajectories, prepared.control_variates
        return self


def weight_rows(n, rows=19):
    weights = np.random.default_rng(n).choice([0.0, 0.4, 1.0, 3.0], (rows, n))
    weights[4] = 0.0
    return weights


def steady(state, t):
    return [0.3, 0.7] if state % 2 else [0.8, 0.2]


@pytest.mark.parametrize("discount", [0.0, 0.9, 1.0])
@pytest.mark.parametrize("unseen", ["worst", "self-loop", "terminate"])
@pytest.mark.parametrize("cls", [DR, WDR])
def test_at_once_and_one_by_one(cls, unseen, discount):
    data = with_finals(arbitrary(11, 5, 3, steady, seed=8), horizon=5, discount=discount)
    problem = Problem(data, TabularPolicy([steady(s, 0) for s in range(3)]))
    model = TabularModel(unseen=unseen, unseen_reward=-1.7)
    at_once = cls(model, fit="refit")(problem)
    one_by_one = cls(OneByOne(model), fit="refit")(problem)
    assert isinstance(at_once.model, RefittedAtOnce)
    assert isinstance(one_by_one.model, Refitted)
    weights = weight_rows(11)
    same(at_once(weights), one_by_one(weights))
    assert np.isnan(at_once(weights)).tolist() == [not row.any() for row in weights]


@pytest.mark.parametrize("cls", [DR, WDR])
def test_a_batch_has_the_bits_of_its_rows(cls):
    statistic = cls(TABULAR, fit="refit")(Problem(DATA, POLICY))
    weights = weight_rows(DATA.n_trajectories)
    np.testing.assert_array_equal(statistic(weights), [statistic(row) for row in weights])
