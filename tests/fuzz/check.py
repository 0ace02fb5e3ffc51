"""One seed: a question, its answers held against the oracle, in other clothes, and under relations."""

from __future__ import annotations

import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from tests.fuzz import asking
from tests.fuzz.asking import Answers, Result
from tests.fuzz.clothes import Dress, plain_dress, random_dress
from tests.fuzz.doors import random_door, shown
from tests.fuzz.expected import Oracle
from tests.fuzz.questions import Question, random_question, some
from tests.fuzz.relations import Relation, random_relation
from tests.fuzz.terms import Bounds, Expected, Key, Refused
from tests.fuzz.tools import random_tool
from tightrope import Bound, TightropeError, TrajectoryDataset
from tightrope.functional.resampling import draw_weights

GAINS = 0.3  # of the questions also ask about the gain
BY_ARRIVAL = ("betting", "cut")  # exact bounds that shuffle places
WIDE = 1e-6  # of its size: a span wider than this says little, and is counted


@dataclass
class Outcome:
    """What came of some seeds."""

    counts: Counter[str] = field(default_factory=Counter)
    reasons: Counter[str] = field(default_factory=Counter)  # of refusals
    parts: Counter[str] = field(default_factory=Counter)  # which clothes, relations and ways in were tried
    failures: list[tuple[str, int, int, str]] = field(default_factory=list)  # (kind, seed, steps, details)

    def add(self, other: Outcome) -> None:
        self.counts += other.counts
        self.reasons += other.reasons
        self.parts += other.parts
        self.failures += other.failures


