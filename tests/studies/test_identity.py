"""A study is what its parts hold, not what they are called: whatever changes is refused, what stays goes on."""

import json
import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import gymnasium
import numpy as np
import pytest
from typer.testing import CliRunner

from tests.studies.studies import clinic
from tests.studies.test_races import in_this_process
from tightrope import StudyError
from tightrope.adapters.load import named_digest
from tightrope.base import content
from tightrope.base.content import digest, source_digest
from tightrope.base.policy import CallablePolicy, SoftmaxPolicy, TabularPolicy
from tightrope.cli import app
from tightrope.domains.from_environment import EnvironmentDomain
from tightrope.estimators import MB, PDWIS, WDR
from tightrope.models import LinearModel
from tightrope.models.given import GivenValues
from tightrope.studies import pool, runner
from tightrope.studies.measure import UserDomain, named_methods
from tightrope.studies.study import Method, Study

SOURCE = Path(__file__).parents[2] / "src"

MODULE = """
import gymnasium
import numpy as np
from pieces import slope
from tightrope.base.policy import TabularPolicy

TABLE = np.load("table.npy")
coin = TabularPolicy([[0.5, 0.5]] * 3)
bent = TabularPolicy(TABLE)


class Walk(gymnasium.Env):
    observation_space = gymnasium.spaces.Discrete(3)
    action_space = gymnasium.spaces.Discrete(2)

    def __init__(self, end=0.5):
        self.end = end

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return 0, {}

    def step(self, action):
        return int(action), slope * float(action), bool(action and self.np_random.random() < self.end), False, {}


gymnasium.register("Walk-v0", entry_point=Walk, max_episode_steps=3, kwargs={"end": 0.25})
"""
RUN = """
import sys
from tests.studies.test_races import in_this_process
from tightrope.cli import app
from tightrope.studies import runner
runner.run_all = in_this_process
app(sys.argv[1:])
"""


def parts(folder):
    """A user's folder: a module with an environment and policies, what it imports and reads, and a table."""
    folder.mkdir()
    (folder / "mine.py").write_text(MODULE)
    (folder / "pieces.py").write_text("slope = 2.0\n")
    np.save(folder / "table.npy", np.array([[0.25, 0.75]] * 3))
    np.save(folder / "coin.npy", np.array([[0.5, 0.5]] * 3))
    return folder


def command(behavior):
    words = ["coverage", "--env", "mine:Walk-v0", "--behavior", behavior, "--candidate", "mine:bent", "--n", "6"]
    words += ["--trials", "3", "--estimator", "pdwis", "--method", "percentile", "--truth-rollouts", "20", "--out", "o"]
    return [*words, "--workers", "1"]


def coverage(folder, behavior, monkeypatch):
    """``tightrope coverage`` in that folder, with its modules imported afresh as a new process would."""
    monkeypatch.chdir(folder)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # or an edit within the same second would go unseen
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(runner, "run_all", in_this_process)
    for module in ("mine", "pieces"):
        sys.modules.pop(module, None)
    gymnasium.registry.pop("Walk-v0", None)
    done = CliRunner().invoke(app, command(behavior))
    return done.exit_code, done.output


def rewrite(name, old, new):
    def change(folder):
        text = (folder / name).read_text()
        assert old in text
        (folder / name).write_text(text.replace(old, new))

    return change


def resave(name, table):
    return lambda folder: np.save(folder / name, np.array(table))


