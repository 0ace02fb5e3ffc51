"""What reaches a terminal: whatever the logs are called, no control characters; whatever the encoding, an answer."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console
from typer.testing import CliRunner

import tightrope
from tests.logs import columns
from tightrope import TightropeError
from tightrope.base.errors import visible
from tightrope.cli import app
from tightrope.domains import small

ESC = "\x1b]0;owned\x07\x1b[2J\x9b31m\u202e\r"  # a title, a cleared screen, a colour, text turned around
CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def hostile(path, **changes):
    """Logs whose episodes, columns and actions are called by control sequences."""
    made = columns(
        episode=[f"{name}{ESC}" for name in columns()["episode"]],
        action=[f"{name}{ESC}" for name in "abbbaabab"],
        eval_prob=np.full(9, 0.5),
        **{f"unused{ESC}": np.zeros(9)},
    )
    pa.parquet.write_table(pa.table(made | changes), path)
    return path


def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def clean(*texts):
    for text in texts:
        found = CONTROL.search(text)
        assert found is None, (found, text)


@pytest.mark.parametrize("more", [[], ["--json"]])
@pytest.mark.parametrize("command", ["evaluate", "inspect"])
def test_names_of_the_logs_are_shown_and_not_obeyed(tmp_path, command, more):
    done = call(command, hostile(tmp_path / "logs.parquet"), "--reward-range", -1, 2, "--horizon", 3, *more)
    assert done.exit_code == 0, done.output
    clean(done.stdout, done.stderr)
    assert "\\x1b" in done.stdout + done.stderr or "u001b" in done.stdout  # shown as what they are


WRONG = {
    "reward": {"reward": np.where(np.arange(9) == 4, np.nan, 0.0)},
    "column": {f"reward{ESC}": np.zeros(9), "reward": None},
    "probability": {"behavior_prob": np.full(9, 2.0)},
    "steps": {"t": np.zeros(9, dtype=int)},
    "mixed": {"action": [f"{i}" if i % 2 else f"left{ESC}" for i in range(9)]},
}


@pytest.mark.parametrize("kind", WRONG)
def test_errors_show_names_and_do_not_obey_them(tmp_path, kind):
    made = {name: values for name, values in WRONG[kind].items() if values is not None}
    path = hostile(tmp_path / "logs.parquet", **made)
    if kind == "column":
        table = pa.parquet.read_table(path).drop_columns(["reward"])
        pa.parquet.write_table(table, path)
    done = call("evaluate", path)
    assert done.exit_code == 2
    assert "\\x1b" in done.stderr
    clean(done.stdout, done.stderr)
    with pytest.raises(TightropeError) as caught:
        tightrope.read(path)
    clean(str(caught.value))


@pytest.mark.parametrize(
    "option", ["--policy", "--model", "--behavior", "--estimator", "--method", "--column", "--report"]
)
def test_arguments_are_shown_and_not_obeyed(tmp_path, option, monkeypatch):
    monkeypatch.chdir(tmp_path)
    logs = hostile(tmp_path / "logs.parquet")
    for value in (f"no folder{ESC}/name", f"no folder{ESC}/name{ESC}:x", f"/nowhere{ESC}/x.npy", f"no{ESC}/role=x"):
        done = call("evaluate", logs, option, value)
        assert done.exit_code == 2
        clean(done.stdout, done.stderr)
    done = call("evaluate", tmp_path / f"none{ESC}.csv")
    assert done.exit_code == 2
    clean(done.stdout, done.stderr)


def test_results_show_no_control_characters_wherever_they_are_printed(tmp_path):
    result = tightrope.evaluate(tightrope.read(hostile(tmp_path / "logs.parquet")), n_resamples=40)
    out = io.StringIO()
    Console(file=out).print(result)
    clean(out.getvalue(), str(result), result.to_json(), result.to_html(), *map(str, result.bounds))
    assert result.details.influential
    clean(*(one.episode for one in result.details.influential))
    assert "10\\x1b]0;owned" in result.to_html()
    told = result.to_json().replace(" trajectories", "\\u001b[2J").replace('"pdwis"', '"pdwis\\u009b31m[red]"')
    foreign, out = tightrope.Evaluation.from_json(told), io.StringIO()  # a record that somebody else wrote
    Console(file=out, width=200).print(foreign)
    clean(out.getvalue(), str(foreign), *map(str, foreign.bounds))
    assert "PDWIS\\x9b31M[RED]" in out.getvalue()


@settings(deadline=None, derandomize=True, database=None, max_examples=300)
@given(st.text(st.characters(codec=None)))
def test_every_text_can_be_shown(text):
    shown = visible(text)
    clean(shown)
    shown.encode("utf-8")  # no halves of characters either
    assert visible(shown) == shown
    assert all(line in shown for line in text.splitlines() if line.isascii() and line.isprintable())


# -- encodings ---------------------------------------------------------------------------------------------------------


def command(*words, cwd=None, **environment):
    """The command in a process of its own."""
    given = os.environ | {"COLUMNS": "150", **environment}
    program = "import sys; from tightrope.cli import app; app(prog_name='tightrope')"
    return subprocess.run(
        [sys.executable, "-c", program, *map(str, words)], env=given, capture_output=True, check=False, cwd=cwd
    )


ENCODINGS = {
    "ascii": {"PYTHONIOENCODING": "ascii"},
    "latin-1": {"PYTHONIOENCODING": "latin-1"},
    "C locale": {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
}


@pytest.mark.parametrize("kind", ENCODINGS)
def test_an_answer_in_any_encoding(tmp_path, kind):
    """And bounds keep their direction: a sign that becomes a question mark is a lower bound and an upper one alike."""
    path = tmp_path / "logs.csv"
    chosen = small("bonus")
    data = chosen.mdp.simulate(chosen.behavior, 200, rng=np.random.default_rng(0), candidate=chosen.candidate)
    names = np.array([f"ünter {i}" for i in range(200)])
    tightrope.write(replace(data, episode_ids=names), path)
    words = ("--horizon", 8, "--discount", 0.95, "--estimator", "wis", "--method", "t", "--threshold", -3)
    done = command("evaluate", path, *words, **ENCODINGS[kind])
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode == 0, done.stderr.decode()
    text = done.stdout.decode("latin-1" if kind == "latin-1" else "ascii")
    assert ("±" if kind == "latin-1" else "+/-") in text
    assert ">= " in text
    assert "?" not in text
    assert "≥ 1 ≤ 2 ± ∞ ü".encode("ascii", "tightrope") == b">= 1 <= 2 +/- inf \\xfc"


@pytest.mark.parametrize("kind", ENCODINGS)
@pytest.mark.parametrize("words", [["evaluate", "--help"], ["evaluate", "no\u2265such.csv"]], ids=["help", "error"])
def test_help_and_errors_in_any_encoding(kind, words):
    done = command(*words, **ENCODINGS[kind])
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    assert done.returncode == (0 if words[-1] == "--help" else 2)


def test_a_name_that_is_no_text(tmp_path):
    """Bytes that are not UTF-8 in an argument."""
    done = subprocess.run(
        [sys.executable, "-c", "from tightrope.cli import app; app()", b"evaluate", b"no\xff such\x1b.csv"],
        capture_output=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 2
    assert b"Traceback" not in done.stderr
    assert b"no\\udcff such\\x1b.csv: no such file" in done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no device that is always full")
def test_an_answer_that_cannot_be_printed(tmp_path):
    path = tmp_path / "logs.csv"
    tightrope.write(tightrope.read(columns(eval_prob=columns()["behavior_prob"])), path)
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [
                sys.executable,
                "-c",
                "from tightrope.cli import app; app()",
                "evaluate",
                str(path),
                "--n-resamples",
                "60",
            ],
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert b"error: [Errno 28] No space left on device" in done.stderr
    assert b"Traceback" not in done.stderr


def test_the_command_as_a_module():
    done = subprocess.run([sys.executable, "-m", "tightrope", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout == f"tightrope {tightrope.__version__}\n"
