"""Whatever is written: to files only, through links, whole or not at all, and after the answer was printed."""

from __future__ import annotations

import errno
import os
import socket
import stat
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
from typer.testing import CliRunner

import tightrope
from tests.logs import POLICY, dataset, written_bonus
from tightrope import DataError
from tightrope.cli import BAD_INPUT, app
from tightrope.domains import domain
from tightrope.io.write import check_writable, replace_file, write_text
from tightrope.report.domains import save_drawing


@pytest.fixture(scope="module")
def logs(tmp_path_factory):
    return written_bonus(tmp_path_factory.mktemp("logs"), 60)


def call(*words):
    done = CliRunner().invoke(app, [str(word) for word in words])
    assert done.exception is None or isinstance(done.exception, SystemExit), done.exception
    return done


def report(logs, path):
    return call("evaluate", logs, "--n-resamples", 40, "--report", path)


WRITERS = {
    "a report": lambda logs, path: tightrope.evaluate(dataset(), POLICY, n_resamples=40).to_html(path),
    "logs": lambda logs, path: tightrope.write(dataset(), path),
    "a drawing": lambda logs, path: save_drawing(domain("cliff-world"), path),
    "a text": lambda logs, path: write_text(path, "text"),
}
NAMES = {"a report": "x.html", "logs": "x.csv", "a drawing": "x.svg", "a text": "x.txt"}
COMMANDS = {
    "evaluate --report": (lambda logs: ("evaluate", logs, "--n-resamples", 40, "--report"), "x.html"),
    "demo --save": (lambda logs: ("demo", "--problem", "walker", "--n", 60, "--save"), "x.csv"),
    "truth --draw": (lambda logs: ("truth", "cliff-world", "--rollouts", 200, "--draw"), "x.svg"),
}


def make(kind, path):
    """Something at this path that is no file."""
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    elif kind == "folder":
        path.mkdir()
    elif kind == "device":
        _device(path)
    elif kind == "link to a device":
        _device(path.parent / "there")
        path.symlink_to(path.parent / "there")
    elif kind == "link to a folder":
        (path.parent / "there").mkdir()
        path.symlink_to(path.parent / "there")
    elif kind == "link to itself":
        path.symlink_to(path)
    return os.lstat(path)


def _device(path):
    """A device of our own that swallows everything: a mistake in the code under test must not cost the machine's."""
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
    except PermissionError:
        pytest.skip("only root makes devices")


NO_FILES = ["fifo", "socket", "device", "folder", "link to a device", "link to a folder", "link to itself"]


@pytest.mark.parametrize("kind", NO_FILES)
@pytest.mark.parametrize("what", WRITERS)
def test_what_is_no_file_is_refused_and_left_alone(logs, tmp_path, monkeypatch, kind, what):
    monkeypatch.chdir(tmp_path)  # names of sockets are short
    path = Path(NAMES[what])
    before = make(kind, path)
    there = sorted(os.listdir())
    with pytest.raises(DataError, match=rf"{path} cannot be written: "):
        WRITERS[what](logs, path)
    after = os.lstat(path)
    assert (after.st_mode, after.st_ino) == (before.st_mode, before.st_ino)
    assert sorted(os.listdir()) == there


@pytest.mark.parametrize("kind", ["fifo", "device", "link to a device", "folder"])
@pytest.mark.parametrize("command", COMMANDS)
def test_commands_refuse_before_the_work(logs, tmp_path, kind, command):
    words, name = COMMANDS[command]
    before = make(kind, tmp_path / name)
    done = call(*words(logs), tmp_path / name)
    assert done.exit_code == BAD_INPUT
    assert f"{name} cannot be written" in done.stderr
    assert done.stdout == ""
    assert os.lstat(tmp_path / name).st_mode == before.st_mode


