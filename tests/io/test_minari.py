"""Minari datasets, written by Minari itself in each of its formats."""

from __future__ import annotations

import json
import warnings

import gymnasium as gym
import minari
import numpy as np
import pytest
from minari.data_collector.episode_buffer import EpisodeBuffer
from typer.testing import CliRunner

import tightrope
from tests.logs import refused
from tightrope.cli import app

BACKENDS = ["hdf5", "arrow", "parquet"]
LENGTHS = (3, 1, 2)
BOX = gym.spaces.Box(-10, 10, (2,), np.float64)


def observations(number):
    return number + np.arange(2.0 * (LENGTHS[number] + 1)).reshape(-1, 2) / 8


def logs(number):
    """One entry before the first action, as the reset gives one, then one for each action."""
    return [-99.0, *(-(number + 1) / (t + 2) for t in range(LENGTHS[number]))]


def episode(number, **changes):
    steps = LENGTHS[number]
    made = {
        "observations": observations(number),
        "actions": np.arange(steps) % 2,
        "rewards": np.arange(steps) + 10.0 * number,
        "terminations": (np.arange(steps) == steps - 1) & (number != 0),
        "truncations": (np.arange(steps) == steps - 1) & (number == 0),
        "infos": {"log_prob": logs(number), "other": [0.5] * (steps + 1)},
    }
    return EpisodeBuffer(**(made | changes))


