"""``tightrope tail``: the answer in sentences, the same numbers as JSON, and a picture."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tightrope.cli import BAD_INPUT, app
from tightrope.domains import small


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    walker = small("walker")
    path = tmp_path_factory.mktemp("tail") / "logs.parquet"
    tightrope.write(walker.logs(300, rng=np.random.default_rng(2)), path)
    return str(path)


def run(*words):
    return CliRunner().invoke(app, ["tail", *words])


def test_what_is_asked_is_answered_first_in_a_sentence(logs):
    result = run(logs, "--level", "-20", "--cvar", "0.1", "--return-range", "-32", "-6", "--strict")
    assert result.exit_code == 0, result.output
    first, second, third = [line for line in result.output.splitlines() if not line.startswith("read:")][:3]
    dataset = tightrope.read(logs, return_range=(-32, -6))
    shape = tightrope.distribution(dataset, levels=[-20.0], shares=[0.1], points=0, strict=True)
    assert first.startswith("A return below -20 has a probability of at most 0.")
    assert float(first.split("at most ")[1].split()[0]) == pytest.approx(shape.below(-20.0).upper, rel=1e-3)
    assert float(first.split("at most ")[1].split()[0]) >= shape.below(-20.0).upper  # rounded away from the estimate
    assert second.startswith("The lowest 10 % of returns have a mean of at least -")
    assert third == "Exact: all lines hold together with confidence 0.95."


def test_without_a_question_the_usual_ones_are_answered(logs):
    plain = json.loads(run(logs, "--json", "--n-resamples", "200").stdout)
    assert [(tail["kind"], tail["at"]) for tail in plain["tails"]] == [
        *(("quantile", p) for p in (0.05, 0.25, 0.5, 0.75, 0.95)),
        ("cvar", 0.1),
    ]
    assert plain["guarantee"] == "approximate"


def test_the_picture_is_written_and_its_name_checked_before_any_work(logs, tmp_path):
    path = tmp_path / "tail.svg"
    assert run(logs, "--picture", str(path), "--n-resamples", "200").exit_code == 0
    assert path.read_text(encoding="utf-8").startswith("<svg")
    wrong = run(logs, "--picture", str(tmp_path / "tail.png"))
    assert wrong.exit_code == BAD_INPUT
    assert "--picture must end in .svg" in wrong.output


def test_a_share_that_is_none_is_refused(logs):
    result = run(logs, "--cvar", "10")
    assert result.exit_code == BAD_INPUT
    assert "shares (--cvar) must be a number between 0 and 1, such as 0.1; got 10.0" in result.output
