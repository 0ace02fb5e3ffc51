"""Exact bounds on all candidates: the error rate is shared out, and evidence says which are better.

Each of k bounds gets δ/k, so all of them hold together with probability 1 − δ at every number of episodes (Bonferroni),
however they depend on each other; the bound of whichever is chosen is one of them. "Better than the baseline" is
decided by the wealth of each bound's own game against a gain of zero, in Holm's steps (``surely_refuted``): that
settles whatever the bounds settle, and more.

Where episodes come in clusters, the value of a cluster is the mean of its episodes' values, whatever its size: of X for
a candidate, of X − return for a gain, of X + Y for the difference of two (``DifferenceValues``). Each lies above the
same floor or tether as its episodes' values do, and clusters are drawn alike, each for itself; what the models, tethers
and bets of a cluster rest on are earlier clusters, never episodes of its own. So each cluster's value has, given the
earlier ones, the mean that is bounded, and every bound and p-value above holds with clusters in the place of episodes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from tightrope.base.clusters import n_clusters
from tightrope.base.dataset import TrajectoryDataset
from tightrope.base.errors import TightropeError
from tightrope.base.problem import Problem
from tightrope.base.records import About, Bound
from tightrope.bounds.exact.betting import Betting
from tightrope.decisions.contenders import Baseline, Contender
from tightrope.decisions.differences import DifferenceValues
from tightrope.decisions.family import surely_refuted
from tightrope.decisions.findings import Findings, Pair, gain_range
from tightrope.estimators import Anchor, Estimator
from tightrope.estimators.base import IndependentEstimator, SequentialEstimator
from tightrope.estimators.clustered import independent_values, learned_values
from tightrope.estimators.gain import gain
from tightrope.evaluation.settings import Settings
from tightrope.evaluation.work import check_exact
from tightrope.functional.standard_errors import standard_error
from tightrope.functional.values import SequentialValues

HOW = "Exact: every bound has its share of the error rate."
BET = Betting()
SMALL = 1e-12  # of the size of values: what a mean of nothing is taken for


class Sample(NamedTuple):
    """Values of a candidate, and the name of their estimator."""

    name: str
    values: SequentialValues


def exact(contenders: Sequence[Contender], baseline: Baseline, settings: Settings) -> Findings:
    """What can be proven of all candidates together."""
    data, count, clusters = contenders[0].problem.dataset, len(contenders), contenders[0].problem.clusters
    if clusters is not None:
        clusters.check_alike()
    delta, zero = 1 - settings.confidence, baseline.number or 0.0
    lows, samples = ([make(one) for one in contenders] for make in (_low, partial(_gain, baseline)))
    floor, least = (data.value_range or (-np.inf,))[0], gain_range(data, baseline)[0]
    values = [_bound(sample, "value", 0.0, floor, delta / count, settings, data) for sample in lows]
    gains = [_bound(sample, "gain", zero, least, delta / count, settings, data) for sample in samples]
    evidence = np.array([_evidence(sample, zero, delta / count, settings) for sample in samples])
    return Findings(
        values=values,
        gains=gains,
        better=[bool(one) for one in surely_refuted(evidence, delta)],
        tops=[_top(baseline, one, zero, delta, settings) for one in contenders],
        differences=_differences(contenders, lows, values, delta, settings),
        how=HOW,
    )


def _values(anchor: Anchor, problem: Problem, estimator: Estimator) -> SequentialValues:
    """The values of an estimator, counted from one end."""
    anchored = estimator.anchored(anchor)
    check_exact(problem, anchored, BET)
    if isinstance(anchored, SequentialEstimator):
        return learned_values(problem, anchored)
    assert isinstance(anchored, IndependentEstimator)
    return independent_values(problem, anchored)


def _low(one: Contender) -> Sample:
    estimator, values = one.first(partial(_values, "low", one.problem))
    return Sample(estimator.name, values)


def _high(one: Contender) -> Sample:
    estimator, values = one.first(partial(_values, "high", one.problem))
    return Sample(estimator.name, values)


def _gain(baseline: Baseline, one: Contender) -> Sample:
    """Values of the gain over the baseline, from below; over a number they are those of the value."""
    if baseline.number is not None:
        return _low(one)
    if baseline.policy is not None:
        return Sample(_low(one).name, DifferenceValues(_low(one).values, _high(baseline.policy).values))
    estimator, values = one.first(lambda each: _values("low", one.problem, gain(each)))
    return Sample(estimator.name, values)


def _lower(values: SequentialValues, delta: float, settings: Settings) -> float:
    """The lower bound on what the values stand for; the upper one where they are counted from the ceiling."""
    return float(values.origin + values.sign * max(0.0, BET.lower(values, delta=delta, seed=settings.seed)))


def _bound(
    sample: Sample, about: About, zero: float, least: float, delta: float, settings: Settings, data: TrajectoryDataset
) -> Bound:
    """A lower bound on the value, or on what it exceeds ``zero`` by; what is declared is known as it is."""
    values = sample.values
    return Bound(
        value=max(_lower(values, delta, settings) - zero, least),
        side="lower",
        confidence=settings.confidence,
        estimate=values.estimate - zero,
        estimator=sample.name,
        method=f"betting at {1 - delta:.4g}",
        guarantee="exact",
        standard_error=standard_error(values.values - values.values.mean()),
        n_trajectories=data.n_trajectories,
        n_clusters=n_clusters(data),
        seed=settings.seed,
        about=about,
    )


def _evidence(sample: Sample, zero: float, delta: float, settings: Settings) -> float:
    """Minus the logarithm of a p-value of a value, or a gain, of at most ``zero``."""
    mean = zero - sample.values.origin
    if mean < 0:  # what is declared leaves no doubt
        return math.inf
    # Against a mean of 0 no stake has a limit; against one a little above it the evidence is less, and still evidence.
    least = SMALL * max(float(np.abs(sample.values.values).max()), SMALL)
    return BET.log_evidence(sample.values, max(mean, least), delta=delta, seed=settings.seed)


def _top(baseline: Baseline, one: Contender, zero: float, delta: float, settings: Settings) -> float:
    """An upper bound on the gain, at the level on its own; infinite where none is possible."""
    try:
        if baseline.policy is not None:
            return -_lower(DifferenceValues(_low(baseline.policy).values, _high(one).values), delta, settings)
        if baseline.number is not None:
            return _lower(_high(one).values, delta, settings) - zero
        _, values = one.first(lambda each: _values("high", one.problem, gain(each)))
        return _lower(values, delta, settings)
    except TightropeError:
        return math.inf


def _differences(
    contenders: Sequence[Contender], lows: Sequence[Sample], values: Sequence[Bound], delta: float, settings: Settings
) -> list[Pair]:
    """Of the candidate with the highest lower bound against each other one.

    Any of the k(k − 1) ordered pairs might have been looked at, so each has that share of the error rate.
    """
    count = len(contenders)
    first = max(range(count), key=lambda place: values[place].value)
    pairs = []
    for second in range(count):
        if second != first:
            try:
                both = DifferenceValues(lows[first].values, _high(contenders[second]).values)
            except TightropeError:  # the highest return is not declared
                continue
            lower = _lower(both, delta / (count * (count - 1)), settings)
            estimate = lows[first].values.estimate - lows[second].values.estimate
            pairs.append(Pair(first, second, estimate, lower))
    return pairs
