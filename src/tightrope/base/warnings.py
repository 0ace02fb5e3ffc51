"""Warnings as data: what was found, what it speaks against, and the numbers behind it. All codes stand here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal

from tightrope.base.errors import TightropeError, visible
from tightrope.base.plain import Record

Against = Literal["everything", "resampling", "model", "behavior", "bound"]


@dataclass(frozen=True)
class Caution(Record):
    """One warning. A bound whose warning speaks against something is not recommended.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(30, rng=np.random.default_rng(0))
    >>> bound = tightrope.lower_bound(logs, walker.candidate, estimator="is", method="hoeffding", max_ratio=200)
    >>> [caution.code for caution in bound.warnings]
    ['vacuous']
    """

    code: str  # a key of CODES, or one that a bound of yours chooses
    text: str  # in words
    against: Against | None = None  # None: good to know, no more
    numbers: dict[str, float] = field(default_factory=dict, hash=False)  # what the text tells, by name

    def __post_init__(self) -> None:
        object.__setattr__(self, "text", visible(self.text))

    def __str__(self) -> str:
        return f"{self.code}: {self.text}"


@dataclass(frozen=True)
class Code:
    """What a kind of warning means."""

    against: Against | None
    meaning: str
    remedy: str


CODES: dict[str, Code] = {
    # -- against resampling, or against everything ---------------------------------------------------------------
    "no-overlap": Code(
        "resampling",
        "there are no ratios at all: no propensities, no common support, or a singular density",
        "estimate the behaviour policy, or use a model",
    ),
    "low-overlap": Code(
        "resampling",
        "the logs say no more than 10 episodes, or clusters, of the candidate: a bootstrap resamples the same few",
        "more logs, a policy nearer to the candidate, a shorter horizon",
    ),
    "one-episode": Code(
        "resampling",
        "one episode, or cluster, carries more than half the weight",
        "look at it (the report names it); as above",
    ),
    "heavy-tail": Code(
        "resampling",
        "the ratios' tail index is above 0.7: averages are unreliable at any practical n",
        "an exact bound, or a model",
    ),
    "infinite-variance": Code(
        "resampling",
        "proven for these Gaussian policies: the ratios have no variance",
        "logs of a noisier policy",
    ),
    "mean-ratio": Code(
        "everything",
        "the ratios do not average to 1",
        "check the propensities: wrong column, rounded, of another policy; else rare episodes are missing",
    ),
    "undefined": Code("resampling", "in some resamples all weights were 0; they count as the worst value", "more logs"),
    "no-spread": Code(
        "resampling",
        "all episodes, or clusters, pull alike, so the bootstrap sees no uncertainty",
        "not certainty: too little data",
    ),
    "skew": Code(
        "resampling",
        "a few episodes, or clusters, pull towards the unsafe side; resampling errs more often than nominal",
        "`is` with `studentized` or `betting`",
    ),
    "chosen": Code(
        "resampling",
        "`slope`, `opera`, `magic`: the estimator is chosen, or blended, by the logs that it is bounded with; "
        "replicates choose anew, but none shows a bias that the choice accepts",
        "an estimator that is fixed beforehand, or a choice on other logs",
    ),
    # -- against the model ---------------------------------------------------------------------------------------
    "model-contradicted": Code(
        "model",
        "the weighted logs, the past of a state, or the residuals disagree with the model",
        "another model; `wdr`; importance sampling",
    ),
    "unseen-pairs": Code(
        "model",
        "over 1% of the candidate's steps in the model fall on pairs never logged",
        '`unseen="worst"`; logs that try them',
    ),
    "fragile-pairs": Code("model", "over 1% fall on pairs that one episode holds", "the same"),
    "model-unchecked": Code(
        "model",
        "nothing in the logs could be held against the model",
        "a model that can be checked, or more overlap",
    ),
    "no-correction": Code(
        "model",
        "`dr`, `wdr` or `magic` with a model fitted to the same data, which it explains wholly: nothing is corrected",
        '`fit="cross"`',
    ),
    "sharp": Code(
        "model",
        "`dr` or `wdr` where nothing happens by chance: the model's corrections are rare jumps, and standard errors "
        "say little",
        "`percentile`",
    ),
    # -- against an estimated behaviour policy -------------------------------------------------------------------
    "behavior-miscalibrated": Code(
        "behavior",
        "held out, the estimated behaviour policy is off beyond noise",
        "other features, another class",
    ),
    "behavior-unseen": Code(
        "behavior",
        "over 1% of the logged actions were taken in their state by no other episode",
        "a smoother class (`logistic`, a classifier)",
    ),
    "behavior-misfit": Code(
        "behavior",
        "squares and products of state and time still explain the actions that an estimated regression does not",
        "other features, a classifier that bends",
    ),
    # -- against the one bound that has it -----------------------------------------------------------------------
    "bca-degenerate": Code(
        "bound", "BCa's correction leaves no valid level; the lowest replicate stands in", "another method"
    ),
    "vacuous": Code(
        "bound",
        "the bound says no more than the declared range",
        "more logs, or a narrower range that is true",
    ),
    "linear-worlds": Code(
        "bound",
        "`rehearsed` where states are quantities: it is calibrated in linear models of the logs, and none of them "
        "shows a loss beyond a limit of the state that few logged steps pass",
        "`tdr` with `percentile`; see [the measurements](../tether.md)",
    ),
    # -- good to know --------------------------------------------------------------------------------------------
    "unlogged-actions": Code(
        None,
        "the candidate does things in logged states that were never logged there",
        "nothing was seen of them; only a model's assumption speaks",
    ),
    "bca-clipped": Code(
        None, "all replicates lie on one side of the estimate, and BCa's bias correction was cut", "another method"
    ),
    "few-resamples": Code(None, "BCa's adjusted level is out of reach of this many replicates", "raise `n_resamples`"),
    "impossible-estimate": Code(
        None,
        "the estimate lies outside the declared range, as unweighted estimators can",
        "read the bound, not the estimate; or the range is wrong",
    ),
    "simulation-noise": Code(
        None,
        "the roll-outs that evaluate the model have an error of their own that the bootstrap does not see",
        "more `point_rollouts`",
    ),
    "unvisited": Code(
        None,
        "`robust`: pairs that the candidate may take were never logged; they count as the worst possible",
        "logs that try them",
    ),
    "clipped-mass": Code(
        None,
        "`bottou`: how much of its margin is sampling noise, and how much the weight that clipping leaves out",
        "noise: more logs; clipped weight: a larger `largest`, or logs nearer to the candidate",
    ),
    "thin-tail": Code(
        None,
        "`tail`: too few effective episodes lie in a tail that was asked about, or at an end of the band (10 for a "
        "probability or a quantile, 50 for a mean of the lowest returns or a band); exact bounds stand in",
        "more logs, or a wider tail",
    ),
    "crossed": Code(
        "everything",
        "`tail`: exact bounds contradict each other, which true declarations allow in no more than 5 % of logs",
        "check the propensities and the clusters",
    ),
    "clustered": Code(
        None,
        "bounds count clusters of episodes (`cluster=`), each once: the value is that of a random episode of a random "
        "cluster",
        "nothing; see [clusters](../tutorials/clusters.md)",
    ),
    "group-column": Code(
        None,
        "the logs have a column such as patient or day, which several episodes share, and it is not used",
        "`cluster=`, if episodes of one group resemble each other: see [clusters](../tutorials/clusters.md)",
    ),
    "serial": Code(
        None,
        "episodes that follow each other in the logs have similar returns",
        "`cluster=`; or find out what changed over time, or how the logs were sorted",
    ),
    "assumed": Code(
        None,
        'episodes that were cut off count as ended (`incomplete="terminate"`)',
        "is that the safe side? see [lengths](../tutorials/lengths.md)",
    ),
    "dropped": Code(
        None,
        'episodes that were cut off were left out (`incomplete="drop"`); no exact bound',
        "a shorter horizon",
    ),
}


def caution(code: str, text: str, **numbers: float) -> Caution:
    """A warning of ours: its code says what it speaks against."""
    if code not in CODES:
        raise TightropeError(f"code must be one of {', '.join(CODES)}; got {code!r}")
    return Caution(code, text, CODES[code].against, {name: float(value) for name, value in numbers.items()})


def codes_of(warnings: Iterable[Caution]) -> list[str]:
    """The codes, each once."""
    return list(dict.fromkeys(warning.code for warning in warnings))


def coded(warnings: Iterable[Caution], *codes: str) -> tuple[Caution, ...]:
    """The warnings that have one of these codes."""
    return tuple(warning for warning in warnings if warning.code in codes)


def table() -> list[str]:
    """All codes as a table in Markdown, for the guide."""
    against = {
        "everything": "against all",
        "resampling": "against bootstraps",
        "model": "against the model",
        "behavior": "against the estimate of the behaviour policy",
        "bound": "against the bound",
        None: "",
    }
    rows = [f"| `{code}` | {against[one.against]} | {one.meaning} | {one.remedy} |" for code, one in CODES.items()]
    return ["| code | | means | what to do |", "|---|---|---|---|", *(row.replace("|  |", "| |") for row in rows)]
