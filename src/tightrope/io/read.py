"""Logs in any of the known forms to a validated dataset; every reader ends in the same long-format table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np

from tightrope.base.checks import whole_horizon
from tightrope.base.dataset import BoolArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.policy import as_policy
from tightrope.base.ratios import eval_log_probs
from tightrope.base.warnings import Caution, caution
from tightrope.io import probabilities
from tightrope.io.aliases import ROLES, ColumnMap, fix
from tightrope.io.columns import Columns, quoted
from tightrope.io.sources import open_source

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
    columns: ColumnMap | None = None,
    one_step: bool | None = None,
) -> TrajectoryDataset:
    """Logs as a dataset; its ``reading`` says which column was taken for what.

    ``source`` is a Parquet or CSV file, a pandas, polars or pyarrow table, a mapping of names to arrays (also OBP's and
    SCOPE-RL's), a Minari dataset (``minari:ID``, its folder or the object), d3rlpy episodes or replay buffer, or a
    Stable-Baselines3 rollout buffer.

    Columns of a table, one row per step in any order: ``episode``, ``t`` (from 0), ``reward``; ``state`` or ``obs_*``;
    ``action`` or ``action_*``; ``behavior_prob`` or ``behavior_log_prob``; optionally ``eval_prob`` or
    ``eval_log_prob`` (or the one named by ``eval_column``), ``terminated``, ``truncated``, ``next_state`` or
    ``next_obs_*``. The names that other tools write are known (``readers/aliases.py``); ``columns`` overrides them:
    ``{"behavior_prob": "p", "state": ["age", "dose"], "t": None}``, None where there is no such column. ``one_step``
    makes every row an episode; without it only logs with a bandit's names and no episodes are read so.

    ``horizon`` defaults to the longest episode; exact bounds want it declared, but for ``one_step`` logs, where it is
    1. ``reward_range`` and ``return_range`` are what is *possible*, not what was seen. ``incomplete`` says what to do
    with episodes that are shorter than the horizon and not flagged as terminated. ``behavior`` supplies the behaviour
    policy where the logs carry no probabilities.
    """
    if incomplete not in ("error", "terminate", "drop"):
        raise DataError(f'incomplete is {incomplete!r}; "error", "terminate" or "drop"')
    opened = open_source(source, columns or {})
    logs = Columns(opened.table, opened.broken, columns, opened.one_step if one_step is None else one_step)
    rewards = logs.rewards()
    states, actions = logs.vector("state"), logs.vector("action", labels=True)
    discrete = None if actions is None else actions.dtype.kind != "f"
    behavior_logs = probabilities.log_probs(logs, "behavior", discrete, zero=False)
    lengths = np.diff(logs.offsets)
    terminated = _terminated(logs)
    declared = horizon is not None or logs.one_step  # an episode of one step has a horizon of 1 by its definition
    horizon = int(lengths.max()) if horizon is None else whole_horizon(horizon)
    short = (lengths < horizon) & ~terminated
    if incomplete == "error":
        _check_done(logs, short)
    if incomplete == "drop" and short.all():
        raise DataError('incomplete="drop" leaves no episode: none reaches the horizon or is flagged as terminated')
    dataset = TrajectoryDataset(
        offsets=logs.offsets,
        rewards=rewards,
        terminated=terminated | short if incomplete != "error" else terminated,
        cut=short if incomplete == "terminate" and short.any() else None,
        n_dropped=int(short.sum()) if incomplete == "drop" else 0,
        horizon=horizon,
        horizon_declared=declared,
        discount=discount,
        behavior_log_probs=behavior_logs,
        eval_log_probs=probabilities.eval_log_probs(logs, eval_column, discrete),
        states=states,
        actions=actions,
        final_states=logs.final(),
        episode_ids=logs.ids,
        reward_range=reward_range,  # type: ignore[arg-type]  # None ends become infinite there
        return_range=return_range,  # type: ignore[arg-type]
        notes=_notes(short, incomplete),
        reading=(*opened.said, *logs.said, *_not_read(logs, behavior_logs is None and behavior is None)),
    )
    if incomplete == "drop":
        dataset = dataset.take(np.flatnonzero(~short))
    if behavior is None:
        return dataset
    behavior = as_policy(behavior)
    if dataset.behavior_log_probs is not None:
        return replace(dataset, behavior=behavior)
    return replace(dataset, behavior=behavior, behavior_log_probs=eval_log_probs(dataset, behavior))


def _terminated(logs: Columns) -> BoolArray:
    """Which episodes are known to have ended for good: "done" counts only where "truncated" tells the rest apart."""
    if logs.one_step:
        return np.ones(len(logs.ids), dtype=bool)
    terminated, truncated, done = (logs.ends(role) for role in ("terminated", "truncated", "done"))
    if logs.name("terminated") is None and logs.name("truncated") is not None:
        return done & ~truncated
    return terminated


def _check_done(logs: Columns, short: BoolArray) -> None:
    """Refuse a flag that says that an episode ended but not how, where that matters."""
    name = logs.name("done")
    if name is None or logs.name("terminated") is not None or logs.name("truncated") is not None:
        return
    unclear = np.flatnonzero(short & logs.ends("done"))
    if len(unclear):
        first = unclear[0]
        raise DataError(
            f"episode {logs.ids[first]} stops before the horizon, and {name!r} does not say whether it ended for good "
            f"or was cut off ({len(unclear)} of {len(short)} episodes are like this). If {name!r} means ended for "
            f'good: {fix("terminated", name)}; if some were cut off, say what to do: incomplete="terminate" '
            '(--incomplete terminate) counts what follows as 0, "drop" leaves these episodes out'
        )


def _notes(short: BoolArray, incomplete: Incomplete) -> tuple[Caution, ...]:
    """What was assumed about incomplete episodes."""
    if incomplete == "error" or not short.any():
        return ()
    numbers = {"episodes": float(short.sum()), "of": float(len(short))}
    stop = f"{short.sum()} of {len(short)} episodes stop before the horizon without having terminated"
    if incomplete == "drop":
        return (caution("dropped", f'{stop}; they were left out (incomplete="drop")', **numbers),)
    text = (
        f'{stop}; they are taken to have ended for good (incomplete="terminate"), except by exact bounds, which count '
        "what followed as the worst that was declared possible"
    )
    return (caution("assumed", text, **numbers),)


def _not_read(logs: Columns, no_behavior: bool) -> list[str]:
    """What was looked for in vain, and what was left alone."""
    said = []
    if no_behavior:
        known = ", ".join(ROLES["behavior_prob"] + ROLES["behavior_log_prob"])
        said.append(f"behavior: no probabilities; known names: {known}; yours: {fix('behavior_prob')}")
    if logs.unused():
        said.append(f"not used: {quoted(logs.unused())}")
    return said
