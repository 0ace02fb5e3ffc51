"""--cluster and --strata: as read(cluster=..., strata=...)."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tightrope.base import clusters
from tightrope.cli import app


@pytest.fixture(autouse=True)
def _small_strata(monkeypatch):
    monkeypatch.setattr(clusters, "FEWEST", 2)


def rows(n=40):
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
    lines = [",".join(table), *(",".join(str(column[i]) for column in table.values()) for i in range(40))]
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
