"""--cluster and --strata: as read(cluster=..., strata=...)."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tightrope.base import clusters
from tightrope.cli import NO_ANSWER, app
from tightrope.domains import small


@pytest.fixture(autouse=True)
def _small_strata(monkeypatch):
    monkeypatch.setattr(clusters, "FEWEST", 2)


def rows(n=80):
    rng = np.random.default_rng(0)
    patients = np.repeat(np.arange(n // 4), 4)
    return {
        "reward": (rng.random(n // 4) < 0.5)[patients] * 1.0,
        "pscore": np.full(n, 0.5),
        "eval_prob": rng.choice([0.4, 0.6], n),
        "patient": patients,
        "site": patients % 2,
    }


def test_the_options_are_those_of_read(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table = rows()
    lines = [",".join(table), *(",".join(str(column[i]) for column in table.values()) for i in range(80))]
    (tmp_path / "logs.csv").write_text("\n".join(lines))
    asked = ["evaluate", "logs.csv", "--estimator", "is", "--method", "percentile", "--n-resamples", "200", "--json"]
    plain = CliRunner().invoke(app, asked)
    by_patient = CliRunner().invoke(app, [*asked, "--cluster", "patient"])
    within = CliRunner().invoke(app, [*asked, "--cluster", "patient", "--strata", "site"])
    assert (plain.exit_code, by_patient.exit_code, within.exit_code) == (0, 0, 0)
    values = [json.loads(result.stdout)["bounds"][0]["value"] for result in (plain, by_patient, within)]
    expected = [
        tightrope.lower_bound(
            tightrope.read(rows(), **groups), estimator="is", method="percentile", n_resamples=200
        ).value
        for groups in ({}, {"cluster": "patient"}, {"cluster": "patient", "strata": "site"})
    ]
    assert values == expected
    assert values[1] < values[0]
    assert "group-column" in plain.stdout
    assert "clustered" in by_patient.stdout
    assert CliRunner().invoke(app, [*asked, "--cluster", "nobody"]).exit_code == 2


def clinic(folder):
    """Visits of 40 patients, four each, with policies as files; the words that name them."""
    problem = small("clinic")
    logs = replace(problem.logs(160, rng=np.random.default_rng(5)), clusters=np.arange(160) // 4)
    tightrope.write(logs, folder / "visits.parquet")
    np.save(folder / "new.npy", problem.candidate.table)
    np.save(folder / "today.npy", problem.behavior.table)
    return ["--cluster", "cluster", "--reward-range", "0", "1"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (["compare", "--policy", "new.npy", "--behavior-policy", "today.npy"], "40 clusters, 160 episodes"),
        (["tail", "--policy", "new.npy", "--level", "1"], "40 clusters, 160 episodes"),
        (
            ["improve", "--out", "better.csv", "--behavior-policy", "today.npy"],
            "24 others, 96 episodes, tested it, once",
        ),
        (["plan", "--policy", "new.npy", "--behavior-policy", "today.npy", "--effect", "0.1"], "clusters ("),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_every_decision_takes_clusters_and_says_so(tmp_path, monkeypatch, command, words):
    monkeypatch.chdir(tmp_path)
    options = clinic(tmp_path)
    name, *rest = command
    result = CliRunner().invoke(app, [name, "visits.parquet", *rest, *options])
    assert result.exit_code in (0, NO_ANSWER), result.output
    assert words in " ".join(result.stdout.split())
    asked = [name, "visits.parquet", *rest, *options, "--json"]
    assert json.loads(CliRunner().invoke(app, asked).stdout)["n_clusters"] == 40


def test_demands_go_by_clusters(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    clinic(tmp_path)
    asked = ["constrain", "visits.parquet", "--policy", "new.npy", "--demand", "reward>=0.3", "--range", "reward=0,1"]
    by, blind = (
        json.loads(CliRunner().invoke(app, [*asked, *more, "--json"]).stdout)["demands"][0]["bound"]["value"]
        for more in (["--cluster", "cluster"], [])
    )
    assert by != blind


def test_a_monitor_refuses_clusters_in_plain_words(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    options = clinic(tmp_path)
    result = CliRunner().invoke(app, ["monitor", "state.json", "visits.parquet", "--policy", "new.npy", *options])
    assert result.exit_code == 2
    assert "got 40 clusters, 160 episodes" in " ".join(result.output.split())
    assert not (tmp_path / "state.json").exists()
