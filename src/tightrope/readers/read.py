"""A long-format table (one row per step) to a validated dataset."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tightrope.checks import whole_horizon
from tightrope.dataset import TrajectoryDataset
from tightrope.errors import DataError
from tightrope.policy import as_policy
from tightrope.ratios import eval_log_probs
from tightrope.readers.columns import Columns
from tightrope.readers.tables import to_parts

Incomplete = Literal["error", "terminate", "drop"]


def read(
    source: Any,
    *,
    discount: float = 1.0,
    horizon: int | None = None,
    reward_range: tuple[float | None, float | None] | None = None,
    return_range: tuple[float | None, float | None] | None = None,
    incomplete: Incomplete = "error",
    eval_column: str | None = None,
    behavior: Any = None,
) -> TrajectoryDataset:
    """Logs in long format, one row per step, as a dataset.

    Columns: ``episode``, ``t`` (from 0), ``reward``; ``state`` or ``obs_*``; ``action`` or ``action_*``;
    ``behavior_prob`` or ``behavior_log_prob``; optionally ``eval_prob`` or ``eval_log_prob`` (or the one named by
    ``eval_column``), ``terminated``, ``truncated``, ``next_state`` or ``next_obs_*``. Rows may come in any order; other
    columns are left alone.

    ``horizon`` defaults to the longest episode; exact bounds want it declared. ``reward_range`` and ``return_range``
    are what is *possible*, not what was seen. ``incomplete`` says what to do with episodes that are shorter than the
    horizon and not flagged as terminated. ``behavior`` supplies the behaviour policy where the logs carry no
    probabilities.
    """
    if incomplete not in ("error", "terminate", "drop"):
        raise DataError(f'incomplete is {incomplete!r}; "error", "terminate" or "drop"')
    columns = Columns(*to_parts(source))
    rewards = columns.floats("reward")
    actions = columns.one_or_many("action", keep_text=True)
    discrete = None if actions is None else actions.dtype.kind != "f"
    lengths = np.diff(columns.offsets)
    terminated = columns.last_flags("terminated")
    declared = horizon is not None
    horizon = int(lengths.max()) if horizon is None else whole_horizon(horizon)
    short = (lengths < horizon) & ~terminated
    notes = []
    if incomplete != "error" and short.any():
        code, done = (
            ("assumed", "taken to have ended for good") if incomplete == "terminate" else ("dropped", "left out")
        )
        notes.append(
            f"{code}: {short.sum()} of {len(lengths)} episodes stop before the horizon without having terminated; they "
            f'were {done} (incomplete="{incomplete}")'
        )
    if incomplete == "drop" and short.all():
        raise DataError('incomplete="drop" leaves no episode: none reaches the horizon or is flagged as terminated')
    dataset = TrajectoryDataset(
        offsets=columns.offsets,
        rewards=rewards,
        terminated=terminated | short if incomplete != "error" else terminated,
        horizon=horizon,
        horizon_declared=declared,
        discount=discount,
        behavior_log_probs=columns.log_probs("behavior_prob", "behavior_log_prob", discrete, zero=False),
        eval_log_probs=columns.eval_log_probs(eval_column, discrete),
        states=columns.one_or_many("state", "obs"),
        actions=actions,
        final_states=columns.final("next_state", "next_obs"),
        episode_ids=columns.ids,
        reward_range=reward_range,  # type: ignore[arg-type]  # None ends become infinite there
        return_range=return_range,  # type: ignore[arg-type]
        notes=tuple(notes),
    )
    if incomplete == "drop":
        dataset = dataset.take(np.flatnonzero(~short))
    if behavior is None:
        return dataset
    behavior = as_policy(behavior)
    if dataset.behavior_log_probs is not None:
        return replace(dataset, behavior=behavior)
    return replace(dataset, behavior=behavior, behavior_log_probs=eval_log_probs(dataset, behavior))
