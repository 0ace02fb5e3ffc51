"""Read logs of any known form into a checked dataset; every reader ends in the same table, one row per step."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np

from tightrope.base.checks import whole_horizon
from tightrope.base.cluster import ENGINES, clustered
from tightrope.base.clusters import Clusters
from tightrope.base.dataset import BoolArray, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.base.folder import Folder, Scratch, parts
from tightrope.base.names import must_be_one_of, suggests_keywords
from tightrope.base.policy import Policy, as_policy
from tightrope.base.ratios import eval_log_probs
from tightrope.base.threads import Workers, passes_by
from tightrope.base.warnings import Caution, caution
from tightrope.io.aliases import ROLES, ColumnMap, fix
from tightrope.io.columns import Columns, quoted
from tightrope.io.declared import declared
from tightrope.io.groups import cluster_notes, group_notes, serial_notes
from tightrope.io.large import large_source
from tightrope.io.logs import Logs
from tightrope.io.memory import allowed
from tightrope.io.partitions import Progress
from tightrope.io.sources import open_source, parquet_files
from tightrope.io.steps import Named, Steps

Incomplete = Literal["error", "terminate", "drop"]


@suggests_keywords
def read(
    source: Any,
    *,
    discount: float | None = None,
    horizon: int | None = None,
    reward_range: tuple[float | None, float | None] | None = None,
    return_range: tuple[float | None, float | None] | None = None,
    incomplete: Incomplete = "error",
    eval_column: str | None = None,
    behavior: Any = None,
    columns: ColumnMap | None = None,
    one_step: bool | None = None,
    cluster: str | None = None,
    strata: str | None = None,
    memory: int | str | None = None,
    scratch: str | os.PathLike[str] | None = None,
    progress: Progress | None = None,
    engine: Any = "local",
) -> TrajectoryDataset:
    """Read logs into a dataset, whose ``reading`` says which column was used for what.

    ``source`` is a file (Parquet, CSV, TSV, JSON lines, Feather; text also packed as ``.gz``, ``.bz2`` or ``.zst``), a
    folder, a pattern such as ``logs/*.parquet``, or a list of these; ``-`` for stdin; an address such as
    ``s3://bucket/logs.parquet``; a pandas, polars, pyarrow or DuckDB table; a mapping of names to arrays (also OBP's
    and SCOPE-RL's); a Minari dataset (``minari:ID``, its folder or the object); d3rlpy episodes or replay buffer; or a
    Stable-Baselines3 rollout buffer.

    A table has one row per step, in any order. Its columns are ``episode``, ``t`` (from 0) and ``reward``; ``state`` or
    ``obs_*``; ``action`` or ``action_*``; ``behavior_prob`` or ``behavior_log_prob``; and, where the logs have them,
    ``eval_prob`` or ``eval_log_prob``, ``terminated``, ``truncated``, ``next_state`` or ``next_obs_*``. The names that
    other tools write are known too (``io/aliases.py``).

    - ``columns``: which column is what, where names do not say: ``{"behavior_prob": "p", "state": ["age", "dose"],
      "t": None}``, with None where there is no such column.
    - ``eval_column``: the column with the candidate's probabilities, if it is not ``eval_prob``.
    - ``one_step``: True makes every row an episode. None does so only for logs with the names that bandits use.
    - ``horizon``: how many steps count; None takes what ``write`` put into a Parquet file, or else the longest episode.
      Exact bounds need it declared, except for ``one_step`` logs, where it is 1.
    - ``discount``: γ; None takes what ``write`` put into a Parquet file, or else 1.
    - ``reward_range``, ``return_range``: what is *possible* for one step and for one episode, not what was seen.
    - ``incomplete``: what to do with an episode that is shorter than the horizon and not flagged as terminated:
      "error" refuses it, "terminate" counts what follows as 0, "drop" leaves it out.
    - ``behavior``: the behaviour policy, where the logs hold no probabilities.
    - ``cluster``: the column that says whose episode it is (a patient, a site, a day), where episodes of one resemble
      each other. Each cluster counts once: the value is that of a random episode of a random cluster.
    - ``strata``: the column of the parts of the logs that clusters (or episodes) were drawn from, so many from each.
    - ``memory``: what reading may take, in bytes or such as "16GB"; None takes half of what is free. Parquet that
      needs more is kept in files of a folder in ``scratch`` (None: where temporary files go) while the dataset is used.
    - ``progress``: a function that is called with the rows read and how many there are, where they are kept in files.
    - ``engine``: "local", or a ``dask.distributed`` client or its address: Parquet that is kept in files is then read
      and checked by its workers, who must see the logs and ``scratch`` under the same names.

    >>> import tightrope
    >>> rows = {"episode": [0, 0, 1], "t": [0, 1, 0], "reward": [1.0, 0.0, 2.0], "terminated": [False, True, True]}
    >>> logs = tightrope.read({**rows, "behavior_prob": [0.5, 0.5, 0.25], "eval_prob": [0.6, 0.6, 0.2]}, horizon=2)
    >>> logs
    <TrajectoryDataset: 2 episodes, 3 steps, horizon 2, discount 1>
    >>> round(tightrope.estimate(logs, estimator="is"), 3)
    1.52
    """
    if incomplete not in ("error", "terminate", "drop"):
        raise DataError(must_be_one_of("incomplete", incomplete, ("error", "terminate", "drop")))
    named, workers = Named(eval_column, cluster, strata), clustered(engine)
    if not isinstance(workers, Workers) and workers not in ENGINES:
        raise DataError(must_be_one_of("engine", workers, ENGINES, "a dask client or address"))
    workers = None if isinstance(workers, str) else workers
    contents = _contents(source, columns or {}, one_step, named, memory, scratch, progress, workers)
    with passes_by(None if contents.folder is None else workers):
        return _dataset(contents, discount, horizon, reward_range, return_range, incomplete, behavior)


def _dataset(
    contents: _Contents,
    discount: float | None,
    horizon: int | None,
    reward_range: tuple[float | None, float | None] | None,
    return_range: tuple[float | None, float | None] | None,
    incomplete: Incomplete,
    behavior: Any,
) -> TrajectoryDataset:
    """The steps as a dataset, checked."""
    steps = contents.steps
    horizon, discount, notes = _settled(contents, horizon, discount)
    is_declared = horizon is not None or contents.one_step  # episodes of one step have a horizon of 1 by definition
    horizon = int(steps.lengths.max()) if horizon is None else whole_horizon(horizon)
    short = contents.short(horizon)
    _check_incomplete(contents, short, incomplete)
    dataset = TrajectoryDataset(
        offsets=contents.offsets(),
        rewards=steps.rewards,
        terminated=steps.terminated | short if incomplete != "error" and short.any() else steps.terminated,
        cut=short if incomplete == "terminate" and short.any() else None,
        n_dropped=int(short.sum()) if incomplete == "drop" else 0,
        horizon=horizon,
        horizon_declared=is_declared,
        discount=discount,
        behavior_log_probs=steps.behavior_log_probs,
        eval_log_probs=steps.eval_log_probs,
        states=steps.states,
        actions=steps.actions,
        final_states=steps.final_states,
        episode_ids=steps.episode_ids,
        episodes_named=contents.columns.name("episode") is not None and not contents.one_step,
        arrival=steps.arrival,
        clusters=steps.clusters,
        strata=steps.strata,
        reward_range=reward_range,  # type: ignore[arg-type]  # None ends become infinite there
        return_range=return_range,  # type: ignore[arg-type]
        notes=_notes(short, incomplete),
        reading=(*contents.notes, *notes, *_not_read(contents, steps.behavior_log_probs is None and behavior is None)),
        folder=contents.folder,
    )
    return _finished(dataset, contents, short if incomplete == "drop" else None, behavior)


def _finished(
    dataset: TrajectoryDataset, contents: _Contents, dropped: BoolArray | None, behavior: Any
) -> TrajectoryDataset:
    """Without what is dropped, with what speaks against independence, and with the behaviour policy."""
    if dropped is not None and dropped.any():
        dataset = dataset.take(~dropped)
    dataset = _noted(dataset, _dependence(dataset, contents))
    return dataset if behavior is None else _with_behavior(dataset, as_policy(behavior))


@dataclass(frozen=True, eq=False)
class _Contents:
    """The steps of a source, and what is known about it."""

    steps: Steps
    columns: Columns
    one_step: bool
    notes: tuple[str, ...]
    folder: Folder | None = None  # where the arrays lie, if not in memory

    def offsets(self) -> IntArray:
        """Where episodes begin, and the end."""
        lengths = self.steps.lengths
        offsets: IntArray = Scratch(self.folder).empty(len(lengths) + 1, np.int64)
        offsets[0] = 0
        for part in parts(len(lengths)):
            offsets[part.start + 1 : part.stop + 1] = offsets[part.start] + np.cumsum(lengths[part])
        return offsets

    def short(self, horizon: int) -> BoolArray:
        """Which episodes stop before the horizon and are not flagged as terminated."""
        steps = self.steps
        result: BoolArray = Scratch(self.folder).empty(len(steps.lengths), np.bool_)
        for part in parts(len(steps.lengths)):
            result[part] = (steps.lengths[part] < horizon) & ~steps.terminated[part]
        return result


def _contents(
    source: Any,
    given: ColumnMap,
    one_step: bool | None,
    named: Named,
    memory: int | str | None,
    scratch: str | os.PathLike[str] | None,
    progress: Progress | None,
    workers: Workers | None,
) -> _Contents:
    """The steps in memory, or in files where they would not fit."""
    files, limit = parquet_files(source), allowed(memory)
    large = None if files is None else large_source(files, given, one_step, named, limit)
    if large is not None:
        folder = Folder(scratch, limit)
        steps, columns = large.steps(named, folder, progress, workers)
        return _Contents(steps, columns, large.one_step, tuple(columns.notes), folder)
    opened = open_source(source, given)
    logs = Logs.of(opened.table, opened.broken, given, opened.one_step if one_step is None else one_step)
    steps = Steps.of(logs, named)
    return _Contents(steps, logs.columns, logs.one_step, (*opened.notes, *logs.columns.notes))


def _noted(dataset: TrajectoryDataset, notes: tuple[Caution, ...]) -> TrajectoryDataset:
    """The same with more said of it; nothing is checked again, which would be another pass over all steps."""
    other = object.__new__(TrajectoryDataset)
    other.__dict__.update(vars(dataset), notes=(*dataset.notes, *notes))
    return other


def _dependence(dataset: TrajectoryDataset, contents: _Contents) -> tuple[Caution, ...]:
    """What says that episodes, or clusters of them, are no independent draws."""
    clusters, arrival = Clusters.of(dataset), dataset.arrival
    assert arrival is not None
    if clusters is None or dataset.clusters is None:
        known = () if contents.folder is not None else group_notes(contents.columns, contents.offsets())
        return (*known, *serial_notes(dataset.returns, arrival))
    first = np.full(clusters.n, np.iinfo(np.int64).max)
    np.minimum.at(first, clusters.code, arrival)
    return (*cluster_notes(clusters.sizes), *serial_notes(clusters.means(dataset.returns), first))


def _settled(
    contents: _Contents, horizon: int | None, discount: float | None
) -> tuple[int | None, float, tuple[str, ...]]:
    """Horizon and discount as given, or else as the metadata tells them, and what of that is not as usual."""
    if discount is not None and (horizon is not None or contents.one_step):
        return horizon, discount, ()
    metadata, notes = declared(contents.columns.table), []
    if horizon is None and metadata.horizon is not None and not contents.one_step:
        horizon = metadata.horizon
        notes.append(f"horizon {horizon}")
    if discount is None:
        discount = 1.0 if metadata.discount is None else metadata.discount
        notes += [] if discount == 1.0 else [f"discount {discount:g}"]
    return horizon, discount, (f"{', '.join(notes)}: as the logs' own metadata says",) if notes else ()


def _with_behavior(dataset: TrajectoryDataset, behavior: Policy) -> TrajectoryDataset:
    """The logs of this policy; it supplies the probabilities that they do not hold."""
    if dataset.behavior_log_probs is not None:
        return replace(dataset, behavior=behavior)
    return replace(dataset, behavior=behavior, behavior_log_probs=eval_log_probs(dataset, behavior))


def _check_incomplete(contents: _Contents, short: BoolArray, incomplete: Incomplete) -> None:
    """Refuse to drop all, and "done" alone where it matters whether an episode ended for good or was cut off."""
    if incomplete == "drop" and short.all():
        raise DataError(
            'incomplete="drop" leaves no episode: all stop before the horizon without being flagged as terminated'
        )
    if incomplete != "error" or not short.any():
        return
    unclear = np.flatnonzero(short & contents.steps.unclear)
    if len(unclear):
        name, episode = contents.columns.roles["done"][0], contents.steps.episode_ids[unclear[0]]
        raise DataError(
            f"episode {episode} stops before the horizon, and {name!r} does not say whether it ended "
            f"for good or was cut off ({len(unclear)} of {len(short)} episodes are like this). If {name!r} means ended "
            f'for good: {fix("terminated", name)}. If some were cut off, choose what to do: incomplete="terminate" '
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


def _not_read(contents: _Contents, no_behavior: bool) -> list[str]:
    """What was not contents, and which columns were not used."""
    lines, columns = [], contents.columns
    if no_behavior:
        known = ", ".join(ROLES["behavior_prob"] + ROLES["behavior_log_prob"])
        lines.append(f"behavior: no probabilities; known names: {known}; yours: {fix('behavior_prob')}")
    if columns.unused():
        lines.append(f"not used: {quoted(columns.unused())}")
    return lines
