"""Logged episodes as flat arrays with offsets: checked once, and padded to rectangles in one place, chunk by chunk."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base import arrays
from tightrope.base.arrays import as_array, as_notes, check_lengths, check_offsets, check_rows
from tightrope.base.checks import (
    check_finite,
    check_labels,
    check_log_probs,
    declared_range,
    is_number,
    read_only,
    whole_horizon,
)
from tightrope.base.errors import DataError, visible
from tightrope.base.folder import Folder, Scratch
from tightrope.base.policy import Policy
from tightrope.base.threads import passed
from tightrope.base.warnings import Caution

Array = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

PER_STEP = ("rewards", "behavior_log_probs", "eval_log_probs", "states", "actions")
PER_EPISODE = ("terminated", "cut", "final_states", "episode_ids", "arrival", "clusters", "strata")
CHUNK_BYTES = 1 << 20  # the largest size of a padded (chunk, horizon) array: small enough for the cache


@dataclass(frozen=True, eq=False, kw_only=True)
class TrajectoryDataset:
    """Episodes of one behaviour policy; N steps in all, stored flat, n episodes of different lengths.

    An episode shorter than ``horizon`` must have ended for good (``terminated``): from then on it earns 0 and
    keeps its last importance ratio. One of exactly ``horizon`` steps is complete either way. An episode that the
    logger cut off earlier is refused: nobody knows what it would still have earned (see ``read(incomplete=...)``).
    Arrays are read-only, so that a policy or a model cannot change the logs.

    >>> import numpy as np, tightrope
    >>> logs = tightrope.TrajectoryDataset(
    ...     offsets=np.array([0, 2, 3]), rewards=np.array([1.0, 0.0, 2.0]), terminated=np.array([True, True]), horizon=2
    ... )
    >>> logs
    <TrajectoryDataset: 2 episodes, 3 steps, horizon 2, discount 1>
    >>> logs.returns
    array([1., 2.])
    """

    offsets: IntArray  # (n+1,): episode i is steps offsets[i] .. offsets[i+1]-1
    rewards: Array  # (N,)
    terminated: BoolArray  # (n,): ended for good, not merely cut off
    horizon: int
    discount: float = 1.0
    behavior_log_probs: Array | None = None  # (N,): log-probability or log-density of the logged action
    eval_log_probs: Array | None = None  # (N,): the candidate's, where the logs carry it
    states: npt.NDArray[Any] | None = None  # (N,) integers or (N, d) floats
    actions: npt.NDArray[Any] | None = None  # (N,) integers or text, or (N, k) floats
    final_states: npt.NDArray[Any] | None = None  # (n, ...): the state after the last step, where known
    episode_ids: npt.NDArray[Any] | None = None  # (n,): as the logs name them; 0..n-1 when not given
    episodes_named: bool = True  # False where ids are places in the logs, which other logs have too
    arrival: IntArray | None = None  # (n,): the row of the logs where each begins; 0..n-1 when not given
    clusters: npt.NDArray[Any] | None = None  # (n,): whose episode it is; those of one cluster may depend on each other
    strata: npt.NDArray[Any] | None = None  # (n,): the part of the logs that its cluster was drawn from
    reward_range: tuple[float, float] | None = None  # declared, never taken from the sample; ends may be infinite
    return_range: tuple[float, float] | None = None  # likewise, of the discounted return
    behavior: Policy | None = None  # the behaviour policy itself, where known
    horizon_declared: bool = True  # False when it is merely the longest episode seen
    cut: BoolArray | None = None  # (n,): cut off early, and treated as ended for good; None: no episode was cut off
    n_dropped: int = 0  # episodes left out on reading because they were cut off
    notes: tuple[Caution, ...] = ()  # what was assumed on reading; every result repeats it
    reading: tuple[str, ...] = ()  # which column was used for what
    folder: Folder | None = None  # where arrays lie that would not fit into memory

    def __post_init__(self) -> None:
        for name in ("offsets", *PER_STEP, *PER_EPISODE):
            object.__setattr__(self, name, as_array(name, getattr(self, name), arrays.KINDS.get(name)))
        object.__setattr__(self, "notes", as_notes(self.notes))
        object.__setattr__(self, "reading", tuple(visible(text) for text in self.reading))
        self._check_settings()
        check_offsets(self.offsets, self.rewards.size)
        for name in ("episode_ids", "arrival"):
            if getattr(self, name) is None:
                object.__setattr__(self, name, read_only(np.arange(self.n_trajectories)))
        per_step, per_episode = ({name: getattr(self, name) for name in names} for names in (PER_STEP, PER_EPISODE))
        check_rows(per_step, per_episode, self.n_steps, self.n_trajectories)
        self._check_values()
        check_lengths(self.lengths, self.terminated, self.horizon, self._id)
        if self.reward_range is not None:
            arrays.check_reward_range(self.rewards, self.reward_range, self.where)
        if self.return_range is not None:
            arrays.check_return_range(self.returns, self.return_range, self.cut, self._id)
        arrays.check_strata(self.clusters, self.strata, self.scratch)

    def __getstate__(self) -> dict[str, Any]:
        """What is computed on the way is left out; the folder stays with whoever made it."""
        return {field.name: None if field.name == "folder" else getattr(self, field.name) for field in fields(self)}

    def __repr__(self) -> str:
        return (
            f"<TrajectoryDataset: {self.n_trajectories} episodes, {self.n_steps} steps, horizon {self.horizon}, "
            f"discount {self.discount:g}>"
        )

    # -- what is in it -----------------------------------------------------------------------------------------

    @property
    def n_trajectories(self) -> int:
        """How many episodes there are (the paper's n)."""
        return len(self.offsets) - 1

    @property
    def n_steps(self) -> int:
        """How many steps there are in all."""
        return len(self.rewards)

    @cached_property
    def lengths(self) -> IntArray:
        """Steps per episode, (n,)."""
        room = self.scratch.empty(self.n_trajectories, np.int64)
        return read_only(np.subtract(self.offsets[1:], self.offsets[:-1], out=room))

    @cached_property
    def times(self) -> IntArray:
        """The time of each step within its episode, (N,)."""
        return read_only(np.arange(self.n_steps) - np.repeat(self.offsets[:-1], self.lengths))

    @cached_property
    def discounts(self) -> Array:
        """γ^t for t < horizon, (horizon,)."""
        return read_only(np.power(self.discount, np.arange(self.horizon), dtype=np.float64))

    @cached_property
    def returns(self) -> Array:
        """The discounted return of each episode, (n,)."""
        return read_only(self.per_episode(self.returns_of))

    def per_episode(self, call: Callable[[int, int], npt.NDArray[Any]], dtype: npt.DTypeLike = np.float64) -> Any:
        """One number for each episode, (n,), from what the call gives for episodes start..stop."""
        result, chunks = self.scratch.empty(self.n_trajectories, dtype), list(self.chunks())
        for (start, stop), part in zip(chunks, passed(lambda chunk: call(*chunk), chunks), strict=True):
            result[start:stop] = part
        return result

    def returns_of(self, start: int, stop: int) -> Array:
        """The discounted returns of episodes start..stop."""
        discounted = self.rewards[self.steps(start, stop)] * self.discounts[self.times_of(start, stop)]
        returns: Array = np.add.reduceat(discounted, self.offsets[start:stop] - self.offsets[start])
        return returns

    @property
    def discrete_actions(self) -> bool | None:
        """Whether actions are categories (integers or text); None when the logs hold no actions."""
        return None if self.actions is None else self.actions.dtype.kind in "iubU"

    @property
    def step_range(self) -> tuple[float, float] | None:
        """The declared reward range, widened to hold the 0 that a step earns after an early end.

        The sample does not decide whether episodes can end early: a rare end may not be in it, and an exact bound
        must not depend on that. If all episodes have the same length, declare a ``return_range``, which IS uses.
        """
        if self.reward_range is None or self.horizon == 1:
            return self.reward_range
        return min(self.reward_range[0], 0.0), max(self.reward_range[1], 0.0)

    @property
    def value_range(self) -> tuple[float, float] | None:
        """The range of the return: as declared, or from the reward range and a declared horizon."""
        if self.return_range is not None:
            return self.return_range
        if self.step_range is None:
            return None
        total = float(self.discounts.sum())
        return self.step_range[0] * total, self.step_range[1] * total

    def where(self, step: int) -> str:
        """The name of a step of the flat arrays: its episode and time."""
        episode = int(np.searchsorted(self.offsets, step, side="right")) - 1
        assert self.episode_ids is not None
        return f"episode {self.episode_ids[episode]}, step {step - int(self.offsets[episode])}"

    @property
    def any_cut(self) -> bool:
        """Whether some episode was cut off and is taken to have ended."""
        return self.cut is not None and bool(self.cut.any())

    def unknown_steps(self, start: int, stop: int) -> BoolArray:
        """Which steps of episodes start..stop are unknown because the logger cut them off, (stop - start, horizon)."""
        beyond: BoolArray = np.arange(self.horizon) >= self.lengths_of(start, stop)[:, None]
        return beyond & (np.zeros((stop - start, 1), bool) if self.cut is None else self.cut[start:stop, None])

    # -- parts of it -------------------------------------------------------------------------------------------

    def take(self, episodes: npt.ArrayLike) -> TrajectoryDataset:
        """The given episodes in the given order, by position or by mask; one may be taken more than once."""
        try:
            index = np.arange(self.n_trajectories)[np.asarray(episodes)]
        except IndexError as error:
            raise DataError(f"episodes must be positions from 0 to {self.n_trajectories - 1}: {error}") from error
        offsets, steps = np.concatenate([[0], np.cumsum(self.lengths[index])]), self.steps_of(index)

        def pick(values: npt.NDArray[Any] | None, at: IntArray) -> npt.NDArray[Any] | None:
            return None if values is None else values[at]

        return replace(
            self,
            offsets=offsets,
            rewards=self.rewards[steps],
            terminated=self.terminated[index],
            cut=None if self.cut is None else self.cut[index],
            behavior_log_probs=pick(self.behavior_log_probs, steps),
            eval_log_probs=pick(self.eval_log_probs, steps),
            states=pick(self.states, steps),
            actions=pick(self.actions, steps),
            final_states=pick(self.final_states, index),
            episode_ids=pick(self.episode_ids, index),
            arrival=pick(self.arrival, index),
            clusters=pick(self.clusters, index),
            strata=pick(self.strata, index),
        )

    def steps(self, start: int, stop: int) -> slice:
        """Where the steps of episodes start..stop lie in the flat arrays."""
        return slice(int(self.offsets[start]), int(self.offsets[stop]))

    def steps_of(self, episodes: IntArray) -> IntArray:
        """Where the steps of the given episodes are, one episode after the other."""
        return arrays.steps_of(self.offsets, episodes)

    def lengths_of(self, start: int, stop: int) -> IntArray:
        """Steps of episodes start..stop."""
        return np.diff(self.offsets[start : stop + 1])

    def times_of(self, start: int, stop: int) -> IntArray:
        """The time of each step of episodes start..stop within its episode."""
        first, lengths = self.offsets[start:stop] - self.offsets[start], self.lengths_of(start, stop)
        return np.asarray(np.arange(int(lengths.sum())) - np.repeat(first, lengths))

    def times_at(self, steps: slice) -> IntArray:
        """The time of each of these steps within its episode."""
        place = np.arange(*steps.indices(self.n_steps))
        return place - self.offsets[np.searchsorted(self.offsets, place, side="right") - 1]

    def ranges(self, size: int) -> Iterator[tuple[int, int]]:
        """Ranges of episodes that have about so many steps together."""
        return arrays.ranges(self.offsets, size)

    @property
    def scratch(self) -> Scratch:
        """Room for more arrays: in memory, or in files where the logs are in files."""
        return Scratch(self.folder)

    def pad(self, flat: Array, start: int, stop: int) -> Array:
        """Values of the steps of episodes start..stop as rows (stop - start, horizon), 0 after an episode's end.

        The only place where episodes of different lengths become a rectangle. May return a view: do not write to it.
        """
        lengths = self.lengths_of(start, stop)
        if (lengths == self.horizon).all():
            return flat.reshape(stop - start, self.horizon)
        rows = np.zeros((stop - start, self.horizon))
        rows[np.arange(self.horizon) < lengths[:, None]] = flat
        return rows

    def chunks(self) -> Iterator[tuple[int, int]]:
        """Ranges of episodes small enough that a padded array of them stays within CHUNK_BYTES."""
        size = max(1, CHUNK_BYTES // (8 * self.horizon))
        for start in range(0, self.n_trajectories, size):
            yield start, min(start + size, self.n_trajectories)

    # -- checks ------------------------------------------------------------------------------------------------

    def _check_settings(self) -> None:
        if not is_number(self.discount) or not 0.0 <= self.discount <= 1.0:
            raise DataError(f"discount must be a number from 0 to 1; got {self.discount!r}")
        object.__setattr__(self, "discount", float(self.discount))
        object.__setattr__(self, "horizon", whole_horizon(self.horizon))
        for name in ("reward_range", "return_range"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, declared_range(name, getattr(self, name)))

    def _check_values(self) -> None:
        for name in ("rewards", "states", "actions"):
            check_finite(name, getattr(self, name), self.where)
        check_labels("actions", self.actions, self.where)
        check_log_probs("behavior_log_probs", self.behavior_log_probs, self.discrete_actions, self.where)
        check_log_probs("eval_log_probs", self.eval_log_probs, self.discrete_actions, self.where, zero=True)

    def _id(self, episode: int) -> Any:
        assert self.episode_ids is not None
        return self.episode_ids[episode]
