"""One trial: a data set of a domain, and every method's bounds on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from tightrope.base.errors import TightropeError
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound, Side
from tightrope.base.warnings import codes_of
from tightrope.behaviors import behavior as find_behavior
from tightrope.bounds import method as find_bound
from tightrope.estimators import Estimator
from tightrope.estimators.gain import gain
from tightrope.evaluation.case import Answer, Case
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.recommend import Question
from tightrope.evaluation.sentences import Recommendation, flaw
from tightrope.evaluation.settings import Settings
from tightrope.evaluation.work import answers_of
from tightrope.studies.study import Method, Study, prepared

Result = Answer | Exception
ADVICE = "advice"  # the label of the recommended bound (advice/believed) and of the exact one beside it


class Trial(NamedTuple):
    """The unit of work: one data set."""

    n: int
    number: int

    def __str__(self) -> str:
        return f"trial {self.number} with n = {self.n}"


@dataclass(frozen=True)
class Row:
    """The result of one line of the tables, for one side and one data set."""

    label: str  # of the method
    bound: str
    side: Side
    value: float  # NaN where no bound could be computed; ``error`` says why
    estimate: float
    standard_error: float
    undefined: int  # replicates
    guarantee: str
    warnings: str  # their codes, separated by spaces
    error: str
    pair: str = ""  # of a recommended bound: which estimators and methods the rule used


@dataclass(frozen=True)
class Outcome:
    """All rows of a trial, and what they cost."""

    rows: tuple[Row, ...]
    cpu_seconds: float


def run_trial(study: Study, trial: Trial) -> Outcome:
    """Draw the logs and bound the candidate's value by every method that runs at this size.

    The data and the weights are functions of the study's seed, the domain's name, n and the trial's number alone.
    """
    started = time.process_time()
    domain, methods = prepared(study)
    entropy = [study.seed, *domain.name.encode(), trial.n, trial.number]
    data, weights = np.random.SeedSequence(entropy).spawn(2)
    logs = domain.logs(trial.n, rng=np.random.default_rng(data))
    settings = Settings(
        confidence=study.confidence,
        n_resamples=study.n_resamples,
        max_ratio=domain.max_ratio,
        seed=weights,
        n_jobs=1,  # the trials themselves run side by side
    )
    due = [one for one in methods if one.runs(trial.n, trial.number)]
    if study.behavior != "logged":
        logs = replace(logs, behavior_log_probs=None, behavior=None)
    # Logs without states hold the candidate's probabilities instead.
    candidate = None if logs.states is None else domain.candidate
    problem = Problem(logs, candidate, find_behavior(study.behavior, logs))
    rows: list[Row] = []
    for side in study.sides if due or study.advice else ():
        rows += _rows(due, side, _results(problem, due, side, settings, study.about_what))
        if study.advice:
            rows += _advised(problem, side, settings, study.about_what)
    return Outcome(tuple(rows), time.process_time() - started)


def _results(problem: Problem, methods: Sequence[Method], side: Side, settings: Settings, about: About) -> list[Result]:
    """One bound or the reason why there is none for each line, all bootstraps on the same weights."""
    of = gain if about == "gain" else _itself
    pairs = [(of(one.estimator), find_bound(name)) for one in methods for name in one.bounds]
    try:
        return list(answers_of(Case(problem, overlap(problem), side, settings, check_models=False), pairs))
    except Exception as error:  # whatever it is, it is this data set's result, told in its row
        if len(methods) == 1:
            return [error] * len(pairs)
    # One of them fails and would fail all: run each by itself, on the same weights, so that the others keep their rows.
    return [result for one in methods for result in _results(problem, [one], side, settings, about)]


def _itself(estimator: Estimator) -> Estimator:
    return estimator


def _advised(problem: Problem, side: Side, settings: Settings, about: About) -> list[Row]:
    """The bound that ``evaluate`` recommends and the exact one beside it, as its rule has them."""
    question = Question(problem, overlap(problem), None, settings)
    recommendation = question.answer(side, about)
    if recommendation.bound is not None and flaw(recommendation.bound) is not None:
        recommendation = replace(recommendation, bound=None)
    exact = question.recommend(side, about, strict=True)
    return [_recommended(name, side, one) for name, one in (("believed", recommendation), ("exact", exact))]


def _recommended(name: str, side: Side, recommendation: Recommendation) -> Row:
    """Where the logs cannot answer, nothing is wrong: an infinite bound."""
    if recommendation.bound is None:
        return Row(ADVICE, name, side, -np.inf if side == "lower" else np.inf, np.nan, np.nan, 0, "", "", "")
    row = _bound_row(ADVICE, name, recommendation.bound)
    return replace(row, pair=f"{recommendation.bound.estimator}/{recommendation.bound.method}")


def _rows(methods: Sequence[Method], side: Side, results: Sequence[Result]) -> list[Row]:
    lines = [(one.label, name) for one in methods for name in one.bounds]
    return [_row(label, name, side, result) for (label, name), result in zip(lines, results, strict=True)]


def _row(label: str, bound: str, side: Side, result: Result) -> Row:
    if isinstance(result, Answer):
        return _bound_row(label, bound, result.bound)
    reason = str(result) if isinstance(result, TightropeError) else f"{type(result).__name__}: {result}"
    return Row(label, bound, side, np.nan, np.nan, np.nan, 0, "", "", reason)


def _bound_row(label: str, name: str, bound: Bound) -> Row:
    error = np.nan if bound.standard_error is None else float(bound.standard_error)
    numbers = (float(bound.value), float(bound.estimate), error, bound.n_undefined)
    return Row(label, name, bound.side, *numbers, bound.guarantee, " ".join(codes_of(bound.warnings)), "")
