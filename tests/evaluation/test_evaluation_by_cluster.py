"""Evaluations of logs whose episodes come in clusters: what is counted, and what is said, goes by clusters."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope.base.clusters import Clusters, counted, extent, growth, unit
from tightrope.base.problem import Problem
from tightrope.base.records import Bound
from tightrope.base.warnings import coded
from tightrope.bounds.model_bias.error import Likelihoods, model_error
from tightrope.domains import small
from tightrope.evaluation.model_check import check_model
from tightrope.evaluation.needed import NORMAL, prospect
from tightrope.evaluation.overlap import overlap
from tightrope.evaluation.ratio_tail import pareto_k
from tightrope.evaluation.sentences import Recommendation, advice, no_answer
from tightrope.evaluation.summary import summarize
from tightrope.evaluation.verdict import more_logs, verdict
from tightrope.report.html import page
from tightrope.report.words import assumptions
from tightrope.studies.clustering import patients

CLINIC, WALKER = small("clinic"), small("walker")
PATIENTS = patients(CLINIC, 60, np.random.default_rng(7))  # 330 episodes
LOWER = Bound(0.4, "lower", 0.95, 0.6, "tdr", "percentile", "approximate", 0.1, n_trajectories=300, n_clusters=30)


def one_step(ratios, whose, rewards=None, **more):
    """Logs of one step, with these ratios, of these patients."""
    rows = {
        "reward": np.arange(float(len(ratios))) if rewards is None else rewards, "pscore": np.full(len(ratios), 0.1),
        "eval_prob": 0.1 * np.asarray(ratios), "patient": whose,
    }  # fmt: skip
    return tightrope.read(rows | more, cluster="patient")


def read_aloud(result):
    """The words of a report, without pictures and tags."""
    text = re.sub(r"<style.*?</style>|<svg.*?</svg>", "", page(result), flags=re.S)
    return html.unescape(re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", text)))


# -- numbers ---------------------------------------------------------------------------------------------------------


def test_effective_clusters_by_hand():
    """Patients a: 1 and 3, b: 2, 2 and 2, c: 0. Their means are 2, 2 and 0: worth (2 + 2)² / (4 + 4) = 2 of 3."""
    data = one_step([1.0, 3.0, 2.0, 2.0, 2.0, 0.0], ["a", "a", "b", "b", "b", "c"])
    measured = overlap(Problem(data))
    assert measured.effective_sample_size == pytest.approx((2.0,))
    assert measured.largest_share == pytest.approx((0.5,))
    assert measured.zero_share == pytest.approx(1 / 6)  # of the episodes
    assert measured.n_clusters == 3
    np.testing.assert_allclose(measured.tail, [(2.0, 1 / 3), (2.0, 2 / 3)])  # of the clusters
    blind = overlap(Problem(replace(data, clusters=None)))
    assert blind.effective_sample_size == pytest.approx((10.0**2 / 22.0,))
    assert blind.largest_share == pytest.approx((0.3,))
    assert blind.n_clusters is None


def test_effective_clusters_at_every_step_in_loops():
    whose = np.random.default_rng(1).integers(0, 20, size=70)
    data = replace(WALKER.logs(70, rng=np.random.default_rng(0)), clusters=whose)
    problem = Problem(data, WALKER.candidate)
    measured, ratios = overlap(problem), np.exp(problem.ratios.log(0, 70))
    for t in range(data.horizon):
        means = [np.mean([ratios[i, t] for i in range(70) if whose[i] == c]) for c in np.unique(whose)]
        assert measured.effective_sample_size[t] == pytest.approx(sum(means) ** 2 / sum(x**2 for x in means))
        assert measured.largest_share[t] == pytest.approx(max(means) / sum(means))
    assert measured.pareto_k == pareto_k(np.sort(Clusters.of(data).log_means(problem.ratios.log(0, 70)[:, -1])))


def test_copies_of_an_episode_in_its_cluster_carry_no_information():
    few = WALKER.logs(60, rng=np.random.default_rng(2))
    copies = np.repeat(np.arange(60), 3)
    many = replace(few.take(copies), episode_ids=np.arange(180), clusters=copies)
    one, same = (overlap(Problem(data, WALKER.candidate)) for data in (few, many))
    assert same.effective_sample_size == pytest.approx(one.effective_sample_size)
    assert same.largest_share == pytest.approx(one.largest_share)
    assert same.pareto_k == pytest.approx(one.pareto_k)
    np.testing.assert_allclose(same.tail, one.tail)


def test_few_effective_clusters_are_few_however_many_episodes_they_hold():
    """Six patients with 50 episodes each: 300 effective episodes are no more than six draws."""
    data = one_step(np.ones(300), np.repeat(np.arange(6), 50))
    (few,) = coded(overlap(Problem(data)).warnings, "low-overlap")
    assert few.text.startswith("6 logged clusters carry only as much information as 6.0 of the candidate's")
    assert few.numbers == pytest.approx({"clusters": 6.0, "worth": 6.0})
    heavy = one_step([9.0, 9.0, 0.1, 0.1], ["a", "a", "b", "c"])
    assert "a single cluster carries 98% of the weight" in str(overlap(Problem(heavy)).warnings)


def test_the_summary_counts_clusters_and_strata():
    site = replace(PATIENTS, strata=PATIENTS.clusters % 3)
    assert (summarize(site).n_clusters, summarize(site).n_strata) == (60, 3)
    assert (summarize(PATIENTS).n_strata, summarize(replace(PATIENTS, clusters=None)).n_clusters) == (None, None)


@pytest.mark.parametrize("method", ["percentile", "betting"])
def test_bounds_say_how_many_clusters_they_are_of(method):
    bound = tightrope.lower_bound(PATIENTS, CLINIC.candidate, estimator="is", method=method, n_resamples=100)
    assert (bound.n_trajectories, bound.n_clusters, bound.n_independent) == (330, 60, 60)
    assert Bound.from_json(bound.to_json()) == bound
    alone = tightrope.lower_bound(replace(PATIENTS, clusters=None), CLINIC.candidate, estimator="is", method=method)
    assert (alone.n_clusters, alone.n_independent) == (None, 330)


def test_pairs_that_one_cluster_holds_are_fragile():
    """State 1 was seen in two episodes, both of one patient: a third of all resamples lose both."""
    data = tightrope.TrajectoryDataset(
        offsets=np.array([0, 2, 4, 6, 8]), rewards=np.zeros(8), terminated=np.zeros(4, dtype=bool), horizon=2,
        states=np.array([1, 1, 0, 0, 1, 1, 0, 0]), actions=np.zeros(8, dtype=int), clusters=np.array([5, 6, 5, 7]),
    )  # fmt: skip
    check = check_model(Problem(data, np.ones((2, 1))), "tabular", "low", effective=0.0)
    assert check.fragile_mass == 0.5
    assert "pairs held by a single cluster" in str(check.warnings)
    blind = check_model(Problem(replace(data, clusters=None), np.ones((2, 1))), "tabular", "low", effective=0.0)
    assert blind.fragile_mass == 0.0


def test_the_likelihood_of_a_model_is_as_sure_as_its_clusters_are():
    """Three copies of each episode in its cluster, with their likelihoods: as sure as the episodes alone."""
    few, rng = WALKER.logs(40, rng=np.random.default_rng(3)), np.random.default_rng(4)
    copies = np.repeat(np.arange(40), 3)
    many = replace(few.take(copies), episode_ids=np.arange(120), clusters=copies)
    steps, starts = np.log(rng.random(few.n_steps)), np.log(rng.random(40))
    repeated = np.concatenate([steps[few.offsets[i] : few.offsets[i + 1]] for i in copies])
    one = model_error(Problem(few, WALKER.candidate).ratios, Likelihoods(steps, starts, True), self_normalised=True)
    same, blind = (
        model_error(
            Problem(data, WALKER.candidate).ratios, Likelihoods(repeated, starts[copies], True), self_normalised=True
        )
        for data in (many, replace(many, clusters=None))
    )
    np.testing.assert_allclose(same.steps, one.steps)
    np.testing.assert_allclose(same.standard_errors, one.standard_errors)
    assert blind.standard_error < 0.6 * one.standard_error


def test_the_clusters_that_matter_most():
    """By hand, with IS: the mean of ratio times reward of every patient, and the mean of the others without one."""
    ratios, whose = [1.0, 1.0, 2.0, 1.0, 1.0, 1.0], ["b", "a", "c", "a", "d", "d"]
    data = one_step(ratios, whose, rewards=[1.0, 2.0, 6.0, 4.0, 1.0, 1.0])
    result = tightrope.evaluate(data, estimators="is", methods="percentile", n_resamples=50)
    means = {"a": 3.0, "b": 1.0, "c": 12.0, "d": 1.0}  # of ratio times reward
    first = result.details.influential[0]
    assert (first.episode, first.episode_return) == ("c", 6.0)
    assert first.share == pytest.approx(2 / 5)
    assert first.influence == pytest.approx((12.0 - 17 / 4) / 4)
    assert first.without == pytest.approx((3 + 1 + 1) / 3)
    assert {one.episode for one in result.details.influential} == set(means)
    text = read_aloud(result)
    assert "Which clusters matter most" in text
    assert "Without cluster c the estimate of IS would be 1.6667 instead of 4.25" in text
    assert "Mean return" in text


# -- few -------------------------------------------------------------------------------------------------------------


def test_few_clusters_are_few_however_many_episodes_they_hold():
    """30 clusters of 300 episodes: the bound was widened beyond its level, which more of them end."""
    assert prospect(LOWER, 0.5).width == pytest.approx(NORMAL.inv_cdf(0.95) * 0.1)
    assert prospect(replace(LOWER, n_clusters=50), 0.5).width == pytest.approx(0.2)
    assert prospect(replace(LOWER, n_clusters=None), 0.5).width == pytest.approx(0.2)
    assert prospect(LOWER, 0.5).n == 300
    part = replace(LOWER, confidence=0.97)
    text = advice(Recommendation(LOWER, (part,)), None)
    assert "since with fewer than 50 clusters approximations err more often than they say" in text
    assert "without a tabular model" in advice(Recommendation(replace(LOWER, n_clusters=None), (part,)), None)


def test_more_clusters_would_settle_it():
    """By the rule of needed.py: n ((z s + z_0.8 s) / d)² episodes, in clusters of ten."""
    total = 300 * ((NORMAL.inv_cdf(0.95) + NORMAL.inv_cdf(0.8)) * 0.1 / 0.1) ** 2
    words = more_logs([LOWER], 0.5)
    assert words.startswith(
        f"About {float(f'{total / 10:.2g}'):,.0f} new clusters ({float(f'{total:.2g}'):,.0f} episodes) like these"
    )
    least = 300 * ((NORMAL.inv_cdf(0.95) + NORMAL.inv_cdf(0.8)) * 0.1 / (0.1 + NORMAL.inv_cdf(0.9) * 0.1)) ** 2
    assert f"(at least {float(f'{least / 10:.2g}'):,.0f}, and perhaps no number would do)" in words
    plain = more_logs([replace(LOWER, n_clusters=None)], 0.5)
    assert "new episodes like these" in plain
    assert "clusters" not in plain


# -- words -----------------------------------------------------------------------------------------------------------


def test_how_much_in_words():
    assert (counted(1200, None), counted(1200, 30)) == ("1,200 episodes", "30 clusters, 1,200 episodes")
    assert (unit(None), unit(3)) == ("episodes", "clusters")
    assert (growth(None), growth(3)) == ("the logs grow", "the number of clusters grows")
    assert extent(PATIENTS) == "60 clusters, 330 episodes"
    assert extent(replace(PATIENTS, clusters=None, strata=np.arange(330) % 2)) == "strata, 330 episodes"


def test_promises_are_made_of_clusters():
    exact = replace(LOWER, guarantee="exact", method="betting")
    said = verdict([LOWER], "", threshold=None)
    assert said.text == (
        "The lower bound is approximate: the error rate tends to 0.05 as the number of clusters grows, with no promise "
        "at 30 clusters, 300 episodes."
    )
    doubts = (
        "if something matters that happened in none of these 300 episodes of 30 clusters, if clusters depend on each "
        "other, if actions decide how many episodes a cluster has, or if future clusters come from another process"
    )
    assert doubts in said.change
    assert "at most 0.05 at any number of clusters, if" in verdict([exact], "", threshold=None).text
    assert "Exact, at any number of clusters: TDR with betting" in advice(Recommendation(LOWER, (LOWER,)), exact)
    assert "clusters" not in str(verdict([replace(LOWER, n_clusters=None)], "", threshold=None))


def test_logs_that_cannot_answer_count_clusters():
    measured = overlap(Problem(one_step(np.ones(300), np.repeat(np.arange(6), 50))))
    text = no_answer(Recommendation(None), measured, estimated=False)
    assert "they carry as much information as 6.0 clusters of the candidate" in text


@pytest.mark.parametrize("asked", [{}, {"estimators": ["tdr", "is"], "methods": ["percentile", "betting"]}])
def test_a_report_speaks_of_clusters(asked):
    """The sentences in which episodes would be wrong: what is independent, what is counted, what is promised."""
    result = tightrope.evaluate(PATIENTS, CLINIC.candidate, n_resamples=200, threshold=0.5, **asked)
    worth = result.overlap.effective_sample_size[-1]
    assert worth < 60
    text, table = read_aloud(result), " ".join([result.advice, *result.reasons])
    for words in (
        "60 clusters, 330 episodes, 330 steps",
        "mean of 60 clusters, 330 episodes",
        f"Logged clusters are worth {worth:.3g} of the candidate’s own, out of 60",
        "they are independent, while episodes of one may depend on each other; each counts once",
        "as the number of clusters grows",
        "at any number of clusters",
        f"60 logged clusters (330 episodes) carry as much information as {worth:.0f} clusters of the candidate",
        "A single cluster carries",
        "How many clusters have at least a given mean ratio",
    ):
        assert words in text, words
    assert ("pairs that only one cluster logged" in text) == (result.model_check is not None)
    assert "the candidate could have produced all of the episodes" in table
    for words in ("number of episodes", "330 logged episodes", "No episode stands out", "330 episodes carry"):
        assert words not in text, words
    assert repr(result).startswith(f"<Evaluation: {len(result)} bounds from 60 clusters, 330 episodes")


def test_the_terminal_and_figures_speak_of_clusters():
    from tightrope.report.answer import logs_line

    result = tightrope.evaluate(PATIENTS, CLINIC.candidate, estimators="is", methods="percentile", n_resamples=50)
    worth = result.overlap.effective_sample_size[-1]
    line = logs_line(result)
    assert line.startswith("60 clusters, 330 episodes, 330 steps")
    assert f"as much information as {worth:.1f} clusters of the candidate" in line
    pytest.importorskip("matplotlib")
    left, right = result.figure("overlap").axes
    assert (left.get_ylabel(), right.get_ylabel()) == ("effective clusters", "share of the heaviest cluster")
    assert left.get_ylim()[1] == pytest.approx(66.0)


def test_strata_are_assumed_to_be_fixed():
    site = replace(PATIENTS, strata=PATIENTS.clusters % 3)
    told = dict(assumptions(tightrope.evaluate(site, CLINIC.candidate, estimators="is", methods="percentile")))
    assert told["Clusters"].startswith(
        "they are independent draws, a fixed number from each of 3 strata, while episodes"
    )
    alone = replace(site, clusters=None)
    told = dict(assumptions(tightrope.evaluate(alone, CLINIC.candidate, estimators="is", methods="percentile")))
    assert told["Episodes"].startswith("they are independent draws, a fixed number from each of 3 strata, all come")


def test_warnings_of_influence_speak_of_clusters():
    still = one_step(np.ones(40), np.repeat(np.arange(20), 2), rewards=np.ones(40))
    bound = tightrope.lower_bound(still, estimator="wis", method="percentile", n_resamples=50)
    assert "all clusters have the same influence" in str(bound.warnings)
    rewards = np.where(np.arange(200) < 4, -100.0, 0.0) + np.arange(200) / 1000
    skewed = one_step(np.ones(200), np.repeat(np.arange(100), 2), rewards=rewards)
    (skew,) = coded(
        tightrope.lower_bound(skewed, estimator="wis", method="percentile", n_resamples=50).warnings, "skew"
    )
    assert skew.text.startswith("a few clusters pull the estimate towards low values")
    assert skew.numbers["n"] == 100


def test_a_comparison_says_how_many_clusters_would_settle_it():
    for strict in (False, True):
        result = tightrope.compare(
            PATIENTS, {"same": CLINIC.behavior, "new": CLINIC.candidate}, strict=strict, n_resamples=200
        )
        assert {one.value.n_clusters for one in result} == {60}
        assert {one.gain.n_clusters for one in result} == {60}
