"""Random logs, junk and broken bytes: read right, or refused with an error of ours."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

import tightrope
from tests.logs import as_source, columns
from tightrope import TightropeError

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
NAMES += ["eval_prob", "terminated", "truncated", "next_state", "Ünknown", ""]


@FUZZ
@given(
    st.dictionaries(st.sampled_from(NAMES), st.lists(JUNK, min_size=9, max_size=9), min_size=1, max_size=2),
    st.sampled_from(["mapping", "pandas", "arrow"]),
)
def test_junk_is_refused_or_kept(junk, kind):
    values = columns(**junk)
    try:
        source = {"mapping": dict, "pandas": pd.DataFrame, "arrow": pa.table}[kind](values)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # not ours: pyarrow itself does not take it
        return
    try:
        data = tightrope.read(source, incomplete="terminate")
    except TightropeError:
        return
    rows = sorted(zip(values["episode"], values["t"], values["reward"], strict=True), key=lambda row: row[:2])
    assert data.rewards.tolist() == [float(row[2]) for row in rows]
    assert data.times.tolist() == [int(row[1]) for row in rows]


@settings(FUZZ, max_examples=300)
@given(
    st.sampled_from(["parquet", "csv"]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    st.floats(0.5, 1),
)
def test_corrupted_bytes_are_refused_or_harmless(tmp_path_factory, kind, flips, keep):
    path = as_source(kind, columns(terminated=np.isin(np.arange(9), [5])), tmp_path_factory.getbasetemp())
    content = bytearray(path.read_bytes())
    for place, value in flips:
        content[int(place * (len(content) - 1))] = value
    path.write_bytes(content[: int(len(content) * keep)])
    try:
        data = tightrope.read(path, incomplete="terminate")
    except TightropeError:
        return
    assert np.isfinite(data.rewards).all()
    assert data.lengths.sum() == len(data.rewards) <= 10
    if not flips and keep == 1:
        assert data.n_trajectories == 3
