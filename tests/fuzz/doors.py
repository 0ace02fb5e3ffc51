"""Other ways to the same bounds: single calls, intervals, both sides at once, the command line. The same bits each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from typer.testing import CliRunner

import tightrope
from tests.fuzz import asking
from tests.fuzz.asking import Answers
from tests.fuzz.clothes import declared, plain_dress
from tests.fuzz.questions import MODEL_BASED, Question, Rng
from tests.fuzz.terms import Key
from tightrope import Bound, TightropeError
from tightrope.bounds import METHODS
from tightrope.cli import NO_ANSWER, app
from tightrope.estimators import ESTIMATORS

Say = Callable[[str], None]


@dataclass(frozen=True)
class Door:
    """A way in, which says what differs and returns what it was told."""

    name: str
    open: Callable[[Say], Answers]


def random_door(rng: Rng, question: Question, answers: Answers, folder: Path) -> Door | None:
    """One of them; where a single bound is asked for, one that there is."""
    bounds = [key for key, answer in answers.items() if key.what == "value" and isinstance(answer, Bound)]
    name = str(rng.choice(list(DOORS), p=[0.25, 0.3, 0.07, 0.2, 0.08, 0.06, 0.04]))
    made = DOORS[name](question, bounds[int(rng.integers(len(bounds)))], folder) if bounds else None
    return None if made is None else Door(name, made)


def shown(rng: Rng, result: tightrope.Evaluation) -> None:
    """Everything that can be done with an evaluation; it must come back from its JSON as it was."""
    again = type(result).from_json(result.to_json())
    assert again.to_json() == result.to_json(), "the evaluation read back from its JSON is another"  # NaN is not NaN
    str(result)
    if rng.random() < 0.02:
        result.to_html()
        result.to_table()


def _ask(call: Any, question: Question, key: Key, **changes: Any) -> Any:
    dress = plain_dress(question)
    settings = asking.options(question) | changes
    try:
        return call(asking.read(dress), dress.policy, estimator=key.estimator, method=key.method, **settings)
    except TightropeError as error:
        return str(error)


def _alone(question: Question, key: Key, folder: Path) -> Any:
    """``lower_bound`` gives the very record that ``evaluate`` gives."""

    def through(say: Say) -> Answers:
        dress = plain_dress(question)
        data = asking.read(dress)
        alone = asking.one_by_one(data, dress.policy, question, [key])[key]
        among = asking.values(data, dress.policy, question)[1][key]
        if alone != among and not (isinstance(alone, str) and isinstance(among, str)):
            say(f"{key}: {alone} alone, {among} among others")
        return {key: alone}

    return through


def _half(question: Question, key: Key, folder: Path) -> Any:
    """An interval is two bounds at half the error each."""
    confidence = question.confidence - 0.1

    def through(say: Say) -> Answers:
        both = _ask(tightrope.interval, question, key, confidence=confidence)
        sides = [
            _ask(call, question, key, confidence=(1 + confidence) / 2)
            for call in (tightrope.lower_bound, tightrope.upper_bound)
        ]
        if isinstance(both, str):
            if all(isinstance(side, Bound) for side in sides):
                say(f"{key}: {both}, but {sides}")
            return {key: both}
        if [both.lower, both.upper] != sides or list(both) != [side.value for side in sides]:
            say(f"{key}: {both} instead of {sides}")
        if type(both).from_json(both.to_json()) != both:
            say(f"{key}: the interval read back from its JSON is another")
        return {key: both.lower}

    return through


def _both(question: Question, key: Key, folder: Path) -> Any:
    """Both sides at once are the two sides, and a threshold changes no bound."""

    def through(say: Say) -> Answers:
        dress = plain_dress(question)
        data = asking.read(dress)
        once = asking.values(data, dress.policy, question.changed(sides=("lower", "upper")))[1]
        each: Answers = {}
        for side in ("lower", "upper"):
            each |= asking.values(data, dress.policy, question.changed(sides=(side,)))[1]
        for key, bound in each.items():
            if bound != once[key] and not (isinstance(bound, str) and isinstance(once[key], str)):
                say(f"{key}: {once[key]} at once, {bound} by itself")
        return once

    return through


def _on_policy(question: Question, key: Key, folder: Path) -> Any:
    """A candidate that is the behaviour policy is worth the mean return, and gains nothing."""
    if question.estimated:
        return None
    episodes = [replace(e, candidate=e.behavior) for e in question.episodes]
    names = tuple(name for name in question.estimators if name not in MODEL_BASED)
    same = question.changed(episodes=episodes, candidate=question.behavior, estimators=names, max_ratio=None)
    mean = float(np.mean([e.discounted_return(question.discount) for e in episodes]))
    ends = [abs(end) for span in (same.reward_range, same.return_range) for end in span or () if end is not None]
    size = max([abs(r) for e in episodes for r in e.rewards] + ends) * question.horizon

    def through(say: Say) -> Answers:
        dress = plain_dress(same)
        data = asking.read(dress)
        answers = asking.values(data, dress.policy, same)[1] | asking.gains(data, dress.policy, same)
        for key, bound in answers.items():
            wanted = mean if key.what == "value" else 0.0
            whole = not question.any_cut or bound.guarantee != "exact" if isinstance(bound, Bound) else False
            if whole and not abs(bound.estimate - wanted) <= 1e-12 * size:  # type: ignore[union-attr]
                say(f"{key}: {bound} instead of {wanted}")
        return answers

    return through


def _whole(question: Question, key: Key, folder: Path) -> Any:
    """The whole evaluation, with a threshold and the gain: the bounds that are asked for one by one."""

    def through(say: Say) -> Answers:
        dress = plain_dress(question)
        data = asking.read(dress)
        asked = (
            {"estimators": list(question.estimators), "methods": list(question.methods)} if len(key.method) > 3 else {}
        )
        result = tightrope.evaluate(data, dress.policy, baseline="behavior", **asked, **asking.options(question))
        # What a rule makes of several bounds, or at another level, has no name to be asked for by.
        both = [b for b in (*result.bounds, *result.gains) if b.estimator in ESTIMATORS and b.method in METHODS]
        each = question.changed(sides=("lower", "upper"), estimators=tuple({b.estimator for b in both}))
        each = each.changed(methods=tuple({b.method for b in both} - {"robust"}))
        bounds = asking.values(data, dress.policy, each)[1]
        found = bounds | asking.gains(data, dress.policy, each)
        for bound in both:
            place = Key(bound.about, bound.side, bound.estimator, bound.method)
            if found[place] != bound:
                say(f"{place}: {bound} in the whole, {found[place]} asked for")
        if result.verdict is None or result.verdict.about != "gain":
            say(f"the verdict is {result.verdict}")
        return bounds

    return through


def _single(question: Question, key: Key, folder: Path) -> Any:
    """Single precision loses little beside the standard error, where no replicate is lost."""
    if question.estimated or key.estimator == "mb":
        return None
    key = key._replace(method="percentile")
    call = tightrope.lower_bound if key.side == "lower" else tightrope.upper_bound

    def through(say: Say) -> Answers:
        double, single = (_ask(call, question, key, precision=name) for name in ("float64", "float32"))
        if isinstance(double, str) or isinstance(single, str):
            if isinstance(double, str) != isinstance(single, str):
                say(f"{key}: {single} instead of {double}")
            return {key: double}
        ends = [*(question.reward_range or ()), *(question.return_range or ())]
        sizes = [abs(end) for end in ends if end is not None and np.isfinite(end)]
        rounding = 1e-9 * max([*sizes, *(abs(reward) for e in question.episodes for reward in e.rewards)])
        room = (
            1e-3 * (double.standard_error + abs(double.value - double.estimate)) + 1e-6 * abs(double.value) + rounding
        )
        lost = abs(single.value - double.value) > room
        if single.n_undefined == double.n_undefined == 0 and lost:
            say(f"{key}: {single} instead of {double}")
        return {key: double}

    return through


def _command(question: Question, key: Key, folder: Path) -> Any:
    """The command line says what Python says."""
    dress, path = plain_dress(question), folder / "logs.parquet"
    if question.resampling != "multinomial" or dress.policy is None:
        return None
    table = folder / "policy.npy"

    def through(say: Say) -> Answers:
        tightrope.write(asking.read(dress), path)
        np.save(table, dress.policy)
        done = CliRunner().invoke(app, [str(word) for word in ["evaluate", path, "--policy", table, *_words(question)]])
        data = tightrope.read(path, **declared(question))
        result, answers = asking.values(data, dress.policy, question)
        if result is None:
            if done.exit_code not in (2, NO_ANSWER):
                say(f"exit code {done.exit_code}: {done.output}")
        elif done.exit_code not in (0, NO_ANSWER):
            say(f"exit code {done.exit_code}: {done.output} {done.exception!r}")
        elif (
            replace(tightrope.Evaluation.from_json(done.stdout), provenance=None).to_json()
            != replace(result, provenance=None).to_json()
        ):
            say("the command's JSON is another than Python's")
        return answers

    return through


def _words(question: Question) -> list[Any]:
    words: list[Any] = ["--json", "--discount", question.discount, "--confidence", question.confidence]
    words += ["--n-resamples", question.n_resamples, "--seed", question.seed]
    words += ["--side", "both" if len(question.sides) == 2 else question.sides[0]]
    for name in question.estimators:
        words += ["--estimator", name]
    for name in question.methods:
        words += ["--method", name]
    if question.horizon_declared:
        words += ["--horizon", question.horizon]
    if question.max_ratio is not None:
        words += ["--max-ratio", question.max_ratio]
    for name, span in (("--reward-range", question.reward_range), ("--return-range", question.return_range)):
        if span is not None:
            words += [name, "-inf" if span[0] is None else span[0], "inf" if span[1] is None else span[1]]
    words += ["--behavior", "tabular" if question.estimated else "logged"]
    return [*words, "--incomplete", "terminate" if question.any_cut else "error"]


DOORS: dict[str, Callable[[Question, Key, Path], Any]] = {
    "one bound by itself": _alone,
    "an interval": _half,
    "both sides at once": _both,
    "candidate = behaviour": _on_policy,
    "threshold and gain": _whole,
    "single precision": _single,
    "command line": _command,
}
