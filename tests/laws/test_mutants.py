"""Mistakes found in public software, each kept as a small mutant that at least one law must reject.

Every test runs the same law on the real thing first: a law that rejects everything would prove nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pytest

from tests.laws import laws
from tests.laws.laws import SAMPLING as ESTIMATORS
from tests.laws.laws import logs
from tests.laws.test_bounds import law_approaches_mean, law_below_equal_values, law_ordered_with_negative_rewards
from tests.oracle import mdps, random_episodes
from tightrope.bounds import METHODS, ExactBound
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import Multinomial
from tightrope.functional.statistic import RatioSum, SumStatistic

EARLY, TIMED, DISCOUNTED = mdps()
DATA = logs(random_episodes(14, 6, seed=1, zeros=0.1), horizon=6, discount=0.9, reward_range=(-5.0, 6.0))
REPEATS = [1, 0, 2, 0, 5, 1, 0, 1, 3, 0, 0, 1, 0, 2]


# -- estimators: a mutant takes a Problem and gives a statistic, as the real ones do -------------------------------


def with_columns(statistic, change):
    """The statistic with its (n, columns) matrix changed."""
    return replace(statistic, make_columns=lambda start, stop: change(start, statistic.make_columns(start, stop)))


def finished_dropped(problem):
    """PDWIS whose finished episodes leave the normaliser."""
    real, data = ESTIMATORS["pdwis"]()(problem), problem.dataset

    def drop(start, columns):
        alive = np.arange(data.horizon) < data.lengths[start : start + len(columns), None]
        return columns * np.tile(alive, 2)

    return with_columns(real, drop)


def normalized_twice(name):
    """Weights that sum to one, averaged over n once more."""

    def make(problem):
        real = ESTIMATORS[name]()(problem)
        return replace(real, combine=RatioSum(real.combine.coefficients / real.n_trajectories))

    return make


def no_discount(name):
    """A missing γ^t: the estimator of the same logs with a discount of one."""
    return lambda problem: ESTIMATORS[name]()(replace(problem, dataset=replace(problem.dataset, discount=1.0)))


def frozen_normalizer(name):
    """Scores divided by the full data's normaliser once, then averaged under each row of weights."""

    def make(problem):
        real = ESTIMATORS[name]()(problem)
        below, _ = np.split(sum(c.sum(axis=0) for *_, c in real.chunks()), 2)

        def columns(start, stop):
            _, numerators = np.split(real.make_columns(start, stop), 2, axis=1)
            score = (numerators / below) @ real.combine.coefficients * real.n_trajectories
            return np.stack([np.ones(stop - start), score], axis=1)

        combine = RatioSum(np.ones(1))
        return SumStatistic(real.n_trajectories, combine.fields, columns, combine)

    return make


def ratio_one_step_late(problem):
    """PDIS weighting r_t by ρ_{t-1}."""
    real, data, ratios = ESTIMATORS["pdis"]()(problem), problem.dataset, problem.ratios

    def late(start, columns):
        stop = start + len(columns)
        ratio = np.exp(ratios.log(start, stop))
        ratio = np.hstack([np.ones((len(columns), 1)), ratio[:, :-1]])
        rewards = data.pad(data.rewards[data.steps(start, stop)], start, stop)
        columns[:, 1] = (ratio * rewards) @ data.discounts
        return columns

    return with_columns(real, late)


def enumeration(mdp):
    return lambda make: laws.law_enumeration(make, mdp)


LAWS = {
    "ones": lambda make: laws.law_ones(make, DATA),
    "integer weights": lambda make: laws.law_integer_weights(make, DATA, REPEATS),
    "duplication": lambda make: laws.law_duplication(make, DATA),
    "early end enumerated": enumeration(EARLY),
    "time enumerated": enumeration(TIMED),
    "discount enumerated": enumeration(DISCOUNTED),
    "on policy": lambda make: laws.law_on_policy(make, DATA),
    "padding": lambda make: laws.law_padding(make, DATA),
    "shift": lambda make: laws.law_shift(make, DATA),
}

MUTANTS = [
    (finished_dropped, "pdwis", ["early end enumerated", "time enumerated", "on policy", "padding", "shift"]),
    *(
        (normalized_twice(name), name, ["integer weights", "duplication", "early end enumerated", "on policy", "shift"])
        for name in ("wis", "pdwis")
    ),
    *((no_discount(name), name, ["discount enumerated", "on policy"]) for name in ESTIMATORS),
    *((frozen_normalizer(name), name, ["integer weights"]) for name in ("wis", "pdwis")),
    (ratio_one_step_late, "pdis", ["early end enumerated", "time enumerated", "discount enumerated"]),
]


@pytest.mark.parametrize(
    ("mutant", "name", "law"),
    [(mutant, name, law) for mutant, name, caught in MUTANTS for law in caught],
    ids=lambda value: getattr(value, "__qualname__", str(value)).split(".")[0].replace(" ", "-"),
)
def test_estimator_mutant_is_caught(mutant, name, law):
    LAWS[law](ESTIMATORS[name]())
    with pytest.raises(AssertionError):
        LAWS[law](mutant)


# -- bounds --------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TimesN(ExactBound):
    """Hoeffding multiplied by n instead of divided."""

    name = "hoeffding"

    def lower(self, sample, *, delta, seed):
        n = len(sample.values)
        return float(sample.values.mean() - sample.ceiling * np.sqrt(np.log(1 / delta) / 2 * n))


@dataclass(frozen=True)
class SampleRange(ExactBound):
    """The range of an exact bound taken from the sample, by ``top``."""

    name: str
    top: object

    def lower(self, sample, *, delta, seed):
        return METHODS[self.name].lower(replace(sample, ceiling=self.top(sample)), delta=delta, seed=seed)


def sample_spread(sample):
    return float(np.ptp(sample.values))


def signed_maximum(sample):
    """The largest value itself: with negative rewards it is negative, and the bound lands above the mean."""
    return float((sample.origin + sample.sign * sample.values).max())


@pytest.mark.parametrize(
    ("mutant", "law"),
    [
        (TimesN(), law_approaches_mean),
        (SampleRange("hoeffding", sample_spread), law_below_equal_values),
        (SampleRange("empirical-bernstein", sample_spread), law_below_equal_values),
        (SampleRange("hoeffding", signed_maximum), law_ordered_with_negative_rewards),
        (SampleRange("empirical-bernstein", signed_maximum), law_ordered_with_negative_rewards),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_bound_mutant_is_caught(mutant, law):
    law(METHODS[mutant.name])
    with pytest.raises(AssertionError):
        law(mutant)


# -- the size of a resample ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class OtherSize(Multinomial):
    """m draws whatever n is, taken for n: the replicates are not scaled back."""

    def scale(self, n):
        return 1.0


def bootstrap(scheme):
    def run(values):
        def columns(start, stop):
            return np.stack([np.ones(stop - start), values[start:stop]], axis=1)

        combine = RatioSum(np.ones(1))
        mean = SumStatistic(len(values), combine.fields, columns, combine)
        (result,) = replicate([mean], scheme, n_resamples=4000, seed=2)
        return result.values

    return run


@pytest.mark.parametrize("size", [120 // 4, 10_000])
def test_other_resample_size_is_caught(size):
    laws.law_spread(bootstrap(Multinomial()))
    laws.law_spread(bootstrap(Multinomial(size=size)))  # m out of n, scaled by √(m/n), is right
    with pytest.raises(AssertionError):
        laws.law_spread(bootstrap(OtherSize(size=size)))
