"""Every option of the command that bounds a value reaches the call that it stands for."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

import tightrope
from tests.logs import written_bonus
from tightrope.cli import app

READING = {"horizon": 8, "discount": 0.95, "reward_range": (0, 1)}
ASKING = {"estimators": ["is", "wis"], "methods": ["percentile", "betting"], "n_resamples": 100}


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return written_bonus(tmp_path_factory.mktemp("logs"), 120)


def words(name, value):
    """An option as it is typed."""
    flag = f"--{name.removesuffix('s') if isinstance(value, list) else name}".replace("_", "-")
    if value is True:
        return [flag]
    if isinstance(value, list):
        return [word for one in value for word in (flag, one)]
    return [flag, *map(str, value if isinstance(value, tuple) else (value,))]


@pytest.mark.parametrize(
    ("reading", "asking"),
    [
        ({}, {"seed": 7}),
        ({}, {"confidence": 0.8}),
        ({}, {"n_resamples": 150}),
        ({}, {"side": "upper"}),
        ({}, {"side": "both"}),
        ({}, {"strict": True}),
        ({}, {"threshold": 2.0}),
        ({}, {"baseline": "behavior"}),
        ({}, {"methods": ["hoeffding"], "max_ratio": 1e3, "estimators": ["is"]}),
        ({}, {"methods": ["bca"]}),
        ({}, {"behavior": "tabular", "methods": ["percentile"]}),
        ({"discount": 0.5}, {}),
        ({"horizon": 9, "incomplete": "terminate"}, {}),
        ({"horizon": 9, "incomplete": "drop"}, {"methods": ["percentile"]}),
        ({"reward_range": (-1, 2)}, {}),
        ({"return_range": (0, 8)}, {}),
    ],
    ids=str,
)
def test_an_option_reaches_its_call(logs, reading, asking):
    """The same answer as from Python, and another one than without the option."""
    read, ask = READING | reading, ASKING | asking
    options = [word for name, value in (read | ask).items() for word in words(name, value)]
    done = CliRunner().invoke(app, ["evaluate", str(logs), *options, "--json"])
    told = tightrope.Evaluation.from_json(done.stdout)
    assert told == tightrope.evaluate(tightrope.read(logs, **read), **ask)
    assert told != tightrope.evaluate(tightrope.read(logs, **READING), **ASKING)
