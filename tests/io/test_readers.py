"""Whatever the logs come in, the dataset is the same; whatever is wrong with them, the error is ours."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tightrope
from tests.logs import POLICY, as_source, assert_same, columns, refused
from tightrope import DataError, TrajectoryDataset

KINDS = ["parquet", "pq", "csv", "pandas", "polars", "pyarrow", "batch", "mapping", "lists"]


# -- the same logs in every form -------------------------------------------------------------------------------------


FULL = columns(
    episode=np.repeat(["b", "a", "c"], 3),
    eval_prob=np.array([0.7, 0.6, 0.3, 0.0, 0.4, 0.7, 0.3, 0.7, 0.6]),
    terminated=np.isin(np.arange(9), [5]),
    truncated=np.isin(np.arange(9), [2, 8]),
    next_state=np.array([1, 0, 1, 1, 0, 1, 0, 1, 0]),
    comment=np.array(["x"] * 9),
)
CONTINUOUS = columns(
    state=None,
    action=None,
    behavior_prob=None,
    behavior_log_prob=np.linspace(-3, 2, 9),
    **{f"obs_{i}": np.arange(9.0) + i / 7 for i in range(12)},
    action_0=np.linspace(-1, 1, 9),
    action_1=np.linspace(1, 2, 9) ** 3,
)


def by_hand(name):
    common = {"offsets": [0, 3, 6, 9], "horizon": 3, "discount": 0.9, "horizon_declared": False}
    if name == "continuous":
        return TrajectoryDataset(
            **common,
            rewards=CONTINUOUS["reward"],
            terminated=[False] * 3,
            behavior_log_probs=np.linspace(-3, 2, 9),
            states=np.stack([np.arange(9.0) + i / 7 for i in range(12)], axis=1),
            actions=np.stack([np.linspace(-1, 1, 9), np.linspace(1, 2, 9) ** 3], axis=1),
            episode_ids=[10, 11, 12],
        )
    order = [3, 4, 5, 0, 1, 2, 6, 7, 8]  # by name: a, b, c
    with np.errstate(divide="ignore"):
        logs = {f"{who}_log_probs": np.log(FULL[f"{who}_prob"][order]) for who in ("behavior", "eval")}
    return TrajectoryDataset(
        **common,
        **logs,
        rewards=FULL["reward"][order],
        terminated=[True, False, False],
        states=FULL["state"][order],
        actions=FULL["action"][order],
        final_states=[1, 1, 0],
        episode_ids=["a", "b", "c"],
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("name", "values"), [("full", FULL), ("continuous", CONTINUOUS)])
def test_every_form_gives_the_same_dataset(kind, name, values, tmp_path):
    assert_same(tightrope.read(as_source(kind, values, tmp_path), discount=0.9), by_hand(name))


@pytest.mark.parametrize("kind", KINDS)
def test_rows_in_any_order(kind, tmp_path):
    order = np.random.default_rng(1).permutation(9)
    shuffled = {name: np.asarray(values)[order] for name, values in FULL.items()}
    data = tightrope.read(as_source(kind, shuffled, tmp_path), discount=0.9)
    assert_same(data, by_hand("full"))
    pair = {"estimator": "wdr", "method": "percentile", "n_resamples": 100}
    found = [tightrope.lower_bound(each, POLICY, **pair).value for each in (data, by_hand("full"))]
    assert found[0] == found[1]


@pytest.mark.parametrize("kind", ["parquet", "csv"])
@pytest.mark.parametrize("name", ["full", "vectors"])
def test_what_is_written_is_read_again(kind, name, tmp_path):
    """Every field, the state after the last step among them: a model counts it, so a bound would change without it."""
    data = by_hand("full")
    if name == "vectors":
        after = np.arange(36.0).reshape(3, 12)
        data = replace(by_hand("continuous"), final_states=after)
    path = tmp_path / f"logs.{kind}"
    tightrope.write(data, path)
    assert_same(tightrope.read(path, discount=0.9), data)


@pytest.mark.parametrize("kind", ["parquet", "csv"])
def test_what_was_cut_off_is_written_as_cut_off(kind, tmp_path):
    """Written as ended for good, it would let exact bounds on the file forget what may have followed."""
    short = {name: values[:-1] for name, values in columns().items()}
    data = tightrope.read(short, incomplete="terminate")
    path = tmp_path / f"logs.{kind}"
    tightrope.write(data, path)
    refused(path, "stops after step 1 without being flagged as terminated")
    assert_same(tightrope.read(path, incomplete="terminate"), data)


def test_logs_with_episodes_left_out_are_not_written(tmp_path):
    """No file says that they were there, and exact bounds on the others would be wrong."""
    short = {name: values[:-1] for name, values in columns().items()}
    data = tightrope.read(short, incomplete="drop")
    with pytest.raises(DataError, match=r"1 episode was left out .*incomplete"):
        tightrope.write(data, tmp_path / "logs.csv")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", [np.int8, np.uint16, np.uint64, np.float16, np.float32, np.float64])
def test_number_types(dtype):
    rewards = np.arange(9)
    changed = columns(t=columns()["t"].astype(dtype), reward=rewards.astype(dtype))
    assert_same(tightrope.read(changed), tightrope.read(columns(reward=rewards.astype(float))))


def test_numbers_of_the_other_byte_order():
    swapped = {name: values.astype(values.dtype.newbyteorder("S")) for name, values in columns().items()}
    for source in (swapped, pd.DataFrame(swapped)):
        assert_same(tightrope.read(source), tightrope.read(columns()))


def test_decimals_are_the_nearest_floats():
    """As databases export numbers: 0.3 is the float 0.3, whole numbers are whole, and names never merge."""
    values = {name: [Decimal(str(v)) for v in column.tolist()] for name, column in columns().items()}
    values["reward"] = [Decimal("0.3"), *values["reward"][1:]]
    wanted = columns(reward=np.array([0.3, *columns()["reward"][1:]]))
    for source in (values, pa.table(values)):
        assert_same(tightrope.read(source), tightrope.read(wanted))
    far = [Decimal(10**20 + k) for k in np.repeat([0, 1, 2], 3).tolist()]
    near = [Decimal("0.5") + Decimal(10**20 + k) for k in np.repeat([0, 1, 2], 3).tolist()]
    for names in (far, near):
        data = tightrope.read(pa.table(columns(episode=pa.array(names))))
        assert data.episode_ids.tolist() == [str(name) for name in names[::3]]


def test_objects_that_only_an_unsigned_number_holds():
    names = np.repeat(np.array([2**64 - 3, 2**64 - 2, 2**64 - 1], dtype=object), 3)
    assert tightrope.read(columns(episode=names)).episode_ids.tolist() == [2**64 - 3, 2**64 - 2, 2**64 - 1]


def test_float32_and_rounding():
    probs = np.full(9, 0.3, dtype=np.float32)
    data = tightrope.read(columns(behavior_prob=probs, eval_prob=np.full(9, 1 + 1e-7)))
    np.testing.assert_allclose(data.behavior_log_probs, math.log(0.3), rtol=1e-7)
    np.testing.assert_allclose(data.eval_log_probs, 1e-7, rtol=1e-6)
    refused(columns(eval_prob=np.full(9, 1 + 1e-5)), "must be at most 1, because actions are discrete")
    wide = tightrope.read(columns(action=np.full(9, 2**64 - 1, dtype=np.uint64)))
    assert wide.actions[0] == 2**64 - 1


@pytest.mark.parametrize("dtype", [bool, int, float, np.int8])
def test_flags(dtype):
    ended, cut = np.isin(np.arange(9), [2, 5]), np.isin(np.arange(9), [8])
    data = tightrope.read(columns(terminated=ended.astype(dtype), truncated=cut.astype(dtype)))
    assert data.terminated.tolist() == [True, True, False]
    assert data.terminated.dtype == bool


def test_text_flags_in_csv(tmp_path):
    path = tmp_path / "logs.csv"
    path.write_text("episode,t,reward,terminated\na,0,1,False\na,1,2,True\nb,0,3,False\nb,1,4,False\n")
    data = tightrope.read(path)
    assert data.terminated.tolist() == [True, False]
    assert data.episode_ids.tolist() == ["a", "b"]
    assert data.returns.tolist() == [3.0, 7.0]


def test_components_in_natural_order():
    made = {f"obs_{i}": np.full(9, float(i)) for i in (10, 2, 1)} | {"obs_x": np.full(9, 99.0)}
    states = tightrope.read(columns(state=None, **made)).states
    assert states[0].tolist() == [1.0, 2.0, 10.0, 99.0]


def test_names_that_are_no_components():
    extra = {
        name: np.ones(9)
        for name in ("action_prob", "action_log_prob", "action_mask", "observation", "step", "state_id")
    }
    plain = tightrope.read(columns())
    assert_same(tightrope.read(columns(**extra, action_name=["left"] * 9)), plain)
    several = tightrope.read(columns(action=None, action_0=np.ones(9), action_prob=np.ones(9)))
    assert several.actions.shape == (9, 1)


def test_unreadable_extra_columns_do_not_matter():
    frame = pd.DataFrame(columns(notes=[1, "a", None, 2.5, [], {}, 0, 0, 0]))
    assert_same(tightrope.read(frame), tightrope.read(columns()))
    assert_same(tightrope.read(columns(features=np.zeros((9, 4)))), tightrope.read(columns()))
    nothing = pa.table(columns(empty=pa.nulls(9)))
    assert_same(tightrope.read(nothing), tightrope.read(columns()))


@pytest.mark.parametrize("name", ["new_prob", "catalog_prob", "new_log_prob", "logp_new"])
def test_eval_column(name):
    probs = np.linspace(0.1, 0.9, 9)
    log = name in ("new_log_prob", "logp_new")
    source = columns(eval_prob=np.ones(9), action=np.ones(9) / 2, **{name: np.log(probs) if log else probs})
    np.testing.assert_allclose(tightrope.read(source, eval_column=name).eval_log_probs, np.log(probs), rtol=1e-15)


@pytest.mark.parametrize("behavior", [POLICY, tightrope.TabularPolicy(POLICY), lambda s, a, t: POLICY[s, a]])
def test_behavior_policy_fills_missing_probabilities(behavior):
    data = tightrope.read(columns(behavior_prob=None), behavior=behavior)
    expected = [math.log(POLICY[s, a]) for s, a in zip(data.states, data.actions, strict=True)]
    np.testing.assert_allclose(data.behavior_log_probs, expected, rtol=1e-15)
    assert hasattr(data.behavior, "log_prob")
    logged = tightrope.read(columns(), behavior=behavior)
    np.testing.assert_allclose(logged.behavior_log_probs, np.log(columns()["behavior_prob"]), rtol=1e-15)


def test_categories_and_dictionaries():
    labels = np.array(["left", "right"])[columns()["action"]]
    plain = tightrope.read(columns(action=labels))
    assert plain.actions.tolist() == labels.tolist()
    frame = pd.DataFrame(columns(action=pd.Categorical(labels), episode=pd.Categorical(columns()["episode"])))
    assert_same(tightrope.read(frame), plain)
    table = pa.table(columns(action=pa.array(labels).dictionary_encode()))
    assert_same(tightrope.read(table), plain)


def test_frame_with_its_own_index_and_chunks():
    frame = pd.DataFrame(columns()).set_index(np.arange(9)[::-1])
    assert_same(tightrope.read(frame), tightrope.read(columns()))
    table = pa.table(columns())
    assert_same(tightrope.read(pa.concat_tables([table[:2], table[2:7], table[7:]])), tightrope.read(columns()))


def test_types_that_change_late_in_a_csv(tmp_path):
    """Whole numbers in the first block of a megabyte must not rule out fractions in a later one."""
    n = 150_000
    path = tmp_path / "logs.csv"
    rewards = ["0"] * (n - 1) + ["0.5"]
    path.write_text("episode,t,reward\n" + "".join(f"{i},0,{reward}\n" for i, reward in enumerate(rewards)))
    assert path.stat().st_size > 1 << 20
    data = tightrope.read(path)
    assert data.n_trajectories == n
    assert data.rewards.sum() == 0.5


def test_folder_names_are_not_data(tmp_path):
    folder = tmp_path / "reward=7"
    folder.mkdir()
    refused(as_source("parquet", columns(reward=None), folder), "the logs must have a column 'reward'")


def test_checksums_are_verified(tmp_path):
    path = tmp_path / "logs.parquet"
    marked = columns(reward=np.full(9, 1234.5))
    pa.parquet.write_table(pa.table(marked), path, write_page_checksum=True, compression="none", use_dictionary=False)
    content = path.read_bytes()
    packed = np.full(9, 1234.5).tobytes()
    assert content.count(packed) == 1
    path.write_bytes(content.replace(packed, np.full(9, 1235.5).tobytes()))
    refused(path, "cannot be read as Parquet.*(?i:crc|checksum)")


def test_lists_are_vectors_and_lists_of_one_number_are_labels():
    table = pa.table(columns(state=[[1, 2]] * 9, action=[[3]] * 9))
    data = tightrope.read(table)
    assert data.states.tolist() == [[1.0, 2.0]] * 9
    assert data.states.dtype == float
    assert data.actions.tolist() == [3] * 9
    assert data.actions.dtype == np.int64
    huge = tightrope.read(columns(action=np.full((9, 1), 2**64 - 1, dtype=np.uint64)))
    assert huge.actions[0] == 2**64 - 1
    images = columns(state=np.zeros((9, 2, 2)))
    assert tightrope.read(images, columns={"state": None}).states is None


def test_a_frame_with_the_names_of_a_rollout_buffer_is_a_frame():
    names = {"reward": "rewards", "state": "observations", "action": "actions", "behavior_prob": "log_probs"}
    made = {names.get(name, name): values for name, values in columns().items()} | {"episode_starts": np.zeros(9)}
    made["log_probs"] = np.log(made["log_probs"])
    assert tightrope.read(pd.DataFrame(made)).rewards.tolist() == columns()["reward"].tolist()


def test_a_state_with_its_features_is_taken_as_the_state():
    """Logs often carry both; the candidate may be logged too, and then neither is needed."""
    data = tightrope.read(columns(obs_0=np.ones(9), obs_1=np.ones(9)))
    assert data.states.tolist() == columns()["state"].tolist()
