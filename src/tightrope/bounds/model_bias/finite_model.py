"""Counts of logged transitions over declared states and actions, and smoothed models made of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import Where, is_number
from tightrope.base.dataset import Array, BoolArray, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError

UNKNOWN = -1


@dataclass(frozen=True, eq=False)
class FiniteModel:
    """Start and next-state probabilities; next state S is the end."""

    transition_probs: Array  # (S, A, S+1)
    start_probs: Array  # (S,)


@dataclass(frozen=True, eq=False)
class Counts:
    """What the logs hold of each state and action."""

    transitions: Array  # (S, A, S+1); next state S is the end
    starts: Array  # (S,)
    visits: Array  # (S, A): those whose next state is unknown included
    reward_sums: Array  # (S, A)


def pairs(dataset: TrajectoryDataset, n_states: int, n_actions: int) -> tuple[IntArray, IntArray]:
    """The logged states and actions, (N,) each, checked against the declared numbers of them."""
    columns = []
    for name, values, size in (("state", dataset.states, n_states), ("action", dataset.actions, n_actions)):
        if values is None or values.ndim != 1 or values.dtype.kind not in "iub":
            held = "none" if values is None else f"{values.dtype} of shape {values.shape}"
            raise DataError(f"a finite model needs one integer {name} per step; the logs hold {held}")
        outside = (values < 0) | (values >= size)
        if outside.any():
            step = int(np.argmax(outside))
            raise DataError(f"{name} {values[step]} at {dataset.where(step)} is not among 0..{size - 1}")
        columns.append(values.astype(np.int64))
    return columns[0], columns[1]


def next_states(dataset: TrajectoryDataset, n_states: int) -> IntArray:
    """The state after each step, (N,): n_states after an end, UNKNOWN at the horizon where the logs do not say.

    Unless the logs hold the state after the horizon's last step for every episode that goes on, that step is unknown
    for all, the ended ones too: keeping those that ended and not the others would count ends more often than they
    happen.
    """
    states, last, going_on = dataset.states, dataset.offsets[1:] - 1, ~dataset.terminated
    assert states is not None
    following = np.append(states[1:].astype(np.int64), UNKNOWN)
    following[last] = n_states
    final = _final_states(dataset)
    if final is None:
        following[last[dataset.lengths == dataset.horizon]] = UNKNOWN
        return following
    if (final[going_on] >= n_states).any():
        episode = int(np.argmax(going_on & (final >= n_states)))
        raise DataError(
            f"the final state {final[episode]} after {dataset.where(int(last[episode]))} is not among 0..{n_states - 1}"
        )
    following[last[going_on]] = final[going_on]
    return following


def logged_states(dataset: TrajectoryDataset) -> IntArray:
    """The distinct states of the logs, those after the last step of episodes that go on among them, rising."""
    assert dataset.states is not None
    final = _final_states(dataset)
    later = dataset.states[:0] if final is None else final[~dataset.terminated]
    return np.unique(np.concatenate([dataset.states, later]).astype(np.int64))


def renumbered(dataset: TrajectoryDataset, states: IntArray, actions: IntArray) -> TrajectoryDataset:
    """The logs with states and actions by their place among these, rising: 0, 1, 2, ... whatever their names are."""
    assert dataset.states is not None
    assert dataset.actions is not None
    final = _final_states(dataset)
    if final is not None:
        going_on, after = np.flatnonzero(~dataset.terminated), dataset.offsets[1:] - 1
        later = _place("state", final[going_on], states, lambda i: f"the end of {dataset.where(after[going_on[i]])}")
        final = np.full(dataset.n_trajectories, UNKNOWN)
        final[going_on] = later
    return replace(
        dataset,
        states=_place("state", dataset.states, states, dataset.where),
        actions=_place("action", dataset.actions, actions, dataset.where),
        final_states=final,
    )


def _final_states(dataset: TrajectoryDataset) -> IntArray | None:
    """The states after the last steps, (n,); None unless the logs hold those of all episodes that go on."""
    final, going_on = dataset.final_states, ~dataset.terminated
    if final is None or final.ndim != 1 or final.dtype.kind not in "iu" or (final[going_on] < 0).any():
        return None
    return final


def _place(name: str, values: npt.NDArray[Any], labels: IntArray, where: Where) -> IntArray:
    place = np.searchsorted(labels, values).clip(max=len(labels) - 1)
    unknown = labels[place] != values
    if unknown.any():
        row = int(np.argmax(unknown))
        raise DataError(f"{name} {values[row]} at {where(row)} is not among the {len(labels)} of the policy's table")
    return place.astype(np.int64)


def count(dataset: TrajectoryDataset, n_states: int, n_actions: int) -> Counts:
    """Count starts, visits and transitions."""
    states, actions = pairs(dataset, n_states, n_actions)
    following, pair = next_states(dataset, n_states), states * n_actions + actions
    known = following != UNKNOWN
    shape = (n_states, n_actions)
    arcs = np.bincount(pair[known] * (n_states + 1) + following[known], minlength=n_states * n_actions * (n_states + 1))
    return Counts(
        arcs.reshape(*shape, n_states + 1).astype(np.float64),
        np.bincount(states[dataset.offsets[:-1]], minlength=n_states).astype(np.float64),
        np.bincount(pair, minlength=n_states * n_actions).reshape(shape).astype(np.float64),
        np.bincount(pair, weights=dataset.rewards, minlength=n_states * n_actions).reshape(shape).astype(np.float64),
    )


def smooth(counts: npt.ArrayLike, *, pseudo_count: float = 1.0, possible: BoolArray | None = None) -> Array:
    """(count + c) / (total + c k) over the k possible outcomes of the last axis: Laplace's rule, c the pseudo-count.

    The mean of a Dirichlet(c, ..., c) prior's posterior. Every possible outcome gets a probability above 0, so the
    likelihood of logs is finite; a row without counts is uniform. ``possible`` says which outcomes can happen at all;
    by default any.
    """
    values = np.asarray(counts, dtype=np.float64)
    if not (is_number(pseudo_count) and pseudo_count > 0):
        raise DataError(f"pseudo_count is {pseudo_count!r}; it must be above 0, or outcomes not seen get probability 0")
    allowed = np.ones(values.shape, dtype=bool) if possible is None else np.broadcast_to(possible, values.shape)
    if (values[~allowed] > 0).any():
        place = tuple(int(index) for index in np.argwhere((values > 0) & ~allowed)[0])
        raise DataError(f"the counts hold outcome {place}, which is not among those declared possible")
    if not allowed.any(axis=-1).all():
        place = tuple(int(index) for index in np.argwhere(~allowed.any(axis=-1))[0])
        raise DataError(f"no outcome is declared possible in row {place}; each row needs at least one")
    raised = np.where(allowed, values + pseudo_count, 0.0)
    result: Array = raised / raised.sum(axis=-1, keepdims=True)
    return result


def smoothed_model(
    counts: Counts,
    *,
    pseudo_count: float = 1.0,
    possible: BoolArray | None = None,
    possible_starts: BoolArray | None = None,
) -> FiniteModel:
    """Smoothed next-state and start probabilities; ``possible`` is (S, A, S+1), ``possible_starts`` (S,)."""
    return FiniteModel(
        smooth(counts.transitions, pseudo_count=pseudo_count, possible=possible),
        smooth(counts.starts, pseudo_count=pseudo_count, possible=possible_starts),
    )
