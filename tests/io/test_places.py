"""Logs in files of every kind, in folders, patterns and lists, from stdin and from addresses: the same dataset."""

from __future__ import annotations

import bz2
import gzip
import json
import subprocess
import sys

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.csv
import pyarrow.dataset
import pyarrow.feather
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

import tightrope
from tests.logs import assert_same, columns, corrupt, refused
from tightrope import TightropeError
from tightrope.cli import app

TABLE = pa.table(columns())
WANTED = tightrope.read(columns())


def csv_text(table=TABLE, delimiter=","):
    sink = pa.BufferOutputStream()
    pa.csv.write_csv(table, sink, pa.csv.WriteOptions(delimiter=delimiter))
    return sink.getvalue().to_pybytes()


def json_text(table=TABLE):
    return "".join(f"{json.dumps(row)}\n" for row in table.to_pylist()).encode()


def write(path, table=TABLE):
    """The table in a file of the kind that its name says."""
    name = path.name
    text = csv_text(table, "\t") if ".tsv" in name else json_text(table) if "json" in name else csv_text(table)
    if name.endswith((".parquet", ".pq")):
        pa.parquet.write_table(table, path)
    elif name.endswith(".feather"):
        pa.feather.write_feather(table, path)
    elif name.endswith(".arrow"):
        with pa.ipc.new_stream(str(path), table.schema) as stream:
            stream.write_table(table)
    else:
        pack = {
            ".gz": gzip.compress,
            ".bz2": bz2.compress,
            ".zst": lambda b: pa.Codec("zstd").compress(b, asbytes=True),
        }
        path.write_bytes(pack.get(path.suffix.lower(), bytes)(text))
    return path


NAMES = [
    "a.csv.gz", "a.csv.bz2", "a.tsv", "a.tsv.gz", "a.jsonl", "a.ndjson", "a.jsonl.gz", "a.feather", "a.arrow",
    "A.CSV.GZ", "a.parquet",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_every_kind_of_file_gives_the_same_dataset(name, tmp_path):
    assert_same(tightrope.read(write(tmp_path / name)), WANTED)


def test_zstandard(tmp_path):
    path = tmp_path / "a.csv.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as stream:
        stream.write(csv_text())
    assert_same(tightrope.read(path), WANTED)


def parts(folder, suffix):
    for i, rows in enumerate((TABLE.slice(0, 4), TABLE.slice(4))):
        write(folder / f"part-{i}{suffix}", rows)


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".jsonl.gz"])
def test_folders_patterns_and_lists(suffix, tmp_path, monkeypatch):
    inner = tmp_path / "logs" / "day=1"
    inner.mkdir(parents=True)
    parts(inner, suffix)
    (inner / "_SUCCESS").touch()
    (inner / ".part-0.csv").touch()  # hidden
    (inner / "readme.txt").touch()
    files = sorted(inner.glob("part*"))
    for source in (tmp_path / "logs", str(inner / "part*"), f"{tmp_path}/**/part-*", files, tuple(map(str, files))):
        assert_same(tightrope.read(source), WANTED)


def test_a_file_whose_name_looks_like_a_pattern_is_a_file(tmp_path):
    assert_same(tightrope.read(write(tmp_path / "a[1]*.csv")), WANTED)


def test_types_of_several_files_go_together(tmp_path):
    """A part in which all rewards are whole is read as whole numbers."""
    first, second = TABLE.slice(0, 4), TABLE.slice(4)
    place = TABLE.column_names.index("reward")
    whole = first.set_column(place, "reward", pa.array([1] * 4))
    files = [write(tmp_path / "a.csv", whole), write(tmp_path / "b.csv", second)]
    assert (
        tightrope.read(files).rewards.tolist()
        == tightrope.read(pa.concat_tables([whole.cast(second.schema), second])).rewards.tolist()
    )


def test_parts_that_do_not_go_together(tmp_path):
    one, other = write(tmp_path / "a.csv"), write(tmp_path / "b.csv", TABLE.drop_columns(["state"]))
    refused([one, other], r"all files must have the same columns; .*b\.csv and .*a\.csv differ in 'state'")
    refused([one, one], "this step is there more than once")
    text = TABLE.set_column(TABLE.column_names.index("reward"), "reward", pa.array(["x"] * 9))
    refused([one, write(tmp_path / "c.csv", text)], "types that go together: .*reward")
    refused([one, tmp_path / "none.csv"], r"none\.csv: no such file")
    refused(str(tmp_path / "*.feather"), "the pattern must lead to a file that ends in .*; it leads to none")


