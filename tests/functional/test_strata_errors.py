"""Standard errors of draws within strata: by hand, against many resamples within strata, and of every replicate."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

import tightrope
from tightrope.base.clusters import Clusters
from tightrope.base.problem import Problem
from tightrope.base.warnings import codes_of
from tightrope.domains import small
from tightrope.estimators import estimator
from tightrope.estimators.clustered import by_cluster
from tightrope.evaluation.model_check import check_model
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.summary import summarize
from tightrope.functional.engines import replicate
from tightrope.functional.standard_errors import row_errors
from tightrope.functional.statistic import RatioSum, SumStatistic
from tightrope.functional.strata import Stratified, levelled

WALKER = small("walker")


def drawn_within(sizes, rng):
    """One resample of each stratum by itself: how often each member was drawn."""
    return np.concatenate([np.bincount(rng.integers(0, size, size), minlength=size) for size in sizes])


def stratified_error(values, sizes):
    """√ Σ_h n_h s_h² / n², stratum by stratum."""
    edges, total = np.cumsum([0, *sizes]), 0.0
    for low, high in pairwise(edges):
        own = values[low:high]
        total += (high - low) * sum((own - own.mean()) ** 2) / (high - low - 1)
    return math.sqrt(total) / len(values)


def sites(sizes=(40, 40), apart=3.0, seed=0, **columns):
    """One-step logs of sites that differ by far more than their episodes do."""
    rng, site = np.random.default_rng(seed), np.repeat(np.arange(len(sizes)), sizes)
    rows = {
        "reward": apart * site + rng.normal(size=len(site)), "pscore": np.full(len(site), 0.5),
        "eval_prob": rng.choice([0.4, 0.6], size=len(site)), "site": site,
    }  # fmt: skip
    return tightrope.read(rows | columns, strata="site", return_range=(-20.0, 20.0))


def test_levelled_by_hand():
    """1, 3 and 10, 10, 13: s² is 2 and 3, so a mean with 2 and 3 of them varies by (2·2 + 3·3) / 25."""
    values = levelled(np.array([1.0, 3.0, 10.0, 10.0, 13.0]), (2, 3))
    assert values.var(ddof=1) / 5 == pytest.approx(13 / 25)
    assert values.mean() == pytest.approx(37 / 5)
    assert values[:2].mean() == pytest.approx(values[2:].mean())
    same = np.arange(4.0)
    assert levelled(same, (4,)) is same


@pytest.mark.parametrize("name", ["is", "pdwis", "wis"])
def test_the_standard_error_is_that_of_resamples_within_strata(name):
    """Drawing 40 of 40 shows 39/40 of how much they differ."""
    data, rng = replace(sites(), return_range=None), np.random.default_rng(1)
    value = tightrope.statistic(data, estimator=name)
    spread = np.std([float(value(drawn_within((40, 40), rng))) for _ in range(4000)], ddof=1) * math.sqrt(40 / 39)
    bound = tightrope.lower_bound(data, estimator=name, method="percentile", n_resamples=100)
    assert bound.standard_error == pytest.approx(spread, rel=0.06)
    blind = tightrope.lower_bound(replace(data, strata=None), estimator=name, method="percentile", n_resamples=100)
    assert blind.standard_error > 1.3 * spread


def test_the_standard_error_of_clusters_within_strata():
    """Patients of two sites, with one to three episodes each, resampled whole."""
    rng = np.random.default_rng(2)
    times = rng.integers(1, 4, size=60)
    whose = np.repeat(np.arange(60), times)
    data = WALKER.logs(len(whose), rng=rng)
    rewards = data.rewards + 4.0 * np.repeat(whose >= 30, data.lengths)
    data = replace(
        data, rewards=rewards, reward_range=None, return_range=(-50.0, 90.0), clusters=whose, strata=whose // 30
    )
    value = tightrope.statistic(data, WALKER.candidate, estimator="mb")
    spread = np.std([float(value(drawn_within((30, 30), rng))) for _ in range(2000)], ddof=1) * math.sqrt(30 / 29)
    bound = tightrope.lower_bound(data, WALKER.candidate, estimator="mb", method="percentile", n_resamples=100)
    assert bound.standard_error == pytest.approx(spread, rel=0.1)


def test_every_replicate_has_the_standard_error_of_its_own_draws():
    """Of a mean and of a ratio, in strata that end within blocks of episodes, from the drawn values themselves."""
    sizes, rng = (1500, 40, 700), np.random.default_rng(3)
    n, combine, scheme = sum(sizes), RatioSum(np.ones(1)), Stratified(sizes)
    above = rng.normal(size=n) + np.repeat([0.0, 5.0, -5.0], sizes)
    for below in (np.ones(n), rng.exponential(size=n)):
        columns = np.column_stack([below, above])
        statistic = SumStatistic(n, combine.fields, lambda start, stop, own=columns: own[start:stop], combine)
        (result,) = replicate([statistic], scheme, n_resamples=30, seed=4, standard_errors=True)
        weights = np.concatenate([_rows(scheme, n, block) for block in range(3)], axis=1)
        for row, error in zip(weights.astype(int), result.standard_errors, strict=True):
            taken = np.repeat(np.arange(n), row)  # members of a stratum still stand together
            ratio = above[taken].sum() / below[taken].sum()
            effects = (above - ratio * below)[taken] / below[taken].mean()
            assert error == pytest.approx(stratified_error(effects, sizes), rel=1e-6)
        ratio = above.sum() / below.sum()
        assert result.standard_error == pytest.approx(stratified_error((above - ratio * below) / below.mean(), sizes))


def _rows(scheme, n, block):
    out = np.empty((30, min(1024, n - 1024 * block)))
    scheme.fill(out, np.zeros((30, 1), dtype=np.int64), seed=4, block=block, replicate=0)
    return out


def test_replicates_of_a_model_have_it_too():
    """MB, whose derivatives are differences of its values here."""
    data = replace(WALKER.logs(30, rng=np.random.default_rng(5)), strata=np.repeat([0, 1], [12, 18]))
    value = by_cluster(estimator("mb")(Problem(data, WALKER.candidate)), Clusters.of(data))
    (result,) = replicate([value], Stratified((12, 18)), n_resamples=3, seed=6, standard_errors=True)
    rows = np.empty((3, 30))
    Stratified((12, 18)).fill(rows, np.zeros((3, 1), dtype=np.int64), seed=6, block=0, replicate=0)
    for row, error in zip([np.ones(30), *rows], [result.standard_error, *result.standard_errors], strict=True):
        step = 1e-6 * np.eye(30)
        slopes = np.array([float(value(row + one)) - float(value(row)) for one in step]) / 1e-6
        effects = 30 * np.repeat(slopes, row.astype(int))
        assert error == pytest.approx(stratified_error(effects, (12, 18)), rel=1e-3)


def test_student_takes_out_what_differs_between_strata():
    from scipy.stats import t

    data = sites((30, 50))
    bound = tightrope.lower_bound(data, estimator="is", method="t")
    values = data.rewards * np.exp(data.eval_log_probs - data.behavior_log_probs)
    # The bound counts from the floor -20, which adds 20 (1 - ratio) to every value.
    values = values + 20.0 * (np.exp(data.eval_log_probs - data.behavior_log_probs) - 1.0)
    error = stratified_error(values, (30, 50))
    assert bound.value == pytest.approx(values.mean() - t.ppf(0.95, 79) * error, rel=1e-9)


def test_what_differs_between_strata_is_no_skew():
    """Twelve of 300 earn 40 less, and always do: no chance, and no warning. Without strata they may be missed."""
    data = sites((288, 12), apart=-15.0, eval_prob=np.full(300, 0.5))
    settings = {"estimator": "is", "method": "percentile", "n_resamples": 100}
    assert "skew" not in codes_of(tightrope.lower_bound(data, **settings).warnings)
    assert "skew" in codes_of(tightrope.lower_bound(replace(data, strata=None), **settings).warnings)


def test_the_logs_own_mean_and_the_mean_ratio():
    ratios = np.repeat([0.4, 0.6], [30, 50]) + np.random.default_rng(7).normal(scale=0.01, size=80)
    data = sites((30, 50), eval_prob=ratios)
    assert summarize(data).return_error == pytest.approx(stratified_error(data.rewards, (30, 50)))
    assert overlap(Problem(data)).mean_ratio_error == pytest.approx(stratified_error(ratios / 0.5, (30, 50)))


def test_the_correction_of_a_model_is_as_sure_as_its_clusters_are():
    """Three copies of each episode, in its cluster: as sure as the episodes alone; within strata, as those are."""
    few = WALKER.logs(60, rng=np.random.default_rng(8))
    whose = np.repeat(np.arange(60), 3)
    many = replace(few.take(whose), episode_ids=np.arange(180), clusters=whose)
    one, same, blind = (
        check_model(Problem(data, WALKER.candidate), "tabular", "low", effective=50.0, folds=60)
        for data in (few, many, replace(many, clusters=None, episode_ids=whose))
    )
    assert same.correction == pytest.approx(one.correction)
    assert same.correction_error == pytest.approx(one.correction_error)
    assert blind.correction_error < 0.7 * one.correction_error


def test_a_comparison_has_standard_errors_within_strata():
    data = WALKER.logs(80, rng=np.random.default_rng(11))
    data = replace(
        data, rewards=data.rewards - np.repeat(np.arange(80) >= 30, data.lengths), reward_range=(-40.0, 40.0)
    )
    data = replace(data, strata=np.repeat([0, 1], [30, 50]))
    (standing,) = tightrope.compare(data, {"candidate": WALKER.candidate}, baseline=0.0, n_resamples=200)
    value = tightrope.statistic(data, WALKER.candidate, estimator=estimator(standing.value.estimator).anchored("low"))
    error = stratified_error(value.influence(), (30, 50))
    assert standing.value.standard_error == pytest.approx(error)
    assert error < 0.97 * math.sqrt(np.square(value.influence()).sum() / (80 * 79))


def test_a_plan_knows_the_spread_within_strata():
    """How much the estimated spread varies over resamples within strata, beside that of the logs: by loops."""
    data, rng = sites((30, 50), eval_prob=np.full(80, 0.5)), np.random.default_rng(9)
    plan = tightrope.plan(data, better_than=1.0, effect=0.5, n_resamples=200)
    spreads = []
    for _ in range(3000):
        taken = np.repeat(data.rewards, drawn_within((30, 50), rng))
        spreads.append((stratified_error(taken, (30, 50)) / stratified_error(data.rewards, (30, 50))) ** 2)
    least, most = np.quantile(spreads, [0.1, 0.9])
    assert plan.least / plan.episodes == pytest.approx(least, rel=0.05)
    assert plan.most / plan.episodes == pytest.approx(most, rel=0.05)


def test_row_errors_of_one_stratum_are_those_of_a_mean():
    values, rng = np.arange(5.0), np.random.default_rng(10)
    rows = rng.multinomial(5, np.full(5, 0.2), size=4)
    expected = [np.repeat(values, row).std(ddof=1) / math.sqrt(5) for row in rows]
    np.testing.assert_allclose(row_errors(rows.astype(float), values / 5, (5,)), expected)
