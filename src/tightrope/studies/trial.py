"""One trial: a data set of a domain, and every method's bounds on it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from tightrope.base.errors import TightropeError
from tightrope.base.problem import Problem
from tightrope.base.records import Side
from tightrope.base.warnings import codes_of
from tightrope.bounds import method as find_bound
from tightrope.evaluation.advice import advise
from tightrope.evaluation.case import Answer, Case
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.settings import Settings
from tightrope.evaluation.work import answers_of
from tightrope.studies.study import Method, Study, prepared

Result = Answer | Exception
ADVICE = ("advice", "believed")  # the line of the bound that is advised


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
        confidence=study.confidence, n_resamples=study.n_resamples, max_ratio=domain.max_ratio, seed=weights
    )
    due = [one for one in methods if one.runs(trial.n, trial.number)]
    problem = Problem(logs, domain.candidate)
    rows: list[Row] = []
    for side in study.sides if due else ():
        results = _results(problem, due, side, settings)
        rows += _rows(due, side, results)
        if study.advice:
            rows.append(_advised(problem, side, [result for result in results if isinstance(result, Answer)]))
    return Outcome(tuple(rows), time.process_time() - started)


def _results(problem: Problem, methods: Sequence[Method], side: Side, settings: Settings) -> list[Result]:
    """One bound or the reason why there is none for each line, all bootstraps on the same weights."""
    pairs = [(one.estimator, find_bound(name)) for one in methods for name in one.bounds]
    try:
        return list(answers_of(Case(problem, overlap(problem), side, settings, check_models=False), pairs))
    except Exception as error:  # whatever it is, it is this data set's result, told in its row
        if len(methods) == 1:
            return [error] * len(pairs)
    # One of them fails and would fail all: run each by itself, on the same weights, so that the others keep their rows.
    return [result for one in methods for result in _results(problem, [one], side, settings)]


def _advised(problem: Problem, side: Side, answers: Sequence[Answer]) -> Row:
    """The bound that ``evaluate`` would say to believe; where it says that the data cannot answer, nothing is wrong."""
    _, index = advise(answers, overlap(problem), side, problem.dataset)
    if index is not None:
        return _row(*ADVICE, side, answers[index])
    return Row(*ADVICE, side, -np.inf if side == "lower" else np.inf, np.nan, np.nan, 0, "", "", "")


def _rows(methods: Sequence[Method], side: Side, results: Sequence[Result]) -> list[Row]:
    lines = [(one.label, name) for one in methods for name in one.bounds]
    return [_row(label, name, side, result) for (label, name), result in zip(lines, results, strict=True)]


def _row(label: str, bound: str, side: Side, result: Result) -> Row:
    if isinstance(result, Answer):
        answer = result.bound
        codes = " ".join(codes_of(answer.warnings))
        error = np.nan if answer.standard_error is None else float(answer.standard_error)
        numbers = (float(answer.value), float(answer.estimate), error, answer.n_undefined)
        return Row(label, bound, side, *numbers, answer.guarantee, codes, "")
    reason = str(result) if isinstance(result, TightropeError) else f"{type(result).__name__}: {result}"
    return Row(label, bound, side, np.nan, np.nan, np.nan, 0, "", "", reason)
