"""``--policy`` with files that hold models: what is loaded, what is said before, and what is refused."""

from __future__ import annotations

import json
import pickle
import sys

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from typer.testing import CliRunner

import tightrope
from tests.adapters.foreign import logs
from tests.adapters.test_onnx import export
from tests.adapters.test_stable_baselines import CART, PENDULUM, PUSH, TIMES, TORQUE, trained
from tightrope import PolicyError, TightropeError, softened
from tightrope.adapters import load_policy
from tightrope.base.policy import as_policy
from tightrope.cli import BAD_INPUT, app

CHOICES = np.arange(40) % 3


@pytest.fixture
def classifier():
    return LogisticRegression().fit(CART, CHOICES)


@pytest.mark.parametrize(("kind", "env"), [("ppo", "CartPole-v1"), ("a2c", "CartPole-v1"), ("sac", "Pendulum-v1")])
@pytest.mark.parametrize("named", [True, False])
def test_archives_of_stable_baselines(tmp_path, kind, env, named):
    model = trained(kind, env)
    path = str(tmp_path / "model.zip")
    model.save(path)
    states, actions = (CART, PUSH) if env == "CartPole-v1" else (PENDULUM, TORQUE)
    found = load_policy(path, policy_class=kind.upper() if named else None).log_prob(states, actions, TIMES)
    np.testing.assert_allclose(found, as_policy(model).log_prob(states, actions, TIMES), atol=1e-12)


def test_archives_that_need_noise(tmp_path):
    for kind, env in (("dqn", "CartPole-v1"), ("td3", "Pendulum-v1")):
        trained(kind, env).save(tmp_path / f"{kind}.zip")
    greedy = load_policy(str(tmp_path / "dqn.zip"), epsilon=0.2)
    np.testing.assert_allclose(
        greedy.probs(CART, TIMES), softened(trained("dqn", "CartPole-v1"), epsilon=0.2).probs(CART, TIMES)
    )
    noisy = load_policy(str(tmp_path / "td3.zip"), sigma=0.5)
    expected = softened(trained("td3", "Pendulum-v1"), sigma=0.5).log_prob(PENDULUM, TORQUE, TIMES)
    np.testing.assert_allclose(noisy.log_prob(PENDULUM, TORQUE, TIMES), expected)
    with pytest.raises(PolicyError, match="DQN has no action probabilities"):
        load_policy(str(tmp_path / "dqn.zip"))


@pytest.mark.parametrize("suffix", [".pkl", ".joblib"])
def test_pickled_classifiers(tmp_path, classifier, suffix):
    path = tmp_path / f"model{suffix}"
    joblib.dump(classifier, path) if suffix == ".joblib" else path.write_bytes(pickle.dumps(classifier))
    found = load_policy(str(path)).probs(CART, TIMES)
    np.testing.assert_allclose(found, classifier.predict_proba(CART), atol=1e-12)


def call(*words):
    return CliRunner().invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


@pytest.fixture
def saved(tmp_path, classifier):
    """Logs and policies in files."""
    tightrope.write(logs(CART, CHOICES), tmp_path / "logs.parquet")
    joblib.dump(classifier, tmp_path / "model.joblib")
    export(tmp_path / "net.onnx", "probabilities", name="chances")
    return tmp_path


def test_the_command_line_says_that_a_model_runs_code(saved, classifier):
    words = ("--estimator", "is", "--method", "t", "--json")
    done = call("evaluate", saved / "logs.parquet", "--policy", saved / "model.joblib", *words)
    assert f"loading {saved / 'model.joblib'} runs the code in it" in done.stderr
    told = json.loads(done.stdout)["bounds"][0]["estimate"]
    assert told == pytest.approx(tightrope.estimate(logs(CART, CHOICES), classifier, estimator="is"))
    soft = call("evaluate", saved / "logs.parquet", "--policy", saved / "model.joblib", "--epsilon", 0.5, *words)
    expected = tightrope.estimate(logs(CART, CHOICES), softened(classifier, epsilon=0.5), estimator="is")
    assert json.loads(soft.stdout)["bounds"][0]["estimate"] == pytest.approx(expected)


def test_an_onnx_file_on_the_command_line(saved):
    tightrope.write(logs(CART[:, :3], CHOICES), saved / "three.parquet")
    words = ("--policy", saved / "net.onnx")
    done = call("inspect", saved / "three.parquet", *words, "--onnx-output", "probs", "--json")
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["overlap"]["mean_ratio"] > 0
    assert "runs code" not in done.stderr
    refused = call("inspect", saved / "three.parquet", *words)
    assert refused.exit_code == BAD_INPUT
    assert "gives chances: tensor(float)" in refused.stderr


def test_sigma_on_the_command_line(tmp_path):
    trained("td3", "Pendulum-v1").save(tmp_path / "td3.zip")
    tightrope.write(logs(PENDULUM, TORQUE), tmp_path / "logs.parquet")
    done = call("inspect", tmp_path / "logs.parquet", "--policy", tmp_path / "td3.zip", "--sigma", 0.5, "--json")
    assert done.exit_code == 0, done.output


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "eval_prob", "--epsilon", "0.1"), "need a policy in a file or module"),
        (("--epsilon", "0.1"), "need a policy in a file or module"),
        (("--policy", "nowhere.zip"), "no such file"),
        (("--policy", "nowhere.pkl"), "no such file"),
        (("--policy", "model.joblib", "--sigma", "0.1"), "sigma is for a deterministic policy over continuous actions"),
        (("--policy", "not.zip"), "does not say what it is.*--policy-class PPO|A2C"),
        (("--policy", "not.zip", "--policy-class", "PPO"), "cannot be loaded as PPO"),
        (("--policy", "not.zip", "--policy-class", "Magic"), 'policy_class must be "PPO"'),
        (("--policy", "not.pkl"), "cannot be unpickled"),
    ],
)
def test_refused(saved, monkeypatch, words, message):
    (saved / "not.zip").write_text("no archive")
    (saved / "not.pkl").write_text("no pickle")
    monkeypatch.chdir(saved)
    done = call("evaluate", "logs.parquet", *words)
    assert done.exit_code == BAD_INPUT
    assert message.split(".*")[0] in done.stderr
    assert message.split(".*")[-1] in done.stderr


@pytest.mark.parametrize(
    ("library", "file", "extra"), [("stable_baselines3", "m.zip", "sb3"), ("joblib", "m.joblib", "sklearn")]
)
def test_without_the_library(tmp_path, monkeypatch, library, file, extra):
    (tmp_path / file).write_text("")
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(TightropeError, match=rf'needs {library}.*: pip install "tightrope\[{extra}\]"'):
        load_policy(str(tmp_path / file), policy_class="PPO")


def test_the_api_takes_a_path(tmp_path):
    path = export(tmp_path / "net.onnx")
    data = logs(CART[:, :3], CHOICES)
    expected = tightrope.estimate(data, load_policy(str(path)), estimator="is")
    assert tightrope.estimate(data, path, estimator="is") == expected
    assert tightrope.estimate(data, str(path), estimator="is") == expected
    with pytest.raises(PolicyError, match=r"policy must be a file .*; got 'eval_prob'.*eval_column"):
        tightrope.estimate(data, "eval_prob")


def test_data_are_never_unpickled(tmp_path, classifier):
    joblib.dump(classifier, tmp_path / "logs.pkl")
    with pytest.raises(TightropeError):
        tightrope.read(tmp_path / "logs.pkl")
