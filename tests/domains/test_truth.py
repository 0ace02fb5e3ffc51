"""True values recomputed on the command line, and the drawings."""

import json

import matplotlib.image
import numpy as np
import pytest
from typer.testing import CliRunner

from tightrope.base.errors import TightropeError
from tightrope.cli import BAD_INPUT, app
from tightrope.domains import CliffWorld, domain
from tightrope.domains.truth import truth
from tightrope.report.domains import save_drawing


def call(*words):
    return CliRunner().invoke(app, ["truth", *map(str, words)], env={"COLUMNS": "200"})


def test_values_without_an_exact_one_are_rolled_out():
    done = call("cliff-world", "--rollouts", 3000, "--seed", 1, "--json")
    found, world = json.loads(done.output), CliffWorld()
    assert (found["exact"], found["rollouts"]) == (False, 3000)
    for policy, stored in (("candidate", world.true_value), ("behavior", world.behavior_value)):
        value, error = found[policy]["value"], found[policy]["standard_error"]
        assert 0 < error < 1
        assert value == pytest.approx(stored, abs=4 * error)
    assert found["configuration"]["fall_cost"] == 100.0


def test_exact_values_are_called_so():
    done = call("walker")
    assert done.exit_code == 0
    assert "exactly" in done.output
    assert "-10.578426" in done.output
    assert json.loads(call("mountain-car", "--json").output)["rollouts"] is None


def test_the_table_shows_what_is_on_record_and_every_number():
    text = call("cliff-world-shifted", "--rollouts", 50).output
    for word in ("50 roll-outs", "-251.195693 ± 0.016", "[2.0, 2.0]", "goal_radius", "0.3"):
        assert word in text


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["moon"], 'domain must be "walker"'),
        (["cliff-world", "--rollouts", 1], "rollouts must be at least 2"),
        (["walker", "--draw", "x.png"], "walker cannot be drawn"),
        (["cliff-world", "--draw", "x.gif"], "must end in .png, .pdf, .svg"),
        (["cliff-world", "--draw", "nowhere/x.png"], "cannot be written"),
    ],
)
def test_what_cannot_be_done_is_said(words, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = call(*words)
    assert done.exit_code == BAD_INPUT
    assert message in done.output
    assert list(tmp_path.iterdir()) == []


def test_a_domain_that_cannot_be_rolled_out_is_refused():
    class Closed:
        name, true_value, true_value_error, behavior_value, behavior_value_error = "closed", 0.0, 1.0, 0.0, 1.0

    with pytest.raises(TightropeError, match="closed must have start"):
        truth(Closed(), rollouts=10, seed=0)


@pytest.mark.parametrize("name", ["mountain-car", "cliff-world"])
def test_drawings_keep_everything_inside_the_page(name, tmp_path):
    """Nothing touches the margin: labels that are cut would."""
    save_drawing(domain(name), tmp_path / "domain.png")
    page = matplotlib.image.imread(tmp_path / "domain.png")[..., :3]
    assert np.mean(page < 0.9) > 0.02
    for margin in (page[:2], page[-2:], page[:, :2], page[:, -2:]):
        assert (margin == 1.0).all()


def test_progress_reaches_the_end():
    shares = []
    truth(CliffWorld(horizon=2), rollouts=25_000, seed=0, progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
