"""Minari datasets, from HDF5 or Arrow. Propensities can only be in ``infos``, which start with the reset's."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_unmasked
from tightrope.base.errors import DataError
from tightrope.io.aliases import ColumnMap
from tightrope.io.buffers import flat, joined
from tightrope.io.tables import KnownSource

PREFIX = "minari:"

Values = npt.NDArray[Any]


def dataset(source: Any, given: ColumnMap) -> KnownSource | None:
    """``minari:ID``, the folder of a dataset, or the dataset itself."""
    return KnownSource(columns(source), ("a Minari dataset",)) if is_dataset(source) else None


def is_dataset(source: Any) -> bool:
    """Whether it is one of these."""
    if isinstance(source, (str, os.PathLike)):
        return str(source).startswith(PREFIX) or _data_folder(source) is not None
    return hasattr(source, "iterate_episodes") and hasattr(source, "episode_indices")


def columns(source: Any) -> dict[str, Any]:
    """The steps of all episodes, and every number per step in ``infos`` as ``infos/NAME``."""
    try:
        opened = _open(source) if isinstance(source, (str, os.PathLike)) else source
        expected = int(opened.total_steps)
        parts = _collect(opened.iterate_episodes())
    except DataError:
        raise
    except Exception as error:  # whatever a missing, cut or corrupted file makes Minari and h5py raise
        raise DataError(f"{source} cannot be read as a Minari dataset: {type(error).__name__}: {error}") from error
    whole = {name: joined(name, arrays) for name, arrays in parts.items()}
    if len(whole["rewards"]) != expected:
        raise DataError(
            f"{source} must hold {expected} steps, as it says itself; it holds {len(whole['rewards'])}. Record it again"
        )
    return whole


def _data_folder(path: str | os.PathLike[str]) -> Path | None:
    """The folder with a dataset's metadata: the one named, or ``data`` in it."""
    for folder in (Path(path), Path(path) / "data"):
        try:
            if (folder / "metadata.json").is_file():
                return folder
        except (OSError, ValueError):  # too long a name, a null character
            return None
    return None


def _open(source: str | os.PathLike[str]) -> Any:
    try:
        import minari
    except ImportError as error:
        raise DataError(f'reading {source} needs Minari ({error}): pip install "tightrope[minari]"') from error
    if str(source).startswith(PREFIX):
        from minari.storage.local import get_dataset_path

        source = get_dataset_path(str(source).removeprefix(PREFIX))
    folder = _data_folder(source)
    if folder is None:
        raise DataError(
            f"there is no Minari dataset at {source}; `minari list local` shows which there are. Download others first"
        )
    metadata = json.loads((folder / "metadata.json").read_text(encoding="utf-8"))
    if "observation_space" not in metadata or "action_space" not in metadata:
        raise DataError(
            f"{source} must hold its spaces; it names an environment instead, which Minari would have to run. Load it "
            "yourself and pass the MinariDataset"
        )
    return minari.MinariDataset(folder)


def _collect(episodes: Iterable[Any]) -> dict[str, list[Values]]:
    """The columns of each episode; an info that some of them lack is NaN there."""
    parts = [_steps(episode) for episode in episodes]
    if not parts:
        raise DataError("the Minari dataset is empty: it holds no episodes")
    names = dict.fromkeys(name for each in parts for name in each)
    return {name: [each.get(name, np.full(len(each["t"]), np.nan)) for each in parts] for name in names}


def _steps(episode: Any) -> dict[str, Values]:
    steps = len(episode.rewards)
    observations = flat(f"observations of episode {episode.id}", episode.observations)
    for name in ("actions", "rewards", "terminations", "truncations"):
        check_unmasked(f"{name} of episode {episode.id}", getattr(episode, name))
    columns = {
        "episode": np.full(steps, int(episode.id)),
        "t": np.arange(steps),
        "observations": observations[:-1],
        "next_observations": observations[1:],
        "actions": _actions(episode.actions),
        "rewards": np.asarray(episode.rewards),
        "terminations": np.asarray(episode.terminations),
        "truncations": np.asarray(episode.truncations),
    }
    for name, values in columns.items():
        if len(values) != steps:
            raise DataError(f"episode {episode.id} must have as many {name} as rewards, {steps}; got {len(values)}")
    for name, values in _numbers(episode.infos or {}, "infos/"):
        if len(values) in (steps, steps + 1):  # the first of steps + 1 is the reset's, before any action
            columns[name] = values[len(values) - steps :]
    return columns


def _actions(actions: Any) -> Values:
    if isinstance(actions, (dict, tuple)):
        raise DataError("actions must be numbers; they are dictionaries or tuples. Flatten them")
    return np.asarray(actions)


def _numbers(infos: dict[str, Any], prefix: str) -> Iterator[tuple[str, Values]]:
    """One number per step, wherever it is nested."""
    for name, values in infos.items():
        if isinstance(values, dict):
            yield from _numbers(values, f"{prefix}{name}/")
            continue
        check_unmasked(f"{prefix}{name}", values)
        try:
            array = np.asarray(values)
        except ValueError:  # ragged
            continue
        if array.ndim == 2 and array.shape[1] == 1:
            array = array[:, 0]
        if array.ndim == 1 and array.dtype.kind in "iufb":
            yield f"{prefix}{name}", array
