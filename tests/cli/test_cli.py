"""The commands as a user types them: tables, JSON, exit codes, and nothing written on failure."""

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tightrope.cli import BAD_INPUT, NO_ANSWER, app
from tightrope.domains import small

runner = CliRunner()


@pytest.fixture
def logs(tmp_path):
    problem = small("bonus")
    data = problem.mdp.simulate(problem.behavior, 300, rng=np.random.default_rng(3), candidate=problem.candidate)
    path = tmp_path / "logs.parquet"
    tightrope.write(data, path)
    return path


def call(*words):
    return runner.invoke(app, [str(word) for word in words], env={"COLUMNS": "200"})


COMMON = ("--horizon", 8, "--discount", 0.95, "--reward-range", 0, 1)


def test_evaluate_prints_every_pair_and_the_advice(logs):
    done = call("evaluate", logs, *COMMON)
    assert done.exit_code == 0, done.output
    for word in ("betting", "exact", "studentized", "approximate", "PDWIS", "Use", "95%"):
        assert word in done.output


def test_json_is_the_same_as_the_api(logs):
    done = call("evaluate", logs, *COMMON, "--estimator", "is", "--method", "betting", "--method", "bca", "--json")
    told = tightrope.Evaluation.from_json(done.stdout)
    data = tightrope.read(logs, horizon=8, discount=0.95, reward_range=(0, 1))
    assert told == tightrope.evaluate(data, estimators=["is"], methods=["betting", "bca"])
    assert [bound.method for bound in told.bounds] == ["betting", "bca"]
    json.loads(done.stdout, parse_constant=lambda text: pytest.fail(f"not strict JSON: {text}"))


@pytest.mark.parametrize("side", ["lower", "upper", "both"])
def test_sides(logs, side):
    done = call("evaluate", logs, *COMMON, "--side", side, "--estimator", "pdwis", "--method", "percentile", "--json")
    sides = [bound["side"] for bound in json.loads(done.stdout)["bounds"]]
    assert sides == (["lower", "upper"] if side == "both" else [side])


def test_policies_by_table_module_and_column_agree(logs, tmp_path, monkeypatch):
    table = small("bonus").candidate.table
    np.savez(tmp_path / "policy.npz", probs=table)
    np.save(tmp_path / "policy.npy", table)
    rows = [f"{s},{a},{table[s, a]}" for s in range(3) for a in range(2)]
    (tmp_path / "policy.csv").write_text("state,action,prob\n" + "\n".join(rows))
    (tmp_path / "my_candidate.py").write_text(
        "import numpy as np, tightrope\n"
        f"candidate = tightrope.TabularPolicy({table.tolist()!r})\n"
        f"def probs(states, actions, t): return np.array({table.tolist()!r})[states, actions]\n"
    )
    monkeypatch.chdir(tmp_path)
    results = []
    for policy in (
        "policy.npz",
        "policy.npy",
        "policy.csv",
        "my_candidate:candidate",
        "my_candidate:probs",
        "eval_log_prob",
    ):
        done = call("evaluate", logs, *COMMON, "--policy", policy, "--estimator", "wis", "--method", "t", "--json")
        assert done.exit_code == 0, done.output
        results.append(json.loads(done.stdout)["bounds"][0]["value"])
    np.testing.assert_allclose(results, results[0], rtol=1e-12)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--policy", "nowhere.npz"), "no such file"),
        (("--policy", "no_such_module:thing"), "cannot be imported"),
        (("--policy", "numpy:no_such_thing"), "has no 'no_such_thing'"),
        (("--policy", "no_such_column"), 'column must be "episode", "t"'),
        (("--estimator", "magick"), 'must be "is", "pdis", "wis", "pdwis"'),
        (("--method", "magick"), 'must be "percentile"'),
        (("--confidence", "0.4"), "between 0.5 and 1"),
        (("--n-resamples", "5"), "too few for confidence"),
        (("--horizon", "3"), "more than horizon=3"),
        (("--estimator", "wis", "--method", "betting"), "independent value"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_two(logs, words, message):
    done = call("evaluate", logs, *COMMON, *words)
    assert done.exit_code == BAD_INPUT
    assert message in done.output
    assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "state,action,prob\n0,0,half\n", "must hold numbers"),
        ("a.csv", "state,action\n0,0\n", "columns state, action, prob"),
        ("a.csv", "state,action,prob\n-1,0,1\n", "whole numbers from 0"),
        ("a.csv", "state,action,prob\n0,0,1\n0,0,1\n", "must sum to 1; got 2"),
        ("a.npz", "not a zip", "cannot be read as a NumPy file"),
        ("a.npy", "", "cannot be read as a NumPy file"),
    ],
)
def test_a_bad_policy_table_is_refused(logs, tmp_path, name, text, message):
    (tmp_path / name).write_text(text)
    done = call("evaluate", logs, *COMMON, "--policy", tmp_path / name)
    assert done.exit_code == BAD_INPUT
    assert message in done.output


