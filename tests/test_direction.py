"""The side to which a weighted estimator leans in a small sample, by where the candidate lies."""

import re
from dataclasses import replace

import numpy as np
import pytest

from tightrope.advice import _direction_line
from tightrope.diagnostics import summarize
from tightrope.domains import small
from tightrope.records import Bound


@pytest.mark.parametrize(
    ("estimate", "side", "words"),
    [
        (5.0, "lower", "better than the behaviour policy; weighted estimators lean .* here the safe side"),
        (5.0, "upper", "better than the behaviour policy; weighted estimators lean .* here the unsafe side"),
        (-5.0, "lower", "worse than the behaviour policy; weighted estimators lean .* here the unsafe side"),
        (-5.0, "upper", "worse than the behaviour policy; weighted estimators lean .* here the safe side"),
        (1.0, "lower", "not told apart"),
    ],
)
def test_the_lean_towards_the_behaviour_policy(estimate, side, words):
    """Below a better candidate lies the behaviour policy: an estimate drawn there makes a lower bound safe."""
    summary = replace(
        summarize(small("bonus").logs(20, rng=np.random.default_rng(0))), return_mean=0.0, return_error=0.3
    )
    bound = Bound(estimate - 1, side, 0.95, estimate, "pdwis", "bca", "approximate", 0.4)
    (line,) = _direction_line(summary, [bound])
    assert re.search(words, line), line
