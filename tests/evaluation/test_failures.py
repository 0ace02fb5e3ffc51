"""An estimator that runs out of memory or of numbers costs its own bounds, with a reason, and nobody else's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import tightrope
from tightrope import BoundError
from tightrope.domains import small
from tightrope.estimators import MB, WIS, Estimator
from tightrope.models import TabularModel

FAILURES = {
    "memory": (MemoryError("Unable to allocate 149. GiB"), "not enough memory for it: Unable to allocate 149. GiB"),
    "bare memory": (MemoryError(), "not enough memory for it: none is left"),
    "algebra": (np.linalg.LinAlgError("Singular matrix"), "LinAlgError: Singular matrix"),
    "floats": (FloatingPointError("underflow"), "FloatingPointError: underflow"),
    "overflow": (OverflowError("too large"), "OverflowError: too large"),
    "division": (ZeroDivisionError("division by zero"), "ZeroDivisionError: division by zero"),
}
STAGES = ["fit", "estimate", "replicates", "leave_one_out", "influence", "standard_errors"]


@dataclass(frozen=True)
class Fails(Estimator):
    """WIS by rows of weights, but for one thing that it fails at."""

    stage: str
    failure: Any
    name: str = "fails"

    def __call__(self, problem):
        if self.stage == "fit":
            raise self.failure
        return Failing(WIS()(problem), self)


class Failing:
    def __init__(self, made, settings):
        self.made, self.settings, self.n_trajectories = made, settings, made.n_trajectories

    def __call__(self, weights):
        return self._answer("replicates" if np.ndim(weights) > 1 else "estimate", self.made, weights)

    def _answer(self, stage, call, *arguments):
        if self.settings.stage == stage:
            raise self.settings.failure
        return call(*arguments)

    @property
    def estimate(self):
        return self._answer("estimate", lambda: self.made.estimate)

    def influence(self):
        return self._answer("influence", self.made.influence)

    def leave_one_out(self):
        return self._answer("leave_one_out", self.made.leave_one_out)

    def standard_errors(self, weights, draws):
        return self._answer("standard_errors", lambda: np.ones(len(weights)))


@pytest.fixture(scope="module")
def problem():
    chosen = small("bonus")
    return chosen.logs(60, rng=np.random.default_rng(0)), chosen.candidate


def others(result):
    return [bound for bound in result.bounds if bound.estimator != "fails"]


@pytest.mark.parametrize("stage", STAGES)
@pytest.mark.parametrize("kind", FAILURES)
def test_a_failing_estimator_is_listed_and_the_others_stand(problem, stage, kind):
    failure, message = FAILURES[kind]
    estimators = ["is", "pdwis", "mb"]
    expected = tightrope.evaluate(*problem, estimators=estimators, n_resamples=60)
    found = tightrope.evaluate(*problem, estimators=[Fails(stage, failure), *estimators], n_resamples=60)
    assert others(found) == list(expected.bounds)  # to the bit
    skipped = {(name, method): why for name, method, why in found.skipped}
    assert ("fails", "studentized") in skipped
    assert all(message in why for (name, _), why in skipped.items() if name == "fails")
    assert found.advice == expected.advice


@pytest.mark.parametrize("kind", FAILURES)
def test_alone_it_is_an_error_of_ours(problem, kind):
    failure, message = FAILURES[kind]
    for stage in STAGES:
        method = "bca" if stage == "leave_one_out" else "studentized"
        with pytest.raises(BoundError, match=message):
            tightrope.lower_bound(*problem, estimator=Fails(stage, failure), method=method, n_resamples=60)
    with pytest.raises(BoundError, match=message):
        tightrope.estimate(*problem, estimator=Fails("estimate", failure))
    with pytest.raises(BoundError, match=message):
        tightrope.statistic(*problem, estimator=Fails("fit", failure))


@dataclass(frozen=True)
class Broken(TabularModel):
    """A model that fails when prepared, or when it is held against the logs."""

    failure: Any = None

    def prepare(self, problem, *, anchor):
        raise self.failure


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failing_model(problem, kind):
    failure, message = FAILURES[kind]
    result = tightrope.evaluate(*problem, estimators=["is", MB(Broken(failure=failure))], n_resamples=60)
    assert {bound.estimator for bound in result.bounds} == {"is"}
    assert {name for name, _, _ in result.skipped} == {"mb"}
    assert all(message in why for *_, why in result.skipped)


@pytest.mark.parametrize("kind", FAILURES)
def test_a_failing_check_of_a_model(problem, kind, monkeypatch):
    failure, message = FAILURES[kind]

    def fails(*arguments, **settings):
        raise failure

    expected = tightrope.evaluate(*problem, estimators=["is", "pdwis"], n_resamples=60)
    monkeypatch.setattr("tightrope.evaluation.case.check_model", fails)
    found = tightrope.evaluate(*problem, estimators=["is", "pdwis", "mb", "wdr"], n_resamples=60)
    assert [bound for bound in found.bounds if bound.estimator in ("is", "pdwis")] == list(expected.bounds)
    assert all(message in why for name, _, why in found.skipped)
    assert "mb" in {name for name, _, _ in found.skipped}


def test_float32_leaves_out_what_has_no_such_form(problem):
    result = tightrope.evaluate(*problem, estimators=["pdwis", "mb"], n_resamples=60, precision="float32")
    assert {bound.estimator for bound in result.bounds} >= {"pdwis"}