CHANGES = {
    "the behaviour policy's file": ("coin.npy", resave("coin.npy", [[0.4, 0.6]] * 3), "behavior"),
    "its file in a state never met": ("coin.npy", resave("coin.npy", [[0.5, 0.5]] * 2 + [[0.4, 0.6]]), "behavior"),
    "its module": ("mine:coin", rewrite("mine.py", "[[0.5, 0.5]] * 3", "[[0.4, 0.6]] * 3"), "behavior"),
    "what its module imports": ("mine:coin", rewrite("pieces.py", "2.0", "2.0 + 0.0"), "behavior"),
    "what the candidate's module reads": ("coin.npy", resave("table.npy", [[0.2, 0.8]] * 3), "candidate"),
    "the same in a state never met": (
        "coin.npy", resave("table.npy", [[0.25, 0.75]] * 2 + [[0.2, 0.8]]), "candidate",
    ),
    "the environment's dynamics": ("coin.npy", rewrite("mine.py", "() < self", "() <= self"), "environment"),
    "the environment's arguments": ("coin.npy", rewrite("mine.py", '"end": 0.25', '"end": 0.75'), "environment"),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_part_is_refused_by_name(change, tmp_path, monkeypatch):
    behavior, alter, name = CHANGES[change]
    folder = parts(tmp_path / "mine")
    assert coverage(folder, behavior, monkeypatch)[0] == 0
    before = {path.name: path.read_bytes() for path in (folder / "o").iterdir() if path.name != "lock"}
    alter(folder)
    code, told = coverage(folder, behavior, monkeypatch)
    assert code == 2
    assert "holds results of another configuration" in told
    assert f".{name} is" in told
    assert {path.name: path.read_bytes() for path in (folder / "o").iterdir() if path.name != "lock"} == before


def test_each_policy_has_its_own_hash(tmp_path, monkeypatch):
    monkeypatch.chdir(parts(tmp_path / "mine"))
    monkeypatch.setattr(sys, "path", list(sys.path))
    domain = UserDomain("CartPole-v1", "coin.npy", "table.npy")
    before = domain.content()
    resave("table.npy", [[0.2, 0.8]] * 3)(Path.cwd())
    after = domain.content()
    assert {name for name in before if before[name] != after[name]} == {"candidate"}
    assert after["candidate"] != after["behavior"]


def test_an_unchanged_study_goes_on_in_another_process(tmp_path):
    """Hashes do not depend on addresses, on the order of sets, or on how many threads BLAS has."""
    folder = parts(tmp_path / "mine")
    path = os.pathsep.join([str(SOURCE), str(SOURCE.parent)])
    for number in ("1", "2"):
        settings = {"PYTHONPATH": path, "PYTHONHASHSEED": number, "OPENBLAS_NUM_THREADS": number}
        done = subprocess.run(
            [sys.executable, "-c", RUN, *command("mine:coin")],
            cwd=folder, env=os.environ | settings, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
    assert "3 of 3 trials are already in o" in done.stderr


def test_a_module_edited_after_it_was_imported_is_not_taken_for_the_new_one(tmp_path, monkeypatch):
    """As in a notebook: this process would go on with the old code, its workers with the new."""
    folder = parts(tmp_path / "mine")
    assert coverage(folder, "mine:coin", monkeypatch)[0] == 0
    rewrite("pieces.py", "2.0", "3.0")(folder)
    done = CliRunner().invoke(app, [*command("mine:coin")[:-3], "other", "--workers", "1"])
    assert done.exit_code == 2
    assert "the source of mine changed after it was imported here; start Python again" in done.output
    assert not (folder / "other").exists()


def words(folder):
    return UserDomain("tests.studies.policies:Switch-v0", str(folder / "coin.npy"), str(folder / "bent.npy"),
                      truth_rollouts=20)  # fmt: skip


def by_files(folder, **changes):
    np.save(folder / "coin.npy", np.array([[0.5, 0.5]] * 2))
    np.save(folder / "bent.npy", np.array([[0.2, 0.8]] * 2))
    settings = {"sizes": (6,), "trials": 4, "methods": named_methods(("pdwis",), ("percentile",)), "n_resamples": 50}
    return Study("files", words(folder), **(settings | changes))


@pytest.mark.parametrize("name", ["coin", "bent"])
def test_a_file_that_changes_while_the_study_runs_stops_it(name, tmp_path, monkeypatch):
    """A worker that is started later would load the new one."""
    study, whole = by_files(tmp_path), pool.run_all

    def changed(job, tasks, workers):
        yield from whole(job, tasks[:2], 1)
        np.save(tmp_path / f"{name}.npy", np.array([[0.4, 0.6]] * 2))
        yield from ((2 + position, outcome) for position, outcome in whole(job, tasks[2:], 1))

    monkeypatch.setattr(runner, "run_all", changed)
    role = {"coin": "behavior", "bent": "candidate"}[name]
    with pytest.raises(
        StudyError, match=f"{role} changed while the study ran. The finished trials belong to the earlier state"
    ):
        runner.run_study(study, tmp_path / "out")
    assert (tmp_path / "out" / runner.JOURNAL).read_bytes().count(b"\n") == 2
    with pytest.raises(StudyError, match="another configuration"):
        runner.run_study(study, tmp_path / "out")


def test_a_second_study_in_one_process_loads_its_files_anew(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_all", in_this_process)
    study = by_files(tmp_path)
    first = runner.run_study(study, tmp_path / "first").read_bytes()
    np.save(tmp_path / "coin.npy", np.array([[0.4, 0.6]] * 2))
    runner.run_study(study, tmp_path / "second")
    one, two = (json.loads((tmp_path / name / "study.json").read_text()) for name in ("first", "second"))
    assert one["domain"]["content"]["behavior"] != two["domain"]["content"]["behavior"]
    assert one["domain"]["sample"] != two["domain"]["sample"]
    by_files(tmp_path)
    assert runner.run_study(study, tmp_path / "third").read_bytes() == first


def test_other_sources_of_tightrope_are_another_configuration(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_all", in_this_process)
    runner.run_study(clinic(sizes=(2,), trials=1), tmp_path)
    monkeypatch.setattr("tightrope.studies.study.package_digest", lambda: "other")
    with pytest.raises(StudyError, match=r'another configuration: sources is "[0-9a-f]{32}" there, "other" now'):
        runner.run_study(clinic(sizes=(2,), trials=1), tmp_path)


def given(value, domain):
    table = np.zeros((12, 40, 3))
    table[6, 20, 1] = value  # where print leaves it out
    return (Method("wdr", WDR(GivenValues(table)), ("percentile",)),)


def test_an_estimator_that_prints_alike_is_not_alike(tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "run_all", in_this_process)
    assert repr(given(0.0, None)) == repr(given(1.0, None))
    runner.run_study(clinic(sizes=(2,), trials=1, methods=partial(given, 0.0)), tmp_path)
    with pytest.raises(StudyError, match=r"another configuration: methods\.wdr\.content is"):
        runner.run_study(clinic(sizes=(2,), trials=1, methods=partial(given, 1.0)), tmp_path)


# -- the law of hashes: equal for what is made alike, different for what holds another number or other code ------------


class Plain:
    def __init__(self, table):
        self.table = np.array(table)
        self.self = self  # what holds itself is no endless walk


def scaled(factor):
    return lambda states, t: factor * states


def net(weight):
    import torch

    made = torch.nn.Linear(2, 1)
    torch.nn.init.constant_(made.weight, weight)
    torch.nn.init.constant_(made.bias, 0.0)
    return made


KINDS = {
    "a number": lambda x: x,
    "a table": lambda x: TabularPolicy([[x, 1 - x]]),
    "a long array": lambda x: np.append(np.zeros(5000), [x] + [0.0] * 5000),
    "objects in an array": lambda x: np.array([None, {"x": x}], dtype=object),
    "a closure": lambda x: SoftmaxPolicy(scaled(x)),
    "a default": lambda x: CallablePolicy(lambda states, actions, t, x=x: x),
    "a partial": lambda x: partial(scaled, x),
    "a bound method": lambda x: Plain([x]).__init__,
    "a plain object": lambda x: Plain([x]),
    "a set": lambda x: {"a", "b", x},
    "a torch module": lambda x: [net(x)],
    "a domain": lambda x: EnvironmentDomain("CartPole-v1", TabularPolicy([[x, 1 - x]]), TabularPolicy([[1.0]]), 3),
    "an estimator": lambda x: MB(LinearModel(reward=scaled(x), terminated=None)),
    "another class": lambda x: PDWIS() if x > 0.4 else MB(),
}


@pytest.mark.parametrize("kind", KINDS)
def test_hashes_are_of_what_is_held(kind):
    make = KINDS[kind]
    assert digest(make(0.25)) == digest(make(0.25))
    assert digest(make(0.25)) != digest(make(0.5))


def test_a_hash_tells_types_shapes_and_nesting_apart():
    zeros = np.zeros(4)
    different = [0, 0.0, False, "0", b"0", None, [0], (0,), [[0]], [0, 0], [[0], 0], zeros, zeros.reshape(2, 2)]
    different += [zeros.astype(np.float32), {"a": 0}, {"b": 0}, Plain, scaled, np]
    assert len({digest(one) for one in different}) == len(different)
    assert digest([zeros, zeros]) == digest([zeros, zeros])


@pytest.mark.parametrize("words", ["table.npy", "table.npz", "table.npz:probs", "TABLE.NPY", "model.zip", "model.onnx"])
def test_words_that_name_a_file_stand_for_its_bytes(words, tmp_path):
    file = tmp_path / words.partition(":")[0]
    file.write_bytes(b"one")
    before = named_digest(str(tmp_path / words))
    assert named_digest(str(tmp_path / words)) == before
    file.write_bytes(b"two")
    assert named_digest(str(tmp_path / words)) != before


def test_the_source_of_a_module_is_that_of_its_neighbours_too(tmp_path, monkeypatch):
    (tmp_path / "first_of_two.py").write_text("import second_of_two\nimport numpy\n")
    (tmp_path / "second_of_two.py").write_text("x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    __import__("first_of_two")
    before = source_digest("first_of_two")
    assert source_digest("first_of_two") == before != ""
    (tmp_path / "second_of_two.py").write_text("x = 2\n")
    assert source_digest("first_of_two") != before
    assert source_digest("sys") == ""  # compiled: nothing to read
    assert source_digest("json") == content.files_digest([Path(json.__file__)])  # a library: itself alone
