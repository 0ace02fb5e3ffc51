"""Clusters: an estimator is a function of their weights, copies within one add nothing, and strata keep their size."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import tightrope
from tightrope import BoundError, DataError, TightropeError
from tightrope.base.clusters import Clusters, n_independent
from tightrope.base.problem import Problem
from tightrope.domains import small
from tightrope.estimators import ESTIMATORS, TDR, estimator
from tightrope.estimators.clustered import DrawnValues, by_cluster
from tightrope.estimators.gain import gain
from tightrope.functional.strata import Stratified, within_strata

WALKER = small("walker")
LOGS = WALKER.logs(90, rng=np.random.default_rng(0))
WHOSE = np.random.default_rng(1).integers(0, 25, size=90)
CLUSTERED = replace(LOGS, clusters=WHOSE)


def bound(data, **settings):
    return tightrope.lower_bound(data, WALKER.candidate, n_resamples=300, **settings)


@pytest.mark.parametrize("make", [estimator, lambda name: gain(estimator(name))], ids=["value", "gain"])
@pytest.mark.parametrize("name", ESTIMATORS)
def test_cluster_weights_are_shared_by_the_episodes(name, make):
    problem, clusters = Problem(CLUSTERED, WALKER.candidate), Clusters.of(CLUSTERED)
    plain = make(name)(problem)
    whole = by_cluster(plain, clusters)
    rng = np.random.default_rng(3)
    for weights in (np.ones(clusters.n), rng.integers(0, 4, clusters.n), rng.exponential(size=clusters.n)):
        episodes = np.array([weights[np.unique(WHOSE).tolist().index(c)] / (c == WHOSE).sum() for c in WHOSE])
        assert whole(weights) == pytest.approx(float(plain(episodes)), rel=1e-9)
    assert whole.estimate == pytest.approx(float(whole(np.ones(clusters.n))))
    assert whole.n_trajectories == len(np.unique(WHOSE)) == n_independent(CLUSTERED)
    rows = 1.0 - np.eye(clusters.n)
    np.testing.assert_allclose(whole.leave_one_out(), whole(rows), rtol=1e-8)
    assert whole.influence().sum() == pytest.approx(0.0, abs=1e-6 * np.abs(whole.influence()).max())
    step = np.ones(clusters.n) + 1e-6 * (np.arange(clusters.n) == 2)
    slope = (whole(step) - whole.estimate) / 1e-6 * clusters.n
    assert whole.influence()[2] == pytest.approx(float(slope), rel=2e-2, abs=1e-3)


@pytest.mark.parametrize(
    ("name", "method"),
    [("is", "percentile"), ("wis", "bca"), ("pdwis", "studentized"), ("mb", "studentized"), ("wdr", "percentile"),
     ("tdr", "percentile"), ("tdr", "betting"), ("is", "betting"), ("is", "anderson"), ("is", "t")],
)  # fmt: skip
def test_copies_of_an_episode_in_its_cluster_add_nothing(name, method):
    """Each episode one to three times: the bound is that of the episodes alone."""
    times = np.random.default_rng(2).integers(1, 4, size=40)
    whose = np.repeat(np.arange(40), times)
    few = LOGS.take(np.arange(40))
    many = replace(few.take(whose), episode_ids=np.arange(len(whose)), clusters=whose)
    if name in ("mb", "wdr", "tdr"):  # a model counts steps: as often for all
        whose = np.repeat(np.arange(40), 2)
        many = replace(few.take(whose), episode_ids=np.arange(80), clusters=whose)
    one, other = (bound(data, estimator=name, method=method) for data in (few, many))
    assert other.value == pytest.approx(one.value, rel=1e-7)
    assert other.estimate == pytest.approx(one.estimate, rel=1e-9)
    assert other.standard_error == pytest.approx(one.standard_error, rel=1e-6)
    assert bound(replace(many, clusters=None), estimator=name, method=method).value > one.value + 1e-3


def test_a_cluster_counts_once_by_hand():
    """One cluster with returns 1, 1, 1 and one with 0: the mean is 1/2, not 3/4."""
    logs = tightrope.read(
        {"reward": [1.0, 1.0, 1.0, 0.0], "pscore": [0.5] * 4, "eval_prob": [0.5] * 4, "patient": ["a", "a", "a", "b"]},
        cluster="patient",
    )
    assert tightrope.estimate(logs, estimator="is") == 0.5
    assert tightrope.estimate(logs, estimator="wis") == 0.5
    assert tightrope.estimate(replace(logs, clusters=None), estimator="is") == 0.75
    value = tightrope.statistic(logs, estimator="is")
    assert value([1.0, 3.0]) == 0.25


def test_values_of_clusters_are_told_by_earlier_blocks_of_whole_clusters():
    problem, clusters = Problem(CLUSTERED, WALKER.candidate), Clusters.of(CLUSTERED)
    game = TDR("tabular").sequential_values(problem)
    whole = DrawnValues(game, np.arange(clusters.n), clusters)
    order, edges, tethers = (
        np.random.default_rng(4).permutation(clusters.n),
        [0, 5, 12, clusters.n],
        np.array([0.0, 3.0]),
    )
    table = whole.along(order, edges, tethers)
    names = np.unique(WHOSE)
    for start, stop in pairwise(edges):
        past = np.flatnonzero(np.isin(WHOSE, names[order[:start]]))
        for place in range(start, stop):
            own = np.flatnonzero(names[order[place]] == WHOSE)
            slow = game.learned([(past, own)], tethers).mean(axis=0)
            np.testing.assert_allclose(table[place], slow, rtol=1e-9)
    assert (table >= -tethers - 1e-12).all()
    assert whole.unit(order[:5]) == game.unit(np.flatnonzero(np.isin(WHOSE, names[order[:5]])))


def test_a_cluster_is_in_one_fold():
    from tightrope.base.clusters import fold_of

    folds = fold_of(CLUSTERED, 5)
    assert all(len(set(folds[c == WHOSE])) == 1 for c in np.unique(WHOSE))
    assert len(set(folds)) == 5


def test_strata_keep_their_numbers():
    sizes, n = (3, 1500, 40), 1543
    whole, parts = np.empty((6, n)), np.empty((6, n))
    scheme = Stratified(sizes)
    nothing = np.zeros((6, 2), dtype=np.int64)
    scheme.fill(whole, nothing, seed=5, block=0, replicate=0)
    for first in range(0, n, 1024):
        part = np.empty((6, min(1024, n - first)))
        scheme.fill(part, nothing, seed=5, block=first // 1024, replicate=0)
        parts[:, first : first + 1024] = part
    np.testing.assert_array_equal(whole, parts)
    edges = np.cumsum([0, *sizes])
    for low, high in pairwise(edges):
        assert (whole[:, low:high].sum(axis=1) == high - low).all()
    assert len({tuple(row) for row in whole[:, :3].tolist()}) > 1
    later = np.empty((2, n))
    scheme.fill(later, nothing, seed=5, block=0, replicate=4)
    np.testing.assert_array_equal(later, whole[4:])
    assert within_strata("as it is", None) == "as it is"


def test_strata_are_drawn_apart():
    scheme, both = Stratified((50, 50)), np.empty((3, 100))
    scheme.fill(both, scheme.shares(100, range(1), range(3), seed=5), seed=5, block=0, replicate=0)
    assert (both[:, :50] != both[:, 50:]).any(axis=1).all()


def test_resampling_within_strata_sees_no_difference_between_them():
    """Two strata of returns 0 and 1: within each nothing varies, so the bound is the mean."""
    rows = {
        "reward": [0.0] * 10 + [1.0] * 10,
        "pscore": [0.5] * 20,
        "eval_prob": [0.5] * 20,
        "site": ["a"] * 10 + ["b"] * 10,
    }
    plain, told = tightrope.read(rows), tightrope.read(rows, strata="site")
    settings = {"estimator": "is", "method": "percentile"}
    assert tightrope.lower_bound(plain, **settings).value < 0.4
    assert tightrope.lower_bound(told, **settings).value == 0.5


@pytest.mark.parametrize(
    ("changes", "settings", "words"),
    [
        ({"strata": WHOSE // 13}, {"estimator": "is", "method": "betting"}, "exact bound takes clusters"),
        ({"strata": WHOSE // 13}, {"estimator": "tdr", "method": "betting"}, "exact bound takes clusters"),
        ({}, {"estimator": "tdr", "method": "anderson"}, "tdr has no values of its own"),
        ({}, {"estimator": "wdr", "method": "rehearsed"}, "no form for clusters"),
        ({}, {"estimator": "mb", "method": "robust"}, "no form for clusters"),
        ({}, {"estimator": "mb", "method": "percentile", "resampling": "model"}, "no form for clusters"),
        ({"clusters": np.zeros(90, int)}, {"estimator": "is", "method": "percentile"}, "at least two of them"),
        ({"strata": WHOSE // 13}, {"estimator": "is", "method": "percentile", "resampling": "poisson"}, "multinomial"),
    ],
)
def test_what_cannot_be_clustered_is_refused(changes, settings, words):
    with pytest.raises(TightropeError, match=words):
        bound(replace(CLUSTERED, **changes), **settings)


def test_strata_that_cannot_be():
    with pytest.raises(DataError, match="a cluster must lie in one stratum"):
        replace(CLUSTERED, strata=np.arange(90) % 2)
    with pytest.raises(DataError, match="at least 10 clusters"):
        Clusters.of(replace(CLUSTERED, strata=(WHOSE[0] == WHOSE).astype(int)))


def test_evaluate_goes_by_clusters():
    copies = np.repeat(np.arange(60), 3)
    many = replace(LOGS.take(copies), episode_ids=np.arange(180), clusters=copies)
    whole = tightrope.evaluate(many, WALKER.candidate, n_resamples=300, baseline="behavior")
    alone = tightrope.evaluate(LOGS.take(np.arange(60)), WALKER.candidate, n_resamples=300, baseline="behavior")
    assert whole["tdr", "percentile", "lower"].value == pytest.approx(alone["tdr", "percentile", "lower"].value)
    assert whole.summary.return_error == pytest.approx(alone.summary.return_error)
    assert whole.believed[0].method == "percentile"  # the rehearsed part of the usual rule knows no clusters
    assert [gain.value for gain in whole.gains if gain.estimator == "tdr"] == pytest.approx(
        [gain.value for gain in alone.gains if gain.estimator == "tdr"]
    )
    with pytest.raises(BoundError, match="rehearsals must be 0"):
        tightrope.evaluate(many, WALKER.candidate, n_resamples=300, rehearsals=5, estimators="is", methods="percentile")


PAIRS = [("is", "betting"), ("is", "cut"), ("tdr", "betting")]


@pytest.mark.parametrize(
    ("estimator", "method", "cluster"),
    [("tdr", "anderson", None), *((*pair, cluster) for pair in PAIRS for cluster in (None, "patient"))],
)
def test_names_have_no_say_in_exact_bounds(estimator, method, cluster):
    """Episodes, and patients, whose names rise with what they earn: a fixed seed must not know which are best."""
    rng, n = np.random.default_rng(8), 60
    patient = np.repeat(np.arange(n // 2), 2)
    reward = (rng.random(n) < 0.4 + 0.4 * rng.random(n // 2)[patient]).astype(float)
    earned = np.bincount(patient, reward)
    columns = {
        "reward": reward,
        "t": np.zeros(n, dtype=int),
        "state": rng.integers(0, 2, n),
        "action": rng.integers(0, 2, n),
    }
    policy, behavior = (
        tightrope.TabularPolicy([[0.3, 0.7], [0.6, 0.4]]),
        tightrope.TabularPolicy([[0.5, 0.5], [0.5, 0.5]]),
    )
    bounds = []
    for names, whose in ((np.arange(n), np.arange(n // 2)), (_ranks(reward), _ranks(earned))):
        logs = tightrope.read(
            columns | {"episode": names, "patient": whose[patient]},
            behavior=behavior,
            reward_range=(0.0, 1.0),
            horizon=1,
            cluster=cluster,
        )
        bounds.append(tightrope.lower_bound(logs, policy, estimator=estimator, method=method, max_ratio=2.0).value)
    assert bounds[0] == pytest.approx(bounds[1], rel=1e-12)


def _ranks(values):
    result = np.empty(len(values), dtype=np.int64)
    result[np.argsort(values, kind="stable")] = np.arange(len(values))
    return result
