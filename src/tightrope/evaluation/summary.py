"""What the logs hold, in numbers."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_size
from tightrope.base.clusters import Clusters, n_clusters
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.folder import distinct
from tightrope.base.records import Summary
from tightrope.functional.strata import levelled_by


def summarize(data: TrajectoryDataset) -> Summary:
    """What the logs hold, in numbers."""
    check_size("reward", data.rewards, data.where)
    clusters, n = Clusters.of(data), data.n_trajectories
    returns = data.returns if clusters is None else clusters.means(data.returns)
    off = levelled_by(clusters, returns)  # what was fixed, as strata were, is no chance
    return Summary(
        n_trajectories=n,
        n_steps=data.n_steps,
        shortest=int(data.lengths.min()),
        longest=int(data.lengths.max()),
        horizon=data.horizon,
        horizon_declared=data.horizon_declared,
        discount=data.discount,
        terminated=int(data.terminated.sum()),
        reward_seen=(float(data.rewards.min()), float(data.rewards.max())),
        reward_range=data.reward_range,
        return_range=data.return_range,
        return_mean=float(returns.mean()),
        return_error=float(off.std(ddof=1) / np.sqrt(len(off))) if len(off) > 1 else float("inf"),
        actions=_kind(data.actions),
        states=_kind(data.states),
        notes=data.notes,
        reading=data.reading,
        n_clusters=n_clusters(data),
        n_strata=None if data.strata is None else len(np.unique(data.strata)),
    )


def _kind(values: npt.NDArray[np.generic] | None) -> str:
    if values is None:
        return "none"
    width = values.reshape(len(values), -1).shape[1]
    if values.dtype.kind == "f":
        return f"{width} number{'s' if width > 1 else ''}"
    return f"{len(distinct(values.reshape(-1)))} values" if width == 1 else f"{width} integers"
