"""The same candidate (or behaviour policy) in every form that is taken as one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.fuzz.questions import Gaussian, Question, Rng, Softmax
from tightrope import (
    CallablePolicy,
    DeterministicPolicy,
    GaussianPolicy,
    MixturePolicy,
    StatePolicy,
    TabularPolicy,
    softened,
)

Form = tuple[str, Any, bool, bool]  # its name, the object, whether it gives the same bits, whether it can be modelled


@dataclass(frozen=True)
class LogProbs:
    """Somebody's own class, with the least that is asked for."""

    log: Callable[[Any, Any, Any], Any]

    def log_prob(self, states: Any, actions: Any, t: Any) -> Any:
        return self.log(states, actions, t)


@dataclass(frozen=True)
class Listed(LogProbs):
    """The same, listing its probabilities too."""

    rows: Callable[[Any, Any], Any]

    def probs(self, states: Any, t: Any) -> Any:
        return self.rows(states, t)


def plain(question: Question, policy: Any) -> Any:
    """The form that others are compared with; None: as logged."""
    return policy if isinstance(policy, np.ndarray) else None


def random_form(rng: Rng, question: Question, policy: Any) -> Form:
    """One of the forms of a policy."""
    if isinstance(policy, Gaussian):
        return _gaussian(rng, policy)
    if isinstance(policy, Softmax):
        return _softmax(rng, policy)
    return _table(rng, question, policy)


def _gaussian(rng: Rng, policy: Gaussian) -> Form:
    def mean(states: Any, t: Any) -> Any:
        return policy.mean(states)

    def densities(states: Any, actions: Any, t: Any) -> Any:
        rows = zip(states.reshape(len(states), -1), actions.reshape(len(actions), -1), strict=True)
        return np.array([policy.density(s, a) for s, a in rows])

    made: list[Form] = [
        ("GaussianPolicy", GaussianPolicy(mean, policy.covariance), False, False),
        ("function (s, a, t)", densities, True, False),
        ("log_prob", LogProbs(lambda s, a, t: np.log(densities(s, a, t))), True, False),
        ("mixture of one", MixturePolicy([GaussianPolicy(mean, policy.covariance)], [1.0]), False, False),
    ]
    return made[int(rng.integers(len(made)))]


def _softmax(rng: Rng, policy: Softmax) -> Form:
    def rows(states: Any, t: Any = None) -> Any:
        return policy.probs(states)

    def chosen(states: Any, actions: Any, t: Any) -> Any:
        return rows(states)[np.arange(len(states)), actions]

    def logs(states: Any, actions: Any, t: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(chosen(states, actions, t))

    def scores(states: Any, t: Any) -> Any:
        return np.where(policy.never, -np.inf, np.asarray(states) @ policy.slope.T)

    made: list[Form] = [
        ("function (s, a, t)", chosen, False, False),
        ("CallablePolicy of logs", CallablePolicy(logs, log=True), False, False),
        ("function (s)", lambda states: rows(states), False, False),
        ("function (s, t)", lambda states, t: rows(states), False, False),
        ("StatePolicy of logits", StatePolicy(scores, output="logits"), False, False),
        ("log_prob and probs", Listed(logs, rows), False, False),
    ]
    return made[int(rng.integers(len(made)))]


def _table(rng: Rng, question: Question, table: np.ndarray) -> Form:
    stationary = bool((table == table[0]).all())

    def rows(states: Any, t: Any) -> Any:
        return table[t, states]

    def chosen(states: Any, actions: Any, t: Any) -> Any:
        return table[t, states, actions]

    def logs(states: Any, actions: Any, t: Any) -> Any:
        with np.errstate(divide="ignore"):
            return np.log(chosen(states, actions, t))

    one = table[0] if stationary else table
    fixed = one.copy(order="F")
    fixed.flags.writeable = False
    longer = np.concatenate([table, table[-1:], table[:1]])
    made: list[Form] = [
        ("table", one, True, True),
        ("table, Fortran order, read-only", fixed, True, True),
        ("table of more times and states", np.concatenate([longer, longer[:, :1]], axis=1), True, True),
        ("table, strided", np.repeat(table, 2, axis=2)[:, :, ::2], True, True),
        ("TabularPolicy of lists", TabularPolicy(one.tolist()), True, True),
        ("function (s, a, t)", chosen, True, False),
        ("CallablePolicy of logs", CallablePolicy(logs, log=True), True, False),
        ("log_prob", LogProbs(logs), True, False),
        ("log_prob and probs", Listed(logs, rows), True, True),
        ("function (s, t)", lambda states, t: rows(states, t), False, True),
        ("mixture of one", softened(TabularPolicy(table), epsilon=0.0, n_actions=table.shape[2]), True, True),
    ]
    if stationary:
        made.append(("function (s)", lambda states: table[0][states], False, True))
    if (one == one.astype(np.float32)).all():
        made.append(("table of float32", one.astype(np.float32), True, True))
    if ((table == 0) | (table == 1)).all():
        made.append(("table of whole numbers", one.astype(np.int64), True, True))
        choose = table.argmax(axis=2)
        always = DeterministicPolicy(lambda states, t: choose[t, states], table.shape[2])
        made += [("DeterministicPolicy", always, True, True)] * 3
    return made[int(rng.integers(len(made)))]
