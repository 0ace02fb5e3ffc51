"""Decisions on logs whose episodes come in clusters: a cluster counts once, is drawn whole, and lies in one part."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import tightrope
from tightrope import BoundError, DataError, Monitor, TabularPolicy
from tightrope.base.clusters import Clusters, extent
from tightrope.base.problem import Problem
from tightrope.decisions import improve as module
from tightrope.decisions.approximate import share
from tightrope.decisions.family import band
from tightrope.decisions.improvement import proposals
from tightrope.decisions.improvement.tables import Coded
from tightrope.decisions.tails.outcomes import Outcomes
from tightrope.domains import small
from tightrope.estimators import TDR
from tightrope.functional.resampling import draw_weights

WALKER, BONUS = small("walker"), small("bonus")
FEW = WALKER.logs(60, rng=np.random.default_rng(0))
COPIES = np.repeat(np.arange(60), 3)
MANY = replace(FEW.take(COPIES), episode_ids=np.arange(180), clusters=COPIES)  # each patient the same three times
BLIND = replace(MANY, clusters=None)
OTHER = TabularPolicy(np.tile([0.4, 0.6], (6, 1)))
POLICIES = {"new": WALKER.candidate, "other": OTHER, "today": WALKER.behavior}
WHOSE = np.random.default_rng(1).integers(0, 70, size=200)
BONUSES = replace(BONUS.logs(200, rng=np.random.default_rng(3)), clusters=WHOSE)
SITES = {"clusters": None, "strata": np.arange(200) % 2}


def means(values, whose=WHOSE):
    """Slowly: the mean of each cluster."""
    return np.array([np.mean([v for v, c in zip(values, whose, strict=True) if c == one]) for one in np.unique(whose)])


# -- compare ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True], ids=["resampled", "exact"])
@pytest.mark.parametrize("baseline", ["behavior", -11.0, OTHER], ids=["behavior", "number", "policy"])
def test_copies_of_an_episode_in_its_cluster_add_nothing_to_a_comparison(strict, baseline):
    one, same, blind = (
        tightrope.compare(data, POLICIES, baseline=baseline, strict=strict) for data in (FEW, MANY, BLIND)
    )
    for place, standing in enumerate(one):
        assert same.standings[place].value.value == pytest.approx(standing.value.value, rel=1e-6)
        assert same.standings[place].gain.value == pytest.approx(standing.gain.value, rel=1e-6)
        assert same.standings[place].gain.standard_error == pytest.approx(standing.gain.standard_error, rel=1e-6)
        assert same.standings[place].better == standing.better
        assert blind.standings[place].value.value > standing.value.value + 0.1
    assert [pair.lower for pair in same.differences] == pytest.approx([pair.lower for pair in one.differences])
    assert same.may_be_best == one.may_be_best
    assert (same.n_trajectories, same.n_clusters, one.n_clusters) == (180, 60, None)
    assert all(standing.gain.n_trajectories == 180 for standing in same)


def test_bounds_of_a_comparison_are_those_of_clusters_drawn_whole():
    """Slowly: draw clusters, give each of their episodes an equal part, and take the band of the weighted means."""
    policies = {"new": BONUS.candidate, "even": TabularPolicy(np.full((3, 2), 0.5))}
    result = tightrope.compare(BONUSES, policies, n_resamples=2000, seed=5)
    names, sizes = np.unique(WHOSE, return_counts=True)
    rows = draw_weights(len(names), 2000, seed=5)
    episodes = rows[:, np.searchsorted(names, WHOSE)] / sizes[np.searchsorted(names, WHOSE)]
    mean = episodes @ BONUSES.returns / episodes.sum(axis=1)
    values = {
        (name, end): TDR(anchor=end)(Problem(BONUSES, policy))(episodes)
        for name, policy in policies.items()
        for end in ("low", "high")
    }
    gains = np.column_stack([values[name, "low"] - mean for name in policies])
    expected = band(gains, 0.05 * share(len(names), "gain", 2))
    assert [one.gain.value for one in result] == pytest.approx(expected)
    pairs = np.column_stack([values[a, "low"] - values[b, "high"] for a, b in (("new", "even"), ("even", "new"))])
    expected = band(pairs, 0.05 * share(len(names), "gain", 2))
    assert [pair.lower for pair in result.differences] == pytest.approx(expected)
    values = np.column_stack([values[name, "low"] for name in policies])
    assert [one.value.value for one in result] == pytest.approx(band(values, 0.05 * share(len(names), "value", 2)))


def test_few_clusters_use_a_share_of_the_error_however_many_episodes_they_hold():
    whose = np.arange(200) % 40
    result = tightrope.compare(replace(BONUSES, clusters=whose), {"new": BONUS.candidate}, n_resamples=4000)
    rows = draw_weights(40, 4000, seed=0) / 5
    values = TDR()(Problem(replace(BONUSES, clusters=whose), BONUS.candidate))(rows[:, whose])
    expected = band(values[:, None], 0.05 * share(40, "value", 1))
    assert share(40, "value", 1) < share(200, "value", 1)
    assert result["new"].value.value == pytest.approx(expected[0])


def test_exact_values_of_a_comparison_are_one_for_each_cluster(monkeypatch):
    from tightrope.decisions import exactly

    sizes, real = [], exactly.BET.lower
    monkeypatch.setattr(
        type(exactly.BET), "lower", lambda self, sample, **k: sizes.append(len(sample.values)) or real(sample, **k)
    )
    result = tightrope.compare(BONUSES, {"new": BONUS.candidate, "today": BONUS.behavior}, strict=True)
    assert set(sizes) == {len(np.unique(WHOSE))}
    assert "at any number of clusters" in result.verdict.text


def test_strata_are_resampled_within_and_exact_comparisons_refuse_them():
    """Two sites with returns 0 and 1: within each nothing varies, so the bound on the value is the estimate."""
    rewards = np.repeat([0.0, 1.0], 30)
    rows = {"reward": rewards, "state": np.zeros(60, int), "action": np.arange(60) % 2, "pscore": np.full(60, 0.5)}
    rows["site"] = np.repeat(["a", "b"], 30)
    logs = tightrope.read(rows, strata="site", reward_range=(0, 1), horizon=1)
    same = {"same": tightrope.UniformPolicy(2)}
    result = tightrope.compare(logs, same, baseline=0.4)
    assert result["same"].value.value == pytest.approx(0.5)
    assert result["same"].better
    assert "From each stratum" in result.how
    assert tightrope.compare(replace(logs, strata=None), same, baseline=0.4)["same"].value.value < 0.42
    with pytest.raises(BoundError, match="clusters that were all drawn alike"):
        tightrope.compare(logs, same, strict=True)
    with pytest.raises(DataError, match="at least 10 clusters"):
        tightrope.compare(replace(logs, strata=np.arange(60) // 55), same)


@pytest.mark.parametrize("count", [1, 3, 9])
def test_few_clusters_are_no_sample(count):
    """With k clusters all lie on one side of the truth in 2 of 2^k logs: only exact bounds may answer."""
    few = replace(BONUSES, clusters=np.arange(200) % count)
    with pytest.raises(BoundError, match=f"fewer than 10 independent episodes.*got {count} clusters, 200 episodes"):
        tightrope.compare(few, {"new": BONUS.candidate})
    assert tightrope.compare(few, {"new": BONUS.candidate}, strict=True).guarantee == "exact"
    result = tightrope.evaluate(few, BONUS.candidate, threshold=0.0)
    assert {bound.guarantee for bound in result.believed} <= {"exact"}


def test_a_split_goes_by_arrival_and_not_by_name():
    """Names may rise with what episodes earn: ranks of names and a fixed seed would always test the same kind."""
    names = np.random.default_rng(5).permutation(60)
    logs = replace(BONUSES.take(np.arange(180)), clusters=np.repeat(np.arange(60), 3))
    renamed = replace(logs, clusters=names[logs.clusters])
    for one, other in zip(module.parts(logs, 0), module.parts(renamed, 0), strict=True):
        np.testing.assert_array_equal(one, other)
    order = np.random.default_rng(6).permutation(200)  # sorted by another name; the rows came as they came
    shuffled = BONUSES.take(order)
    tested = [{*data.arrival[module.parts(data, 0)[1]]} for data in (BONUSES, shuffled)]
    assert tested[0] == tested[1]


def test_a_comparison_says_how_many_clusters_there_are():
    result = tightrope.compare(MANY, POLICIES)
    assert "with no promise at 60 clusters, 180 episodes" in result.verdict.text
    assert "Clusters are drawn whole" in result.how
    assert "60 clusters, 180 episodes" in result.to_html()
    assert tightrope.Comparison.from_json(result.to_json()) == result


# -- improve ---------------------------------------------------------------------------------------------------------


def test_a_cluster_is_never_in_both_parts(monkeypatch):
    parts = {}
    real_propose, real_test = module.propose, module.tested
    monkeypatch.setattr(
        module,
        "propose",
        lambda train, *a, **k: parts.update(train=train.dataset, n=a[2]) or real_propose(train, *a, **k),
    )
    monkeypatch.setattr(module, "tested", lambda test, *a, **k: parts.update(test=test) or real_test(test, *a, **k))
    result = tightrope.improve(BONUSES)
    train, test = (set(parts[name].clusters.tolist()) for name in ("train", "test"))
    assert not train & test
    assert train | test == set(WHOSE.tolist())
    assert len(train) == round(0.4 * len(np.unique(WHOSE)))
    assert (result.n_clusters, result.n_clusters_tested, parts["n"]) == (len(train | test), len(test), len(test))
    assert result.n_proposed + result.n_tested == 200
    assert tightrope.Improvement.from_json(result.to_json()) == result


def test_episodes_of_one_patient_tell_nothing_of_another():
    """All episodes of a patient are alike: split by episode, the test would confirm what the proposal saw."""
    data, seeds = BONUSES, range(30)
    assert all(not set(WHOSE[a]) & set(WHOSE[b]) for a, b in (module.parts(data, seed) for seed in seeds))
    assert len({tuple(module.parts(data, seed)[0]) for seed in seeds}) > 25


def test_the_one_test_is_a_bound_by_cluster():
    logs = replace(BONUS.logs(800, rng=np.random.default_rng(2)), clusters=np.arange(800) // 2)
    result = tightrope.improve(logs, strict=True)
    test = logs.take(module.parts(logs, 0)[1])
    bounds = {
        known: tightrope.evaluate(
            data, result.policy, baseline="behavior", strict=True, estimators="tdr"
        ).believed_gains
        for known, data in ((True, test), (False, replace(test, clusters=None)))
    }
    assert result.bound.value == pytest.approx(bounds[True][0].value)
    assert result.bound.value != pytest.approx(bounds[False][0].value, rel=1e-3)


def test_promises_are_made_of_means_of_clusters(monkeypatch):
    train = Coded.of(BONUSES)
    numbers = np.random.default_rng(4).normal(size=200)
    place = {one: k for k, one in enumerate(BONUSES.episode_ids.tolist())}

    def of(held):
        return numbers[[place[one] for one in held.dataset.episode_ids.tolist()]]

    monkeypatch.setattr(proposals, "values_of", lambda policy, model, held: of(held))
    folds, real = {}, proposals.promises
    monkeypatch.setattr(
        module, "promises", lambda train, folds_, *a: folds.update(all=folds_) or real(train, folds_, *a)
    )
    settings = tightrope.evaluation.settings.Settings()
    _, scores = module.propose(train, 0.0, settings, 40, strict=True)
    own = means(numbers)
    expected = own.mean() - np.sqrt(2 * np.log(20) / 40) * own.std(ddof=1)
    assert list(scores.values()) == pytest.approx([expected] * len(scores))
    assert len(folds["all"]) == proposals.FOLDS
    held = [set(WHOSE[fold].tolist()) for fold in folds["all"]]
    assert sum(map(len, held)) == len(set().union(*held)) == len(np.unique(WHOSE))


def test_improve_counts_clusters_and_refuses_strata():
    with pytest.raises(DataError, match=r"at least 20 clusters.*they hold 10 clusters, 200 episodes"):
        tightrope.improve(replace(BONUSES, clusters=np.arange(200) % 10))
    with pytest.raises(BoundError, match="Leave strata out"):
        tightrope.improve(replace(BONUSES, **SITES))


# -- tails -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("strict", [False, True], ids=["resampled", "exact"])
def test_copies_of_an_episode_in_its_cluster_add_nothing_to_a_distribution(strict):
    asked = {"levels": [-12.0], "quantiles": [0.5], "shares": [0.1, 0.5], "strict": strict}
    one, same, blind = (tightrope.distribution(data, WALKER.candidate, **asked) for data in (FEW, MANY, BLIND))
    for left, right in zip(one.tails, same.tails, strict=True):
        assert (right.estimate, right.lower, right.upper) == pytest.approx((left.estimate, left.lower, left.upper))
        assert left.guarantee == right.guarantee
    for name in ("steps", "lower", "upper"):
        np.testing.assert_allclose(getattr(same, name), getattr(one, name), rtol=1e-7, atol=1e-9)
    assert blind.tails[0].upper < one.tails[0].upper
    assert (same.n_trajectories, same.n_clusters, one.n_clusters) == (180, 60, None)


def test_a_cluster_counts_once_in_a_distribution_by_hand():
    """One cluster with returns 1, 1, 1 and one with 0: half of the returns are 0, not a quarter."""
    rows = {"reward": [1.0, 1.0, 1.0, 0.0], "pscore": [0.5] * 4, "eval_prob": [0.5] * 4, "patient": list("aaab")}
    by, blind = (
        tightrope.distribution(tightrope.read(rows, cluster=name), levels=[1.0], points=0) for name in ("patient", None)
    )
    assert by.tails[0].estimate == 0.5
    assert blind.tails[0].estimate == 0.25


def test_replicates_of_a_distribution_draw_clusters_whole():
    shape = tightrope.distribution(BONUSES, BONUS.candidate, levels=[1.0], quantiles=[0.5], n_resamples=999, seed=3)
    problem = Problem(replace(BONUSES, clusters=None), BONUS.candidate)
    ratios = np.exp(np.concatenate([problem.ratios.log(a, b)[:, -1] for a, b in BONUSES.chunks()]))
    names, sizes = np.unique(WHOSE, return_counts=True)
    code = np.searchsorted(names, WHOSE)
    rows = draw_weights(len(names), 999, seed=3)[:, code] / sizes[code] * ratios
    below, total = rows @ (BONUSES.returns < 1.0), rows.sum(axis=1)
    more = max(ratios[code == patient].mean() for patient in range(len(names)))  # one more cluster, like the heaviest
    least, most = np.sort(below / (total + more)), np.sort((below + more) / (total + more))
    assert shape.tails[0].guarantee == "approximate"
    assert (shape.tails[0].lower, shape.tails[0].upper) == pytest.approx((least[23], most[-24]))


def test_exact_tails_take_the_mean_of_each_cluster():
    problem = Problem(BONUSES, BONUS.candidate)
    outcomes = Outcomes.of(problem, exact=True)
    event = (outcomes.returns >= 1.0).astype(float)
    whole = outcomes.weighed(event)
    ratios = np.exp(problem.ratios.log(0, 200)[:, -1])
    came = list(dict.fromkeys(BONUSES.clusters.tolist()))  # exact tails take clusters in the order of arrival
    places = np.searchsorted(np.unique(BONUSES.clusters), came)
    np.testing.assert_allclose(whole, means(ratios * (BONUSES.returns >= 1.0))[places])
    order = np.random.default_rng(0).permutation(len(outcomes))[:30]
    some = outcomes.take(order)
    assert len(some) == 30
    np.testing.assert_allclose(some.weighed((some.returns >= 1.0).astype(float)), whole[order])
    part = some.take(np.arange(5, 9))
    np.testing.assert_allclose(part.weighed((part.returns >= 1.0).astype(float)), whole[order][5:9])


def test_a_tail_in_few_clusters_is_thin_however_many_episodes_it_holds():
    """All that is rare happened to five patients, forty times to each."""
    outcomes = Outcomes.of(Problem(replace(BONUSES, clusters=None), BONUS.behavior), exact=False)
    rare = np.arange(200) < 100
    by = replace(outcomes, clusters=Clusters(np.arange(200) // 20, np.full(10, 20), np.array([10])))
    assert outcomes.effective(rare) == pytest.approx(100)
    assert by.effective(rare) == pytest.approx(5)


def test_distributions_go_by_strata_approximately_and_refuse_them_exactly():
    with pytest.raises(BoundError, match="clusters that were all drawn alike"):
        tightrope.distribution(replace(BONUSES, **SITES), BONUS.candidate, strict=True)
    rows = {"reward": np.repeat([0.0, 1.0], 30), "pscore": [0.5] * 60, "eval_prob": [0.5] * 60}
    logs = tightrope.read({**rows, "site": np.repeat(["a", "b"], 30)}, strata="site")
    shape = tightrope.distribution(logs, levels=[1.0], points=0)
    assert (shape.tails[0].lower, shape.tails[0].upper) == (
        30 / 61,
        31 / 61,
    )  # by one more episode, and nothing by chance
    assert "clusters" not in str(shape.warnings)


# -- plans, mixtures and monitors ------------------------------------------------------------------------------------


def test_a_plan_for_an_effect_counts_clusters():
    """Three copies of each episode: as many clusters as there would be episodes, three times as many episodes."""
    asked = {"effect": 0.5, "better_than": -11.0, "strict": True}
    one, same, blind = (tightrope.plan(data, WALKER.candidate, **asked) for data in (FEW, MANY, BLIND))
    assert same.clusters(same.episodes) == pytest.approx(one.episodes, rel=1e-6)
    assert same.clusters(same.least) == pytest.approx(one.least, rel=1e-6)
    assert same.clusters(same.most) == pytest.approx(one.most, rel=1e-6)
    assert blind.episodes < 0.6 * same.episodes
    assert one.clusters(100.0) is None
    count = one.headline.split()[1]
    assert same.headline.startswith(f"About {count} new clusters (")
    assert "values of clusters spread" in same.text
    assert "Of other logs nothing is known: how much clusters would differ" in same.text
    assert "new clusters" in same.to_html()
    assert same.logging == ()


def test_a_monitor_says_what_to_give_it_instead():
    with pytest.raises(BoundError, match=r"got 60 clusters, 180 episodes.*whole course once it is complete"):
        Monitor(WALKER.candidate).update(MANY)
    with pytest.raises(BoundError, match="got strata, 200 episodes"):
        Monitor(BONUS.candidate).update(replace(BONUSES, **SITES))
    assert extent(FEW) == "60 episodes"


def test_a_group_column_that_is_not_used_is_warned_of():
    """As ``evaluate`` does: whoever compares, plans or improves must not miss it."""
    rng = np.random.default_rng(6)
    rows = {
        "state": np.zeros(120, int), "action": rng.integers(0, 2, 120), "reward": rng.random(120).round(2),
        "pscore": np.full(120, 0.5), "patient": np.arange(120) // 3,
    }  # fmt: skip
    even = tightrope.UniformPolicy(2)
    for cluster, codes in ((None, {"group-column"}), ("patient", set())):
        logs = tightrope.read(rows, cluster=cluster, reward_range=(0, 1), horizon=1, behavior=even)
        compared = tightrope.compare(logs, {"even": even}, baseline=0.2)
        planned = tightrope.plan(logs, even, better_than=0.9)
        results = (compared, planned, tightrope.improve(logs))
        assert [{note.code for note in result.notes} & {"group-column"} for result in results] == [codes] * 3
        assert all(("which several episodes share" in one.to_html()) == (cluster is None) for one in results[:2])


def test_exact_tails_do_not_depend_on_names():
    """A part is looked at beforehand: which one goes by arrival, whatever episodes and clusters are called."""
    rng = np.random.default_rng(7)
    order = rng.permutation(180)
    logs = BONUSES.take(np.arange(180))
    for named in (logs, replace(logs, clusters=np.repeat(rng.permutation(60), 3))):
        one, other = (
            tightrope.distribution(data, BONUS.candidate, strict=True, points=20) for data in (named, named.take(order))
        )
        for first, second in ((one.quantile(0.5), other.quantile(0.5)), (one.below(1.0), other.below(1.0))):
            assert (first.lower, first.upper) == pytest.approx((second.lower, second.upper), rel=1e-9)
