"""A bounded sample of the past, from which models learn and bets are planned."""

from __future__ import annotations

import hashlib

import numpy as np
import numpy.typing as npt

from tightrope.base.content import digest
from tightrope.base.dataset import BoolArray, IntArray, TrajectoryDataset
from tightrope.base.errors import DataError

EPISODES, STEPS = 2000, 400_000  # kept at most
Hashes = npt.NDArray[np.uint64]


def capacity(horizon: int) -> int:
    """How many episodes are kept."""
    return max(50, min(EPISODES, STEPS // horizon))


def sampled(kept: IntArray, arrived: IntArray, count: int, most: int) -> IntArray:
    """An even sample of all so far (reservoir sampling), after ``arrived`` joined the ``count`` before them.

    Which episodes stay depends on their numbers alone, never on what they hold.
    """
    numbers = count + np.arange(len(arrived))
    slots = np.where(numbers < most, numbers, _scattered(numbers) % (numbers + 1).astype(np.uint64)).astype(np.int64)
    result = np.empty(min(most, count + len(arrived)), dtype=np.int64)
    result[: len(kept)] = kept
    taken = slots < most
    result[slots[taken]] = arrived[taken]  # of those that want the same slot, the last has it
    return result


def _scattered(numbers: IntArray) -> Hashes:
    """A hash of each number (splitmix64)."""
    x = (numbers.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def hashes(data: TrajectoryDataset) -> Hashes:
    """64 bits for every episode by its name; where the logs name none, by its place in logs of this content."""
    assert data.episode_ids is not None
    content = (data.rewards, data.states, data.actions, data.behavior_log_probs, data.eval_log_probs)
    prefix = "" if data.episodes_named else digest(data.offsets, *content)
    words = (f"{prefix}:{name}".encode() for name in data.episode_ids)
    return np.array(
        [int.from_bytes(hashlib.blake2b(word, digest_size=8).digest(), "little") for word in words], dtype=np.uint64
    )


def is_known(known: Hashes, some: Hashes) -> BoolArray:
    """Which of some hashes are among the sorted ones."""
    if not len(known):
        return np.zeros(len(some), dtype=bool)
    places = np.minimum(np.searchsorted(known, some), len(known) - 1)
    result: BoolArray = known[places] == some
    return result


def check_new(data: TrajectoryDataset, seen: BoolArray) -> None:
    """Refuse episodes that were counted before."""
    if not seen.any():
        return
    assert data.episode_ids is not None
    first = data.episode_ids[int(np.argmax(seen))]
    raise DataError(
        f"episode {first} was counted before, and so were {seen.sum()} of these {len(seen)} episodes in all; nothing "
        "was counted now. If they are the same episodes, leave them out (skip_known=True, --skip-known); if they are "
        "others, give every episode a name of its own"
    )
