"""What every bound must be, from the slow definitions: a span, or that it must be refused."""

from __future__ import annotations

import numpy as np

from tests.fuzz.bootstrap import Bootstrap
from tests.fuzz.exact import exact
from tests.fuzz.questions import EXACT, Question
from tests.fuzz.terms import Expected, Key, Logs, Refused


class Oracle:
    """All bounds of one question; ``weights`` (B, n) are the rows that the bootstrap draws."""

    def __init__(self, question: Question, weights: np.ndarray):
        self.logs = Logs(question)
        self.bootstrap = Bootstrap(self.logs, weights)

    def expected(self, key: Key) -> Expected:
        """The bound, or that there is none."""
        if key.estimator != "mb" and not self.logs.ratios[:, -1].any():
            return Refused("no overlap")
        return exact(self.logs, key) if key.method in EXACT else self.bootstrap.expected(key)
