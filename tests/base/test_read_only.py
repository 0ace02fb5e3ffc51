"""Somebody else's code reads the logs and cannot change them: policies, models, features, classifiers, regressors."""

from __future__ import annotations

import sys
from contextlib import suppress

import numpy as np
import pytest
import torch
from sklearn.linear_model import LinearRegression, LogisticRegression

import tightrope
from tests.logs import POLICY, columns, dataset
from tests.models import systems
from tightrope import (
    DeterministicControl,
    DeterministicPolicy,
    GaussianPolicy,
    MixturePolicy,
    PolicyError,
    SoftmaxPolicy,
    TabularPolicy,
)
from tightrope.behaviors import ClassifierBehavior, GaussianRegression, LogisticBehavior
from tightrope.estimators import MB
from tightrope.models import PolynomialModel, RegressorModel, SimulatorModel


def spoil(*arrays):
    """Overwrite whatever can be overwritten, as a function that works in place does, by NumPy or by torch."""
    for array in arrays:
        if isinstance(array, np.ndarray) and array.dtype.kind in "if" and array.size:
            with suppress(ValueError):
                array[...] = 0
            if "torch" in sys.modules and array.flags.writeable:
                torch.as_tensor(array).zero_()


def honest(function):
    """The function, on copies: these are laid out differently, which last digits depend on."""
    return lambda *arrays: function(*(array.copy() for array in arrays))


def vandal(function):
    """The same, but it spoils what it was given once it has read it."""

    def answer(*arrays):
        result = honest(function)(*arrays)
        spoil(*arrays)
        return result

    return answer


class VandalPolicy:
    """A policy object of the user's own."""

    def __init__(self, wrap):
        self.log_prob = wrap(lambda s, a, t: np.log(POLICY[s, a]))
        self.probs = wrap(lambda s, t: POLICY[s])


class Learner(LinearRegression):
    """A regressor whose every call goes through a wrapper."""

    def __init__(self, wrap=honest):
        super().__init__()
        self.wrap = wrap

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        self.wrap(super().fit)(X, y, sample_weight)
        return self

    def predict(self, X):  # noqa: N803
        return self.wrap(super().predict)(X)


class Classifier(LogisticRegression):
    """A classifier likewise."""

    def __init__(self, wrap=honest):
        super().__init__()
        self.wrap = wrap

    def fit(self, X, y, sample_weight=None):  # noqa: N803
        self.wrap(super().fit)(X, y, sample_weight)
        return self

    def predict_proba(self, X):  # noqa: N803
        return self.wrap(super().predict_proba)(X)


def table(states, t):
    return POLICY[states]


def shown(result):
    return [(bound.estimator, bound.method, bound.value, bound.estimate) for bound in result.bounds]


DISCRETE = {
    "function of actions": lambda wrap: wrap(lambda states, actions, t: POLICY[states, actions]),
    "function of states": lambda wrap: _two(wrap(table)),
    "object": VandalPolicy,
    "softmax": lambda wrap: SoftmaxPolicy(wrap(lambda s, t: np.log(POLICY[s]))),
    "deterministic": lambda wrap: DeterministicPolicy(wrap(lambda s, t: 1 - s), 2),
    "mixture": lambda wrap: MixturePolicy(
        [VandalPolicy(wrap), TabularPolicy(POLICY), _two(wrap(table))], [0.5, 0.3, 0.2]
    ),
}


def _two(function):
    return lambda states, t: function(states, t)


@pytest.fixture(params=["torch", "numpy"])
def loaded(request, monkeypatch):
    """With torch loaded, whose tensors write to read-only arrays, and without."""
    if request.param == "numpy":
        monkeypatch.delitem(sys.modules, "torch")


def same(data, make, **options):
    """A vandal gives what the honest function gives, and leaves the logs as they were."""
    before = {name: np.array(getattr(data, name)) for name in FIELDS if getattr(data, name) is not None}
    expected, *found = (shown(tightrope.evaluate(data, make(wrap), **options)) for wrap in (honest, vandal, vandal))
    assert found == [expected, expected]
    for name, values in before.items():
        np.testing.assert_array_equal(getattr(data, name), values)


FIELDS = (
    "rewards",
    "states",
    "actions",
    "final_states",
    "times",
    "lengths",
    "offsets",
    "behavior_log_probs",
    "returns",
)


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("kind", DISCRETE)
def test_policies_cannot_change_the_logs(kind):
    data = tightrope.read(columns(next_state=np.zeros(9, dtype=int)), reward_range=(-1, 2), horizon=3)
    same(data, DISCRETE[kind], n_resamples=40)


