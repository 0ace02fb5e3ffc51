"""``tightrope plan``: the number first, then the tables."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tightrope.cli import BAD_INPUT, NO_ANSWER, app
from tightrope.domains import small

CLINIC = small("clinic")
COMMON = ("--policy", "new.npy", "--reward-range", 0, 1, "--n-resamples", 500)


@pytest.fixture
def call(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tightrope.write(CLINIC.logs(150, rng=np.random.default_rng(1)), "logs.parquet")
    np.save("new.npy", CLINIC.candidate.table)
    return lambda *words: CliRunner().invoke(app, ["plan", *map(str, words)], env={"COLUMNS": "120"})


def test_the_answer_comes_first(call):
    done = call("logs.parquet", *COMMON, "--effect", 0.05, "--risk", 0.02, "--report", "page.html")
    assert done.exit_code == 0
    assert done.stdout.startswith("About ")
    assert "candidate's share" in done.stdout
    with open("page.html", encoding="utf-8") as page:
        assert "How many more episodes?" in page.read()


def test_json_is_the_record(call):
    done = call("logs.parquet", *COMMON, "--better-than", 0.3, "--json")
    assert tightrope.Plan.from_json(done.stdout).kind == "settled"


def test_bad_input_and_no_answer(call):
    assert call("logs.parquet", *COMMON, "--better-than", "today").exit_code == BAD_INPUT
    assert call("logs.parquet", *COMMON, "--chance", 0.2).exit_code == BAD_INPUT
    bare = ("--policy", "new.npy", "--n-resamples", 500, "--strict")
    assert call("logs.parquet", *bare, "--effect", 0.1).exit_code == NO_ANSWER
