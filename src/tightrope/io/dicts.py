"""The dictionaries of Open Bandit Pipeline and SCOPE-RL, recognised by their keys."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tightrope.base.checks import check_unmasked, first_masked
from tightrope.base.errors import DataError
from tightrope.io.aliases import ColumnMap
from tightrope.io.tables import KnownSource

_SCOPE = ("n_trajectories", "step_per_trajectory", "state", "action", "reward", "done")


def open_bandit(source: Any, given: ColumnMap) -> KnownSource | None:
    """Open Bandit Pipeline: rounds of one step; the propensity is ``pscore``, the state ``context``."""
    if not isinstance(source, Mapping) or not {"n_rounds", "action", "reward"} <= set(source):
        return None
    return KnownSource(source, ("a bandit's feedback, as Open Bandit Pipeline holds it",), one_step=True)


def scope(source: Any, given: ColumnMap) -> KnownSource | None:
    """SCOPE-RL: episodes of one length, one after the other in flat arrays."""
    known = isinstance(source, Mapping) and set(_SCOPE) <= set(source)
    return KnownSource(*scope_columns(source)) if known else None


def scope_columns(source: Mapping[Any, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """SCOPE-RL's arrays as columns, each episode cut after its first ``done``.

    It records a fixed number of steps even after an episode's end, and sets ``done`` and ``terminal`` on the last
    one; a ``done`` before that comes from the environment and is an end for good.
    """
    check_unmasked("done", source["done"])
    try:
        n, length = int(source["n_trajectories"]), int(source["step_per_trajectory"])
        done = np.asarray(source["done"], dtype=bool)
    except (TypeError, ValueError) as error:
        raise DataError(
            f"n_trajectories, step_per_trajectory and done must be as SCOPE-RL writes them: {error}"
        ) from error
    if n < 1 or length < 1 or done.shape != (n * length,):
        raise DataError(
            f"done must have n_trajectories={n} times step_per_trajectory={length} rows; got shape {done.shape}"
        )
    grid = done.reshape(n, length)
    before = np.cumsum(grid, axis=1) - grid  # ends before this step
    kept = (before == 0).ravel()
    last = np.zeros((n, length), dtype=bool)
    last[:, -1] = True
    columns: dict[str, Any] = {
        "episode": np.repeat(np.arange(n), length)[kept],
        "t": np.tile(np.arange(length), n)[kept],
        "terminated": (grid & ~last).ravel()[kept],
    }
    for name in ("state", "action", "reward", "pscore"):
        if source.get(name) is None:
            continue
        masked = first_masked(source[name]) is not None  # perhaps after an episode's end, where it means nothing
        values = np.ma.array(source[name]) if masked else np.asarray(source[name])
        if values.shape[:1] != kept.shape:
            raise DataError(f"{name} must have {n * length} rows; got shape {values.shape}")
        columns[name] = values[kept]
    if "pscore" in columns and columns["pscore"].ndim == 2 and columns["pscore"].shape[1] > 1:
        raise DataError(
            "pscore must be the density of the whole action (the product, where components are drawn independently); "
            f"got shape {columns['pscore'].shape}, one number for each component"
        )
    left = f"; {(~kept).sum()} rows after an episode's end were left out" if not kept.all() else ""
    return columns, (f"episodes, as SCOPE-RL holds them{left}",)