CONTINUOUS = {
    "gaussian": lambda wrap: GaussianPolicy(wrap(lambda s, t: s @ systems.GAIN + 0.1), [[0.25]]),
    "control": lambda wrap: DeterministicControl(wrap(lambda s, t: s @ systems.GAIN)),
}
MODELS = {
    "polynomial": lambda wrap: PolynomialModel(
        features=wrap(lambda s, a: np.column_stack([np.ones(len(s)), s, a])),
        reward=wrap(systems.linear_reward),
        terminated=wrap(lambda s, a, after, t: np.zeros(len(s))),
    ),
    "simulator": lambda wrap: SimulatorModel(wrap(lambda s, a, noise: 0.5 * s), reward=wrap(systems.linear_reward)),
    "regressor": lambda wrap: RegressorModel(Learner(wrap)),
}


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("kind", CONTINUOUS)
@pytest.mark.parametrize("model", MODELS)
def test_models_and_their_policies_cannot_change_the_logs(kind, model):
    data = systems.logs(6, 3)
    before = [np.array(getattr(data, name)) for name in ("states", "actions", "rewards", "final_states", "times")]
    weights = np.array([[1.0] * 6, [2.0, 0.0, 1.0, 1.0, 0.0, 2.0]])
    values = []
    for wrap in (honest, vandal, vandal):
        settings = MODELS[model](wrap)
        problem = tightrope.base.problem.Problem(data, CONTINUOUS[kind](wrap))
        prepared = settings.prepare(problem, anchor="low")
        values.append([prepared.values(weights), *prepared.control_variates(weights[1])])
    for other in values[1:]:
        for one, two in zip(values[0], other, strict=True):
            np.testing.assert_array_equal(one, two)
    for name, kept in zip(("states", "actions", "rewards", "final_states", "times"), before, strict=True):
        np.testing.assert_array_equal(getattr(data, name), kept)
    assert np.isfinite(tightrope.estimate(data, CONTINUOUS[kind](vandal), estimator=MB(MODELS[model](vandal))))


@pytest.mark.usefixtures("loaded")
@pytest.mark.parametrize("kind", ["features", "regression", "classifier"])
def test_estimates_of_the_behaviour_policy_cannot_change_the_logs(kind):
    data = systems.logs(12, 3) if kind == "regression" else systems.walks(12, 3)
    made = {
        "features": lambda wrap: LogisticBehavior(wrap(lambda s, t: np.column_stack([np.ones(len(s)), s]))),
        "regression": lambda wrap: GaussianRegression(wrap(lambda s, t: np.column_stack([np.ones(len(s)), s]))),
        "classifier": lambda wrap: ClassifierBehavior(Classifier(wrap)),
    }[kind]
    policy = systems.CANDIDATE if kind == "regression" else systems.UP
    before, values = np.array(data.states), []
    for wrap in (honest, vandal, vandal):
        value = tightrope.statistic(data, policy, estimator="wis", behavior=made(wrap))
        values.append([value.estimate, *value.leave_one_out()])
    assert values[1:] == values[:1] * 2
    np.testing.assert_array_equal(data.states, before)


def test_every_array_of_a_dataset_is_read_only():
    data = tightrope.read(columns(next_state=np.zeros(9, dtype=int), eval_prob=np.full(9, 0.5)))
    arrays = {name: getattr(data, name) for name in dir(data) if isinstance(getattr(data, name, None), np.ndarray)}
    assert {"states", "actions", "rewards", "times", "returns", "episode_ids", "eval_log_probs"} <= arrays.keys()
    assert [name for name, array in arrays.items() if array.flags.writeable] == []


def test_writing_to_the_logs_is_an_error_that_says_so(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch")

    def in_place(states, actions, t):
        states += 1
        return np.full(len(states), 0.5)

    with pytest.raises(PolicyError, match="read-only"):
        tightrope.estimate(dataset(), in_place)


def test_a_table_is_the_policys_own():
    mine = POLICY.copy()
    policy = TabularPolicy(mine)
    mine[:] = [0.0, 1.0]
    np.testing.assert_array_equal(policy.table, POLICY)
    with pytest.raises(ValueError, match="read-only"):
        policy.table[0, 0] = 1.0
    spread = np.eye(1)
    gaussian = GaussianPolicy(lambda s, t: s, spread)
    spread[:] = 4.0
    assert gaussian.covariance.tolist() == [[1.0]]
