"""A masked entry is a missing value: what lies under the mask is never used, whatever the array is given as."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import tightrope
from tests.io.test_formats import scope
from tests.logs import POLICY, columns, dataset, refused
from tightrope import DataError, PolicyError, TightropeError
from tightrope.models import GivenValues, TabularModel

AT = "episode 11, step 1"
NAMES = ["episode", "t", "state", "action", "reward", "behavior_prob", "terminated", "eval_prob", "next_state"]


def masked(values, row=4):
    """The values with one row masked and nonsense under the mask."""
    result = np.ma.array(np.array(values), mask=False)
    result[row] = 99
    result[row] = np.ma.masked
    return result


@pytest.mark.parametrize("name", NAMES)
def test_masked_entry_of_a_column_is_a_missing_value(name):
    made = columns(terminated=np.zeros(9, dtype=bool), eval_prob=np.full(9, 0.5), next_state=np.zeros(9, dtype=int))
    place = "row 4" if name in ("episode", "t") else AT
    refused(
        made | {name: masked(made[name])},
        rf"column '{name}' must have a value in every row; it is missing or NaN at {place}",
    )


@pytest.mark.parametrize("kind", ["array", "rows", "frame"])
def test_masked_component_of_a_vector(kind):
    vectors = masked(np.arange(18.0).reshape(9, 2), (4, 1))
    source = columns(state=vectors if kind == "array" else [vectors[i] for i in range(9)])
    if kind == "frame":
        source = pd.DataFrame(source)
    refused(source, rf"column 'state' must have a value in every row; it is missing or NaN at {AT}")


def test_masked_entries_of_lists():
    refused(
        columns(reward=[*[1.0] * 4, np.ma.masked, *[1.0] * 4]), rf"'reward' must have a value in every row; .* at {AT}"
    )
    text = np.ma.array(["left"] * 9, mask=np.arange(9) == 4)
    refused(columns(action=text), rf"'action' must have a value in every row; .* at {AT}")
    refused(columns(reward=masked([1.0] * 9).astype(object)), rf"'reward' must have a value in every row; .* at {AT}")


def test_masks_that_hide_nothing_needed_change_nothing():
    plain, data = columns(), dataset()
    nothing_hidden = {name: np.ma.array(values, mask=False) for name, values in plain.items()}
    read = tightrope.read(nothing_hidden | {"comment": masked([0.0] * 9)})
    np.testing.assert_array_equal(read.rewards, data.rewards)
    assert not isinstance(read.rewards, np.ma.MaskedArray)


@pytest.mark.parametrize(
    "name", ["rewards", "offsets", "terminated", "behavior_log_probs", "states", "actions", "final_states"]
)
def test_masked_arrays_of_a_dataset(name):
    given = {
        "offsets": np.array([0, 2, 4]),
        "rewards": np.zeros(4),
        "terminated": np.ones(2, dtype=bool),
        "behavior_log_probs": np.full(4, -0.5),
        "states": np.zeros(4, dtype=int),
        "actions": np.zeros(4, dtype=int),
        "final_states": np.zeros(2, dtype=int),
    }
    with pytest.raises(DataError, match=rf"{name} has no value \(masked\) in row 1"):
        tightrope.TrajectoryDataset(**given | {name: masked(given[name], 1)}, horizon=2)


def test_masked_arrays_of_other_tools():
    with pytest.raises(DataError, match=r"'reward' must have a value in every row; .* at episode 0, step 1"):
        tightrope.read(scope(reward=masked(np.arange(9.0), 1)))
    with pytest.raises(DataError, match="done has no value"):
        tightrope.read(scope(done=masked(scope()["done"], 1)))
    behind_the_end = tightrope.read(scope(reward=masked(np.arange(9.0), 5)))  # the second episode ends at its step 1
    assert behind_the_end.rewards.tolist() == [0, 1, 2, 3, 4, 6, 7, 8]
    episode = SimpleNamespace(
        observations=np.zeros((2, 1)), actions=np.zeros(2), rewards=masked([0.0, 0.0], 1), terminated=True
    )
    with pytest.raises(DataError, match=r"rewards of episode 0 has no value \(masked\) in row 1"):
        tightrope.read([episode])


UNREAL = {
    "masked": (masked(POLICY, (1, 0)), r"has no value \(masked\) in row 1"),
    "complex": (POLICY + 0.3j, "must give real numbers; got complex128"),
    "complex objects": ((POLICY + 0.3j).astype(object), "must give real numbers; got complex128"),
    "text": (POLICY.astype(str), "must give numbers; got <U"),
    "fields": (np.zeros((2, 2), dtype=[("p", float)]), "must give numbers; got"),
    "dates": (np.zeros((2, 2), dtype="M8[s]"), "must give numbers; got datetime64"),
}


@pytest.mark.parametrize("kind", UNREAL)
def test_table_that_would_lose_something(kind):
    table, message = UNREAL[kind]
    with pytest.raises(PolicyError, match=message):
        tightrope.TabularPolicy(table)
    with pytest.raises(PolicyError, match=message):
        tightrope.evaluate(dataset(), table)
    with pytest.raises(DataError, match=message):
        GivenValues(table)
    with pytest.raises(DataError, match=message):
        TabularModel(rewards=table)


@pytest.mark.parametrize("kind", UNREAL)
def test_function_whose_answers_would_lose_something(kind):
    table, message = UNREAL[kind]
    rows = np.resize(np.arange(2), 9)
    answers = {
        "of actions": lambda states, actions, t: table[rows, 0],
        "of states": lambda states: table[rows[: len(states)]],
        "object": SimpleNamespace(log_prob=lambda states, actions, t: table[rows, 0]),
    }
    for answer in answers.values():
        with pytest.raises(PolicyError, match=message.replace("row 1", r"row \d")):
            tightrope.estimate(dataset(), answer)


def test_masked_weights():
    value = tightrope.statistic(dataset(), POLICY)
    with pytest.raises(TightropeError, match=r"weights has no value \(masked\) in row 2"):
        value(masked(np.ones(3), 2))


@pytest.mark.parametrize("name", ["rewards", "behavior_log_probs", "states", "offsets"])
def test_complex_arrays_of_a_dataset(name):
    given = {"offsets": np.array([0, 1, 2]), "rewards": np.zeros(2), "terminated": np.ones(2, dtype=bool)}
    given[name] = np.asarray(given.get(name, np.zeros(2))) + 0.5j
    with pytest.raises(DataError, match=f"{name} must hold real numbers"):
        tightrope.TrajectoryDataset(**given, horizon=1)


def test_complex_column():
    refused(columns(reward=columns()["reward"] + 1j), "column 'reward' does not convert to numbers or text")
