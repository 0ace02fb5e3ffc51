"""Every sentence of advice, walked: what it says is so in the data that the decision was made from."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections import defaultdict
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import tightrope
from tests.answers import answers
from tightrope.base.problem import Problem
from tightrope.base.rounding import outward
from tightrope.base.warnings import caution, coded
from tightrope.domains import situations, small
from tightrope.evaluation import advice, recommend, sentences, verdict
from tightrope.evaluation.overlap import overlap as measured
from tightrope.evaluation.settings import Settings

WALKED = (  # where sentences are made
    advice.advise, advice._use_approximate, advice._why_not, advice._why_not_exact, advice._help,
    recommend.rules, recommend.Question.use, recommend.Question.answer, recommend.Question.recommend,
    recommend.Question._hint, *(made for _, made in inspect.getmembers(sentences, inspect.isfunction)
    if made.__module__ == sentences.__name__), *(made for _, made in inspect.getmembers(verdict, inspect.isfunction)
    if made.__module__ == verdict.__name__),
)  # fmt: skip
BONUS, CLINIC = small("bonus"), small("clinic")
UNDECLARED = {"reward_range": None, "return_range": None}
BARE = {"states": None, "actions": None, "final_states": None, "behavior": None}
FAR = tightrope.TabularPolicy(np.tile([0.001, 0.999], (3, 1)))  # nearly never what the logs did


@cache
def bonus(n, seed=0):
    return BONUS.logs(n, rng=np.random.default_rng(seed))


def off(data, factor):
    """The same logs with behaviour probabilities that are wrong by a factor."""
    return replace(data, behavior_log_probs=data.behavior_log_probs + np.log(factor), behavior=None)


def far(data):
    """Logs without states, and a candidate of which they say almost nothing."""
    return replace(data, **BARE, eval_log_probs=np.log(FAR.table)[data.states, data.actions])


def logs():
    deterministic, nothing = situations()[2:4]
    bare = replace(bonus(60), **BARE, eval_log_probs=np.log(BONUS.candidate.table)[bonus(60).states, bonus(60).actions])
    return {
        "plain": (bonus(60), BONUS.candidate),
        "few": (bonus(30), BONUS.candidate),
        "one step": (CLINIC.logs(60, rng=np.random.default_rng(0)), CLINIC.candidate),
        "patients": (replace(bonus(120), clusters=np.arange(120) // 3), BONUS.candidate),
        "no states": (bare, None),
        "not declared": (replace(bonus(60), **UNDECLARED), BONUS.candidate),
        "not declared, no states": (replace(bare, **UNDECLARED), None),
        "no floor": (replace(bonus(60), reward_range=(-np.inf, 1.0), return_range=None), BONUS.candidate),
        "horizon not declared": (replace(bonus(60), horizon_declared=False, return_range=None), BONUS.candidate),
        "wrong probabilities": (off(bonus(60), 0.3), BONUS.candidate),
        "wrong probabilities, no states": (off(bare, 0.3), None),
        "wrong probabilities, no range": (replace(off(bare, 0.3), **UNDECLARED), None),
        "far": (far(bonus(60)), None),
        "far, no range": (replace(far(bonus(60)), **UNDECLARED), None),
        "far, a model, no range": (replace(bonus(60), **UNDECLARED), FAR),
        "a floor far below": (replace(bonus(60), reward_range=(-500.0, 1.0), return_range=None), BONUS.candidate),
        "deterministic": (deterministic.logs(60, rng=np.random.default_rng(0)), deterministic.candidate),
        "no overlap": (nothing.logs(60, rng=np.random.default_rng(0)), nothing.candidate),
    }


ASKED = {
    "the rule": {},
    "a threshold": {"threshold": 0.9},
    "a low threshold": {"threshold": -1e4},
    "a high threshold": {"threshold": 1e4},
    "the gain": {"baseline": "behavior"},
    "strict": {"strict": True, "side": "both"},
    "strict gain": {"strict": True, "baseline": "behavior"},
    "weighted": {"estimators": ["wis", "pdwis"], "methods": ["percentile", "studentized"], "side": "both"},
    "sampling": {"estimators": ["is"], "methods": ["percentile", "betting"]},
    "a model": {"estimators": ["mb", "is"], "methods": ["percentile", "betting"]},
    "a model, upper": {"estimators": ["mb"], "methods": ["percentile"], "side": "upper", "threshold": 0.4},
    "exact, strictly": {"estimators": ["is"], "methods": ["anderson", "betting"], "strict": True},
    "approximate, strictly": {"estimators": ["pdwis"], "methods": ["percentile"], "strict": True},
    "robust, strictly": {"estimators": ["mb"], "methods": ["robust"], "strict": True},
}
SOME = {  # what is asked of some logs only: the others would take long and say the same
    "a threshold": ("plain", "far", "patients"),
    "a low threshold": ("plain", "not declared"),
    "a high threshold": ("few",),
    "the gain": ("plain", "few", "one step", "no overlap"),
    "strict gain": ("plain", "one step"),
}
ESTIMATED = {"plain": ("the rule",), "one step": ("the rule", "strict"), "not declared": ("weighted",)}


def walk():
    """Every question to all logs, as far as there is an answer: (name, logs, evaluation)."""
    for name, (data, policy) in logs().items():
        for question, options in ASKED.items():
            if name not in SOME.get(question, (name,)):
                continue
            for behavior in ["logged"] + ["tabular"] * (question in ESTIMATED.get(name, ())):
                try:
                    result = tightrope.evaluate(data, policy, n_resamples=60, behavior=behavior, **options)
                except tightrope.TightropeError:
                    continue
                yield f"{name}, {question}, {behavior}", data, result


def bound(value, side, estimator="is", method="percentile", guarantee="approximate", warnings=()):
    return tightrope.Bound(value, side, 0.95, 0.5, estimator, method, guarantee, 0.1, warnings, 100)


class NoModel(recommend.Question):
    """A question of which the model fails."""

    def _part(self, part, side, about):
        if part.estimator == "mb":
            raise tightrope.TightropeError("there is not enough memory")
        return super()._part(part, side, about)


def by_hand():
    """What no logs here bring about, from bounds by hand: (what is said, what must be said)."""
    overlap = tightrope.evaluate(bonus(60), BONUS.candidate, estimators="is", methods="betting").overlap
    data = bonus(60)

    def advised(*bounds, **options):
        return advice.advise(answers(list(bounds)), overlap, "lower", data, **options)[0]

    exact, against = ("is", "betting", "exact"), caution("model-contradicted", "the logs contradict it")
    loose = advised(bound(0.1, "lower"), bound(0.2, "lower", *exact))
    yield (
        loose,
        "Use IS with betting: value ≥ 0.2 (0.95, exact). It holds at any number of episodes, and is no looser than",
    )
    yield (
        advised(bound(0.2, "lower", *exact, (caution("vacuous", "says nothing"),))),
        "no bound improves on what is possible",
    )
    robust = bound(0.2, "lower", "mb", "robust", "exact", (against,))
    yield advised(robust, strict=True), "this speaks against the model: model-contradicted"
    infinite = sentences.Recommendation(bound(-np.inf, "lower"))
    yield sentences.no_answer(infinite, overlap, estimated=False), "IS with percentile is infinite"
    problem = Problem(*logs()["wrong probabilities"])
    failing = NoModel(problem, measured(problem), None, Settings(n_resamples=60))
    yield failing.use([], ["lower"]).text, "These logs cannot answer: the importance ratios do not average to 1"
    crossed = verdict.verdict([bound(3.0, "lower"), bound(2.0, "upper")], "", threshold=2.5)
    yield crossed.text, "contradict each other: 3 ≤ value ≤ 2"
    near = verdict.verdict([bound(0.1, "lower"), bound(0.9, "upper")], "", threshold=0.45)
    yield near.change, "and perhaps no number would do), would settle it with a yes"
    at_it = verdict.verdict([bound(0.1, "lower"), bound(0.9, "upper")], "", threshold=bound(0.1, "lower").estimate)
    yield at_it.change, "More logs, or logs of a policy closer to the candidate, would narrow the bounds."
    one = verdict.verdict([bound(-1.0, "lower")], "", threshold=0.7)
    yield one.text + one.change, "does not settle it and there is no upper bound to believe"
    yield one.change, "More logs, or logs of a policy closer to the candidate, would narrow the bounds."


@pytest.fixture(scope="module")
def walked():
    """What was walked, and which lines of the functions were run on the way."""
    lines = defaultdict(set)
    codes = {function.__code__ for function in WALKED}

    def trace(frame, event, _):
        if frame.f_code not in codes:
            return None
        lines[frame.f_code].add(frame.f_lineno)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        results, said = list(walk()), list(by_hand())
    finally:
        sys.settrace(before)
    return results, said, lines


def statements(function):
    """The first line of each statement of a function that does something, as the tracer counts them."""
    source, start = inspect.getsourcelines(function)
    (tree,) = ast.parse("if True:\n" + "".join(source) if source[0].startswith(" ") else "".join(source)).body
    shift = start - 2 if source[0].startswith(" ") else start - 1
    body = [node for node in ast.walk(tree) if isinstance(node, ast.stmt) and not isinstance(node, ast.FunctionDef)]
    kept = [node for node in body if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))]
    return {node.lineno + shift for node in kept if node is not tree and not isinstance(node, ast.Try)}


def test_every_branch_is_walked(walked):
    """A sentence that no situation here can bring about would not be tested by this file."""
    *_, lines = walked
    missed = []
    for function in WALKED:
        source, start = inspect.getsourcelines(function)
        for line in sorted(statements(function) - lines[function.__code__]):
            missed.append(f"{function.__qualname__}: {source[line - start].strip()}")
    assert "\n".join(missed) == ""


def test_what_is_said_by_hand(walked):
    _, said, _ = walked
    for text, expected in said:
        assert expected in text


def agreements(data, result):
    """(words, whether what they say is so): the words are there exactly when it is."""
    overlap, verdict_ = result.overlap, result.verdict
    answering = result.believed_gains if verdict_.about == "gain" else result.believed
    text = f"{result.advice}\n{verdict_.text}\n{verdict_.change}"
    sides = {bound.side for bound in result.bounds}
    threshold = verdict_.threshold
    lower = [bound.value for bound in answering if bound.side == "lower"]
    upper = [bound.value for bound in answering if bound.side == "upper"]
    yield f"<{verdict_.kind}>", "<broken>", not answering
    yield (
        f"<{verdict_.kind}>",
        "<yes>",
        bool(threshold is not None and lower and lower[0] > threshold and not (upper and upper[0] < threshold)),
    )
    yield (
        f"<{verdict_.kind}>",
        "<no>",
        bool(threshold is not None and upper and upper[0] < threshold and not (lower and lower[0] > threshold)),
    )
    yield f"<{verdict_.kind}>", "<bound>", bool(answering) and threshold is None
    yield result.advice, "cannot answer", len(result.believed) < len(sides)
    yield verdict_.change, "would narrow the bounds", verdict_.kind == "cannot tell"
    yield (
        verdict_.change,
        "the model is wrong",
        verdict_.kind in ("yes", "no", "bound")
        and any(bound.rests_on_model and bound.guarantee == "approximate" for bound in answering),
    )
    yield (
        verdict_.change,
        "estimate of the behaviour policy has the wrong form",
        verdict_.kind in ("yes", "no", "bound") and any(bound.behavior for bound in answering),
    )
    yield (
        verdict_.change,
        "none of these",
        verdict_.kind in ("yes", "no", "bound") and any(bound.guarantee == "approximate" for bound in answering),
    )
    yield text, "do not average to 1", None if coded(overlap.warnings, "mean-ratio") else False
    yield text, "check the behaviour probabilities", None if coded(overlap.warnings, "mean-ratio") else False
    yield text, "no importance ratios", None if coded(overlap.warnings, "no-overlap") else False
    low, high = data.value_range or (-np.inf, np.inf)
    yield text, "reward_range", None if not np.isfinite([low, high]).all() else False
    yield text, "a declared horizon", None if not data.horizon_declared else False
    yield text, "are estimated", None if result.behavior_check is not None else False
    yield text, "fewer than 50 episodes", None if data.n_trajectories < 50 else False
    yield text, "without a tabular model approximations", None if data.n_trajectories >= 50 else False
    yield text, "declared floor dominates", None if np.isfinite(low) else False


def test_the_words_agree_with_the_data(walked):
    results, _, _ = walked
    assert len(results) > 100
    for name, data, result in results:
        for text, words, so in agreements(data, result):
            if so is None:
                continue
            assert (words in text) == so, f"{name}: {words!r} in {text!r}"


def test_what_is_said_of_the_model_is_so(walked):
    """That a bound rests on the model alone, and what speaks against the model."""
    results, _, _ = walked
    seen = set()
    for name, _, result in results:
        alone = any(bound.rests_on_model and bound.guarantee == "approximate" for bound in result.believed)
        assert bool(re.search("rests on the model alone", result.advice)) == alone, f"{name}: {result.advice}"
        seen.add(alone)
        for codes in re.findall(r"speaks against the model: ([a-z, -]+)\.", result.advice):
            told = {warning.code for bound in result.bounds for warning in bound.warnings if warning.against == "model"}
            told |= {warning.code for warning in result.model_check.warnings} if result.model_check else set()
            assert set(codes.split(", ")) <= told, f"{name}: {result.advice}"
    assert seen == {True, False}


def test_every_number_that_is_said_is_that_of_a_bound(walked):
    results, _, _ = walked
    for name, _, result in results:
        bounds = [*result.bounds, *result.gains, *result.believed, *result.exact]
        known = {
            (bound.about, "≥" if bound.side == "lower" else "≤", f"{outward(bound.value, bound.side):.4g}")
            for bound in bounds
        }
        for about, sign, number in re.findall(r"(value|gain) ([≥≤]) (-?[\d.e+-]*\d)", result.advice):
            assert (about, sign, number) in known, f"{name}: {about} {sign} {number} in {result.advice}"


def test_a_bound_that_is_said_to_add_nothing_adds_nothing(walked):
    results, _, _ = walked
    seen = 0
    for name, _, result in results:
        for estimator, method in re.findall(r"([A-Z+]+) with ([a-z-]+),? does not improve", result.advice):
            pairs = [one for one in result.bounds if (one.estimator.upper(), one.method) == (estimator, method)]
            assert not pairs or any(coded(one.warnings, "vacuous") for one in pairs), f"{name}: {result.advice}"
            seen += bool(pairs)
    assert seen


def test_wrong_probabilities_are_named_and_nothing_else_is_advised(walked):
    """Neither a declared range nor more logs mend probabilities that are wrong."""
    results, _, _ = walked
    named = [result.advice for _, _, result in results if "do not average to 1, so the behaviour" in result.advice]
    assert named
    for text in named:
        assert "does not improve" not in text
        if "Use " not in text:
            assert "check the behaviour probabilities" in text
            assert "reward_range" not in text
            assert sentences.CLOSER not in text


def test_what_is_believed_or_called_exact_says_something(walked):
    results, _, _ = walked
    seen = 0
    for name, _, result in results:
        for one in (*result.believed, *result.believed_gains, *result.exact):
            assert not coded(one.warnings, "vacuous", "mean-ratio"), f"{name}: {one}"
        for pair in re.findall(r"Exact, at any number of episodes: ([A-Z]+ with [a-z]+): value", result.advice):
            named = [one for one in result.bounds if sentences.pair(one) == pair]
            assert [one for one in named if one.guarantee == "exact" and not coded(one.warnings, "vacuous")], name
            seen += 1
    assert seen
