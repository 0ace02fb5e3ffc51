"""What the oracle speaks of: one bound among many, its span or its refusal, and the logs as plain arrays."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Any, NamedTuple

import numpy as np

from tests.bound_oracle import Number, Span
from tests.fuzz.questions import Question


class Key(NamedTuple):
    """One bound among all that can be asked for."""

    what: str  # "value" or "gain"
    side: str
    estimator: str
    method: str


@dataclass(frozen=True)
class Refused:
    """There must be no bound, and why."""

    why: str


@dataclass(frozen=True)
class Bounds:
    """The span of a bound, of the estimate beside it, and how many replicates are undefined."""

    value: Span
    estimate: Number
    error: Number | None = None  # the estimate's standard error
    undefined: tuple[int, int] = (0, 0)


Expected = Bounds | Refused | None  # None: not worked out here


class Logs:
    """A question's logs as arrays (n, horizon), and what was declared of them."""

    def __init__(self, question: Question):
        self.question, self.horizon, self.discount = question, question.horizon, question.discount
        self.cut = [question.is_cut(e) for e in question.episodes]
        # What was cut off is taken to have ended there; exact bounds allow for what may have followed.
        each = zip(question.episodes, self.cut, strict=True)
        self.episodes = [replace(e, terminated=e.terminated or c) for e, c in each]
        self.delta = 1 - question.confidence
        self.ratios = np.array([[e.ratio(t) for t in range(self.horizon)] for e in self.episodes])
        self.rewards = np.array([[e.reward(t) for t in range(self.horizon)] for e in self.episodes])
        self.returns = np.array([e.discounted_return(self.discount) for e in self.episodes])
        self.discounts = np.array([self.discount**t for t in range(self.horizon)])
        self.total = float(self.discounts.sum())

    @property
    def n(self) -> int:
        return len(self.episodes)

    @property
    def step_range(self) -> Span:
        """What was declared of a reward, and the 0 of a step after an early end."""
        low, high = _ends(self.question.reward_range)
        return (low, high) if self.horizon == 1 else (min(low, 0.0), max(high, 0.0))

    @property
    def value_range(self) -> Span:
        """What was declared of the return, or follows from what was declared of a reward."""
        if self.question.return_range is not None:
            return _ends(self.question.return_range)
        low, high = self.step_range
        return low * self.total, high * self.total

    def possible(self, what: str, estimate: Number) -> Number:
        """The estimate as it is shown: the nearest value that what was declared leaves possible."""
        low, high = self.value_range
        low, high = (low - high, high - low) if what == "gain" else (low, high)
        return replace(estimate, value=min(max(estimate.value, low), high))

    def end(self, estimator: str, side: str) -> float:
        """The end of the range that IS and PDIS count from."""
        span = self.step_range if estimator == "pdis" else self.value_range
        return span[0] if side == "lower" else span[1]


def _ends(span: Any) -> Span:
    low, high = (None, None) if span is None else span
    return -inf if low is None else low, inf if high is None else high
