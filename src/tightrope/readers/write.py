"""A dataset back to a long-format Parquet or CSV file, as ``read`` reads it."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tightrope.dataset import TrajectoryDataset
from tightrope.errors import DataError


def write(dataset: TrajectoryDataset, path: str | os.PathLike[str]) -> None:
    """Write one row per step. The file appears whole or not at all.

    Episodes that were cut off are written as such, so reading them again takes ``incomplete="terminate"``.
    """
    import pyarrow as pa
    import pyarrow.csv
    import pyarrow.parquet

    target = Path(path)
    writers: dict[str, Callable[[Any, Any], Any]] = {
        ".parquet": pyarrow.parquet.write_table,
        ".csv": pyarrow.csv.write_csv,
    }
    if target.suffix not in writers:
        raise DataError(f"{target}: the name must end in {' or '.join(writers)}")
    if dataset.n_dropped:
        were = "episode was" if dataset.n_dropped == 1 else "episodes were"
        raise DataError(
            f'{dataset.n_dropped} {were} left out of this dataset for being cut off (incomplete="drop"), and no file '
            "would say so: exact bounds on it would be wrong. Write the logs as they were read without that"
        )
    table = pa.table(_columns(dataset))
    replace_file(target, lambda temporary: writers[target.suffix](table, temporary))


def replace_file(target: Path, make: Callable[[str], Any]) -> None:
    """Make a file beside ``target`` and rename it into place, so that a failure leaves what was there."""
    try:
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        os.close(handle)
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error}") from error
    try:
        make(temporary)
        os.chmod(temporary, 0o666 & ~_umask())  # mkstemp's file is its owner's alone
        os.replace(temporary, target)
    except BaseException:
        os.unlink(temporary)
        raise


def write_text(target: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    check_writable(target)
    replace_file(target, lambda temporary: Path(temporary).write_text(text, encoding="utf-8"))


def check_writable(target: Path) -> None:
    """Refuse a path that cannot be written, before the work whose result would go there."""
    if target.is_dir():
        raise DataError(f"{target} cannot be written: it is a folder; give the name of a file in it")
    if not target.parent.is_dir():
        raise DataError(f"{target} cannot be written: there is no folder {target.parent}; make it first")
    try:
        with tempfile.TemporaryFile(dir=target.parent):
            pass
    except OSError as error:
        raise DataError(f"{target} cannot be written: {error}") from error


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _columns(data: TrajectoryDataset) -> dict[str, Any]:
    assert data.episode_ids is not None
    ended, cut = np.zeros((2, data.n_steps), dtype=bool)
    ended[data.offsets[1:] - 1] = data.terminated if data.cut is None else data.terminated & ~data.cut
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
    for name, logs in (("behavior_log_prob", data.behavior_log_probs), ("eval_log_prob", data.eval_log_probs)):
        if logs is not None:
            columns[name] = logs
    columns["terminated"] = ended
    if data.cut is not None:
        cut[data.offsets[1:] - 1] = data.cut
        columns["truncated"] = cut
    return columns


def _following(data: TrajectoryDataset) -> Any:
    """The state after every step, (N, ...), where that after the last one is known: a model counts it."""
    if data.final_states is None or data.states is None:
        return None
    following = np.roll(data.states, -1, axis=0)
    following = following.astype(np.promote_types(following.dtype, data.final_states.dtype))
    following[data.offsets[1:] - 1] = data.final_states
    return following