def test_parts_keep_their_horizon_and_discount(tmp_path):
    logs = tightrope.read(columns(), horizon=5, discount=0.5, incomplete="terminate")
    for i, some in enumerate(([0, 1], [2])):
        tightrope.write(logs.take(some), tmp_path / f"{i}.parquet")
    again = tightrope.read(tmp_path, incomplete="terminate")
    assert (again.horizon, again.discount) == (5, 0.5)
    tightrope.write(tightrope.read(columns(), horizon=6, incomplete="terminate"), tmp_path / "2.parquet")
    refused(tmp_path, "all files must tell the same horizon and discount")


# -- stdin -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_stdin_is_known_by_its_first_bytes(name, tmp_path):
    path = write(tmp_path / name)
    code = "import sys, tightrope; d = tightrope.read('-'); print(d.rewards.tolist(), d.states.tolist())"
    done = subprocess.run([sys.executable, "-c", code], input=path.read_bytes(), capture_output=True, check=True)
    assert done.stdout.decode().strip() == f"{WANTED.rewards.tolist()} {WANTED.states.tolist()}"


def test_commands_read_stdin_and_several_files(tmp_path):
    parts(tmp_path, ".csv")
    files = sorted(map(str, tmp_path.glob("*.csv")))
    wanted = CliRunner().invoke(app, ["inspect", str(write(tmp_path / "whole.parquet")), "--json"]).stdout
    for words, text in ((["-"], csv_text()), (files, None)):
        done = CliRunner().invoke(app, ["inspect", *words, "--json"], input=text)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["summary"] == json.loads(wanted)["summary"]


@pytest.mark.parametrize("content", [b"", b"\x1f\x8bxx", b"\0\0", b"PAR1", b"ARROW1", b"{", b"a\tb\n"])
def test_broken_bytes_on_stdin_are_refused(content):
    done = CliRunner().invoke(app, ["inspect", "-"], input=content)
    assert done.exit_code == 2
    assert "stdin" in done.output or "is empty" in done.output
    assert "Traceback" not in done.output


# -- addresses -------------------------------------------------------------------------------------------------------


def test_addresses_by_pyarrow_and_by_fsspec(tmp_path):
    fsspec = pytest.importorskip("fsspec")
    write(tmp_path / "a.parquet")
    assert_same(tightrope.read(f"file://{tmp_path}/a.parquet"), WANTED)
    assert_same(tightrope.read(f"file://{tmp_path}"), WANTED)
    memory = fsspec.filesystem("memory")
    for name in ("a.csv.gz", "a.parquet", "a.jsonl"):
        memory.pipe(f"/logs/{name}", write(tmp_path / name).read_bytes())
        assert_same(tightrope.read(f"memory://logs/{name}"), WANTED)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("file:///no/such/logs.parquet", "no such file"),
        ("nosuch://bucket/logs.parquet", "must begin with a known scheme, such as s3://"),
    ],
)
def test_bad_addresses(address, message):
    refused(address, message)


def test_a_filesystem_that_is_not_installed(monkeypatch):
    fsspec = pytest.importorskip("fsspec")

    def missing(place):
        raise ImportError("Install s3fs to access S3")

    monkeypatch.setattr(fsspec.core, "url_to_fs", missing)
    refused("other://bucket/logs.csv", r"needs a filesystem for other://, .*\(Install s3fs.*\): pip install fsspec")
    monkeypatch.setitem(sys.modules, "fsspec", None)
    refused("other://bucket/logs.csv", "needs a filesystem for other://, which is not installed")


# -- what is still to be computed --------------------------------------------------------------------------------------


class Relation:
    """As DuckDB has it; that library is no dependency, not even of the tests."""

    columns = TABLE.column_names

    def to_arrow_table(self):
        return TABLE


def test_lazy_tables(tmp_path):
    write(tmp_path / "a.parquet")
    dataset = pa.dataset.dataset(tmp_path / "a.parquet")
    for source in (pl.from_arrow(TABLE).lazy(), pl.scan_parquet(tmp_path / "a.parquet"), Relation(), dataset):
        assert_same(tightrope.read(source), WANTED)


# -- strangers' files ------------------------------------------------------------------------------------------------


@settings(max_examples=150, deadline=None)
@given(
    st.sampled_from([name for name in NAMES if not name.isupper()]),
    st.lists(st.tuples(st.floats(0, 1), st.integers(0, 255)), max_size=4),
    st.floats(0.3, 1),
)
def test_corrupted_bytes_are_refused_or_harmless(tmp_path_factory, name, flips, keep):
    path = write(tmp_path_factory.getbasetemp() / f"corrupt-{name}")
    corrupt(path, flips, keep)
    try:
        data = tightrope.read(path, incomplete="terminate")
    except TightropeError:
        return
    assert np.isfinite(data.rewards).all()
    assert data.lengths.sum() == len(data.rewards) <= 10
