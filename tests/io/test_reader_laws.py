"""Laws of reading: what the logs do not hold is not made up, and how episodes ended is kept as it was."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope.base.errors import DataError

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
