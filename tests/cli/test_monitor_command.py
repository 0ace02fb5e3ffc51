"""The command monitor: batches, alarms, exit codes, its plot, and what it refuses."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tightrope.cli import app
from tightrope.cli.monitor import _no_alarm
from tightrope.domains import small

WALKER = small("walker")
RANGES = ["--reward-range", "-21", "0", "--return-range", "-32", "-6.28"]
POLICIES = ["--policy", "new.npy", "--behavior-policy", "old.npy"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.save("new.npy", WALKER.candidate.table)
    np.save("old.npy", WALKER.behavior.table)
    for number in range(4):
        logs = WALKER.logs(60, rng=np.random.default_rng(number))
        ids = np.arange(60 * number, 60 * number + 60)
        tightrope.write(replace(logs, episode_ids=ids, eval_log_probs=None), f"day-{number}.parquet")
    return tmp_path


def run(*arguments):
    return CliRunner().invoke(app, ["monitor", "state.npz", *arguments])


def test_batches_one_by_one_or_together_give_the_same(folder):
    assert run("day-0.parquet", *POLICIES, *RANGES).exit_code == 0
    for number in (1, 2, 3):
        result = run(f"day-{number}.parquet", *POLICIES, "--json")
    (folder / "state.npz").unlink()
    files = [f"day-{number}.parquet" for number in range(4)]
    together = run(*files, *POLICIES, *RANGES, "--json")
    assert json.loads(together.stdout) == json.loads(result.stdout)
    answer = json.loads(together.stdout)
    assert [look["label"] for look in answer["looks"]] == ["day-0", "day-1", "day-2", "day-3"]
    assert answer["episodes"] == 240
    assert answer["lower"] < WALKER.true_value < answer["upper"]
    shown = run().stdout.splitlines()
    assert shown[0].startswith("After 240 episodes: ")
    assert "confidence 0.95 at all looks together" in shown[0]
    assert shown[2].split() == ["look", "episodes", "lower", "upper"]
    assert len(shown) == 7


@pytest.mark.parametrize(
    ("alarms", "code", "words"),
    [
        (["--above", "-31"], 0, "surely exceeds -31"),
        (["--above", "-7"], 5, "No alarm"),
        (["--below", "-6.5"], 4, "surely lies below -6.5"),
        (["--below", "-30"], 5, "No alarm"),
        (["--above", "-31", "--below", "-6.5"], 4, "surely lies below -6.5"),
        (["--above", "-31", "--below", "-30"], 0, "surely exceeds -31"),
    ],
)
def test_alarms(folder, alarms, code, words):
    run("day-0.parquet", "day-1.parquet", *POLICIES, *RANGES)
    result = run(*alarms, "--exit-code")
    assert result.exit_code == code
    assert words in result.stdout.splitlines()[0]


def test_the_plot_shows_both_bounds_and_the_limits(folder):
    run("day-0.parquet", *POLICIES, *RANGES, "--every", "20", "--plot", "bounds.svg", "--above", "-20")
    drawn = (folder / "bounds.svg").read_text()
    assert "lower bound" in drawn
    assert "upper bound" in drawn
    assert "above −20" in drawn
    assert drawn.count('class="bound"') == 4  # two lines and their names
    assert run("--plot", "bounds.png").exit_code == 2


def test_what_it_refuses(folder):
    refused = run()
    assert refused.exit_code == 2
    assert "must be a file that a monitor wrote" in refused.stderr
    assert not (folder / "state.npz").exists()
    run("day-0.parquet", *POLICIES, *RANGES)
    before = (folder / "state.npz").read_bytes()
    for arguments, words in (
        (["day-0.parquet", *POLICIES], "episode 0 was counted before, and so were 60 of these 60"),
        (["day-1.parquet", "--policy", "old.npy"], "candidate was"),
        (["day-1.parquet", *POLICIES, "--confidence", "0.9"], "confidence was 0.95 and is 0.9 now"),
        (["day-1.parquet", *POLICIES, "--return-range", "-32", "0"], "return_range was"),
        (["--exit-code"], "--exit-code must come with"),
    ):
        result = run(*arguments)
        assert result.exit_code == 2
        assert words in result.stderr
    assert (folder / "state.npz").read_bytes() == before
    assert run("day-0.parquet", "day-1.parquet", *POLICIES, "--skip-known").exit_code == 0
    assert "After 120 episodes" in run().stdout


@pytest.mark.parametrize(
    ("above", "below", "lines"),
    [
        (9.0, None, ["No alarm: the value surely does not lie above 9."]),
        (9.0, -9.0, ["No alarm: the value surely does not lie above 9 or below -9."]),
        (
            1.5,
            -9.0,
            [
                "No alarm: the value surely does not lie below -9.",
                "No alarm yet: whether the value lies above 1.5 is not sure.",
            ],
        ),
        (1.5, 1.6, ["No alarm yet: whether the value lies above 1.5 or below 1.6 is not sure."]),
        (None, None, []),
    ],
)
def test_what_is_surely_not_so_is_no_open_question(above, below, lines):
    assert _no_alarm(tightrope.Look(10, 1.0, 2.0), above, below) == lines


def test_logs_given_for_the_monitors_own_file(tmp_path):
    path = tmp_path / "ward.csv"
    path.write_text("episode,t\n1,0\n")
    done = CliRunner().invoke(app, ["monitor", str(path)])
    assert done.exit_code == 2
    assert "The monitor's own file comes first" in " ".join(done.output.split())
