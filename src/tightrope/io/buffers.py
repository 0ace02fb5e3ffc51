"""d3rlpy's episodes and Stable-Baselines3's rollout buffers, recognised by their attributes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_unmasked
from tightrope.base.errors import DataError
from tightrope.io.aliases import ColumnMap, fix
from tightrope.io.tables import KnownSource

Values = npt.NDArray[Any]

_EPISODE = ("observations", "actions", "rewards", "terminated")
_ROLLOUT = ("observations", "actions", "rewards", "episode_starts", "log_probs")


def flat(name: str, values: Any) -> Values:
    """An array with one row per step; the parts of a dictionary or tuple side by side, in order of their names."""
    if isinstance(values, Mapping):
        values = tuple(values[name] for name in sorted(values))
    if not isinstance(values, tuple):
        check_unmasked(name, values)
        return np.asarray(values)
    parts = [flat(name, part) for part in values]
    rows = {len(part) for part in parts}
    if len(rows) != 1:
        raise DataError(f"the parts of an observation must have the same length; got {sorted(rows)}")
    return np.concatenate([part.reshape(len(part), -1) for part in parts], axis=1)


# -- d3rlpy ------------------------------------------------------------------------------------------------------------


def episodes(source: Any, given: ColumnMap) -> KnownSource | None:
    """A replay buffer with ``episodes``, or a list of episodes."""
    return KnownSource(episode_columns(source), ("episodes, as d3rlpy holds them",)) if _is_episodes(source) else None


def _is_episodes(source: Any) -> bool:
    held = source if isinstance(source, (list, tuple)) else getattr(source, "episodes", None)
    if not isinstance(held, Sequence) or isinstance(held, str) or not len(held):
        return False
    return all(hasattr(held[0], name) for name in _EPISODE)


def episode_columns(source: Any) -> dict[str, Any]:
    """The steps of all episodes. d3rlpy keeps no probabilities: name the behaviour policy when reading."""
    held = source if isinstance(source, (list, tuple)) else source.episodes
    parts: dict[str, list[Values]] = {"episode": [], "t": [], "terminated": []}
    for number, episode in enumerate(held):
        arrays = {name: flat(f"{name} of episode {number}", getattr(episode, name)) for name in _EPISODE[:3]}
        steps = len(arrays["rewards"])
        for name, values in arrays.items():
            if len(values) != steps:
                raise DataError(f"episode {number} must have as many {name} as rewards, {steps}; got {len(values)}")
            parts.setdefault(name, []).append(values)
        parts["episode"].append(np.full(steps, number))
        parts["t"].append(np.arange(steps))
        parts["terminated"].append((np.arange(steps) == steps - 1) & bool(episode.terminated))
    return {name: joined(name, arrays) for name, arrays in parts.items()}


def joined(name: str, arrays: Sequence[Values]) -> Values:
    """The arrays of all episodes as one."""
    try:
        return np.concatenate(arrays)
    except ValueError as error:
        raise DataError(f"{name} must have the same shape in all episodes: {error}") from error


# -- Stable-Baselines3 -------------------------------------------------------------------------------------------------


def rollout(source: Any, given: ColumnMap) -> KnownSource | None:
    """A rollout buffer of PPO or A2C; not a frame with columns of these names."""
    if not all(hasattr(source, name) for name in _ROLLOUT) or hasattr(source, "columns"):
        return None
    return KnownSource(*rollout_columns(source, given.get("terminated") == "done"))


def rollout_columns(source: Any, ended_for_good: bool) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The steps of each environment in turn, cut where an episode starts.

    An episode that was already under way when the buffer started is left out: where it began is not known. One still
    under way at the buffer's end is incomplete. ``done`` says that an episode ended. Where a time limit ended it, the
    critic's value has been added to the last reward, and nothing in the buffer says where that was: so the user has to
    say that no time limit did.
    """
    for name in _ROLLOUT:
        check_unmasked(name, getattr(source, name))
    starts = np.asarray(source.episode_starts, dtype=bool)
    if starts.ndim != 2:
        raise DataError(f"episode_starts must have shape (steps, environments); got {starts.shape}")
    used = starts.shape[0] if getattr(source, "full", True) else int(source.pos)
    rows = _by_environment(starts.shape, used)
    columns: dict[str, Any] = {
        "observations": rows(flat_rollout(source.observations, starts.shape)),
        "actions": rows(np.asarray(source.actions)),
        "rewards": rows(np.asarray(source.rewards)),
        "log_probs": rows(np.asarray(source.log_probs)),
    }
    begins, first = rows(starts), rows(np.arange(len(starts))[:, None] == np.zeros(starts.shape[1]))
    if not len(begins):
        raise DataError("the rollout buffer is empty; read it after collecting steps")
    episode = np.cumsum(begins | first) - 1
    starts_at = np.flatnonzero(np.diff(episode, prepend=-1))
    columns["episode"] = episode
    columns["t"] = np.arange(len(episode)) - starts_at[episode]
    columns["done"] = np.append(begins[1:] & ~first[1:], False)
    known = begins[starts_at][episode]  # its episode started within the buffer
    if not known.any():
        raise DataError("no episode starts within the rollout buffer; collect longer rollouts")
    columns = {name: values[known] for name, values in columns.items()}
    if columns["done"].any() and not ended_for_good:
        raise DataError(
            "episodes end within the rollout buffer. Where a time limit ended one, Stable-Baselines3 added the "
            "critic's "
            "value to its last reward, and does not say where. If no time limit ended an episode, say so: "
            f"{fix('terminated', 'done')}; otherwise log the environment's own rewards"
        )
    left = len(starts_at) - int(begins[starts_at].sum())
    notes = ["a rollout buffer, as Stable-Baselines3 holds it"]
    if left:
        notes.append(f"{left} episodes already under way when the buffer started were left out")
    return columns, tuple(notes)


def flat_rollout(observations: Any, shape: tuple[int, ...]) -> Values:
    """Observations as an array of (steps, environments, ...) or, once sampled from, of (steps * environments, ...)."""
    if not isinstance(observations, Mapping):
        return np.asarray(observations)
    parts = [flat(name, observations[name]) for name in sorted(observations)]
    lead = shape if parts[0].shape[:2] == shape else (shape[0] * shape[1],)
    return np.concatenate([part.reshape(*lead, -1) for part in parts], axis=-1)


def _by_environment(shape: tuple[int, ...], used: int) -> Callable[[Values], Values]:
    """Arrays to rows ordered by environment, then step. Sampling from the buffer flattens some of them to just that."""
    steps, environments = shape

    def rows(values: Values) -> Values:
        if values.shape[:2] == (steps, environments):
            values = values.swapaxes(0, 1)
        elif values.shape[:1] == (steps * environments,):
            values = values.reshape(environments, steps, *values.shape[1:])
        else:
            raise DataError(
                f"every array of the rollout buffer must have shape ({steps}, {environments}); got {values.shape}"
            )
        return values[:, :used].reshape(environments * used, *values.shape[2:])

    return rows
