"""Whose episodes they are: columns of clusters and strata, and columns that look like it and are not used."""

from __future__ import annotations

import re

import numpy as np

from tightrope.base.dataset import IntArray
from tightrope.base.errors import DataError
from tightrope.base.folder import parts
from tightrope.base.names import must_be_one_of
from tightrope.base.warnings import Caution, caution
from tightrope.io.columns import Columns, Values, quoted

GROUPS = (  # what episodes are often grouped by, alone or with "id" behind it
    "patient", "subject", "user", "customer", "client", "person", "member", "visitor", "household", "family", "student",
    "device", "machine", "robot", "session", "site", "hospital", "ward", "clinic", "doctor", "physician", "clinician",
    "centre", "center", "store", "shop", "school", "region", "city", "group", "cluster", "day", "date", "week",
)  # fmt: skip
MOST_ROWS = 5_000_000  # beyond that nobody looks


def column_of(columns: Columns, offsets: IntArray, name: str | None, role: str) -> Values | None:
    """One value for each episode from a column that must not change within an episode."""
    if name is None:
        return None
    if name not in columns.names:
        raise DataError(must_be_one_of(role, name, columns.names))
    values = columns.raw(name)
    if values.ndim != 1:
        raise DataError(f"column {name!r} must hold one number or text per row to be a {role}; it holds lists")
    first = values[offsets[:-1]]
    changed = np.flatnonzero(values != np.repeat(first, np.diff(offsets)))
    if len(changed):
        row = int(changed[0])
        raise DataError(
            f"column {name!r} must be the same in all rows of an episode to be its {role}; it changes to {values[row]} "
            f"at {columns.where(row)}"
        )
    columns.say(f"{role}: {name!r}")
    return first


def group_notes(columns: Columns, offsets: IntArray) -> tuple[Caution, ...]:
    """A warning where a column that is not used names groups of episodes, several in one."""
    if columns.n_rows > MOST_ROWS:
        return ()
    suspects = [name for name in columns.unused() if _words(name) in GROUPS and name not in columns.broken]
    shared = [name for name in suspects if _is_shared(columns, offsets, name)]
    if not shared:
        return ()
    text = (
        f"the logs have {quoted(shared)}, which several episodes share and which is not used. If episodes of one "
        f"{_words(shared[0])} resemble each other, bounds that take them for independent are too tight: read(..., "
        f"cluster={shared[0]!r}) (--cluster {shared[0]})"
    )
    return (caution("group-column", text, columns=len(shared)),)


def _words(name: str) -> str:
    """A column's name without "id"."""
    return re.sub(r"[\W_]*(id|no|nr|number|name|key|code)$", "", name.strip().lower())


def _is_shared(columns: Columns, offsets: IntArray, name: str) -> bool:
    """Whether it is one thing for each episode, and the same for some of them but not for all."""
    column = columns.table[name]
    if column.null_count:
        return False
    codes = np.asarray(column.combine_chunks().dictionary_encode().indices)
    codes = codes if columns.order is None else codes[columns.order]
    first = codes[offsets[:-1]]
    different = len(np.unique(first))
    return 1 < different < len(first) and bool((codes == np.repeat(first, np.diff(offsets))).all())


def cluster_notes(sizes: IntArray) -> tuple[Caution, ...]:
    """How clusters count."""
    n, least, most = len(sizes), int(sizes.min()), int(sizes.max())
    each = f"{least} each" if least == most else f"{least} to {most} each"
    text = f"{sizes.sum()} episodes in {n} clusters, {each}; every cluster counts once, whatever its size"
    return (caution("clustered", text, clusters=n, smallest=least, largest=most),)


def serial_notes(returns: Values, arrival: IntArray) -> tuple[Caution, ...]:
    """A warning where the returns of episodes that follow each other in the logs are alike, beyond chance.

    The correlation of ranks with those of the next, which for independent episodes has a mean of −1/n and a variance
    of about 1/n (Wald and Wolfowitz 1943).
    """
    n = len(returns)
    if n < FEWEST:
        return ()
    if n > MOST_EPISODES:
        early = _earliest(arrival, MOST_EPISODES)
        return serial_notes(returns[early], arrival[early])
    _, place, counts = np.unique(returns[np.argsort(arrival, kind="stable")], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[place]  # of equals their mean
    apart = ranks - ranks.mean()
    if not apart.any():
        return ()
    correlation = float((apart[:-1] * apart[1:]).sum() / np.square(apart).sum())
    if abs(correlation + 1 / n) * np.sqrt(n) < SURE:
        return ()
    text = (
        f"the returns of episodes that follow each other in the logs are correlated ({correlation:.2f}, where chance "
        f"alone gives ±{1 / np.sqrt(n):.2f}): they are no independent draws, or the logs are sorted. Bounds take them "
        "for independent; if they come in groups (days, patients), name their column: read(cluster=...), --cluster"
    )
    return (caution("serial", text, correlation=correlation, episodes=n),)


def _earliest(arrival: IntArray, count: int) -> IntArray:
    """Where the lowest numbers of different ones stand, so many of them, found some rows at a time."""
    known = np.zeros(0, dtype=np.int64)
    for part in parts(len(arrival)):
        known = np.append(known, np.arange(part.start, part.stop))
        if len(known) > count:
            known = known[np.argpartition(arrival[known], count - 1)[:count]]
    return known


MOST_EPISODES = 1_000_000  # of which the first are enough to tell
FEWEST = 30  # episodes that such a test needs
SURE = 3.29  # standard errors: by chance in one of a thousand logs
