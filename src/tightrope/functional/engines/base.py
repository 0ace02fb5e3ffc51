"""What an engine must answer: run a call on parts of a job, and add up or list what comes out.

The parts of a sum are ranges of blocks of episodes. They are added in one fixed binary tree over groups of blocks, so
that every engine, with any number of parts, gives the same bits; and in a tree nobody holds more than a few results.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol, runtime_checkable

from tightrope.base.cluster import Sums, added
from tightrope.base.threads import Workers

GROUP = 64  # blocks of episodes whose sums are one leaf of the tree


@runtime_checkable
class Engine(Workers, Protocol):
    """Somewhere to compute: threads, or the workers of a cluster. Calls can be pickled by cloudpickle."""

    def add(self, call: Callable[[range], Sums], ranges: Sequence[range]) -> Sums:
        """The sum of what the call returns for each range, by ``tree_sum`` or in the same order."""
        ...


def tree_sum(leaves: Iterable[Sums]) -> Sums:
    """Neighbours are added, then neighbouring pairs, and so on; whoever adds pair by pair gets the same bits.

    Subtrees of 2^k leaves may be added elsewhere, and count as one leaf here.
    """
    waiting: list[tuple[int, Sums]] = []
    for leaf in leaves:
        waiting.append((1, leaf))
        while len(waiting) > 1 and waiting[-1][0] == waiting[-2][0]:
            (size, one), (_, other) = waiting[-2:]
            waiting[-2:] = [(2 * size, added(one, other))]
    while len(waiting) > 1:
        (size, one), (_, other) = waiting[-2:]
        waiting[-2:] = [(size, added(one, other))]
    return waiting[0][1]


def group_ranges(blocks: int, parts: int) -> list[range]:
    """Ranges of blocks, each a subtree of 2^k groups: at least so many, if there are as many groups."""
    groups = -(-blocks // GROUP)
    size = 1
    while groups // (2 * size) >= parts:
        size *= 2
    return [range(first, min(first + size * GROUP, blocks)) for first in range(0, blocks, size * GROUP)]
