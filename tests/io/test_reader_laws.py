"""Laws of reading: what the logs do not hold is not made up, and how episodes ended is kept as it was."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tightrope
from tests.fuzz import asking
from tests.fuzz.clothes import plain_dress
from tests.fuzz.questions import random_question
from tests.fuzz.tools import TOOLS
from tests.oracle import END
from tightrope.base.errors import DataError
from tightrope.io.sources import SOURCES

LOGS = {
    "episode": [0, 0, 1, 1, 1],
    "t": [0, 1, 0, 1, 2],
    "action": [0, 1, 1, 0, 1],
    "reward": [1.0, 0.0, 2.0, -1.0, 0.5],
}
PROBS = [0.5, 0.25, 0.8, 0.3, 0.6]


def test_the_candidates_probabilities_do_not_stand_in_for_the_loggers():
    """Without propensities every ratio would be 1, and the candidate's value that of the policy that made the logs."""
    logs = tightrope.read({**LOGS, "eval_prob": PROBS, "terminated": [0, 1, 0, 0, 1]})
    assert logs.behavior_log_probs is None
    np.testing.assert_allclose(logs.eval_log_probs, np.log(PROBS))
    with pytest.raises(DataError, match="the logs hold no behaviour probabilities"):
        tightrope.estimate(logs)


@pytest.mark.parametrize("name", ["logs.parquet", "logs.csv"])
def test_written_logs_say_how_episodes_ended(name, tmp_path):
    """At the horizon an episode may have ended for good or not, which a model counts; writing keeps it."""
    ends = [True, False, True, False, False]
    logs = tightrope.TrajectoryDataset(
        offsets=np.arange(6) * 2,
        rewards=np.arange(10.0),
        terminated=ends,
        horizon=2,
        behavior_log_probs=np.log(np.full(10, 0.5)),
    )
    tightrope.write(logs, tmp_path / name)
    assert tightrope.read(tmp_path / name, horizon=2).terminated.tolist() == ends


ROWS = [dict(zip(LOGS, row, strict=True)) for row in zip(*LOGS.values(), strict=True)]


@pytest.mark.parametrize("reader", SOURCES, ids=lambda reader: reader.__qualname__)
def test_a_reader_takes_its_own_kind_and_no_other(reader):
    """One that took a plain table would read everybody's logs its own way."""
    for source in (LOGS, pd.DataFrame(LOGS), pa.table(LOGS), ROWS, "logs.parquet", 3, None, object()):
        assert reader(source, {}) is None


def of_one_step(question):
    """The first step of every episode, as logs of a bandit."""
    steps = ("rewards", "behavior", "candidate", "states", "actions")
    first = [
        replace(e, **{name: getattr(e, name)[:1] for name in steps}, terminated=True, final=END)
        for e in question.episodes
    ]
    return question.changed(episodes=first, horizon=1, horizon_declared=True, finals=False)


@pytest.mark.parametrize("tool", TOOLS)
def test_logs_of_every_tool_give_the_same_bits(tool, tmp_path):
    """As our own columns do, in eight random logs that the tool can hold."""
    compared = 0
    for seed in range(200):
        rng = np.random.default_rng([seed, 7])
        question = random_question(rng) if seed % 2 else of_one_step(random_question(rng))
        dress, plain = TOOLS[tool](rng, question, tmp_path), plain_dress(question)
        if dress is None:
            continue
        both = [asking.read(each) for each in (dress, plain)]
        for name in ("lengths", "rewards", "terminated"):
            np.testing.assert_array_equal(*(getattr(logs, name) for logs in both))
        values = [tightrope.statistic(logs, plain.policy, estimator="pdwis").estimate for logs in both]
        np.testing.assert_array_equal(*values)
        compared += 1
        if compared == 8:
            return
    raise AssertionError(f"{tool} can hold {compared} of 200 random logs: too few to say anything")
