"""Every odd argument of the command line ends in one line that says what is wrong, never in a traceback."""

from __future__ import annotations

import zipfile
from dataclasses import dataclass

import numpy as np
import pytest
from typer.testing import CliRunner

import tightrope
from tests.logs import POLICY, columns, dataset
from tightrope import TightropeError
from tightrope.adapters.table_files import load_table
from tightrope.bounds import Percentile
from tightrope.cli import BAD_INPUT, app
from tightrope.estimators import IS, MB
from tightrope.models import TabularModel

MODULES = {
    "syntax_error": "def f(:\n",
    "divides": "1/0\n",
    "ends_the_process": "import sys; sys.exit(3)\n",
    "needs_more": "import there_is_no_such_module\n",
    "values": (
        "import numpy as np\nnothing = None\nnumber = 3\ntext = 'walker'\npairs = [1, 2]\n"
        "table = np.full((2, 2), 0.5)\nimaginary = np.full((2, 2), 0.5 + 0j)\n"
        "def none(states): return None\ndef words(states): return 'x'\ndef ragged(states): return [[1], [1, 2]]\n"
        "def fails(states): raise ValueError('no')\ndef endless(states): return endless(states)\n"
        "class Kind: pass\n"
    ),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Logs, and files of all the kinds that are not what their names say."""
    path = tmp_path_factory.mktemp("odd")
    tightrope.write(tightrope.read(columns()), path / "logs.csv")
    for name, text in MODULES.items():
        (path / f"{name}.py").write_text(text)
    (path / "null.py").write_bytes(b"\0\0")
    np.save(path / "whole.npy", POLICY)
    (path / "whole.npy").rename(path / "UPPER.NPY")
    np.savez(path / "whole.npz", probs=POLICY)
    (path / "whole.npz").rename(path / "UPPER.NPZ")
    np.savez_compressed(path / "packed.npz", probs=POLICY)
    whole = (path / "packed.npz").read_bytes()
    for name, content in {
        "half.npz": whole[: len(whole) // 2],
        "short.npz": whole[:-9],
        "flipped.npz": whole[:70] + bytes(4) + whole[74:],
        "empty.npz": b"",
        "empty.npy": b"",
        "text.npy": b"hello",
        "junk.pkl": b"junk",
        "junk.joblib": b"junk",
        "junk.zip": b"junk",
        "junk.onnx": b"junk",
        "other.csv": b"a,b\n1,2\n",
        "words.csv": b"state,action,prob\n0,0,x\n",
        "gap.csv": b"state,action,prob\n0,0,\n0,1,1\n",
        "minus.csv": b"state,action,prob\n0,-1,1\n",
    }.items():
        (path / name).write_bytes(content)
    with zipfile.ZipFile(path / "foreign.zip", "w") as archive:
        archive.writestr("data", "no settings")
    np.save(path / "fields.npy", np.zeros((2, 2), dtype=[("p", float)]))
    np.save(path / "imaginary.npy", POLICY + 1j)
    np.save(path / "objects.npy", np.array([1, None], dtype=object))
    np.save(path / "words.npy", np.array([["a", "b"]]))
    np.save(path / "no_states.npy", np.zeros((0, 2)))
    np.save(path / "no_actions.npy", np.zeros((2, 0)))
    np.save(path / "number.npy", np.array(3.0))
    np.savez(path / "nothing.npz")
    header = (path / "no_states.npy").read_bytes()
    (path / "endless.npy").write_bytes(header.replace(b"(0, 2)", b"(99999999999999, 2)"))
    for name in ("folder.npy", "folder.npz", "folder.csv", "folder.pkl", "folder.zip", "folder.onnx"):
        (path / name).mkdir()
    return path


FILES = [
    "half.npz",
    "short.npz",
    "flipped.npz",
    "empty.npz",
    "empty.npy",
    "text.npy",
    "fields.npy",
    "imaginary.npy",
    "objects.npy",
    "words.npy",
    "no_states.npy",
    "no_actions.npy",
    "number.npy",
    "nothing.npz",
    "endless.npy",
    "other.csv",
    "words.csv",
    "gap.csv",
    "minus.csv",
    "junk.pkl",
    "junk.joblib",
    "junk.zip",
    "foreign.zip",
    "junk.onnx",
    "folder.npy",
    "folder.npz",
    "folder.csv",
    "folder.pkl",
    "folder.zip",
    "folder.onnx",
    "missing.npy",
    "missing.npz",
    "missing.csv",
    "missing.pkl",
    "missing.zip",
    "missing.onnx",
    "packed.npz:other",
]
OBJECTS = [
    ":x",
    "x:",
    ":",
    "::",
    "a:b:c",
    "syntax_error:f",
    "divides:f",
    "ends_the_process:f",
    "needs_more:f",
    "null:f",
    "no_such_module:f",
    ".here:f",
    "..:f",
    "json:dumps",
    "json:nothing",
    "json:JSONDecoder",
    "json:decoder",
    "builtins:print",
    "builtins:len",
    "os:path",
    "os:name",
    "math:pi",
    "numpy:exp",
    "values:number",
    "values:text",
    "values:pairs",
    "values:imaginary",
    "values:none",
    "values:words",
    "values:ragged",
    "values:fails",
    "values:endless",
    "values:Kind",
    "tightrope:TabularPolicy",
    "tightrope.models:TabularModel",
    "tightrope.behaviors:LogisticBehavior",
]
LONG = ["x" * 5000 + ".npy", "x" * 5000 + ":y", "x" * 5000 + ".pkl"]


def call(folder, monkeypatch, *words):
    monkeypatch.chdir(folder)
    return CliRunner().invoke(app, ["evaluate", "logs.csv", "--n-resamples", "40", *words])


def refused(done):
    assert isinstance(done.exception, SystemExit), done.exception
    assert done.exit_code == BAD_INPUT, done.output
    assert done.stderr.splitlines()[-1].startswith("error: ")
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("spec", [*FILES, *OBJECTS, *LONG], ids=lambda spec: spec[:30])
def test_odd_policies(folder, monkeypatch, spec):
    refused(call(folder, monkeypatch, "--policy", spec))


@pytest.mark.parametrize("option", ["--model", "--behavior"])
@pytest.mark.parametrize("spec", ["", "half.npz", "UPPER.NPY", "values:table", *OBJECTS, LONG[1]], ids=lambda s: s[:30])
def test_odd_models_and_behaviours(folder, monkeypatch, option, spec):
    refused(call(folder, monkeypatch, "--policy", "values:table", "--estimator", "mb", option, spec))


@pytest.mark.parametrize(
    "spec", ["UPPER.NPY", "UPPER.NPZ", "UPPER.NPZ:probs", "packed.npz", "packed.npz:", "packed.npz:probs"]
)
def test_names_in_capitals_are_the_same_files(folder, monkeypatch, spec):
    monkeypatch.chdir(folder)
    np.testing.assert_array_equal(load_table(spec).table, POLICY)


def test_a_colon_in_a_path_is_no_array(tmp_path):
    np.savez(tmp_path / "a:b.npz", probs=POLICY)
    np.testing.assert_array_equal(load_table(str(tmp_path / "a:b.npz")).table, POLICY)
    np.testing.assert_array_equal(load_table(f"{tmp_path / 'a:b.npz'}:probs").table, POLICY)


def test_a_module_cannot_change_where_others_are_looked_for(tmp_path, monkeypatch):
    import sys

    (tmp_path / "inserts.py").write_text("import sys\nsys.path.insert(0, '/elsewhere')\nvalue = 3\n")
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    with pytest.raises(TightropeError, match=r"policy must be .*; got type int"):
        tightrope.evaluate(dataset(), "inserts:value")
    sys.path.remove("/elsewhere")
    assert sys.path == before


@dataclass
class Unhashable:
    """A model whose instances cannot be hashed."""

    name: str = "mine"

    def prepare(self, problem, *, anchor):
        return TabularModel().prepare(problem, anchor=anchor)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"estimators": [IS]}, r"estimator is the class IS; give an instance, IS\(\)"),
        ({"estimators": [["is"]]}, r"estimator must be .*; got \['is'\]"),
        ({"estimators": [lambda problem: None]}, "estimator must be .*; got <function"),
        ({"methods": [Percentile]}, r"method is the class Percentile; give an instance"),
        ({"methods": [["t"]]}, r"method must be .*; got \['t'\]"),
        (
            {"estimators": ["mb"], "model": Unhashable()},
            "the estimator mb cannot be told from others .*frozen dataclass",
        ),
        ({"estimators": [MB(Unhashable())]}, "the estimator mb cannot be told from others"),
        ({"estimators": [MB(3)]}, "model must be a name .*; got type int"),
        ({"behavior": TabularModel()}, "behavior must be a name .*; got type TabularModel"),
    ],
)
def test_odd_objects(options, message):
    with pytest.raises(TightropeError, match=message):
        tightrope.evaluate(dataset(), POLICY, **options)
