"""Many rows of weights go through a tabular model in one call: the same bits as row by row, and no waiting threads."""

from __future__ import annotations

import sys
import tracemalloc

import numpy as np
import pytest

from tightrope import TabularPolicy
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import MB
from tightrope.models import TabularModel

PROBLEM = small("bonus")
DATA = PROBLEM.logs(40, rng=np.random.default_rng(3))
TABLE = PROBLEM.candidate.table
TIMES = np.linspace(0.2, 0.9, DATA.horizon)[:, None, None]
POLICIES = {
    "by state": PROBLEM.candidate,
    "by time": TabularPolicy(TIMES * TABLE + (1 - TIMES) / TABLE.shape[-1]),
}
SETTINGS = {
    "counts": {},
    "known rewards": {"rewards": PROBLEM.mdp.rewards[..., 0] + 0.3},
    "smoothed": {"smoothing": 2.0},
    "worst": {"unseen": "worst"},
    "terminate": {"unseen": "terminate"},
}


def prepared(policy="by state", **settings):
    return TabularModel(**settings).prepare(Problem(DATA, POLICIES[policy]), anchor="low")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", SETTINGS)
def test_many_rows_at_once_are_each_row_alone(name, policy):
    """To the bit, wherever a row stands in its block. Without any weight there is nothing; the next row is whole."""
    made = prepared(policy, **SETTINGS[name])
    weights = np.random.default_rng(0).choice([0.0, 0.3, 1.0, 2.7], size=(21, 40))
    weights[[4, 17]] = 0.0
    together = made.values(weights), made.influences(weights)
    for place, row in enumerate(weights):
        np.testing.assert_array_equal(together[0][place], made.values(row[None])[0])
        np.testing.assert_array_equal(together[1][place], made.influences(row[None])[0])
    assert np.flatnonzero(np.isnan(together[0])).tolist() == [4, 17]


def test_weights_may_lie_in_memory_as_they_like():
    made = prepared()
    weights = np.random.default_rng(0).integers(0, 3, size=(11, 40))
    expected = made.values(weights.astype(np.float64)), made.influences(weights.astype(np.float64))
    locked = weights.astype(np.float64)
    locked.flags.writeable = False
    wide = np.repeat(weights, 2, axis=1).astype(np.float64)
    for other in (weights, locked, np.asfortranarray(locked), wide[:, ::2]):
        np.testing.assert_array_equal(made.values(other), expected[0])
        np.testing.assert_array_equal(made.influences(other), expected[1])


@pytest.mark.parametrize("question", ["values", "influences"])
def test_python_does_as_much_for_many_rows_as_for_few(question):
    """While Python works for one thread, the others wait."""
    ask = getattr(prepared(), question)

    def calls(rows):
        count, weights = 0, np.ones((rows, 40))

        def watch(_frame, event, _argument):
            nonlocal count
            count += event in ("call", "c_call")

        sys.setprofile(watch)
        try:
            ask(weights)
        finally:
            sys.setprofile(None)
        return count

    calls(8)  # compiles, and prepares what is kept
    assert calls(256) == calls(8) > 0


def test_standard_errors_take_no_room_for_every_row_and_episode():
    """Slopes are needed for a few rows at a time."""
    statistic = MB(TabularModel())(Problem(PROBLEM.logs(4000, rng=np.random.default_rng(0)), PROBLEM.candidate))
    weights = np.random.default_rng(1).integers(0, 3, size=(800, 4000)).astype(np.float64)
    expected = [
        np.sqrt(row @ statistic.model.influences(row[None])[0] ** 2 * 4000 / 3999) for row in weights[[0, 7, 8, 799]]
    ]
    tracemalloc.start()
    try:
        errors = statistic.standard_errors(weights, [4000])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < weights.nbytes / 2
    np.testing.assert_allclose(errors[[0, 7, 8, 799]], expected, rtol=1e-12)
