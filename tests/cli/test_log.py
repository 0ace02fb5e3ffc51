"""From `tightrope log` to `tightrope evaluate` with models of Stable-Baselines3, without a line of glue."""

from __future__ import annotations

import json

import numpy as np
import pytest
import torch
from typer.testing import CliRunner

import tightrope
from tests.adapters.test_stable_baselines import own_distribution, trained
from tightrope.cli import BAD_INPUT, NO_ANSWER, app


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The files of an old and a new model by environment."""
    folder = tmp_path_factory.mktemp("models")
    for env in ("CartPole-v1", "Pendulum-v1"):
        for which, seed in (("old", 0), ("new", 1)):
            trained("ppo", env, seed).save(folder / f"{which}-{env}.zip")
    return lambda which, env: folder / f"{which}-{env}.zip"


@pytest.mark.parametrize(("env", "horizon"), [("CartPole-v1", 25), ("Pendulum-v1", 4)])
def test_logged_evaluated_and_no_glue(env, horizon, saved, tmp_path):
    path = tmp_path / "logs.parquet"
    done = call(
        "log", "--env", env, "--policy", saved("old", env), "--episodes", 60, "--horizon", horizon, "--discount", 0.9,
        "--out", path,
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "as it acts, with its own probabilities" in done.output
    logs, model = tightrope.read(path), trained("ppo", env)
    actions = torch.as_tensor(logs.actions.copy())
    actions = actions if env == "CartPole-v1" else actions.float()
    own = own_distribution(model, logs.states.copy()).log_prob(actions).numpy()
    np.testing.assert_allclose(logs.behavior_log_probs, own, rtol=1e-6, atol=1e-6)
    assert (logs.horizon, logs.discount, logs.horizon_declared) == (horizon, 0.9, True)
    asked = call("evaluate", path, "--policy", saved("new", env), "--n-resamples", 400, "--json")
    assert asked.exit_code in (0, NO_ANSWER), asked.output
    told = tightrope.Evaluation.from_json(asked.stdout)
    expected = tightrope.evaluate(logs, trained("ppo", env, 1), n_resamples=400)
    assert told.bounds == expected.bounds
    assert told.summary.horizon == horizon


def test_a_table_says_how_episodes_ended(saved, tmp_path):
    import pyarrow.parquet as pq

    path = tmp_path / "logs.parquet"
    call("log", "--env", "CartPole-v1", "--policy", saved("old", "CartPole-v1"), "--episodes", 40, "--horizon", 15,
         "--out", path)  # fmt: skip
    rows = pq.read_table(path).to_pydict()
    ends = [a or b for a, b in zip(rows["terminated"], rows["truncated"], strict=True)]
    last = [t + 1 == len_ for t, len_ in zip(rows["t"], _lengths(rows), strict=True)]
    assert ends == last
    assert any(rows["terminated"])
    assert any(rows["truncated"])
    assert not any(a and b for a, b in zip(rows["terminated"], rows["truncated"], strict=True))


def _lengths(rows):
    counts = {one: rows["episode"].count(one) for one in set(rows["episode"])}
    return [counts[one] for one in rows["episode"]]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "as it acts, with its own probabilities"),
        (("--deterministic",), "in its greedy form (--deterministic)"),
        (("--epsilon", 0.25), "as it acts, with its own probabilities, with an action at random at rate 0.25"),
        (("--deterministic", "--epsilon", 0.25), "in its greedy form (--deterministic), with an action at random at"),
    ],
)
def test_the_form_that_was_evaluated_is_said_and_is_the_one(words, said, saved, tmp_path):
    old, path = saved("old", "CartPole-v1"), tmp_path / "logs.parquet"
    call("log", "--env", "CartPole-v1", "--policy", old, "--episodes", 80, "--horizon", 3, "--out", path)
    ask = ("evaluate", path, "--policy", old, *words, "--estimator", "wis", "--method", "t")
    printed, told = call(*ask), json.loads(call(*ask, "--json").stdout)
    assert f"Evaluated: {old} {said}" in " ".join(printed.output.split())
    assert said in told["provenance"]["policy"]
    model = trained("ppo", "CartPole-v1")
    form = tightrope.greedy(model) if "--deterministic" in words else model
    form = tightrope.softened(form, epsilon=0.25) if "--epsilon" in words else form
    expected = tightrope.lower_bound(tightrope.read(path), form, estimator="wis", method="t")
    assert told["bounds"][0]["value"] == pytest.approx(expected.value, rel=1e-9)


def test_a_report_says_the_form(saved, tmp_path):
    old, path = saved("old", "CartPole-v1"), tmp_path / "logs.parquet"
    call("log", "--env", "CartPole-v1", "--policy", old, "--episodes", 80, "--horizon", 3, "--out", path)
    call("evaluate", path, "--policy", old, "--deterministic", "--estimator", "wis", "--method", "t",
         "--report", tmp_path / "out.html")  # fmt: skip
    assert "in its greedy form" in (tmp_path / "out.html").read_text()


OWN = """
import gymnasium, tightrope
from gymnasium.wrappers import TimeLimit

class Rope(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(2)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}
    def step(self, action):
        return int(action), float(action), bool(self.np_random.random() < 0.2), False, {}

def rope():
    return TimeLimit(Rope(), 6)

old = tightrope.TabularPolicy([[0.5, 0.5], [0.5, 0.5]])
new = tightrope.TabularPolicy([[0.3, 0.7], [0.3, 0.7]])
"""


def test_an_environment_of_ones_own_and_a_csv_file(tmp_path, monkeypatch):
    (tmp_path / "own_rope.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    done = call("log", "--env", "own_rope:rope", "--policy", "own_rope:old", "--episodes", 200, "--out", "logs.csv")
    assert done.exit_code == 0, done.output
    words = done.output.splitlines()[-1].split()  # what it says comes next
    assert words[:3] == ["tightrope", "evaluate", "logs.csv"]
    again = call(*words[1:-1], "own_rope:new", "--reward-range", 0, 1)
    assert again.exit_code == 0, again.output
    assert "horizon 6" in again.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--out", "logs.xls"), "the name must end in .parquet or .csv"),
        (("--out", "nowhere/logs.csv"), "there is no folder"),
        (("--policy", "eval_prob"), "--policy must be a file or module:object, because it has to act; got 'eval_prob'"),
        (("--env", "NoSuch-v0"), "environment 'NoSuch-v0' cannot be made"),
        (("--env", "own_rope:nothing"), "environment 'own_rope:nothing' cannot be made"),
        (("--episodes", 0), "episodes must be a whole number, at least 1; got 0"),
        (("--horizon", 7), "horizon must be at most 6"),
    ],
)
def test_bad_words_are_named_and_nothing_is_written(words, message, tmp_path, monkeypatch):
    (tmp_path / "own_rope.py").write_text(OWN)
    monkeypatch.chdir(tmp_path)
    usual = {"--env": "own_rope:rope", "--policy": "own_rope:old", "--episodes": 5, "--out": "logs.parquet"}
    usual |= dict([words])
    done = call("log", *(word for pair in usual.items() for word in pair))
    assert done.exit_code == BAD_INPUT
    assert message in " ".join(done.output.split())
    assert "Traceback" not in done.output
    assert {path.name for path in tmp_path.iterdir()} <= {"own_rope.py", "__pycache__"}


def test_a_column_has_no_greedy_form(tmp_path):
    done = call("evaluate", tmp_path / "x.csv", "--deterministic")
    assert done.exit_code == BAD_INPUT
    assert "--deterministic" in done.output
