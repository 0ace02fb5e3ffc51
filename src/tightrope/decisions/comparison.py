"""The record of a comparison: candidates, what they are compared with, and what can be said of all of them at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tightrope.base.beside import Provenance
from tightrope.base.errors import MissingBoundError, visible
from tightrope.base.names import must_be_one_of
from tightrope.base.plain import Record
from tightrope.base.records import Bound, Guarantee, Verdict
from tightrope.base.warnings import Caution


@dataclass(frozen=True)
class Standing(Record):
    """One candidate among several."""

    name: str  # as it was given
    value: Bound | None  # on its value; holds together with those of all others. None: it cannot be judged
    gain: Bound | None  # on its value less the baseline's; likewise
    better: bool  # surely better than the baseline, allowing for the number of candidates
    may_be_best: bool  # no other candidate is surely better
    why: str = ""  # why it cannot be judged
    warnings: tuple[Caution, ...] = ()  # what its importance ratios say


@dataclass(frozen=True)
class Difference(Record):
    """The value of one candidate less that of another."""

    name: str  # the one
    less: str  # the other
    estimate: float  # of the difference
    lower: float  # a lower bound; those of all ordered pairs hold together


@dataclass(frozen=True)
class Comparison(Record):
    """Several candidates on the same logs: which is surely better than the baseline, and which may be the best."""

    verdict: Verdict  # the answer in words
    standings: tuple[Standing, ...]  # the candidates, in the order given
    baseline: str  # what they are compared with, in words
    baseline_value: float | None  # where it is a number
    chosen: str  # the highest lower bound on the gain, of those surely better if any is; empty: none can be judged
    differences: tuple[Difference, ...]  # between candidates; exact ones: of the first in line against each other
    confidence: float  # of each of: all values, all gains, all verdicts "better", all differences
    guarantee: Guarantee  # "exact" or "approximate"
    how: str  # how the bounds were made to hold together
    n_trajectories: int  # episodes in the logs
    n_clusters: int | None = None  # of those episodes; None: every episode is an independent draw
    notes: tuple[Caution, ...] = ()  # what says that episodes depend on each other beyond the clusters that were named
    settings: dict[str, Any] = field(default_factory=dict)  # confidence, replicates, seed and the like
    provenance: Provenance | None = field(default=None, compare=False)  # where it comes from

    def __iter__(self) -> Iterator[Standing]:
        return iter(self.standings)

    def __getitem__(self, name: str) -> Standing:
        """A candidate by its name."""
        for one in self.standings:
            if one.name == name:
                return one
        raise MissingBoundError(must_be_one_of("candidate", name, [one.name for one in self.standings]))

    @property
    def may_be_best(self) -> tuple[str, ...]:
        """The candidates of which no other is surely better."""
        return tuple(one.name for one in self.standings if one.may_be_best)

    def __str__(self) -> str:
        return visible("\n".join(part for part in (self.verdict.headline, self.verdict.text) if part))
