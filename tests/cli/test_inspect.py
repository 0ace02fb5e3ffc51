"""`inspect` describes whatever it is given, and says what each thing that is missing rules out."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from typer.testing import CliRunner

import tightrope
from tests.io.test_places import csv_text
from tests.logs import POLICY, columns
from tightrope.cli import BAD_INPUT, app
from tightrope.estimators import USUAL
from tightrope.evaluation.gaps import gaps


def call(*words, **options):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"}, **options)


def missing_in(**changes):
    options = {name: changes.pop(name) for name in ("horizon", "reward_range") if name in changes}
    return {one.what for one in gaps(tightrope.read(columns(**changes), **options), has_candidate=False)}


def test_each_missing_thing_is_listed_and_no_other():
    whole = {"next_state": columns()["state"], "horizon": 3, "reward_range": (-1, 2)}
    assert missing_in(**whole) == {"candidate"}
    for change, what in (
        ({"state": None}, "states"),
        ({"action": None}, "actions"),
        ({"behavior_prob": None}, "behaviour probabilities"),
        ({"horizon": None}, "declared horizon"),
        ({"reward_range": None}, "declared range"),
        ({"next_state": None}, "state after the last step"),
        ({"state": np.linspace(0, 1, 9), "next_state": np.linspace(0, 1, 9)}, "numbered or named states"),
        ({"state": list("abcabcabc"), "next_state": list("abcabcabc")}, "numbers for names"),
    ):
        assert missing_in(**(whole | change)) == {"candidate", what}, what


def test_what_is_said_to_be_ruled_out_is():
    """No behaviour probabilities: every estimator but MB refuses."""
    logs = tightrope.read(columns(behavior_prob=None))
    for name in USUAL:
        if name == "mb":
            assert np.isfinite(tightrope.estimate(logs, POLICY, estimator=name))
        else:
            with pytest.raises(tightrope.TightropeError, match="no behaviour probabilities"):
                tightrope.estimate(logs, POLICY, estimator=name)
    bare = tightrope.read(columns())
    for kept in ("reward_range", "horizon"):  # exact bounds need both
        logs = tightrope.read(columns(), **{kept: {"reward_range": (-1, 2), "horizon": 3}[kept]})
        with pytest.raises(tightrope.TightropeError):
            tightrope.lower_bound(logs, POLICY, estimator="is", method="betting")
    assert np.isfinite(tightrope.lower_bound(bare, POLICY, estimator="is", method="t").value)


def test_the_command_says_it(tmp_path):
    path = tmp_path / "logs.csv"
    pa.csv.write_csv(pa.table(columns(behavior_prob=None)), path)
    done = call("inspect", path)
    assert done.exit_code == 0, done.output
    assert "- no behaviour probabilities: rules out all estimators but MB" in done.output
    assert "--behavior auto" in done.output
    assert "- no candidate: rules out every estimate and bound. Give --policy" in done.output
    told = json.loads(call("inspect", path, "--json").stdout)
    assert "behaviour probabilities" in [one["what"] for one in told["missing"]]
    np.save(tmp_path / "policy.npy", POLICY)
    with_candidate = call("inspect", path, "--policy", tmp_path / "policy.npy")
    assert with_candidate.exit_code == 0, with_candidate.output  # nothing to compare with, and that is said
    assert "no candidate" not in with_candidate.output


@pytest.mark.parametrize("from_stdin", [False, True])
def test_what_cannot_be_read_as_logs_is_described_all_the_same(from_stdin, tmp_path):
    table = pa.table({"user": list("abc"), "when": [1, 2, 3], "reward": [0.5, None, 1.0]})
    text = csv_text(table)
    (tmp_path / "other.csv").write_bytes(text)
    done = call("inspect", "-", input=text) if from_stdin else call("inspect", tmp_path / "other.csv")
    assert done.exit_code == BAD_INPUT
    for words in ("user", "string", "when", "int64", "reward", "not used", "the logs must have columns 'episode', 't'"):
        assert words in done.output, words
    told = call("inspect", tmp_path / "other.csv", "--json")
    assert [one["column"] for one in json.loads(told.stdout)["columns"]] == ["user", "when", "reward"]
    assert "must have columns" in json.loads(told.stdout)["error"]


def test_what_is_no_table_has_its_own_message(tmp_path):
    done = call("inspect", tmp_path / "none.csv")
    assert done.exit_code == BAD_INPUT
    assert done.output.strip().endswith("no such file")


# -- refused before anything is read, and the shell -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--estimator", "magick"), 'estimator must be "is"'),
        (("--method", "magic"), 'method must be "percentile"'),
        (("--model", "magic"), 'model must be "auto", "tabular"'),
        (("--confidence", "95"), "confidence must lie between 0.5 and 1"),
        (("--n-resamples", "0"), "n_resamples must be a whole number, at least 1"),
        (("--n-resamples", "10"), "n_resamples is 10, too few for confidence 0.95; at least 20"),
        (("--estimator", "wis", "--method", "betting"), "no bound of betting is valid for wis"),
        (("--estimator", "is", "--method", "robust"), "robust needs mb"),
    ],
)
def test_settings_that_cannot_work_are_refused_before_the_logs_are_read(words, message):
    done = call("evaluate", "nowhere.parquet", *words)
    assert done.exit_code == BAD_INPUT
    assert message in " ".join(done.output.split())
    assert "no such file" not in done.output


def test_settings_that_work_are_not_refused():
    for words in (("--method", "t", "--n-resamples", "5"), ("--method", "betting", "--n-resamples", "5")):
        assert "no such file" in call("evaluate", "nowhere.parquet", *words).output


def test_options_are_grouped():
    shown = call("evaluate", "--help").output
    panels = ["The policy", "How it is computed", "The logs", "The question", "What comes out"]
    places = [shown.index(f"─ {panel} ─") for panel in panels]
    assert places == sorted(places)
    assert shown.index("─ The logs ─") < shown.index("--reward-range") < shown.index("─ The question ─")


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("evaluate --estimator w", {"wis", "wdr"}),
        ("evaluate --method be", {"betting", "betting-mixture"}),
        ("in", {"inspect"}),
    ],
)
def test_the_shell_completes(words, offered):
    line = f"tightrope {words}"
    setting = {"_TIGHTROPE_COMPLETE": "complete_bash", "COMP_WORDS": line, "COMP_CWORD": str(len(line.split()) - 1)}
    done = CliRunner().invoke(app, [], env=os.environ | setting, prog_name="tightrope")
    assert set(done.output.split()) == offered


def test_a_candidate_that_cannot_be_compared_costs_the_comparison_and_not_the_description(tmp_path):
    path = tmp_path / "logs.csv"
    pa.csv.write_csv(pa.table(columns()), path)
    np.save(tmp_path / "small.npy", [[0.5, 0.5]])
    done = call("inspect", path, "--policy", tmp_path / "small.npy")
    assert done.exit_code == BAD_INPUT
    assert "3, of 3 to 3 steps" in done.output
    assert "state must lie between 0 and 0" in done.output
