"""Records of results: bounds, and everything that is needed to judge them. They convert to JSON and compute nothing."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from tightrope.base.beside import Details, Lift, Provenance, Rehearsal
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

    value: float  # the bound itself
    side: Side  # "lower" or "upper"
    confidence: float  # how often it holds
    estimate: float  # what it is a bound around
    estimator: str  # by its name
    method: str  # by its name
    guarantee: Guarantee  # "exact" or "approximate"
    standard_error: float | None = None  # of the estimate
    warnings: tuple[Caution, ...] = ()  # what to keep in mind about it
    n_trajectories: int = 0  # episodes in the logs
    n_resamples: int | None = None  # bootstrap replicates; None: nothing was resampled
    n_undefined: int = 0  # replicates in which the estimator was undefined; they count as the worst value
    seed: int | None = None  # of the random numbers
    behavior: str | None = None  # how the behaviour policy was estimated; None: as logged, or not needed
    about: About = "value"  # what is bounded; "gain": the candidate's value minus the behaviour policy's
    rests_on_model: bool = False  # on a model alone, which nothing in the logs corrects
    n_clusters: int | None = None  # of the episodes; None: every episode is an independent draw

    def __str__(self) -> str:
        sign = "≥" if self.side == "lower" else "≤"
        text = (
            f"{self.about} {sign} {self.value:.6g} with confidence {self.confidence:g} ({self.guarantee}; "
            f"{self.estimator.upper()}, {self.method}; estimate {self.estimate:.6g}{self.behavior_note})"
        )
        return visible("\n".join([text, *(f"  ! {warning}" for warning in self.warnings)]))

    @property
    def n_independent(self) -> int:
        """How many independent draws it is made of: clusters where there are some, else episodes."""
        return self.n_trajectories if self.n_clusters is None else self.n_clusters

    @property
    def hangs_on_model(self) -> bool:
        """Whether it is as wrong as its model is: an exact bound allows for the model's errors."""
        return self.rests_on_model and self.guarantee == "approximate"

    @property
    def behavior_note(self) -> str:
        """That it rests on an estimated behaviour policy; empty where it does not."""
        return "" if self.behavior is None else f"; behaviour policy estimated ({self.behavior})"


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

    lower: Bound  # at half of the error
    upper: Bound  # at the other half
    confidence: float  # that both hold

    def __iter__(self) -> Iterator[float]:
        return iter((self.lower.value, self.upper.value))

    def __str__(self) -> str:
        low, high = self.lower, self.upper
        text = (
            f"{low.value:.6g} ≤ {low.about} ≤ {high.value:.6g} with confidence {self.confidence:g} ({low.guarantee}; "
            f"{low.estimator.upper()}, {low.method}{low.behavior_note})"
        )
        warnings = dict.fromkeys((*low.warnings, *high.warnings))
        return visible("\n".join([text, *(f"  ! {warning}" for warning in warnings)]))


@dataclass(frozen=True)
class Overlap(Record):
    """How much the logs say about the candidate, from importance ratios ρ: of episodes, or the means of clusters."""

    effective_sample_size: tuple[float, ...]  # (horizon,): (Σρ)² / Σρ² at each step
    largest_share: tuple[float, ...]  # (horizon,): the share of Σρ of the heaviest, at each step
    zero_share: float  # share of the episodes that the candidate could not have produced
    pareto_k: float | None  # tail index of the final ratios; above 0.7 averages are unreliable; None: too few
    mean_ratio: float  # of the final ratios; its expectation is 1
    mean_ratio_error: float  # its standard error
    mean_ratio_evidence: float  # log of an e-value against a mean of 1 at most
    unlogged_mass: float | None  # the candidate's probability on state-action pairs never logged, where countable
    infinite_variance: bool  # proven for these two Gaussian policies
    deterministic: tuple[str, ...] = ()  # which of the two policies is deterministic, and what that means
    warnings: tuple[Caution, ...] = ()  # what the ratios say against bounds that use them
    tail: tuple[tuple[float, float], ...] = ()  # (ρ, share of those with a final ratio of at least ρ)
    n_clusters: int | None = None  # that it goes by; None: by episodes


@dataclass(frozen=True)
class ModelCheck(Record):
    """A check of a model against the logs: what it leaves unexplained."""

    model: str  # by its name
    correction: float  # what the weighted logs add to the model's value: an estimate of its bias
    correction_error: float  # its standard error
    training_error: float  # root mean square of one-step errors of the model's values on the data it was fitted to
    held_out_error: float  # the same on data it was not fitted to
    unseen_mass: float | None  # the candidate's steps in a tabular model that fall on pairs never logged
    fragile_mass: float | None  # the candidate's steps on pairs that only one episode, or cluster, logged
    memory: float | None  # p-value of "what follows a logged state does not depend on earlier steps"
    misfit: float | None  # p-value of "the residuals of a regression do not depend on state and action"
    likelihood_training: float | None  # −log-likelihood of an episode, weighted towards the candidate, in nats
    likelihood_held_out: float | None  # the same for episodes that the model was not fitted to
    likelihood_error: float | None  # standard error of likelihood_held_out
    bias_bound: float | None  # the most that wrong transitions can move its value; None: no bound
    residue_free: bool  # the model fits its own data without any error, so that nothing would be corrected
    warnings: tuple[Caution, ...] = ()  # what speaks against the model


