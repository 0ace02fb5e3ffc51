"""The record of a plan: how many episodes would settle a question, and which logs would settle it soonest."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from tightrope.base.beside import Provenance
from tightrope.base.errors import visible
from tightrope.base.plain import Record
from tightrope.base.records import About, Bound, Verdict
from tightrope.base.warnings import Caution

PlanKind = Literal["settled", "yes", "no", "broken"]


@dataclass(frozen=True)
class Step(Record):
    """What so many episodes are expected to give."""

    episodes: float  # new ones, judged alone
    bound: float  # the expected bound, if the candidate is as it looks now
    chance: float  # of the answer, if the candidate is as it looks now
    chance_at_all: float  # of the answer, over all that the candidate may be, judging by these logs


@dataclass(frozen=True)
class Logging(Record):
    """New logs of a mixture of today's policy and the candidate."""

    share: float  # how often the candidate acts, at every step
    episodes: float | None  # new ones, that settle it; None: these logs cannot tell
    loss: float  # what an episode is expected to lose against today's policy; below 0: it gains
    most_loss: float  # an upper bound on it; those of all shares hold together
    allowed: bool  # within the declared risk


@dataclass(frozen=True)
class Plan(Record):
    """How many episodes would settle whether the candidate is better, with the range that these logs leave."""

    kind: PlanKind  # "yes", "no": the answer planned for; "settled": these logs have it; "broken": they say nothing
    headline: str  # in one line
    text: str  # what it rests on
    episodes: float  # new ones, in clusters as large as these, that settle it alone with the chance below
    least: float  # the range of that number; infinite: none would do
    most: float  # infinite where the candidate may be at the threshold
    chance: float  # of the answer at that number
    n_trajectories: int  # episodes in the logs
    about: About  # "gain" over the policy that made the logs, or "value"
    threshold: float  # what is to be exceeded
    effect: float | None  # the distance that was planned for; None: the one that these logs show
    verdict: Verdict | None  # what these logs say now
    bound: Bound | None  # what it was planned from
    n_clusters: int | None = None  # of the episodes in the logs; None: every episode is an independent draw
    notes: tuple[Caution, ...] = ()  # what says that the bound may not be what it seems, or that episodes depend
    steps: tuple[Step, ...] = ()  # at several numbers of episodes
    logging: tuple[Logging, ...] = ()  # at several shares of the candidate
    no_logging: str = ""  # why nothing is known of other logs
    risk: float | None = None  # the largest allowed loss of an episode
    settings: dict[str, Any] = field(default_factory=dict)  # confidence, replicates, seed and the like
    provenance: Provenance | None = field(default=None, compare=False)  # where it comes from

    def clusters(self, episodes: float) -> float | None:
        """How many clusters as large as these hold so many episodes; None without clusters."""
        return None if self.n_clusters is None else episodes * self.n_clusters / self.n_trajectories

    @property
    def soonest(self) -> Logging | None:
        """The allowed logs that settle it with the fewest episodes."""
        known = [one for one in self.logging if one.allowed and one.episodes is not None]
        return min(known, key=lambda one: one.episodes or 0.0) if known else None

    def __str__(self) -> str:
        return visible("\n".join(part for part in (self.headline, self.text) if part))
