"""Logs after other logs, as one dataset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import DataError


def joined(first: TrajectoryDataset, second: TrajectoryDataset) -> TrajectoryDataset:
    """The episodes of both, with the settings and the behaviour policy of the second; what one lacks is left out."""

    def both(name: str, one: npt.NDArray[Any] | None, two: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
        if one is None or two is None:
            return None
        if one.shape[1:] != two.shape[1:] or (one.dtype.kind == "U") != (two.dtype.kind == "U"):
            raise DataError(f"{name} must be of one kind in all logs; got {_kind(one)} earlier and {_kind(two)} now")
        return np.concatenate([one, two])

    cuts = [np.zeros(data.n_trajectories, bool) if data.cut is None else data.cut for data in (first, second)]
    return replace(
        second,
        offsets=np.concatenate([first.offsets, first.n_steps + second.offsets[1:]]),
        rewards=np.concatenate([first.rewards, second.rewards]),
        terminated=np.concatenate([first.terminated, second.terminated]),
        cut=np.concatenate(cuts) if first.any_cut or second.any_cut else None,
        behavior_log_probs=both("behavior_log_probs", first.behavior_log_probs, second.behavior_log_probs),
        eval_log_probs=both("eval_log_probs", first.eval_log_probs, second.eval_log_probs),
        states=both("states", first.states, second.states),
        actions=both("actions", first.actions, second.actions),
        final_states=both("final_states", first.final_states, second.final_states),
        episode_ids=both("episode_ids", _words(first.episode_ids), _words(second.episode_ids)),
        arrival=None,
        clusters=None,
        strata=None,
    )


def _kind(values: npt.NDArray[Any]) -> str:
    wide = "" if values.ndim == 1 else f" of width {values.shape[1]}"
    return f"{'text' if values.dtype.kind == 'U' else 'numbers'}{wide}"


def _words(ids: npt.NDArray[Any] | None) -> npt.NDArray[Any] | None:
    return None if ids is None else ids.astype(str)