class Case:
    """One seed's question and what was found so far."""

    def __init__(self, seed: int, folder: Path):
        self.seed, self.folder, self.outcome = seed, folder, Outcome()
        self.rng = np.random.default_rng([seed, 20240229])
        question = random_question(self.rng)
        self.question = asking.suited(question, plain_dress(question))
        self.oracle = Oracle(self.question, self._weights())
        self.answers: Answers = {}
        self.expected: dict[Key, Expected] = {}
        self.read: TrajectoryDataset | None = None  # as the plain logs are

    def _weights(self) -> np.ndarray:
        q = self.question
        if q.n < 2:
            return np.ones((q.n_resamples, q.n))
        return draw_weights(q.n, q.n_resamples, seed=q.seed, resampling=asking.options(q)["resampling"])

    def fail(self, kind: str, details: str) -> None:
        """Count a difference, or a crash, and keep what it was."""
        self.outcome.counts["crashed" if kind == "crash" else "differing"] += 1
        self.outcome.failures.append((kind, self.seed, self.question.steps, details))

    # -- one input -----------------------------------------------------------------------------------------------------

    def put(self, name: str, work: Callable[[], Answers]) -> Answers:
        """Hand one input to the library; counted as answered, refused or crashed. Valid logs are never refused."""
        self.outcome.counts["inputs"] += 1
        try:
            answers = work()
        except TightropeError as error:
            self.outcome.counts["refused"] += 1
            self.outcome.reasons[_reason(str(error))] += 1
            self.fail("refused", f"{name}: {error}")
            return {}
        except Exception:
            self.fail("crash", f"{name}\n{traceback.format_exc(limit=-6)}")
            return {}
        answered = any(isinstance(answer, Bound) for answer in answers.values())
        self.outcome.counts["answered" if answered else "refused"] += 1
        if not answered:
            self.outcome.reasons[_reason(" ".join(str(answer) for answer in answers.values()))] += 1
        return answers

    def plain(self) -> None:
        """The question in plain clothes, against the oracle."""
        dress, with_gains = plain_dress(self.question), bool(self.rng.random() < GAINS)

        def work() -> Answers:
            data = asking.read(dress)
            result, answers = asking.values(data, dress.policy, self.question)
            if result is not None:
                shown(self.rng, result)
            return answers | (asking.gains(data, dress.policy, self.question) if with_gains else {})

        self.answers = self.put("plain", work)
        for key, answer in self.answers.items():
            self.expected[key] = self.oracle.expected(key)
            self.against_oracle("plain", key, answer)

    def against_oracle(self, name: str, key: Key, answer: Result) -> None:
        """A bound within its span, and what stands beside it likewise; a refusal where one is due."""
        expected = self.expected[key]
        if expected is None:
            return
        self.outcome.counts["compared"] += 1
        if isinstance(expected, Refused) or isinstance(answer, str):
            if isinstance(expected, Refused) != isinstance(answer, str):
                self.fail("refusal", f"{name} {key}: {answer} instead of {expected}")
            return
        low, high = expected.value
        if not low <= answer.value <= high:
            self.fail("value", f"{name} {key}: {answer.value!r} is not in [{low!r}, {high!r}]; {answer.estimate}")
        elif high - low > WIDE * max(abs(low), abs(high), abs(expected.estimate.value)):
            self.outcome.counts["loose"] += 1
        if not abs(answer.estimate - expected.estimate.value) <= expected.estimate.error:
            self.fail("estimate", f"{name} {key}: {answer.estimate!r} is not {expected.estimate}")
        error, told = expected.error, answer.standard_error
        if error is not None and not (told == error.value or abs((told or 0.0) - error.value) <= error.error):
            self.fail("standard error", f"{name} {key}: {told!r} is not {error}")
        if not expected.undefined[0] <= answer.n_undefined <= expected.undefined[1]:
            self.fail("undefined", f"{name} {key}: {answer.n_undefined} is not in {expected.undefined}")

    # -- other clothes -------------------------------------------------------------------------------------------------

    def dressed(self, dress: Dress) -> None:
        """The same question in other clothes: the same bits, or the same up to rounding."""
        question = self._part(asking.suited(self.question, dress))
        name = ", ".join(dress.parts)
        self.outcome.parts.update(dress.parts)
        keys = [key for key in self.answers if _asks(question, key)]
        alone = bool(self.rng.random() < 0.3)

        came: list[np.ndarray] = []

        def work() -> Answers:
            data = asking.read(dress)
            self.untouched(data, dress)
            came.append(data.arrival)
            if alone:
                return asking.one_by_one(data, dress.policy, question, keys)
            return asking.values(data, dress.policy, question)[1]

        answers = self.put(name, work)
        shuffled = [key for key in keys if key.method in BY_ARRIVAL] if answers and (np.diff(came[0]) < 0).any() else []
        expected = self.answers | (self.as_they_came(came[0], question, shuffled) if shuffled and dress.exact else {})
        for key in keys if answers else ():
            if not dress.exact:
                if key not in shuffled:
                    self.against_oracle(name, key, answers[key])
                continue
            self.outcome.counts["compared"] += 1
            if not _same(answers[key], expected[key]):
                self.fail("clothes", f"{name} {key}: {_told(answers[key])} instead of {_told(expected[key])}")

    def as_they_came(self, arrival: np.ndarray, question: Question, keys: list[Key]) -> Answers:
        """The question in plain clothes, with episodes that came in this order: exact bounds shuffle such places."""
        dress = plain_dress(self.question)
        return asking.one_by_one(replace(asking.read(dress), arrival=arrival), dress.policy, question, keys)

    def untouched(self, data: TrajectoryDataset, dress: Dress) -> None:
        """What was read is what was logged, to the bit."""
        if self.read is None:
            self.read = asking.read(plain_dress(self.question))
        fields = ["rewards", "offsets", "terminated", "times"]
        fields += [] if "behavior" in dress.options else ["behavior_log_probs"]
        for name in fields:
            if not np.array_equal(getattr(data, name), getattr(self.read, name)):
                self.fail("reading", f"{', '.join(dress.parts)}: {name} differ")

    def _part(self, question: Question) -> Question:
        """A part of the question, to save time."""
        return question.changed(methods=some(self.rng, question.methods, 0.4))

    # -- relations -----------------------------------------------------------------------------------------------------

    def related(self, relation: Relation) -> None:
        """Another question whose answers follow from this one's."""
        self.outcome.parts[relation.name] += 1
        question = self._part(relation.question)
        dress = plain_dress(question)
        ask_gains = any(key.what == "gain" for key in self.answers)

        def work() -> Answers:
            data = asking.read(dress)
            answers = asking.values(data, dress.policy, question)[1]
            return answers | (asking.gains(data, dress.policy, question) if ask_gains else {})

        answers = self.put(relation.name, work)
        for key, old in self.answers.items() if answers else ():
            if key.method in question.methods:
                self._follows(relation, key, old, answers[relation.key(key)])

    def _follows(self, relation: Relation, key: Key, old: Result, new: Result) -> None:
        self.outcome.counts["compared"] += 1
        told = f"{relation.name} {key}: {_told(new)} after {_told(old)}"
        if isinstance(old, str) or isinstance(new, str):
            if relation.holds(key) and isinstance(old, str) != isinstance(new, str):
                self.fail("relation", told)
            return
        expected = self.expected[key]
        if relation.exact(key):
            if relation.holds(key) and new.value != relation.moved(key, old.value):
                self.fail("relation", told)
            return
        if not isinstance(expected, Bounds):
            return
        # The oracle's error is a share of the numbers that were added up; allow a hundred times as much.
        slack = 100 * abs(relation.factor) * expected.estimate.error + 1e-9 * abs(relation.shift)
        # Where all episodes agree, the spread is rounding, and the studentized bound a quotient of rounding errors.
        undetermined = key.method == "studentized" and min(old.standard_error, new.standard_error) <= slack
        if relation.holds(key) and not undetermined:
            ends = sorted(relation.moved(key, end) for end in expected.value)
            room = slack + 1e-9 * max(abs(end) for end in ends if np.isfinite(end)) if np.isfinite(ends).any() else 0.0
            if not ends[0] - room <= new.value <= ends[1] + room:
                self.fail("relation", f"{told}, beyond {ends} ± {room}")
        if relation.estimates(key) and not abs(new.estimate - relation.moved(key, old.estimate)) <= slack:
            self.fail("relation", f"{told}: the estimate, ± {slack}")

    # -- other ways in -------------------------------------------------------------------------------------------------

    def through(self) -> None:
        """The same question through another call or the command line: the same record."""
        door = random_door(self.rng, self.question, self.answers, self.folder)
        if door is None:
            return
        self.outcome.parts[door.name] += 1
        told: list[str] = []
        self.put(door.name, lambda: door.open(told.append))
        self.outcome.counts["compared"] += 1
        for text in told:
            self.fail("door", f"{door.name}: {text}")


