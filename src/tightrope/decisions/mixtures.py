"""Logs that do not exist yet: what a mixture of today's policy and the candidate would tell, and what it would cost.

Under a mixture μ the logged episodes count w = Π μ(a)/b(a) each. Tethered values made with μ's probabilities, weighed
by w, have the mean and the variance that they would have in logs of μ. What an episode of μ is worth is a gain like any
other, and is bounded like one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from tightrope.base.dataset import Array, TrajectoryDataset
from tightrope.base.errors import BoundError
from tightrope.base.policy import MixturePolicy
from tightrope.base.problem import Problem
from tightrope.base.records import About
from tightrope.decisions.approximate import share as error_share
from tightrope.decisions.family import band
from tightrope.decisions.plans import Logging
from tightrope.estimators import TDR, Anchor
from tightrope.estimators.gain import gain
from tightrope.evaluation.needed import Prospect
from tightrope.evaluation.settings import Settings
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import scheme

SHARES = (0.0, 0.1, 0.25, 0.5, 0.75, 1.0)
FEWEST = 30.0  # effective episodes below which the variance under a mixture is anybody's guess


@dataclass(frozen=True, eq=False)
class Mixture:
    """Today's policy with the candidate acting at this share of the steps."""

    problem: Problem
    share: float

    @property
    def log_probs(self) -> Array:
        """Of the logged actions, (N,)."""
        own = self.problem.dataset.behavior_log_probs
        assert own is not None
        with np.errstate(divide="ignore"):
            mixed: Array = np.logaddexp(np.log(1 - self.share) + own, np.log(self.share) + self.problem.eval_log_probs)
        return mixed

    @property
    def policy(self) -> MixturePolicy | None:
        """The mixture itself, where both policies are known."""
        today, candidate = self.problem.dataset.behavior, self.problem.policy
        if today is None or candidate is None:
            return None
        return MixturePolicy([today, candidate], [1 - self.share, self.share])

    @property
    def weights(self) -> Array:
        """How much more likely it makes each logged episode, (n,)."""
        data = self.problem.dataset
        assert data.behavior_log_probs is not None
        steps = self.log_probs - data.behavior_log_probs
        result: Array = np.exp(np.add.reduceat(steps, data.offsets[:-1]))
        return result

    def as_candidate(self) -> Problem:
        """The question what the mixture is worth, on the logs of today's policy."""
        return Problem(replace(self.problem.dataset, eval_log_probs=self.log_probs), self.policy)

    def as_logger(self) -> TrajectoryDataset:
        """The logs as the mixture would have written them."""
        return replace(self.problem.dataset, behavior_log_probs=self.log_probs, behavior=self.policy)

    def deviation(self, about: About) -> float | None:
        """The standard deviation of an episode's value, or gain over today's policy; None where too few would count."""
        weights = self.weights
        if not weights.any() or weights.sum() ** 2 / np.square(weights).sum() < FEWEST:
            return None
        values = self._values(about)
        mean = np.average(values, weights=weights)
        return float(np.sqrt(np.average(np.square(values - mean), weights=weights)))

    def _values(self, about: About) -> Array:
        """What each episode says of the candidate, less what it says of today's policy where that is asked."""
        data, today = self.as_logger(), self.problem.dataset
        values = _contributions(Problem(data, self.problem.policy), "low")
        if about == "gain" and self.share == 0:
            values -= data.returns
        elif about == "gain":
            other = Problem(replace(data, eval_log_probs=today.behavior_log_probs), today.behavior)
            values -= _contributions(other, "high")
        return values


def _contributions(problem: Problem, anchor: Anchor) -> Array:
    """Tethered values of all episodes, from one end of the range; from below where the other is not declared."""
    _, high = problem.dataset.value_range or (-np.inf, np.inf)
    statistic = TDR(anchor=anchor if np.isfinite(high) else "low")(problem)
    return np.asarray(statistic.estimate + statistic.influence())


def loggings(
    problem: Problem, view: Prospect, about: About, chance: float, risk: float | None, settings: Settings
) -> tuple[Logging, ...]:
    """New logs at several shares of the candidate; refuses where tethered values cannot be had."""
    if problem.clusters is not None:  # a cluster counts by the product of its episodes' weights, which few logs bear
        raise BoundError("how much clusters would differ from each other in the logs of a mixture, these cannot tell")
    if problem.behavior is not None:
        raise BoundError("the behaviour probabilities are estimated, so nothing is known of other policies' logs")
    mixtures = [Mixture(problem, share) for share in SHARES]
    deviations = [one.deviation(about) for one in mixtures]
    result = []
    for mixture, deviation, (estimate, lower) in zip(mixtures, deviations, _changes(mixtures, settings), strict=True):
        episodes = None
        if deviation is not None and deviations[0]:
            episodes = view.total(view.distance, chance) * (deviation / deviations[0]) ** 2
        allowed = risk is None or -lower <= risk
        result.append(Logging(mixture.share, episodes, 0.0 - estimate, 0.0 - lower, allowed))
    return tuple(result)


def _changes(mixtures: Sequence[Mixture], settings: Settings) -> list[tuple[float, float]]:
    """What an episode of each mixture gains over today's policy: estimates, and lower bounds that hold together.

    Of today's policy itself nothing has to be estimated.
    """
    n = mixtures[0].problem.dataset.n_trajectories
    drawn = replicate(
        [gain(TDR())(one.as_candidate()) for one in mixtures if one.share > 0],
        scheme(settings.resampling),
        n_resamples=settings.n_resamples,
        seed=settings.seed,
        n_jobs=settings.n_jobs,
    )
    lower = band(
        np.column_stack([one.values for one in drawn]), (1 - settings.confidence) * error_share(n, "gain", len(drawn))
    )
    changes = iter((one.estimate, float(bound)) for one, bound in zip(drawn, lower, strict=True))
    return [next(changes) if one.share > 0 else (0.0, 0.0) for one in mixtures]
