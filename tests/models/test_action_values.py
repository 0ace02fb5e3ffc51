"""q̂ of all actions: what slow counts say."""

from __future__ import annotations

import numpy as np
import pytest

from tests.laws.laws import same
from tests.laws.test_models import TABLE, candidate, with_finals
from tests.model_oracle import arbitrary, counted, values
from tightrope import TabularPolicy
from tightrope.base import folder
from tightrope.base.problem import Problem
from tightrope.models import GivenValues, TabularModel
from tightrope.models.base import ActionValuedModel

HORIZON, STATES, DISCOUNT = 6, 3, 0.9
POLICY = TabularPolicy([[candidate(s, t) for s in range(STATES + 1)] for t in range(HORIZON)])
EPISODES = arbitrary(12, HORIZON, STATES, candidate, seed=4)
PROBLEM = Problem(with_finals(EPISODES, horizon=HORIZON, discount=DISCOUNT), POLICY)


@pytest.fixture(params=[1 << 18, 7], autouse=True)
def piece(request, monkeypatch):
    """Steps that are told together: all, or an episode or two (a tabular model takes at least horizon · states)."""
    monkeypatch.setattr(folder, "PART", request.param)


def told(prepared, weights, wanted):
    """The table of each row, put together; every episode wanted is told once and in its place."""
    tables = [[np.empty((0, 2))] for _ in wanted]
    places = [0] * len(wanted)
    for row, some, table in prepared.action_values(weights, wanted):
        assert some.start == places[row]
        places[row] = some.stop
        tables[row].append(table)
    assert places == [len(episodes) for episodes in wanted]
    return [np.concatenate(parts) for parts in tables]


@pytest.mark.parametrize("unseen", ["worst", "self-loop", "terminate"])
def test_the_tabular_model(unseen):
    """More rows than are fitted at once, one of them without any weight, episodes in any order."""
    rng = np.random.default_rng(0)
    weights = rng.choice([0.0, 1.0, 2.5], (11, 12), p=[0.5, 0.3, 0.2])
    weights[3] = 0.0
    wanted = [rng.permutation(12)[: rng.integers(0, 6)] for _ in weights]
    prepared = TabularModel(unseen=unseen, unseen_reward=-1.7).prepare(PROBLEM, anchor="low")
    assert isinstance(prepared, ActionValuedModel)
    for row, episodes, found in zip(weights, wanted, told(prepared, weights, wanted), strict=True):
        steps = [(s, t) for i in episodes for t, s in enumerate(EPISODES[i].states)]
        assert found.shape == (len(steps), 2)
        if not row.any():
            assert not found.any()
            continue
        model = counted(EPISODES, HORIZON, row.tolist(), finals=True)
        q = values(model, candidate, HORIZON, DISCOUNT, unseen, -1.7)[1]
        same(found, np.array([[q(s, a, t) for a in range(2)] for s, t in steps]).reshape(-1, 2), 1e-11)


def test_values_that_were_given():
    prepared = GivenValues(TABLE).prepare(PROBLEM, anchor="low")
    assert isinstance(prepared, ActionValuedModel)
    wanted = [np.array([5, 2]), np.array([0])]
    for episodes, found in zip(wanted, told(prepared, np.zeros((2, 12)), wanted), strict=True):
        steps = [(s, t) for i in episodes for t, s in enumerate(EPISODES[i].states)]
        np.testing.assert_array_equal(found, [TABLE[t, s] for s, t in steps])