@dataclass(frozen=True)
class BehaviorCheck(Record):
    """How well an estimated behaviour policy predicts episodes that it was not fitted to."""

    behavior: str  # how it was estimated
    log_likelihood: float  # mean of a logged action's log-probability, fitted to all logs
    held_out_log_likelihood: float  # the same, fitted to the other folds, where those had seen the action
    unseen_share: float  # steps whose action the other folds never saw in that state
    calibration_error: float | None  # held-out: predicted against actual frequencies, or the residuals' distribution
    calibration_noise: float | None  # the calibration error that a true policy would show
    residual_variance: float | None  # of standardised held-out residuals, for continuous actions; expected: 1
    smallest_probs: tuple[float, float, float]  # of logged actions: the smallest, the 1 % and the 5 % quantile
    misfit: float | None = None  # p-value of "state, time and their products explain no more of the actions"
    warnings: tuple[Caution, ...] = ()  # what speaks against the estimate

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

    n_trajectories: int  # episodes
    n_steps: int  # rows
    shortest: int  # steps of the shortest episode
    longest: int  # steps of the longest episode
    horizon: int  # how many steps count
    horizon_declared: bool  # or else taken from the longest episode
    discount: float  # γ
    terminated: int  # episodes that ended for good
    reward_seen: tuple[float, float]  # the lowest and the highest
    reward_range: tuple[float, float] | None  # as declared
    return_range: tuple[float, float] | None  # as declared
    return_mean: float  # the behaviour policy's own value, estimated
    return_error: float  # its standard error
    actions: str  # what they are, in words
    states: str  # what they are, in words
    notes: tuple[Caution, ...] = ()  # on how the logs were read
    reading: tuple[str, ...] = ()  # which column was used for what
    n_clusters: int | None = None  # of the episodes; None: every episode is an independent draw
    n_strata: int | None = None  # that clusters, or episodes, were drawn from; None: all were drawn alike


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

    text: str  # the advice in words
    believed: tuple[Bound, ...]  # the bounds to believe, at most one a side; none: this data cannot answer
    reasons: tuple[str, ...]  # the measured quantities behind it

    def __str__(self) -> str:
        return visible("\n".join([self.text, *(f"  - {reason}" for reason in self.reasons)]))


VerdictKind = Literal["yes", "no", "cannot tell", "broken", "bound"]


@dataclass(frozen=True)
class Verdict(Record):
    """The answer in words; it claims no more than its bounds do.

    "yes" and "no" answer whether the value exceeds the threshold; "bound": no threshold was given; "broken": there is
    no bound to believe.
    """

    kind: VerdictKind  # "yes", "no", "cannot tell", "broken" or "bound"
    headline: str  # the answer in one line
    text: str  # what it rests on
    threshold: float | None = None  # what the value or the gain was compared with
    about: About = "value"  # "value" or "gain"
    change: str = ""  # what would change the answer


@dataclass(frozen=True)
class Evaluation(Record):
    """Many bounds on one candidate, what the logs look like, and which bound to believe."""

    bounds: tuple[Bound, ...]  # all that were computed
    skipped: tuple[tuple[str, str, str], ...]  # (estimator, method, why)
    summary: Summary  # what the logs hold
    overlap: Overlap  # how much they say about the candidate
    advice: str  # which bound to use, in words
    reasons: tuple[str, ...] = ()  # the measured quantities behind the advice
    model_check: ModelCheck | None = None  # where a model was fitted
    behavior_check: BehaviorCheck | None = None  # where the behaviour policy was estimated
    believed: tuple[Bound, ...] = ()  # the bounds to believe, at most one a side; none: this data cannot answer
    exact: tuple[Bound, ...] = ()  # beside what the verdict rests on: the exact bound that the rule would use
    true_value: float | None = None  # where it is known, for demonstrations
    settings: dict[str, Any] = field(default_factory=dict)  # confidence, replicates, seed and the like
    gains: tuple[Bound, ...] = ()  # bounds on the value minus the behaviour policy's, with baseline="behavior"
    believed_gains: tuple[Bound, ...] = ()  # the bounds on the gain to believe, at most one a side
    lift: Lift | None = None  # with believed gains, where the behaviour policy's mean return is clearly not 0
    verdict: Verdict | None = None  # the answer in words
    rehearsal: tuple[Rehearsal, ...] = ()  # with rehearsals=...: how each bound fared on simulated logs
    details: Details | None = None  # the bootstrap's values and the episodes that matter most
    provenance: Provenance | None = field(default=None, compare=False)  # evaluations are equal if their results are

    def __iter__(self) -> Iterator[Bound]:
        return iter(self.bounds)

    def __str__(self) -> str:
        return visible("\n".join([*(str(bound).splitlines()[0] for bound in self.bounds), self.advice]))
