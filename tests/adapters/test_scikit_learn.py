"""Classifiers: columns follow ``classes_``, whatever the classes are called."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.multioutput import MultiOutputClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import tightrope
from tests.adapters.foreign import inverse, logs
from tightrope import PolicyError
from tightrope.base.policy import Actor, DiscretePolicy, as_policy

RNG = np.random.default_rng(0)
STATES = RNG.normal(size=(40, 3))
CHOICE = np.arange(40) % 3
TIMES = np.arange(40) % 4
CLASSES = {"contiguous": [0, 1, 2], "gaps": [7, 2, 5], "text": ["stay", "left", "right"], "floats": [0.0, 3.0, 1.0]}
MODELS = {
    "logistic": LogisticRegression,
    "pipeline": lambda: make_pipeline(StandardScaler(), LogisticRegression()),
    "forest": lambda: RandomForestClassifier(5, random_state=0),
}


def fitted(model="logistic", classes="contiguous"):
    names = np.array(CLASSES[classes])[CHOICE]
    return MODELS[model]().fit(STATES, names), names


@pytest.mark.parametrize("classes", CLASSES)
@pytest.mark.parametrize("model", MODELS)
def test_log_probabilities_are_the_classifiers_own(model, classes):
    classifier, actions = fitted(model, classes)
    logged = actions.astype(int) if classes == "floats" else actions
    own = classifier.predict_proba(STATES)
    column = [list(classifier.classes_).index(action) for action in actions]
    with np.errstate(divide="ignore"):
        expected = np.log(own[np.arange(40), column])
    np.testing.assert_allclose(as_policy(classifier).log_prob(STATES, logged, TIMES), expected, atol=1e-12)


def test_probabilities_are_listed_by_action_number():
    classifier, _ = fitted("logistic", "gaps")
    policy = as_policy(classifier)
    assert isinstance(policy, DiscretePolicy)
    table = policy.probs(STATES, TIMES)
    assert table.shape == (40, 8)
    np.testing.assert_allclose(table[:, [2, 5, 7]], classifier.predict_proba(STATES), atol=1e-12)
    assert (table[:, [0, 1, 3, 4, 6]] == 0).all()


@pytest.mark.parametrize("classes", ["gaps", "text"])
def test_it_acts_by_inversion(classes):
    classifier, _ = fitted("logistic", classes)
    policy, uniforms = as_policy(classifier), RNG.random((40, 1))
    assert isinstance(policy, Actor)
    own = classifier.predict_proba(STATES)
    expected = [classifier.classes_[inverse(row, u)] for row, u in zip(own, uniforms[:, 0], strict=True)]
    assert policy.act(STATES, TIMES, uniforms).tolist() == expected


def test_text_actions_list_no_numbers():
    assert not isinstance(as_policy(fitted("logistic", "text")[0]), DiscretePolicy)


@pytest.mark.parametrize("classes", ["contiguous", "gaps", "text"])
def test_it_evaluates_logs(classes):
    classifier, actions = fitted("logistic", classes)
    found = tightrope.estimate(logs(STATES, actions), classifier, estimator="is")
    column = [list(classifier.classes_).index(action) for action in actions]
    ratio = 2 * classifier.predict_proba(STATES)[np.arange(40), column]
    returns = np.arange(40.0).reshape(10, 4).sum(axis=1)
    assert found == pytest.approx(np.mean(ratio.reshape(10, 4).prod(axis=1) * returns))


def refused(classifier, message, states=STATES, actions=CHOICE):
    with pytest.raises(PolicyError, match=message):
        tightrope.estimate(logs(states, actions), classifier)


def test_states_of_another_width():
    refused(fitted()[0], r"LogisticRegression was fitted to; the logs hold 2", STATES[:, :2])


def test_actions_outside_its_classes():
    other = CHOICE.copy()
    other[5] = 3
    refused(
        fitted()[0],
        r"action must be one of the policy's actions \(0, 1, 2\); got 3 \(at episode 1, step 1\)",
        STATES,
        other,
    )


def test_text_against_numbers():
    refused(fitted("logistic", "text")[0], r"one of left, right, stay \(<U5\) per step .*; the logs hold int64")
    refused(fitted()[0], "the logs hold float64", STATES, CHOICE + 0.5)


def test_classifiers_that_are_no_policy():
    with pytest.raises(PolicyError, match="LogisticRegression has no classes_: it is not fitted"):
        as_policy(LogisticRegression())
    several = MultiOutputClassifier(LogisticRegression()).fit(STATES, np.stack([CHOICE, CHOICE], axis=1))
    with pytest.raises(PolicyError, match="predicts several labels"):
        as_policy(several)
