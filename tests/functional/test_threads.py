"""Any number of threads gives the same bits, reports its progress, and passes on what goes wrong."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tightrope
from tightrope.base.problem import Problem
from tightrope.base.threads import cores, side_by_side
from tightrope.bounds.rehearsal.bound import Rehearsed
from tightrope.domains import small
from tightrope.estimators import MB, PDWIS, WDR
from tightrope.estimators.gain import gain
from tightrope.functional.engines import replicate
from tightrope.functional.engines.threads import Meter
from tightrope.functional.resampling import scheme

WALKER = small("walker")
PROBLEM = Problem(WALKER.logs(1500, rng=np.random.default_rng(0)), WALKER.candidate)  # two blocks of weights
STATISTICS = [PDWIS()(PROBLEM), WDR()(PROBLEM), MB()(PROBLEM), gain(MB())(PROBLEM), gain(PDWIS())(PROBLEM)]


def replicates(jobs, resampling, **options):
    return replicate(
        STATISTICS, scheme(resampling), n_resamples=700, seed=3, standard_errors=True, n_jobs=jobs, **options
    )


@pytest.mark.parametrize("resampling", ["multinomial", "poisson", "bayesian"])
def test_the_number_of_threads_changes_no_bit(resampling):
    alone = replicates(1, resampling)
    for jobs in (2, 3, 7, None):
        for one, other in zip(alone, replicates(jobs, resampling), strict=True):
            np.testing.assert_array_equal(other.values, one.values)
            assert (other.standard_errors is None) == (one.standard_errors is None)
            if one.standard_errors is not None:
                np.testing.assert_array_equal(other.standard_errors, one.standard_errors)


def test_an_evaluation_is_the_same_text_on_any_number_of_threads():
    data = WALKER.logs(120, rng=np.random.default_rng(1))
    texts = {
        tightrope.evaluate(data, WALKER.candidate, n_resamples=600, side="both", n_jobs=jobs).to_json()
        for jobs in (1, 2, 5, None)
    }
    assert len(texts) == 1


def test_the_work_is_shared():
    """More than one thread draws weights, and a single one where one is asked for."""
    seen = set()

    class Watched:
        def __getattr__(self, name):
            return getattr(scheme("poisson"), name)

        def fill(self, *values, **keywords):
            seen.add(threading.get_ident())
            scheme("poisson").fill(*values, **keywords)

    for jobs, expected in ((1, {threading.get_ident()}), (4, None)):
        seen.clear()
        replicate(STATISTICS[:1], Watched(), n_resamples=1100, seed=0, n_jobs=jobs)
        assert seen == expected or (expected is None and len(seen) > 1)


def test_a_users_own_statistic_is_called_by_one_thread():
    """What we do not know may not bear several."""
    callers = set()

    class Mean:
        n_trajectories = 30

        def __call__(self, weights):
            callers.add(threading.get_ident())
            return np.asarray(weights).mean(axis=-1)

    replicate([Mean()], scheme("poisson"), n_resamples=900, seed=0, n_jobs=4)
    assert callers == {threading.get_ident()}


def test_progress_grows_to_the_whole():
    shares = []
    replicates(4, "multinomial", progress=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == pytest.approx(1.0)
    assert len(shares) > 4


def test_the_first_error_is_raised_and_the_rest_is_not_begun():
    begun = []

    def call(item):
        begun.append(item)
        if item == 1:
            raise tightrope.BoundError("no more")
        return item

    with pytest.raises(tightrope.BoundError, match="no more"):
        list(side_by_side(call, range(10_000), 2))
    assert len(begun) < 10_000


def test_threads_keep_to_the_error_settings_of_who_starts_them():
    with np.errstate(invalid="ignore"):
        found = list(side_by_side(lambda x: np.float64(0.0) / np.zeros(3), [1, 2, 3, 4], 3))
    assert np.isnan(found).all()


def test_a_meter_without_a_listener_counts_nothing():
    Meter(2.0, None).add(1.0)
    heard = []
    meter = Meter(4.0, heard.append)
    meter.add(1.0)
    meter.add(5.0)
    assert heard == [0.25, 1.0]


def test_there_is_at_least_one_core():
    assert cores() >= 1


@pytest.mark.parametrize("jobs", [0, -1, 1.5, "all"])
def test_a_bad_number_of_threads_is_refused(jobs):
    with pytest.raises(tightrope.BoundError, match="n_jobs must be a whole number of threads, at least 1"):
        tightrope.lower_bound(WALKER.logs(20, rng=np.random.default_rng(0)), WALKER.candidate, n_jobs=jobs)


def test_rehearsals_are_the_same_on_any_number_of_threads():
    data = WALKER.logs(60, rng=np.random.default_rng(2))
    values = {
        tightrope.lower_bound(data, WALKER.candidate, estimator="wdr", method=Rehearsed(39, jobs)).value
        for jobs in (1, 2, 4, None)
    }
    assert len(values) == 1
