"""Horizon and discount travel in the metadata of a table; what is given outranks them, and damage is refused."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import pytest

import tightrope
from tests.logs import columns, refused
from tightrope.io.declared import KEY


@pytest.fixture
def path(tmp_path):
    logs = tightrope.read(columns(), horizon=5, discount=0.5, incomplete="terminate")
    tightrope.write(logs, tmp_path / "logs.parquet")
    return tmp_path / "logs.parquet"


def read(source, **options):
    return tightrope.read(source, incomplete="terminate", **options)


def test_the_file_tells_them_and_the_reading_says_so(path):
    logs = read(path)
    assert (logs.horizon, logs.discount, logs.horizon_declared) == (5, 0.5, True)
    assert "horizon 5, discount 0.5: as the logs' own metadata says" in logs.reading


def test_what_is_given_outranks_the_metadata(path):
    assert read(path, horizon=4).horizon == 4
    assert read(path, discount=1.0).discount == 1.0
    assert not any("metadata" in note for note in read(path, horizon=4, discount=1.0).reading)
    assert tightrope.read(path, one_step=True).horizon == 1


def test_a_horizon_that_was_only_seen_is_not_declared_by_writing_it(tmp_path):
    tightrope.write(tightrope.read(columns()), tmp_path / "logs.parquet")
    assert not tightrope.read(tmp_path / "logs.parquet").horizon_declared


def test_tables_and_other_files_carry_them_too(path, tmp_path):
    table = pa.parquet.read_table(path)
    assert (read(table).horizon, read(table).discount) == (5, 0.5)
    pa.feather.write_feather(table, tmp_path / "logs.feather")
    assert read(tmp_path / "logs.feather").horizon == 5


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(b"0.5", b"0.9"),
        lambda text: text.replace(b"5,", b"7,"),
        lambda text: text[:-1],
        lambda text: b"[]",
        lambda text: b"\xff",
        lambda text: b'{"declared": "{}", "crc32": 2745614147}',
        lambda text: b"[" * 100_000,
    ],
)
def test_damaged_metadata_are_refused(change, path):
    table = pa.parquet.read_table(path)
    text = table.schema.metadata[KEY]
    assert change(text) != text
    refused(table.replace_schema_metadata({KEY: change(text)}), r"\(key 'tightrope'\) are damaged: .*remove that key")
