"""Records of results: bounds, and everything that is needed to judge them. They convert to JSON and compute nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tightrope.base.beside import Lift, Provenance
from tightrope.base.errors import visible
from tightrope.base.plain import Record
from tightrope.base.warnings import Caution

Side = Literal["lower", "upper"]
Guarantee = Literal["exact", "approximate"]
About = Literal["value", "gain"]


@dataclass(frozen=True)
class Bound(Record):
    """A one-sided confidence bound: it lies on the wrong side of the value with probability at most 1 − confidence.

    ``guarantee`` is "exact" (true at every number of episodes n) or "approximate" (approached as n grows).

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> bound = tightrope.lower_bound(logs, walker.candidate, estimator="is", method="anderson")
    >>> round(bound.value, 2), bound.guarantee, bound.confidence
    (-18.34, 'exact', 0.95)
    >>> tightrope.Bound.from_json(bound.to_json()) == bound
    True
    """

    value: float
    side: Side
    confidence: float
    estimate: float
    estimator: str
    method: str
    guarantee: Guarantee
    standard_error: float | None = None  # of the estimate
    warnings: tuple[Caution, ...] = ()
    n_trajectories: int = 0
    n_resamples: int | None = None
    n_undefined: int = 0  # replicates in which the estimator was undefined; they count as the worst value
    seed: int | None = None
    behavior: str | None = None  # how the behaviour policy was estimated; None: as logged, or not needed
    about: About = "value"  # what is bounded; "gain": the candidate's value minus the behaviour policy's
    rests_on_model: bool = False  # on a model alone, which nothing in the logs corrects

    def __str__(self) -> str:
        sign = "≥" if self.side == "lower" else "≤"
        text = (
            f"{self.about} {sign} {self.value:.6g} with confidence {self.confidence:g} ({self.guarantee}; "
            f"{self.estimator.upper()}, {self.method}; estimate {self.estimate:.6g}{estimated_behavior(self)})"
        )
        return visible("\n".join([text, *(f"  ! {warning}" for warning in self.warnings)]))


def estimated_behavior(bound: Bound) -> str:
    """A note for bounds that rest on an estimated behaviour policy; empty for others."""
    return "" if bound.behavior is None else f"; behaviour policy estimated ({bound.behavior})"


@dataclass(frozen=True)
class Interval(Record):
    """A two-sided interval: two one-sided bounds that share the error equally.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> print(tightrope.interval(logs, walker.candidate, estimator="is", method="anderson"))
    -18.9443 ≤ value ≤ -7.98385 with confidence 0.95 (exact; IS, anderson)
    """

    lower: Bound
    upper: Bound
    confidence: float

    def __iter__(self) -> Iterator[float]:
        return iter((self.lower.value, self.upper.value))

    def __str__(self) -> str:
        low, high = self.lower, self.upper
        text = (
            f"{low.value:.6g} ≤ {low.about} ≤ {high.value:.6g} with confidence {self.confidence:g} ({low.guarantee}; "
            f"{low.estimator.upper()}, {low.method}{estimated_behavior(low)})"
        )
        warnings = dict.fromkeys((*low.warnings, *high.warnings))
        return visible("\n".join([text, *(f"  ! {warning}" for warning in warnings)]))


@dataclass(frozen=True)
class Overlap(Record):
    """How much the logs say about the candidate, from the importance ratios."""

    effective_sample_size: tuple[float, ...]  # (horizon,): (Σρ)² / Σρ² at each step
    largest_share: tuple[float, ...]  # (horizon,): the heaviest episode's share of Σρ at each step
    zero_share: float  # share of the episodes that the candidate could not have produced
    pareto_k: float | None  # tail index of the final ratios; above 0.7 averages are unreliable; None: too few
    mean_ratio: float  # of the final ratios; its expectation is 1
    mean_ratio_error: float
    mean_ratio_evidence: float  # log of an e-value against a mean of 1 at most
    unlogged_mass: float | None  # the candidate's probability on state-action pairs never logged, where countable
    infinite_variance: bool  # proven for these two Gaussian policies
    deterministic: tuple[str, ...] = ()  # which of the two policies is deterministic, and what that means
    warnings: tuple[Caution, ...] = ()
    tail: tuple[tuple[float, float], ...] = ()  # (ρ, share of the episodes with a final ratio of at least ρ)


@dataclass(frozen=True)
class ModelCheck(Record):
    """A check of a model against the logs: what it leaves unexplained."""

    model: str
    correction: float  # what the weighted logs add to the model's value: an estimate of its bias
    correction_error: float
    training_error: float  # root mean square of one-step errors of the model's values on the data it was fitted to
    held_out_error: float  # the same on data it was not fitted to
    unseen_mass: float | None  # the candidate's steps in a tabular model that fall on pairs never logged
    fragile_mass: float | None  # the candidate's steps on pairs that only one episode logged
    memory: float | None  # p-value of "what follows a logged state does not depend on earlier steps"
    misfit: float | None  # p-value of "the residuals of a regression do not depend on state and action"
    likelihood_training: float | None  # −log-likelihood of an episode, weighted towards the candidate, in nats
    likelihood_held_out: float | None  # the same for episodes that the model was not fitted to
    likelihood_error: float | None  # standard error of likelihood_held_out
    bias_bound: float | None  # the most that wrong transitions can move its value; None: no bound
    residue_free: bool  # the model fits its own data without any error, so that nothing would be corrected
    warnings: tuple[Caution, ...] = ()


@dataclass(frozen=True)
class BehaviorCheck(Record):
    """How well an estimated behaviour policy predicts episodes that it was not fitted to."""

    behavior: str
    log_likelihood: float  # mean of a logged action's log-probability, fitted to all logs
    held_out_log_likelihood: float  # the same, fitted to the other folds, where those had seen the action
    unseen_share: float  # steps whose action the other folds never saw in that state
    calibration_error: float | None  # held-out: predicted against actual frequencies, or the residuals' distribution
    calibration_noise: float | None  # the calibration error that a true policy would show
    residual_variance: float | None  # of standardised held-out residuals, for continuous actions; expected: 1
    smallest_probs: tuple[float, float, float]  # of logged actions: the smallest, the 1 % and the 5 % quantile
    misfit: float | None = None  # p-value of "state, time and their products explain no more of the actions"
    warnings: tuple[Caution, ...] = ()

    @property
    def summary(self) -> str:
        """The check in one line."""
        parts = [
            f"log-likelihood of an action {self.log_likelihood:.3g} fitted, {self.held_out_log_likelihood:.3g} held out"
        ]
        if self.calibration_error is not None:
            parts.append(f"calibration error {self.calibration_error:.2g} (noise alone: {self.calibration_noise:.2g})")
        if self.residual_variance is not None:
            parts.append(f"variance of standardised residuals {self.residual_variance:.2f}")
        if self.misfit is not None:
            parts.append(f"a test of its shape gives p = {self.misfit:.2g}")
        what = "probability" if self.residual_variance is None else "density"
        parts.append(f"{self.unseen_share:.1%} of the actions never seen in their state elsewhere")
        parts.append(f"smallest {what} of a logged action {self.smallest_probs[0]:.2g}")
        return f"estimated ({self.behavior}): {'; '.join(parts)}"


@dataclass(frozen=True)
class Summary(Record):
    """What the logs hold."""

    n_trajectories: int
    n_steps: int
    shortest: int
    longest: int
    horizon: int
    horizon_declared: bool
    discount: float
    terminated: int
    reward_seen: tuple[float, float]
    reward_range: tuple[float, float] | None
    return_range: tuple[float, float] | None
    return_mean: float  # the behaviour policy's own value, estimated
    return_error: float
    actions: str
    states: str
    notes: tuple[Caution, ...] = ()
    reading: tuple[str, ...] = ()  # which column was used for what


@dataclass(frozen=True)
class Advice(Record):
    """Which bounds to believe on these logs, and why.

    >>> import numpy as np, tightrope
    >>> from tightrope.domains import small
    >>> walker = small("walker")
    >>> logs = walker.logs(200, rng=np.random.default_rng(0))
    >>> advice = tightrope.advise(logs, walker.candidate, estimators="is", methods="anderson")
    >>> [bound.method for bound in advice.believed]
    ['anderson']
    """

    text: str
    believed: tuple[Bound, ...]  # the bounds to believe, at most one a side; none: this data cannot answer
    reasons: tuple[str, ...]

    def __str__(self) -> str:
        return visible("\n".join([self.text, *(f"  - {reason}" for reason in self.reasons)]))


VerdictKind = Literal["yes", "no", "cannot tell", "broken", "bound"]


@dataclass(frozen=True)
class Verdict(Record):
    """The answer in words; it claims no more than its bounds do.

    "yes" and "no" answer whether the value exceeds the threshold; "bound": no threshold was given; "broken": there is
    no bound to believe.
    """

    kind: VerdictKind
    headline: str
    text: str
    threshold: float | None = None
    about: About = "value"


@dataclass(frozen=True)
class Influence(Record):
    """The influence of one episode on an estimate."""

    episode: str
    share: float | None  # of the final importance weights; None: the estimator does not use them
    episode_return: float
    influence: float  # what it adds to the estimate, to first order
    without: float  # the estimate without it; NaN where nothing is left


@dataclass(frozen=True)
class Details(Record):
    """More about one bound: the believed one, or the first one if none is believed."""

    bound: int  # which of the bounds
    edges: tuple[float, ...] = ()  # of the bins of its estimator's replicates, one more than counts
    counts: tuple[int, ...] = ()
    n_beyond: int = 0  # replicates far outside the bins
    n_undefined: int = 0
    influential: tuple[Influence, ...] = ()  # the largest first


@dataclass(frozen=True)
class Rehearsal(Record):
    """How often one bound was wrong on logs that were simulated from a model of the logs at hand."""

    estimator: str
    method: str
    side: Side
    errors: int
    trials: int


@dataclass(frozen=True)
class Evaluation(Record):
    """Many bounds on one candidate, what the logs look like, and which bound to believe."""

    bounds: tuple[Bound, ...]
    skipped: tuple[tuple[str, str, str], ...]  # (estimator, method, why)
    summary: Summary
    overlap: Overlap
    advice: str
    reasons: tuple[str, ...] = ()  # the measured quantities behind the advice
    model_check: ModelCheck | None = None  # where a model was fitted
    behavior_check: BehaviorCheck | None = None  # where the behaviour policy was estimated
    believed: tuple[Bound, ...] = ()  # the bounds to believe, at most one a side; none: this data cannot answer
    true_value: float | None = None  # where it is known, for demonstrations
    settings: dict[str, Any] = field(default_factory=dict)
    gains: tuple[Bound, ...] = ()  # bounds on the value minus the behaviour policy's, with baseline="behavior"
    believed_gains: tuple[Bound, ...] = ()  # the bounds on the gain to believe, at most one a side
    exact: tuple[Bound, ...] = ()  # on what the verdict is about: by a fixed rule, at most one a side, never vacuous
    lift: Lift | None = None  # with believed gains, where the behaviour policy's mean return is clearly not 0
    verdict: Verdict | None = None
    rehearsal: tuple[Rehearsal, ...] = ()  # with rehearsals=...: how each bound fared on simulated logs
    details: Details | None = None
    provenance: Provenance | None = field(default=None, compare=False)  # evaluations are equal if their results are

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.bounds)

    def __str__(self) -> str:
        return visible("\n".join([*(str(bound).splitlines()[0] for bound in self.bounds), self.advice]))
