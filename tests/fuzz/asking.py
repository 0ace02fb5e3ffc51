"""Put a question to the library in some dress, and keep what it says for each bound."""

from __future__ import annotations

from typing import Any

import tightrope
from tests.fuzz.clothes import Dress
from tests.fuzz.questions import MODEL_BASED, Question
from tests.fuzz.terms import Key
from tightrope import Bound, Multinomial, TightropeError, TrajectoryDataset
from tightrope.base.problem import Problem
from tightrope.behaviors import behavior as find_behavior
from tightrope.bounds import method as find_method
from tightrope.estimators import estimator as find_estimator
from tightrope.estimators.gain import gain
from tightrope.evaluation.case import Answer
from tightrope.evaluation.compute import cases_of
from tightrope.evaluation.settings import Settings
from tightrope.evaluation.work import answers_of

Result = Bound | str  # a bound, or why there is none
Answers = dict[Key, Result]


def options(question: Question) -> dict[str, Any]:
    """The settings of every bound."""
    chosen = question.resampling
    return {
        "confidence": question.confidence,
        "n_resamples": question.n_resamples,
        "seed": question.seed,
        "resampling": Multinomial(chosen) if isinstance(chosen, int) else chosen,
        "max_ratio": question.max_ratio,
        "behavior": "tabular" if question.estimated else "logged",
    }


def read(dress: Dress) -> TrajectoryDataset:
    """The logs."""
    return (
        dress.source if isinstance(dress.source, TrajectoryDataset) else tightrope.read(dress.source, **dress.options)
    )


def suited(question: Question, dress: Dress) -> Question:
    """The question without the estimators that need a policy which can be put into a model."""
    if dress.modelled:
        return question
    names = tuple(name for name in question.estimators if name not in MODEL_BASED)
    return question.changed(estimators=names or ("pdwis",))


def values(data: TrajectoryDataset, policy: Any, question: Question) -> tuple[tightrope.Evaluation | None, Answers]:
    """Every bound on the value, from one evaluation."""
    keys = [
        Key("value", side, name, method)
        for side in question.sides
        for name in question.estimators
        for method in question.methods
    ]
    side = "both" if len(question.sides) == 2 else question.sides[0]
    try:
        result = tightrope.evaluate(
            data,
            policy,
            estimators=list(question.estimators),
            methods=list(question.methods),
            side=side,  # type: ignore[arg-type]
            **options(question),
        )
    except TightropeError as error:
        return None, dict.fromkeys(keys, f"{type(error).__name__}: {error}")
    found = {Key("value", bound.side, bound.estimator, bound.method): bound for bound in result.bounds}
    skipped = {(name, method): why for name, method, why in result.skipped}
    return result, {key: found.get(key) or skipped.get((key.estimator, key.method), "silence") for key in keys}


def one_by_one(data: TrajectoryDataset, policy: Any, question: Question, keys: list[Key]) -> Answers:
    """Some bounds on the value, each asked for by itself."""
    made: Answers = {}
    for key in keys:
        call = tightrope.lower_bound if key.side == "lower" else tightrope.upper_bound
        try:
            made[key] = call(data, policy, estimator=key.estimator, method=key.method, **options(question))
        except TightropeError as error:
            made[key] = str(error)
    return made


def gains(data: TrajectoryDataset, policy: Any, question: Question) -> Answers:
    """Every bound on the gain over the behaviour policy."""
    pairs = [(name, method) for name in question.estimators for method in question.methods]
    made: Answers = {}
    settings = Settings(**options(question))
    for side in question.sides:
        try:
            chosen = find_behavior(settings.behavior, data)
            problem = Problem(data, policy, chosen)
            asked = [(gain(find_estimator(name)), find_method(method)) for name, method in pairs]
            (case,) = cases_of(problem, [side], settings)  # type: ignore[list-item]
            results = answers_of(case, asked)  # type: ignore[arg-type]
        except TightropeError as error:
            results = [error] * len(pairs)
        for (name, method), result in zip(pairs, results, strict=True):
            made[Key("gain", side, name, method)] = result.bound if isinstance(result, Answer) else str(result)
    return made
