"""The candidates of a comparison, before any reward is looked at: which can be judged, and by which estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeVar

import numpy as np

from tightrope.api import problem_of
from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import BoundError, NoOverlapError, TightropeError
from tightrope.base.names import must_be_one_of
from tightrope.base.problem import Problem
from tightrope.base.warnings import Caution, coded
from tightrope.estimators import Estimator
from tightrope.estimators import estimator as find_estimator
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.recommend import rules
from tightrope.evaluation.sentences import WRONG_RATIOS

T = TypeVar("T")

MOST = 40  # candidates: pairs of them, times replicates, must fit the memory


class Logged(NamedTuple):
    """A candidate that is a column of the logs: its log-probabilities of the logged actions, (N,)."""

    log_probs: Array


@dataclass(frozen=True, eq=False)
class Contender:
    """A policy on these logs, with the estimators that the rules name in their order; or why it cannot be judged."""

    name: str
    problem: Problem
    estimators: tuple[str, ...] = ()
    why: str = ""
    warnings: tuple[Caution, ...] = ()

    def first(self, make: Callable[[Estimator], T]) -> tuple[Estimator, T]:
        """The first estimator that ``make`` can be called on, and what it returns; raises what the first one raised."""
        reasons = []
        for name in self.estimators:
            estimator = find_estimator(name)
            try:
                return estimator, make(estimator)
            except TightropeError as error:
                reasons.append(error)
        raise reasons[0]


@dataclass(frozen=True, eq=False)
class Baseline:
    """What candidates are compared with: a number, a policy, or else the policy that made the logs."""

    words: str
    number: float | None = None
    policy: Contender | None = None


@dataclass(frozen=True)
class Source:
    """The logs, and what was said about the behaviour policy."""

    dataset: TrajectoryDataset
    behavior: Any
    max_step_ratio: float | None
    strict: bool

    def contender(self, name: str, policy: Any) -> Contender:
        """The policy by this name. Nothing here depends on a reward."""
        data = self.dataset
        if isinstance(policy, Logged):
            data, policy = replace(data, eval_log_probs=policy.log_probs), None
        problem = problem_of(data, policy, self.behavior, self.max_step_ratio)
        try:
            _ = problem.ratios
        except NoOverlapError as error:
            return Contender(name, problem, why=str(error))
        measured = overlap(problem)
        if coded(measured.warnings, "mean-ratio"):
            return Contender(name, problem, why=WRONG_RATIOS, warnings=measured.warnings)
        known = rules(problem, measured, "lower", strict=self.strict)
        names = tuple(dict.fromkeys(rule.parts[0].estimator for rule in known))
        if not names or "mb" in names:
            why = "the logs carry almost no information about it, so only a model could judge it"
            return Contender(name, problem, why=why, warnings=measured.warnings)
        return Contender(name, problem, names, warnings=measured.warnings)


def candidates(source: Source, policies: Mapping[str, Any], baseline: Any) -> tuple[list[Contender], Baseline]:
    """The candidates, and what they are compared with; a baseline that is one of the policies is no candidate."""
    if not isinstance(policies, Mapping) or not 1 <= len(policies) <= MOST:
        raise BoundError(
            f"policies must be a mapping of 1 to {MOST} names to policies; got {len(policies)} policies"
            if isinstance(policies, Mapping)
            else f"policies must be a mapping of names to policies; got type {type(policies).__name__}"
        )
    named = {str(name): policy for name, policy in policies.items()}
    known = _baseline(source, named, baseline)
    kept = {name: policy for name, policy in named.items() if not (isinstance(baseline, str) and name == baseline)}
    if not kept:
        raise BoundError("policies must hold a candidate beside the baseline")
    return [source.contender(name, policy) for name, policy in kept.items()], known


def _baseline(source: Source, named: Mapping[str, Any], baseline: Any) -> Baseline:
    if isinstance(baseline, str):
        if baseline in named:
            return _policy(source, baseline, named[baseline])
        if baseline != "behavior":
            known = ("behavior", *named)
            raise BoundError(must_be_one_of("baseline", baseline, known, "a number", "a policy"))
        return Baseline("the policy that made the logs")
    if isinstance(baseline, (int, float, np.number)):
        if not np.isfinite(baseline):
            raise BoundError(f"baseline must be a finite number, a policy or a name; got {baseline!r}")
        return Baseline(f"a value of {float(baseline):.5g}", number=float(baseline))
    return _policy(source, "the policy given", baseline)


def _policy(source: Source, name: str, policy: Any) -> Baseline:
    one = source.contender(name, policy)
    if one.why:
        raise BoundError(f"the baseline, {name}, cannot be judged on these logs: {one.why}")
    return Baseline(name, policy=one)
