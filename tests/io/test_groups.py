"""Columns of clusters and strata, columns that look like it, and episodes that follow each other too closely."""

from __future__ import annotations

import numpy as np
import pytest

import tightrope
from tightrope import DataError
from tightrope.base import clusters
from tightrope.io.groups import serial_notes

ROWS = {
    "episode": [0, 0, 1, 2, 2, 3],
    "t": [0, 1, 0, 0, 1, 0],
    "reward": [1.0, 0.0, 1.0, 1.0, 2.0, 0.0],
    "behavior_prob": [0.5] * 6,
    "eval_prob": [0.5] * 6,
    "terminated": [False, True, True, False, True, True],
}
PATIENTS = ["ann", "ann", "bob", "ann", "ann", "eve"]
FOUR, SITES = ["ann", "ann", "bob", "cid", "cid", "eve"], [1, 1, 1, 2, 2, 2]


@pytest.fixture(autouse=True)
def _small_strata(monkeypatch):
    monkeypatch.setattr(clusters, "FEWEST", 2)


def codes(data):
    return [note.code for note in data.notes]


def test_each_episode_has_its_cluster():
    logs = tightrope.read({**ROWS, "patient": PATIENTS}, cluster="patient")
    assert logs.clusters.tolist() == ["ann", "bob", "ann", "eve"]
    assert "cluster: 'patient'" in logs.reading
    assert codes(logs) == ["clustered"]
    assert logs.notes[0].numbers == {"clusters": 3.0, "smallest": 1.0, "largest": 2.0}
    assert logs.take([2, 0]).clusters.tolist() == ["ann", "ann"]


def test_rows_in_any_order():
    order = [5, 3, 0, 2, 4, 1]
    rows = {name: [column[i] for i in order] for name, column in {**ROWS, "patient": PATIENTS}.items()}
    logs = tightrope.read(rows, cluster="patient")
    assert logs.clusters.tolist() == ["ann", "bob", "ann", "eve"]
    assert logs.arrival.tolist() == [2, 3, 1, 0]  # the rows of the first steps


def test_clusters_outlive_a_file(tmp_path):
    logs = tightrope.read({**ROWS, "patient": FOUR, "site": SITES}, cluster="patient", strata="site")
    assert logs.strata.tolist() == [1, 1, 2, 2]
    tightrope.write(logs, tmp_path / "logs.parquet")
    again = tightrope.read(tmp_path / "logs.parquet", cluster="cluster", strata="strata")
    assert again.clusters.tolist() == logs.clusters.tolist()
    assert again.strata.tolist() == logs.strata.tolist()
    shared = tightrope.read({**ROWS, "patient": PATIENTS}, cluster="patient")
    tightrope.write(shared, tmp_path / "logs.parquet")
    assert "group-column" in codes(tightrope.read(tmp_path / "logs.parquet"))


@pytest.mark.parametrize(
    ("columns", "settings", "words"),
    [
        ({"patient": PATIENTS}, {"cluster": "patients"}, 'Did you mean "patient"'),
        ({"patient": ["a", "b", "b", "a", "a", "c"]}, {"cluster": "patient"}, "changes to b at episode 0, step 1"),
        ({"patient": [[1, 2]] * 6}, {"cluster": "patient"}, "holds lists"),
        ({"patient": ["a", None, "b", "a", "a", "c"]}, {"cluster": "patient"}, "missing or NaN at episode 0, step 1"),
        ({"patient": PATIENTS, "site": SITES}, {"cluster": "patient", "strata": "site"}, "one stratum"),
        ({"site": [1, 1, 1, 1, 1, 2]}, {"strata": "site"}, "stratum 2 holds 1"),
    ],
)
def test_columns_that_are_no_clusters(columns, settings, words):
    with pytest.raises(DataError, match=words):
        tightrope.read({**ROWS, **columns}, **settings)


@pytest.mark.parametrize(
    ("name", "values", "warned"),
    [
        ("patient", PATIENTS, True),
        ("Patient_ID", PATIENTS, True),
        ("user_id", [7, 7, 8, 7, 7, 9], True),
        ("day", ["mon", "mon", "tue", "tue", "tue", "tue"], True),
        ("weight", [7, 7, 8, 7, 7, 9], False),
        ("patient", ["a"] * 6, False),  # one for all says nothing
        ("patient", ["a", "a", "b", "c", "c", "d"], False),  # each has its own
        ("patient", ["a", "b", "b", "a", "a", "c"], False),  # changes within an episode
        ("patient", ["a", None, "b", "a", "a", "c"], False),
    ],
)
def test_a_column_of_groups_that_is_not_used_is_mentioned(name, values, warned):
    logs = tightrope.read({**ROWS, name: values})
    assert ("group-column" in codes(logs)) == warned
    if warned:
        assert f"--cluster {name}" in logs.notes[0].text
        assert f"not used: {name!r}" in logs.reading
        bound = tightrope.lower_bound(logs, estimator="is", method="percentile", n_resamples=100)
        assert "group-column" in [warning.code for warning in bound.warnings]


def test_episodes_that_follow_each_other_too_closely():
    rng = np.random.default_rng(0)
    slow = np.cumsum(rng.standard_normal(200))
    (note,) = serial_notes(slow, np.arange(200))
    assert note.numbers["correlation"] > 0.9
    shuffled = rng.permutation(200)
    assert serial_notes(slow[shuffled], shuffled)  # the order is that of arrival
    assert not serial_notes(slow[shuffled], np.arange(200))
    assert serial_notes(np.tile([0.0, 1.0], 50), np.arange(100))  # alternating is no chance either
    assert not serial_notes(np.ones(100), np.arange(100))
    assert not serial_notes(slow[:29], np.arange(29))


@pytest.mark.parametrize("n", [30, 200])
@pytest.mark.parametrize("draw", ["standard_normal", "integers"])
def test_chance_alone_is_seldom_called_dependence(n, draw):
    rng = np.random.default_rng(1)
    values = (
        rng.standard_normal((4000, n)) if draw == "standard_normal" else rng.integers(0, 2, (4000, n)).astype(float)
    )
    alarms = sum(bool(serial_notes(row, np.arange(n))) for row in values)
    assert alarms <= 12  # four expected


def test_with_clusters_the_order_of_clusters_counts():
    effects = np.repeat(np.cumsum(np.random.default_rng(0).standard_normal(60)), 3)
    rows = {"reward": effects, "pscore": [0.5] * 180, "eval_prob": [0.5] * 180, "patient": np.repeat(np.arange(60), 3)}
    assert codes(tightrope.read(rows, cluster="patient")) == ["clustered", "serial"]
    still = {**rows, "reward": np.repeat(np.random.default_rng(0).standard_normal(60), 3)}
    assert codes(tightrope.read(still)) == ["group-column", "serial"]
    assert codes(tightrope.read(still, cluster="patient")) == ["clustered"]
