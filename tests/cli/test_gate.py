"""The exit code as the verdict, a report that is a page, and the workflow of the docs."""

from __future__ import annotations

import dataclasses
import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tests.logs import written_bonus
from tightrope.base.records import VerdictKind
from tightrope.cli import BAD_INPUT, NO_ANSWER, app
from tightrope.cli.shared import VERDICTS
from tightrope.domains import small

PAGE = Path(__file__).parents[2] / "docs" / "tutorials" / "gate.md"
COMMON = ("--horizon", 8, "--discount", 0.95, "--reward-range", 0, 1, "--n-resamples", 400)


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return written_bonus(tmp_path_factory.mktemp("logs"), 300)


def value(logs):
    return tightrope.evaluate(tightrope.read(logs, reward_range=(0, 1)), n_resamples=400).believed[0].estimate


@pytest.mark.parametrize(("shift", "kind", "code"), [(-3, "yes", 0), (3, "no", 4), (0, "cannot tell", 5)])
def test_the_exit_code_is_the_verdict(logs, shift, kind, code):
    asked = ("evaluate", logs, *COMMON, "--threshold", value(logs) + shift, "--json")
    done = call(*asked, "--exit-code")
    assert tightrope.Evaluation.from_json(done.stdout).verdict.kind == kind
    assert done.exit_code == code
    assert call(*asked).exit_code == 0  # an answer, whichever it is


def test_the_exit_code_of_logs_that_cannot_answer(logs):
    done = call("evaluate", logs, "--strict", "--method", "bca", "--threshold", 0, "--exit-code", "--json")
    assert tightrope.Evaluation.from_json(done.stdout).verdict.kind == "broken"
    assert done.exit_code == NO_ANSWER


def test_the_exit_code_of_a_gain(logs):
    done = call("evaluate", logs, *COMMON, "--baseline", "behavior", "--exit-code", "--json")
    assert done.exit_code == VERDICTS[tightrope.Evaluation.from_json(done.stdout).verdict.kind]


def test_only_a_yes_passes_and_no_code_is_that_of_a_failed_program():
    assert set(VERDICTS) | {"bound"} == set(VerdictKind.__args__)
    assert [kind for kind, code in VERDICTS.items() if code == 0] == ["yes"]
    assert len(set(VERDICTS.values())) == len(VERDICTS)
    assert not {1, BAD_INPUT} & set(VERDICTS.values())


def test_a_failed_program_is_no_verdict(logs, monkeypatch):
    monkeypatch.setattr(tightrope, "evaluate", lambda *a, **k: 1 / 0)
    done = call("evaluate", logs, *COMMON, "--threshold", 0, "--exit-code")
    assert done.exit_code not in VERDICTS.values()


def test_an_exit_code_without_a_question(logs):
    done = call("evaluate", "nowhere.parquet", "--exit-code")
    assert done.exit_code == BAD_INPUT
    assert "--exit-code must come with --threshold VALUE or --baseline behavior" in done.output


@pytest.mark.parametrize("name", ["out.pdf", "out", "out.html.txt", "logs.parquet"])
def test_a_report_that_is_no_page_is_refused_before_anything_is_read(name, tmp_path):
    done = call("evaluate", tmp_path / "nowhere.parquet", "--report", tmp_path / name)
    assert done.exit_code == BAD_INPUT
    assert "--report must end in .html" in done.output
    assert name in done.output
    assert list(tmp_path.iterdir()) == []


def test_the_exit_codes_are_documented():
    told = " ".join(call("evaluate", "--help").output.split())
    page = PAGE.read_text(encoding="utf-8")
    assert "0 yes; 4 no; 5 cannot tell" in told
    for kind, code in VERDICTS.items():
        assert re.search(rf"^\| {code} \| {'these logs cannot answer' if kind == 'broken' else kind}", page, re.M), kind


@pytest.mark.parametrize(("better", "code"), [(True, 0), (False, 4)])
@pytest.mark.parametrize(("place", "name"), [(0, "evaluate"), (1, "compare")])
def test_the_workflow_of_the_docs_lets_a_better_policy_pass_only(place, name, better, code, tmp_path, monkeypatch):
    """Its commands, as they stand there, on logs in which action 1 earns 1 and action 0 nothing."""
    page = PAGE.read_text(encoding="utf-8")
    workflow = re.findall(r"^```yaml\n(.*?)^```", page, re.M | re.S)[place]
    (command,) = re.findall(r"run: >-\n((?: {10}.*\n)+)", workflow)
    words = shlex.split(command)
    assert words[:2] == ["tightrope", name]
    assert "--exit-code" in words
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    action = rng.integers(0, 2, 800)
    old = {"state": np.zeros(800, int), "action": action, "reward": action * 1.0, "behavior_prob": np.full(800, 0.5)}
    tightrope.write(tightrope.read(old, one_step=True), "logs.parquet")
    chance = 0.9 if better else 0.1
    (tmp_path / "policy").mkdir()
    for table, own in (("table", chance), ("a", 0.2), ("b", chance), ("c", 0.1)):
        (tmp_path / "policy" / f"{table}.csv").write_text(f"state,action,prob\n0,0,{1 - own}\n0,1,{own}\n")
    done = call(*words[1:])
    assert done.exit_code == code, done.output
    assert (tmp_path / "gate.html").exists()


def test_a_yes_by_a_model_alone_opens_no_gate(tmp_path):
    """Without probabilities only a model is left: a gate needs more, unless the model was asked for."""
    walker = small("walker")
    logs = walker.logs(200, rng=np.random.default_rng(0))
    blind = dataclasses.replace(logs, behavior_log_probs=None, behavior=None, eval_log_probs=None)
    tightrope.write(blind, tmp_path / "logs.parquet")
    np.save(tmp_path / "table.npy", walker.candidate.table)
    words = ["evaluate", tmp_path / "logs.parquet", "--policy", tmp_path / "table.npy", "--horizon", "12"]
    words += ["--return-range", "-32", "0", "--threshold", "-20", "--exit-code", "--n-resamples", "200"]
    alone = CliRunner().invoke(app, [str(word) for word in words])
    assert alone.exit_code == 5
    assert alone.stdout.startswith("Yes, at 95%, if the model is right: ")
    assert "rests on a model alone, so it opens no gate" in alone.stderr
    asked = CliRunner().invoke(app, [str(word) for word in [*words, "--estimator", "mb"]])
    assert asked.exit_code == 0