def test_no_answer_has_its_own_exit_code(tmp_path):
    """Forty steps of a policy that differs much: a handful of trajectories carries everything."""
    rng = np.random.default_rng(0)
    n, horizon = 30, 40
    action = rng.integers(2, size=n * horizon)
    columns = {
        "episode": np.repeat(np.arange(n), horizon),
        "t": np.tile(np.arange(horizon), n),
        "action": action,
        "reward": rng.random(n * horizon),
        "behavior_prob": np.full(n * horizon, 0.5),
        "eval_prob": np.where(action == 1, 0.99, 0.01),
    }
    path = tmp_path / "apart.csv"
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=",", header=",".join(columns), comments="")
    done = call("evaluate", path)
    assert done.exit_code == NO_ANSWER, done.output
    assert "cannot answer" in done.output


def test_inspect_reads_without_a_candidate_and_with_one(logs, tmp_path):
    import pyarrow.parquet as pq

    table = pq.read_table(logs).drop_columns(["eval_log_prob"])
    pq.write_table(table, tmp_path / "bare.parquet")
    bare = call("inspect", tmp_path / "bare.parquet", "--json")
    full = call("inspect", logs, "--json")
    assert json.loads(bare.stdout)["overlap"] is None
    assert json.loads(full.stdout)["overlap"]["mean_ratio"] == pytest.approx(1, abs=0.3)
    assert "effective sample size" in call("inspect", logs).output


def test_inspect_counts_clusters(tmp_path):
    rows = "".join(f"{episode},0,1.0,0.5,0.5,{episode // 4}\n" for episode in range(40))
    (tmp_path / "logs.csv").write_text(f"episode,t,reward,behavior_prob,eval_prob,patient\n{rows}")
    named = call("inspect", tmp_path / "logs.csv", "--horizon", 1, "--cluster", "patient", "--json")
    assert json.loads(named.stdout)["summary"]["n_clusters"] == 10


@pytest.mark.parametrize("problem", ["walker", "bonus", "decline", "clinic"])
def test_demo_shows_the_truth_and_mostly_advises_bounds_that_hold(problem):
    """At 5 % a seed, more than 1 wrong of 4 has probability 1.4 %; these four seeds are fixed."""
    wrong = 0
    for seed in range(4):
        done = call("demo", "--problem", problem, "--n", 300, "--seed", seed, "--json")
        assert done.exit_code == 0, done.output
        told = tightrope.Evaluation.from_json(done.stdout)
        assert told.true_value == pytest.approx(small(problem).true_value)
        wrong += sum(bound.value > told.true_value for bound in told.believed)
    assert wrong <= 1


def test_demo_saves_logs_that_evaluate_reads(tmp_path):
    path = tmp_path / "demo.parquet"
    shown = call("demo", "--save", path)
    assert shown.exit_code == 0
    words = shown.output.splitlines()[-1].split()
    assert words[:2] == ["tightrope", "evaluate"]
    again = call(*words[1:])
    assert again.exit_code == 0

    def numbers(text):
        lines = (line.split() for line in text.splitlines())
        return [line[:5] for line in lines if line and line[0] in ("IS", "PDIS", "WIS", "PDWIS")]

    assert len(numbers(shown.output)) == 4
    assert len(numbers(call(*words[1:], "--all").output)) == 14
    # The command that the demo prints gives the same numbers, and its own exact bound: a file has no behaviour policy.
    assert [row for row in numbers(again.output) if row[1] == "studentized"] == numbers(shown.output)


def test_nothing_is_written_when_a_command_fails(tmp_path):
    done = call("demo", "--problem", "magic", "--save", tmp_path / "demo.parquet")
    assert done.exit_code == BAD_INPUT
    assert call("demo", "--save", tmp_path / "demo.xls").exit_code == BAD_INPUT
    assert call("demo", "--save", tmp_path / "nowhere" / "demo.csv").exit_code == BAD_INPUT
    assert list(tmp_path.iterdir()) == []


def test_help_documents_the_exit_codes():
    assert "Exit codes" in call("evaluate", "--help").output