@pytest.mark.parametrize("device", ["/dev/null", "/dev/full", "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_the_machines_devices_are_refused(device):
    """Asked only whether it would write: were this to fail, nothing must be lost."""
    if not os.path.exists(device):
        pytest.skip(f"no {device} here")
    with pytest.raises(DataError, match=f"{device} cannot be written: it is a device, a pipe or a socket"):
        check_writable(Path(device))


def test_the_file_that_is_printed_to_is_refused(logs, tmp_path):
    """What was printed so far would be gone with the file that is replaced."""
    words = ["evaluate", str(logs), "--report", "out.html"]
    with (tmp_path / "out.html").open("w") as file:
        done = subprocess.run(
            [sys.executable, "-c", "from tightrope.cli import app; app()", *words],
            stdout=file,
            stderr=subprocess.PIPE,
            check=False,
            cwd=tmp_path,
        )
    assert done.returncode == BAD_INPUT
    assert "error: out.html cannot be written: it is where the answer is printed" in done.stderr.decode()
    assert (tmp_path / "out.html").read_text() == ""


@pytest.mark.parametrize("what", WRITERS)
@pytest.mark.parametrize("there", [True, False], ids=["a file", "nothing yet"])
@pytest.mark.parametrize("relative", [True, False], ids=["relative", "absolute"])
def test_links_are_followed_and_stay(logs, tmp_path, what, there, relative):
    (tmp_path / "far").mkdir()
    target, link = tmp_path / "far" / "file", tmp_path / NAMES[what]
    if there:
        target.write_text("before")
    link.symlink_to(Path("far") / "file" if relative else target)
    WRITERS[what](logs, link)
    assert link.is_symlink()
    assert target.is_file()
    assert not target.is_symlink()
    assert target.read_bytes() not in (b"before", b"")
    assert sorted(os.listdir(tmp_path)) == sorted(["far", link.name])
    assert os.listdir(tmp_path / "far") == ["file"]


def test_rights_stay_and_new_files_get_the_usual_ones(tmp_path):
    private, fresh = tmp_path / "private", tmp_path / "fresh"
    private.write_text("before")
    private.chmod(0o600)
    old = os.umask(0o027)
    try:
        write_text(private, "after")
        write_text(fresh, "after")
    finally:
        os.umask(old)
    assert stat.S_IMODE(private.stat().st_mode) == 0o600
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640
    assert private.read_text() == fresh.read_text() == "after"


def full(*arguments, **options):
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


FULL = {
    "evaluate --report": "pathlib.Path.write_text",
    "demo --save": "pyarrow.csv.write_csv",
    "truth --draw": "matplotlib.figure.Figure.savefig",
}


@pytest.fixture(scope="module")
def printed(logs):
    """What a command prints where it has nothing to write; each is run once."""
    return cache(lambda command: call(*COMMANDS[command][0](logs)[:-1]).stdout)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("there", [True, False], ids=["over a file", "a new file"])
@pytest.mark.parametrize("json", [[], ["--json"]], ids=["table", "json"])
def test_a_full_disk_costs_the_file_and_not_the_answer(logs, printed, tmp_path, monkeypatch, command, there, json):
    words, name = COMMANDS[command]
    path = tmp_path / name
    if there:
        path.write_text("before")
    expected = "" if json else printed(command)
    monkeypatch.setattr(FULL[command], full)
    done = call(*words(logs), path, *json)
    assert done.exit_code == BAD_INPUT
    assert f"error: {path} cannot be written: [Errno 28] No space left on device" in done.stderr
    assert "Traceback" not in done.stderr
    if json:
        assert done.stdout.startswith("{")
    else:  # the whole answer; what is said of the file comes after it
        assert expected.startswith(done.stdout)
        assert len(done.stdout.splitlines()) > 8
    assert [entry.name for entry in tmp_path.iterdir()] == ([name] if there else [])
    if there:
        assert path.read_text() == "before"


def test_an_interrupted_write_leaves_nothing(tmp_path):
    path = tmp_path / "x"
    path.write_text("before")

    def interrupted(temporary):
        Path(temporary).write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(path, interrupted)
    assert path.read_text() == "before"
    assert os.listdir(tmp_path) == ["x"]


def test_long_names_can_be_written(tmp_path):
    path = tmp_path / ("ü" * 120 + ".txt")
    write_text(path, "text")
    assert path.read_text() == "text"
    with pytest.raises(DataError, match="cannot be written"):
        write_text(tmp_path / ("x" * 300), "text")
