"""Write a dataset to a Parquet or CSV file, one row per step, as ``read`` reads it."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.io.declared import stamped

FORMATS = (".parquet", ".csv")
NO_FILE = "it is a device, a pipe or a socket; give the name of a file"
_OPEN = ("/dev/fd/", "/dev/std", "/proc/")  # lead to what is open, perhaps to a file that has no name any more


def write(dataset: TrajectoryDataset, path: str | os.PathLike[str]) -> None:
    """Write a dataset to a Parquet or CSV file, one row per step; the file appears whole or not at all.

    Episodes that were cut off are written as cut off, so reading them again needs ``incomplete="terminate"``. Parquet
    also keeps the horizon (if it was declared) and the discount; CSV has no place for them.

    - ``dataset``: the logs.
    - ``path``: of the file; its end says which kind, ``.parquet`` or ``.csv``.

    >>> import tightrope
    >>> logs = tightrope.read({"reward": [1.0, 0.0], "pscore": [0.5, 0.5], "eval_prob": [0.7, 0.3]})
    >>> tightrope.write(logs, "logs.parquet")
    >>> tightrope.read("logs.parquet", one_step=True)
    <TrajectoryDataset: 2 episodes, 2 steps, horizon 1, discount 1>
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    target = Path(path)
    writers: dict[str, Callable[[Any, Any], Any]] = {
        ".parquet": pyarrow.parquet.write_table,
        ".csv": pyarrow.csv.write_csv,
    }
    check_target(target)
    if dataset.n_dropped:
        were = "episode was" if dataset.n_dropped == 1 else "episodes were"
        raise DataError(
            f"{dataset.n_dropped} {were} left out of this dataset because the logger cut them off "
            '(incomplete="drop"). A file would not say so, and exact bounds on it would be wrong. Read the logs '
            "without that and write them"
        )
    table = stamped(pa.table(_columns(dataset)), dataset)
    replace_file(target, lambda temporary: writers[target.suffix](table, temporary))


def check_target(target: Path) -> None:
    """Refuse a name that logs cannot be written to, before the work that makes them."""
    if target.suffix not in FORMATS:
        raise DataError(f"{target}: the name must end in {' or '.join(FORMATS)}")
    check_writable(target)


def replace_file(target: Path, make: Callable[[str], Any]) -> None:
    """Make a file beside ``target`` and rename it into place, so that a failure leaves what was there.

    A symbolic link stays one: its target is written. What is neither a file nor a new name is refused.
    """
    real = _destination(target)
    try:
        handle, temporary = tempfile.mkstemp(dir=real.parent, prefix=f".{real.name[:32]}.")
        os.close(handle)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error}") from error
    try:
        make(temporary)
        os.chmod(temporary, _mode(real))  # mkstemp's file is its owner's alone
        _flush(temporary)  # or else a power cut could leave the new name without its content
        os.replace(temporary, real)
        _flush(str(real.parent))
    except BaseException as error:
        with suppress(OSError):
            os.unlink(temporary)
        if isinstance(error, OSError):
            raise DataError(f"{target} cannot be written: {error}; the file that was there is unchanged") from error
        raise


def _flush(path: str) -> None:
    """Have a file or a folder on the disk; where folders cannot be opened (Windows) the name alone may come later."""
    if os.path.isdir(path) and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY if os.path.isdir(path) else os.O_RDWR)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_text(target: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    check_writable(target)
    replace_file(target, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))


def check_writable(target: Path) -> None:
    """Refuse a path that cannot be written, before the work whose result would go there."""
    real = _destination(target)
    if not real.parent.is_dir():
        raise DataError(f"{target} cannot be written: there is no folder {real.parent}; make it first")
    try:
        with tempfile.TemporaryFile(dir=real.parent):
            pass
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error}") from error


def _destination(target: Path) -> Path:
    """The file that a path leads to, links followed; a new name or a regular file, never a device, pipe or folder."""
    real, status = Path(os.path.realpath(target)), None
    try:
        status = real.stat()
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:  # too long a name, a link to itself, a null character
        raise DataError(f"{target} cannot be written: {error}") from error
    why = "" if status is None else _why_not(real, status)
    if os.path.abspath(target).startswith(_OPEN):
        why = NO_FILE
    if why:
        raise DataError(f"{target} cannot be written: {why}")
    return real


def _why_not(real: Path, status: os.stat_result) -> str:
    """Why what is there is not to be written over; empty where it may be."""
    if stat.S_ISDIR(status.st_mode):
        return "it is a folder; give the name of a file in it"
    if not stat.S_ISREG(status.st_mode):
        return NO_FILE
    if not os.access(real, os.W_OK):
        return "it is read-only"
    return "it is where the answer is printed; give another file" if _is_printed_to(status) else ""


def _is_printed_to(status: os.stat_result) -> bool:
    """Whether a file is what stdout or stderr are redirected to."""
    for descriptor in (1, 2):
        with suppress(OSError):
            if os.path.samestat(os.fstat(descriptor), status):
                return True
    return False


def _mode(real: Path) -> int:
    """The rights of the file that is replaced, or those of a new one."""
    try:
        return stat.S_IMODE(real.stat().st_mode)
    except FileNotFoundError:
        current = os.umask(0)
        os.umask(current)
        return 0o666 & ~current


def _columns(data: TrajectoryDataset) -> dict[str, Any]:
    assert data.episode_ids is not None
    for_good = data.terminated if data.cut is None else data.terminated & ~data.cut
    ended, cut = np.zeros((2, data.n_steps), dtype=bool)
    ended[data.offsets[1:] - 1], cut[data.offsets[1:] - 1] = for_good, ~for_good
    columns: dict[str, Any] = {"episode": np.repeat(data.episode_ids, data.lengths), "t": data.times}
    for name, prefix, values in (
        ("state", "obs", data.states),
        ("action", "action", data.actions),
        ("next_state", "next_obs", _following(data)),
    ):
        if values is None:
            continue
        if values.ndim == 1:
            columns[name] = values
        else:
            columns |= {f"{prefix}_{i}": values[:, i] for i in range(values.shape[1])}
    columns["reward"] = data.rewards
    for name, groups in (("cluster", data.clusters), ("strata", data.strata)):
        if groups is not None:
            columns[name] = np.repeat(groups, data.lengths)
    for name, logs in (("behavior_log_prob", data.behavior_log_probs), ("eval_log_prob", data.eval_log_probs)):
        if logs is not None:
            columns[name] = logs
    return {**columns, "terminated": ended, "truncated": cut}


def _following(data: TrajectoryDataset) -> Any:
    """The state after every step, (N, ...), where that after the last one is known: a model counts it."""
    if data.final_states is None or data.states is None:
        return None
    following = np.roll(data.states, -1, axis=0)
    following = following.astype(np.promote_types(following.dtype, data.final_states.dtype))
    following[data.offsets[1:] - 1] = data.final_states
    return following
