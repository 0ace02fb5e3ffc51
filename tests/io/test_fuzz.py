"""Random logs, junk and broken bytes: read right, or refused with an error of ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope
from tests.io.test_minari import record
from tests.logs import as_source, columns, corrupt
from tightrope import TightropeError
from tightrope.io.aliases import COMPONENTS, ROLES

FUZZ = settings(deadline=None, derandomize=True, database=None, max_examples=150)


@st.composite
def logs(draw):
    """Valid columns, rows shuffled, and the same in plain lists."""
    lengths = draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    total, horizon = sum(lengths), max(lengths)
    number = st.floats(-1e300, 1e300)
    ids = draw(st.one_of(st.just(list(range(len(lengths)))), st.just([f"run {i}" for i in range(len(lengths))])))
    label = draw(st.sampled_from([st.integers(-5, 2**63 - 1), st.sampled_from(["left", "right", "ünter"]), number]))
    rows = {
        "episode": [name for name, length in zip(ids, lengths, strict=True) for _ in range(length)],
        "t": [t for length in lengths for t in range(length)],
        "reward": draw(st.lists(st.floats(-1e6, 1e6), min_size=total, max_size=total)),
        "action": draw(st.lists(label, min_size=total, max_size=total)),
        "behavior_prob": draw(st.lists(st.floats(1e-300, 1.0), min_size=total, max_size=total)),
        "obs_0": draw(st.lists(number, min_size=total, max_size=total)),
        "terminated": [t == length - 1 and length < horizon for length in lengths for t in range(length)],
    }
    order = draw(st.permutations(range(total)))
    return rows, {name: [values[i] for i in order] for name, values in rows.items()}


@FUZZ
@given(logs(), st.sampled_from(["parquet", "csv", "pandas", "polars", "pyarrow", "lists"]))
def test_valid_logs_round_trip(tmp_path_factory, made, kind):
    rows, shuffled = made
    data = tightrope.read(as_source(kind, shuffled, tmp_path_factory.getbasetemp()))
    assert data.rewards.tolist() == rows["reward"]
    assert data.actions.tolist() == rows["action"]
    assert data.states[:, 0].tolist() == rows["obs_0"]
    assert data.times.tolist() == rows["t"]
    assert np.repeat(data.episode_ids, data.lengths).tolist() == rows["episode"]
    assert np.repeat(data.terminated, data.lengths)[data.offsets[1:] - 1].sum() == sum(rows["terminated"])
    np.testing.assert_allclose(np.exp(data.behavior_log_probs), rows["behavior_prob"], rtol=1e-12)


JUNK = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-3, 3),
    st.integers(-(2**70), 2**70),
    st.floats(),
    st.text(max_size=3),
    st.binary(max_size=2),
    st.datetimes(),
    st.decimals(),
    st.lists(st.integers(), max_size=2),
)
NAMES = ["episode", "t", "state", "obs_0", "action", "action_0", "reward", "behavior_prob", "behavior_log_prob"]
NAMES += [
    "eval_prob",
    "terminated",
    "truncated",
    "next_state",
    "Ünknown",
    "",
    "eps_id",
    "action_logp",
    "done",
    "is_last",
]
NAMES += ["observation.state", "infos/action_log_probs", "click", "pscore", "obs_²"]


@FUZZ
@given(
    st.dictionaries(st.sampled_from(NAMES), st.lists(JUNK, min_size=9, max_size=9), min_size=1, max_size=2),
    st.sampled_from(["mapping", "pandas", "arrow"]),
    st.dictionaries(
        st.sampled_from([*ROLES, "nonsense"]), st.one_of(st.none(), st.sampled_from(NAMES)), max_size=1
    ).filter(lambda given: not {"episode", "t", "reward", "last"} & given.keys()),
)
def test_junk_is_refused_or_kept(junk, kind, given):
    values = columns(**junk)
    try:
        source = {"mapping": dict, "pandas": pd.DataFrame, "arrow": pa.table}[kind](values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # not ours: pyarrow itself does not take it
        return
    try:
        data = tightrope.read(source, incomplete="terminate", columns=given)
    except TightropeError:
        return
    rows = sorted(zip(values["episode"], values["t"], values["reward"], strict=True), key=lambda row: row[:2])
    assert data.rewards.tolist() == [float(row[2]) for row in rows]
    assert data.times.tolist() == [int(row[1]) for row in rows]


@st.composite
def schemas(draw):
    """Names of columns for each role, among columns that mean nothing, and whether vectors are lists."""
    chosen = {role: draw(st.sampled_from(names)) for role, names in ROLES.items() if role not in ("done", "last")}
    known = {name for names in ROLES.values() for name in names}
    plain = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8).filter(
        lambda name: name not in known and not name.startswith(tuple(f"{part}_" for part in COMPONENTS.values()))
    )
    order = draw(st.permutations([*chosen, *range(draw(st.integers(0, 3)))]))
    return chosen, draw(st.lists(plain, min_size=3, max_size=3, unique=True)), order, draw(st.booleans())


@FUZZ
@given(schemas(), st.sampled_from(["parquet", "pandas", "polars", "pyarrow", "mapping"]), st.booleans())
def test_every_name_is_read_as_what_it_is(tmp_path_factory, schema, kind, log):
    chosen, others, order, whole = schema
    values = columns(
        state=np.arange(18.0).reshape(9, 2),
        action=np.arange(27).reshape(9, 3) if whole else np.linspace(0, 1, 9).reshape(9, 1),
        next_state=np.arange(18.0).reshape(9, 2) + 2,
        terminated=np.isin(np.arange(9), [5]),
        truncated=np.isin(np.arange(9), [8]),
        behavior_log_prob=np.log(columns()["behavior_prob"]),
        eval_prob=np.full(9, 0.25),
    )
    left_out = {"behavior_prob" if log else "behavior_log_prob", "eval_log_prob"}
    table = {}
    for key in order:
        if isinstance(key, int):
            table[others[key]] = np.arange(9)
        elif key not in left_out:
            made = values[key]
            table[chosen[key]] = made if kind == "mapping" or made.ndim == 1 else made.tolist()
    source = table if kind == "mapping" else as_source(kind, table, tmp_path_factory.getbasetemp())
    data = tightrope.read(source)
    assert data.rewards.tolist() == values["reward"].tolist()
    assert data.states.tolist() == values["state"].tolist()
    assert data.actions.tolist() == values["action"].tolist()
    assert data.discrete_actions == whole
    assert data.final_states.tolist() == values["next_state"][[2, 5, 8]].tolist()
    assert data.terminated.tolist() == [False, True, False]
    np.testing.assert_allclose(data.behavior_log_probs, values["behavior_log_prob"], rtol=1e-15)
    np.testing.assert_allclose(data.eval_log_probs, np.log(0.25), rtol=1e-15)


@FUZZ
@given(
    st.sampled_from(["observations", "actions", "rewards", "terminals", "timeouts", "infos/action_log_probs"]),
    st.one_of(
        st.lists(st.lists(st.floats(width=32), max_size=3), min_size=6, max_size=6),
        st.lists(st.integers(-(2**70), 2**70), min_size=5, max_size=7),
        st.lists(JUNK, min_size=6, max_size=6),
        st.builds(np.zeros, st.tuples(*[st.integers(0, 6)] * 2)),
        JUNK,
    ),
)
def test_junk_in_flat_arrays(name, junk):
    """Without an episode column: a wrong array is refused, or its numbers are the ones that are read."""
    flat = {
        "observations": np.arange(12.0).reshape(6, 2),
        "actions": np.arange(6) % 2,
        "rewards": np.arange(6.0),
        "terminals": np.arange(6) == 2,
        "timeouts": np.arange(6) == 5,
        "infos/action_log_probs": -np.arange(6.0),
        name: junk,
    }
    try:
        data = tightrope.read(flat, incomplete="terminate")
    except TightropeError:
        return
    assert data.rewards.tolist() == [float(np.squeeze(value)) for value in flat["rewards"]]
    ends = [bool(a or b) for a, b in zip(flat["terminals"], flat["timeouts"], strict=True)]
    assert data.offsets.tolist() == [0, *(i + 1 for i in range(5) if ends[i]), 6]
    for field, source in (("behavior_log_probs", "infos/action_log_probs"), ("actions", "actions")):
        if flat[source] is not None:
            np.testing.assert_array_equal(np.squeeze(getattr(data, field)), np.squeeze(np.array(flat[source])))


@settings(FUZZ, max_examples=300)
@given(
    st.sampled_from(["parquet", "csv"]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    st.floats(0.5, 1),
)
def test_corrupted_bytes_are_refused_or_harmless(tmp_path_factory, kind, flips, keep):
    path = as_source(kind, columns(terminated=np.isin(np.arange(9), [5])), tmp_path_factory.getbasetemp())
    corrupt(path, flips, keep)
    try:
        data = tightrope.read(path, incomplete="terminate")
    except TightropeError:
        return
    assert np.isfinite(data.rewards).all()
    assert data.lengths.sum() == len(data.rewards) <= 10
    if not flips and keep == 1:
        assert data.n_trajectories == 3


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """A Minari dataset's folder, its HDF5 file and what it holds."""
    folder = tmp_path_factory.mktemp("minari")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MINARI_DATASETS_PATH", str(folder))
        record("walk-v0", "hdf5")
    path = folder / "walk-v0" / "data" / "main_data.hdf5"
    return folder / "walk-v0", path, path.read_bytes()


@settings(FUZZ, max_examples=100)
@given(
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    st.one_of(st.just(1.0), st.floats(0, 1)),
)
def test_corrupted_hdf5_is_refused_or_harmless(recorded, flips, keep):
    folder, path, whole = recorded
    content = bytearray(whole)
    for place, value in flips:
        content[int(place * (len(content) - 1))] = value
    path.write_bytes(content[: int(len(content) * keep)])
    try:
        data = tightrope.read(folder)
    except TightropeError:
        return
    assert data.lengths.tolist() == [3, 1, 2]
    assert np.isfinite(data.rewards).all()
    if not flips:
        assert data.rewards.tolist() == [0, 1, 2, 10, 20, 21]