def record(name, data_format, space=BOX, actions=None, change=lambda number: {}):
    """A dataset in the folder that MINARI_DATASETS_PATH names."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # no author, no environment to evaluate in
        return minari.create_dataset_from_buffers(
            name,
            [episode(number, **change(number)) for number in range(3)],
            observation_space=space,
            action_space=actions or gym.spaces.Discrete(2),
            data_format=data_format,
        )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    return tmp_path


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("form", ["name", "folder", "data", "object"])
def test_every_backend(backend, form, folder):
    made = record("rope/walk-v0", backend)
    root = folder / "rope" / "walk-v0"
    source = {"name": "minari:rope/walk-v0", "folder": root, "data": str(root / "data"), "object": made}[form]
    data = tightrope.read(source)
    assert data.lengths.tolist() == [3, 1, 2]
    assert data.terminated.tolist() == [False, True, True]  # the first was truncated, at the horizon
    assert data.rewards.tolist() == [0, 1, 2, 10, 20, 21]
    assert data.actions.tolist() == [0, 1, 0, 0, 0, 1]
    assert data.behavior_log_probs.tolist() == [value for number in range(3) for value in logs(number)[1:]]
    np.testing.assert_array_equal(data.states, np.concatenate([observations(number)[:-1] for number in range(3)]))
    np.testing.assert_array_equal(data.final_states, [observations(number)[-1] for number in range(3)])
    assert "behavior: 'infos/log_prob', read as a logarithm" in data.reading


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_truncated_episode_is_not_a_finished_one(backend):
    record("walk-v0", backend)
    refused("minari:walk-v0", "episode 0 stops after step 2 without being flagged as terminated", horizon=4)
    assert tightrope.read("minari:walk-v0", horizon=4, incomplete="drop").episode_ids.tolist() == [1, 2]


def test_infos_without_the_reset():
    record("walk-v0", "hdf5", change=lambda number: {"infos": {"p": {"deep": np.exp(logs(number)[1:])}}})
    data = tightrope.read("minari:walk-v0", columns={"behavior_prob": "infos/p/deep"})
    np.testing.assert_allclose(data.behavior_log_probs[:3], logs(0)[1:], rtol=1e-15)


@pytest.mark.parametrize("backend", BACKENDS)
def test_no_propensities(backend):
    """Reading goes on, for a model or a policy that the user has may do without; what needs them says what to do."""
    record("walk-v0", backend, change=lambda number: {"infos": {"other": [0.5] * (LENGTHS[number] + 1)}})
    data = tightrope.read("minari:walk-v0")
    assert data.behavior_log_probs is None
    policy = tightrope.UniformPolicy(2)
    with pytest.raises(
        tightrope.DataError, match=r"no behaviour probabilities.*--column behavior_prob=.*behavior=policy"
    ):
        tightrope.lower_bound(data, policy, estimator="is", method="t")
    known = tightrope.read("minari:walk-v0", behavior=policy)
    np.testing.assert_allclose(known.behavior_log_probs, np.log(0.5), rtol=1e-15)


def test_propensities_in_some_episodes_only():
    record("walk-v0", "hdf5", change=lambda number: {"infos": {"other": [0.5] * 4}} if number == 0 else {})
    refused("minari:walk-v0", "'infos/log_prob' must be finite, .*; got nan at episode 0, step 0")


@pytest.mark.parametrize("backend", BACKENDS)
def test_observations_in_parts_lie_side_by_side(backend):
    space = gym.spaces.Dict({"b": gym.spaces.Box(-9, 9, (1,), np.float64), "a": BOX})
    record(
        "walk-v0",
        backend,
        space,
        change=lambda number: {"observations": {"a": observations(number), "b": observations(number)[:, :1] * 2}},
    )
    whole = np.concatenate([observations(number)[:-1] for number in range(3)])
    np.testing.assert_array_equal(tightrope.read("minari:walk-v0").states, np.column_stack([whole, whole[:, 0] * 2]))


@pytest.mark.parametrize("backend", BACKENDS)
def test_continuous_actions_and_numbered_states(backend):
    record(
        "walk-v0",
        backend,
        gym.spaces.Discrete(8),
        gym.spaces.Box(-1, 1, (2,), np.float32),
        lambda number: {
            "observations": np.arange(LENGTHS[number] + 1) + number,
            "actions": observations(number)[:-1].astype(np.float32),
        },
    )
    data = tightrope.read("minari:walk-v0")
    assert data.states.tolist() == [0, 1, 2, 1, 2, 3]
    assert data.actions.dtype == np.float64
    np.testing.assert_array_equal(data.actions[:3], observations(0)[:-1])


def test_tuples_of_actions_are_refused():
    pair = gym.spaces.Tuple([gym.spaces.Discrete(2), gym.spaces.Discrete(2)])
    record("walk-v0", "hdf5", actions=pair, change=lambda number: {"actions": (np.zeros(LENGTHS[number], int),) * 2})
    refused("minari:walk-v0", "actions must be numbers; they are dictionaries or tuples")


def test_nothing_there(folder):
    refused("minari:rope/none-v0", "no Minari dataset at .*none-v0; `minari list local` shows which there are")
    (folder / "empty").mkdir()
    refused(folder / "empty", "the folder must lead to a file .*; it leads to none")


@pytest.mark.parametrize("backend", BACKENDS)
def test_broken_files(backend, folder):
    record("walk-v0", backend)
    data = folder / "walk-v0" / "data"
    kept = {path: path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}
    for path, content in kept.items():
        for broken in (content[: len(content) // 2], b"", content[:-200]):
            path.write_bytes(broken)
            try:
                read = tightrope.read("minari:walk-v0")
            except tightrope.TightropeError:
                continue
            finally:
                path.write_bytes(content)
            assert read.rewards.tolist() == [0, 1, 2, 10, 20, 21]
    metadata = data / "metadata.json"
    told = json.loads(metadata.read_text())
    metadata.write_text(json.dumps({**told, "total_steps": 7}))
    refused("minari:walk-v0", "must hold 7 steps, as it says itself; it holds 6")
    metadata.write_text(json.dumps({name: value for name, value in told.items() if name != "action_space"}))
    refused("minari:walk-v0", "must hold its spaces; it names an environment instead")


def test_missing_extra(monkeypatch, folder):
    record("walk-v0", "hdf5")
    monkeypatch.setitem(__import__("sys").modules, "minari", None)
    refused("minari:walk-v0", r'needs Minari .*pip install "tightrope\[minari\]"')


def test_command():
    record("rope/walk-v0", "arrow")
    seen = CliRunner().invoke(app, ["inspect", "minari:rope/walk-v0"])
    assert seen.exit_code == 0, seen.output
    assert "a Minari dataset" in seen.output
    assert "behavior: 'infos/log_prob', read as a logarithm" in seen.output
