"""``tightrope compare``: names, baselines, exit codes and the page."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tightrope.cli import BAD_INPUT, app
from tightrope.domains import small

BONUS = small("bonus")
COMMON = ("--reward-range", 0, 1, "--n-resamples", 1000)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("logs")
    tightrope.write(BONUS.logs(400, rng=np.random.default_rng(0)), place / "logs.parquet")
    np.save(place / "good.npy", BONUS.candidate.table)
    np.save(place / "lazy.npy", np.tile([0.8, 0.2], (3, 1)))
    return place


@pytest.fixture
def call(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return lambda *words: CliRunner().invoke(app, ["compare", *map(str, words)], env={"COLUMNS": "120"})


def test_the_answer_comes_first(call):
    done = call("logs.parquet", "--policy", "good.npy", "--policy", "idle=lazy.npy", *COMMON)
    assert done.exit_code == 0
    assert done.stdout.startswith("Yes, at 95%: good is better than the policy that made the logs (approximate)\n")
    assert "idle" in done.stdout


@pytest.mark.parametrize(
    ("words", "kind", "code"),
    [
        (("--policy", "good.npy", "--policy", "lazy.npy"), "yes", 0),
        (("--policy", "lazy.npy"), "no", 4),
        (("--policy", "good.npy", "--baseline", 1.15), "cannot tell", 5),
        (("--policy", "good.npy", "--policy", "lazy.npy", "--baseline", "good"), "no", 4),
        (("--policy", "good.npy", "--baseline", "lazy.npy"), "yes", 0),
        (("--policy", "eval_log_prob", "--strict"), "yes", 0),
    ],
)
def test_the_exit_code_is_the_verdict(call, words, kind, code):
    extra = ("--max-step-ratio", 2) if "--strict" in words else ()
    done = call("logs.parquet", *words, *COMMON, *extra, "--exit-code", "--json")
    assert tightrope.Comparison.from_json(done.stdout).verdict.kind == kind
    assert done.exit_code == code
    assert call("logs.parquet", *words, *COMMON, *extra, "--json").exit_code == 0


def test_the_page_is_written(call, folder):
    done = call("logs.parquet", "--policy", "good.npy", *COMMON, "--report", "page.html", "--title", "Which?")
    assert done.exit_code == 0
    text = (folder / "page.html").read_text(encoding="utf-8")
    assert "Which?" in text
    assert "tightrope" in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "good.npy", "--policy", "good.npy"), "each name once"),
        (("--policy", "=good.npy"), "each name once"),
        (("--policy", "good.npy", "--title", "x"), "--title must come with --report"),
        (("--policy", "good.npy", "--baseline", "nan"), "baseline must be a finite number"),
        (("--policy", "good.npy", "--baseline", "behaviour"), "got 'behaviour'. Did you mean \"behavior\"?"),
        (("--policy", "good.npy", "--baseline", "nonsense"), '--baseline must be "behavior", a number, the name of a'),
        (("--policy", "no_such_column"), "no_such_column"),
        (("--policy", "good.npy", "--confidence", 1.5), "confidence must lie between"),
    ],
)
def test_bad_input_is_refused(call, words, message):
    done = call("logs.parquet", *words, *COMMON)
    assert done.exit_code == BAD_INPUT
    assert message in done.stderr