def run(seed: int, folder: Path) -> Outcome:
    """Everything about one seed."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        case = Case(seed, folder)
        case.plain()
        case.dressed(random_dress(case.rng, case.question, folder))
        tool = random_tool(case.rng, case.question, folder)
        case.dressed(tool or random_dress(case.rng, case.question, folder))
        relation = random_relation(case.rng, case.question)
        if relation is not None:
            case.related(relation)
        case.through()
    case.outcome.counts["questions"] += 1
    return case.outcome


def _asks(question: Question, key: Key) -> bool:
    return key.what == "value" and key.estimator in question.estimators and key.method in question.methods


def _same(one: Result, other: Result) -> bool:
    if isinstance(one, str) or isinstance(other, str):
        return isinstance(one, str) and isinstance(other, str)
    names = ("value", "estimate", "standard_error", "n_undefined", "guarantee")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _told(answer: Result) -> str:
    return answer if isinstance(answer, str) else f"{answer.value!r} (estimate {answer.estimate!r})"


def _reason(text: str) -> str:
    """Why there was no bound at all, in the words of the page."""
    known = {
        "all importance weights are zero": "the candidate would have taken the logged actions in no episode",
        "at least two episodes": "a single episode, and exact bounds not asked for or not possible",
    }
    return next((words for part, words in known.items() if part in text), text[:120])
