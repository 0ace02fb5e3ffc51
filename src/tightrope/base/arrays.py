"""The arrays of a dataset, converted and checked one by one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tightrope.base.checks import check_finite, check_unmasked, first_row, read_only
from tightrope.base.errors import DataError
from tightrope.base.folder import Scratch, overlapping, parts, ranked
from tightrope.base.warnings import Caution

KINDS: dict[str, Any] = {  # others are labels or numbers of one kind
    **dict.fromkeys(("rewards", "behavior_log_probs", "eval_log_probs"), np.float64),
    **dict.fromkeys(("offsets", "arrival"), np.int64),
    **dict.fromkeys(("terminated", "cut"), np.bool_),
}


def as_array(name: str, value: Any, dtype: Any) -> npt.NDArray[Any] | None:
    """A read-only array of the type, or of one kind of labels or numbers where there is none; None stays None."""
    if value is None:
        return None
    check_unmasked(name, value)
    try:
        given = np.asarray(value)
        if given.dtype.kind == "c":
            raise DataError(f"{name} must hold real numbers; got complex ones")
        array = given if dtype is None else given.astype(dtype, copy=False)
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        wanted = "numbers or text" if dtype is None else np.dtype(dtype).name
        raise DataError(f"{name} does not convert to an array of {wanted}: {error}") from error
    if dtype is None and array.dtype.kind not in "iubfUM":
        raise DataError(f"{name} must hold integers, floats or text, the same kind in all rows; got mixed types")
    if array is not given and dtype in (np.int64, np.bool_) and not np.array_equal(given, array):
        raise DataError(f"{name} must hold {'true or false' if dtype is np.bool_ else 'whole numbers'}; got {given}")
    return read_only(array)


def as_notes(given: Iterable[Caution]) -> tuple[Caution, ...]:
    """What was assumed on reading."""
    notes = tuple(given)
    for note in notes:
        if not isinstance(note, Caution):
            raise DataError(f"notes must hold Caution records, as bounds do; got {note!r}")
    return notes


def check_offsets(offsets: npt.NDArray[np.int64], n_steps: int) -> None:
    """Refuse offsets that are no partition of the steps."""
    if offsets.ndim != 1 or len(offsets) < 2:
        raise DataError("offsets must have at least two entries: the logs hold no episodes")
    rising = all((np.diff(offsets[part.start : part.stop + 1]) >= 1).all() for part in parts(len(offsets)))
    if offsets[0] != 0 or offsets[-1] != n_steps or not rising:
        raise DataError(
            f"offsets must rise from 0 to the number of steps ({n_steps}), each episode having at least one step; got "
            f"{offsets[0]} .. {offsets[-1]}"
        )


def check_lengths(
    lengths: npt.NDArray[np.int64],
    terminated: npt.NDArray[np.bool_],
    horizon: int,
    episode: Callable[[int], Any],  # the name of an episode by its place
) -> None:
    """Refuse episodes that are too long, or that stop before the horizon without having ended."""
    first = first_row(lambda part: lengths[part] > horizon, len(lengths))
    if first is not None:
        raise DataError(
            f"episode {episode(first)} has {lengths[first]} steps, more than horizon={horizon}; raise the horizon, or "
            "drop the later steps from the logs if only the first ones count"
        )
    first = first_row(lambda part: (lengths[part] < horizon) & ~terminated[part], len(lengths))
    if first is not None:
        cut = int(((lengths < horizon) & ~terminated).sum())
        raise DataError(
            f"episode {episode(first)} stops after step {lengths[first] - 1} without being flagged as terminated, but "
            f"the horizon is {horizon} ({cut} of {len(lengths)} episodes are like this). If they ended for good, "
            "set the terminated column (or array). If the logger cut them off, choose what to do: "
            'incomplete="terminate" (--incomplete terminate) counts what follows as 0, "drop" leaves these episodes '
            "out"
        )


def check_reward_range(
    rewards: npt.NDArray[np.float64], declared: tuple[float, float], where: Callable[[int], str]
) -> None:
    """Refuse a reward outside the declared range."""
    low, high = declared
    step = first_row(lambda part: (rewards[part] < low) | (rewards[part] > high), len(rewards))
    if step is not None:
        raise DataError(
            f"reward {rewards[step]:g} at {where(step)} lies outside the declared reward_range "
            f"({low:g}, {high:g}); correct the range or the logs"
        )


def check_return_range(
    returns: npt.NDArray[np.float64],
    declared: tuple[float, float],
    cut: npt.NDArray[np.bool_] | None,
    episode: Callable[[int], Any],
) -> None:
    """Refuse a return outside the declared range, rounding aside."""
    low, high = declared
    least = 1e-3 * (high - low if np.isfinite(high - low) else 1.0)

    def outside(part: slice) -> npt.NDArray[np.bool_]:
        some = returns[part]
        slack = 1e-9 * np.maximum(least, np.abs(some))
        whole = True if cut is None else ~cut[part]  # of the others only a part is known
        return np.asarray(((some < low - slack) | (some > high + slack)) & whole)

    first = first_row(outside, len(returns))
    if first is not None:
        raise DataError(
            f"the return {returns[first]:g} of episode {episode(first)} lies outside the declared "
            f"return_range ({low:g}, {high:g}); correct the range or the logs"
        )


def check_rows(
    per_step: Mapping[str, npt.NDArray[Any] | None],
    per_episode: Mapping[str, npt.NDArray[Any] | None],
    n_steps: int,
    n_trajectories: int,
) -> None:
    """Refuse arrays of the wrong length, and lists where one number is meant."""
    for name, value in {**per_step, **per_episode}.items():
        if value is not None and value.ndim != 1 and name not in ("states", "actions", "final_states"):
            raise DataError(f"{name} must hold one number per row; got shape {value.shape}")
    for values, size in ((per_step, n_steps), (per_episode, n_trajectories)):
        for name, value in values.items():
            if value is not None and value.shape[:1] != (size,):
                raise DataError(f"{name} must have {size} rows; got shape {value.shape}")


def ranges(offsets: npt.NDArray[np.int64], size: int) -> Iterator[tuple[int, int]]:
    """Ranges of episodes that have about so many steps together; one that is longer has a range of its own."""
    start = 0
    while start < len(offsets) - 1:
        stop = max(start + 1, int(np.searchsorted(offsets, offsets[start] + size, side="right")) - 1)
        yield start, stop
        start = stop


def steps_of(offsets: npt.NDArray[np.int64], episodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """Where the steps of the given episodes are in flat arrays, one episode after the other."""
    lengths = offsets[1:][episodes] - offsets[:-1][episodes]
    shift = offsets[:-1][episodes] - (np.cumsum(lengths) - lengths)
    return np.repeat(shift, lengths) + np.arange(lengths.sum())


def pieces(offsets: npt.NDArray[np.int64], episodes: npt.NDArray[np.int64], size: int) -> Iterator[slice]:
    """Slices of the given episodes that have about so many steps together."""
    lengths = offsets[1:][episodes] - offsets[:-1][episodes]
    for start, stop in ranges(np.append(0, np.cumsum(lengths)), size):
        yield slice(start, stop)


def times_of(offsets: npt.NDArray[np.int64], episodes: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
    """The time of each step of the given episodes within its episode, one episode after the other."""
    lengths = offsets[1:][episodes] - offsets[:-1][episodes]
    return np.asarray(np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths))


def first_places(code: npt.NDArray[np.int64], count: int, scratch: Scratch) -> npt.NDArray[np.int64]:
    """Where each of so many codes comes first, (count,)."""
    result: npt.NDArray[np.int64] = scratch.full(count, len(code), np.int64)
    for part in parts(len(code)):
        np.minimum.at(result, code[part], np.arange(part.start, part.stop))
    return result


def rises(values: npt.NDArray[Any], *, strictly: bool = False) -> bool:
    """Whether no value is below the one before it; strictly: whether all are above."""
    rising = np.greater if strictly else np.greater_equal
    return all(bool(rising(values[part][1:], values[part][:-1]).all()) for part in overlapping(len(values)))


def check_strata(clusters: npt.NDArray[Any] | None, strata: npt.NDArray[Any] | None, scratch: Scratch) -> None:
    """Refuse clusters and strata without a name, and a cluster that lies in two strata."""
    for name, values in (("clusters", clusters), ("strata", strata)):
        check_finite(name, values, lambda row: f"the episode at place {row}")
    if clusters is None or strata is None:
        return
    labels, code = ranked(clusters, scratch)
    first = first_places(code, len(labels), scratch)
    for part in parts(len(code)):
        expected = strata[first[code[part]]]
        apart = np.flatnonzero(strata[part] != expected)
        if len(apart):
            row = part.start + int(apart[0])
            raise DataError(
                f"cluster {clusters[row]} has episodes in strata {expected[apart[0]]} and {strata[row]}; a cluster "
                "must lie in one stratum"
            )
