"""States and actions of the logs as estimates of a behaviour policy need them; refused where that is impossible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_size, lent, numbers
from tightrope.base.dataset import Array, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError
from tightrope.models.gram import PIVOT, clamped_cholesky

Anything = npt.NDArray[Any]
StateFeatures = Callable[[Anything, IntArray], Any]  # states and times of N steps to (N, p)

REDUNDANT = 1e-12  # a column that varies by less than this share of its size is constant but for rounding
MOST_LEVELS = 200  # distinct states that get a column each


def require(fits: bool, message: str) -> None:
    """Raise our error with this message unless the logs fit."""
    if not fits:
        raise DataError(f"behaviour policy: {message}")


def logged_states(dataset: TrajectoryDataset) -> Anything:
    """The states, (N,) or (N, d)."""
    states = dataset.states
    if states is None:
        raise DataError(
            "behaviour policy: the logs must have a state column (or obs_*) to estimate it from; or add the logged "
            "probabilities as behavior_prob"
        )
    return states


def discrete_actions(dataset: TrajectoryDataset) -> tuple[Anything, IntArray]:
    """The distinct actions, rising, and which of them was taken at each step, (N,)."""
    actions = _actions(dataset)
    require(
        actions.ndim == 1 and actions.dtype.kind in "iubU",
        f"actions are {actions.dtype} of shape {actions.shape}; this estimate needs one integer or text per step. For "
        'continuous actions use behavior="gaussian"',
    )
    levels, choice = np.unique(actions, return_inverse=True)
    return levels, choice.astype(np.int64)


def continuous_actions(dataset: TrajectoryDataset) -> Array:
    """The actions as rows of numbers, (N, k)."""
    actions = _actions(dataset)
    require(
        actions.dtype.kind == "f",
        f'actions are {actions.dtype}, which are categories; use behavior="tabular" or "logistic", or give continuous '
        "actions as floats",
    )
    check_size("action", actions, dataset.where)
    return actions.astype(np.float64, copy=False).reshape(len(actions), -1)


def state_features(dataset: TrajectoryDataset, given: StateFeatures | None) -> tuple[Array, list[str]]:
    """Rows of numbers (N, p) and their names: 1 and the state, or a column for each numbered state, or as given."""
    states = logged_states(dataset)
    check_size("state", states, dataset.where)
    if given is not None:
        return _given(given, states, dataset.times)
    if states.dtype.kind == "f" or (states.ndim == 2 and states.dtype.kind in "iub"):
        rows = states.astype(np.float64).reshape(len(states), -1)
        kept = _telling(rows)
        return np.column_stack([np.ones(len(rows)), rows[:, kept]]), ["1", *(f"state {k}" for k in kept)]
    require(states.ndim == 1, f"states are {states.dtype} of shape {states.shape}; give features=")
    levels, place = np.unique(states, return_inverse=True)
    require(
        len(levels) <= MOST_LEVELS,
        f'{len(levels)} distinct states are too many for a column each; use behavior="tabular", give features=, or '
        "give states that are quantities as floats",
    )
    return (place[:, None] == np.arange(len(levels))).astype(np.float64), [f"state = {level}" for level in levels]


def _telling(rows: Array) -> IntArray:
    """The columns that are neither constant nor a combination of earlier columns; the others would not change a fit.

    All of them where there are fewer rows than columns, because then it cannot be known.
    """
    if len(rows) <= rows.shape[1]:
        return np.arange(rows.shape[1])
    off = rows - rows.mean(axis=0)
    reach = np.abs(off).max(axis=0)
    varying = np.flatnonzero(reach > REDUNDANT * np.abs(rows).max(axis=0))
    off = off[:, varying] / reach[varying]
    off /= np.sqrt(np.square(off).mean(axis=0))
    new = clamped_cholesky((off.T @ off)[None] / len(off), floor=np.full(len(varying), PIVOT))[1][0]
    kept: IntArray = varying[new > PIVOT]
    return kept


def _actions(dataset: TrajectoryDataset) -> Anything:
    if dataset.actions is None:
        raise DataError("behaviour policy: the logs must have an action column (or action_*) to estimate it from")
    return dataset.actions


def _given(given: StateFeatures, states: Anything, times: IntArray) -> tuple[Array, list[str]]:
    features = numbers("behaviour policy: features", given(lent(states), lent(times)), DataError)
    require(
        features.ndim == 2 and len(features) == len(states) and bool(np.isfinite(features).all()),
        f"features returned shape {features.shape}; finite numbers, ({len(states)}, p), expected",
    )
    return features, [f"feature {k}" for k in range(features.shape[1])]
