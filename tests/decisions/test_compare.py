"""Several candidates on the same logs: what is claimed, of whom, and in which words."""

from __future__ import annotations

import io
from dataclasses import replace

import numpy as np
import pytest
from rich.console import Console

import tightrope
from tightrope import BoundError, MissingBoundError
from tightrope.base.problem import Problem
from tightrope.bounds.exact.betting import Betting
from tightrope.decisions.approximate import share
from tightrope.decisions.contenders import Logged
from tightrope.decisions.differences import DifferenceValues
from tightrope.decisions.family import band
from tightrope.domains import small
from tightrope.estimators import TDR
from tightrope.estimators.gain import gain
from tightrope.evaluation.recommend import WITHOUT_MODEL
from tightrope.functional.engines import replicate
from tightrope.functional.resampling import scheme

BONUS, CLINIC = small("bonus"), small("clinic")
LAZY = tightrope.TabularPolicy(np.tile([0.8, 0.2], (3, 1)))
FEW = {"n_resamples": 1000}


def bonus(n, seed=0):
    return BONUS.logs(n, rng=np.random.default_rng(seed))


@pytest.fixture(scope="module")
def logs():
    return bonus(800)


@pytest.fixture(scope="module")
def result(logs):
    return tightrope.compare(logs, {"good": BONUS.candidate, "lazy": LAZY, "same": BONUS.behavior}, **FEW)


def test_the_answer_is_in_words_and_in_fields(result):
    assert result.verdict.kind == "yes"
    assert result.verdict.headline == "Yes, at 95%: good is better than the policy that made the logs (approximate)"
    assert "The value of good, chosen among 3, is at least" in result.verdict.text
    assert "The best of them is good." in result.verdict.text
    assert result.chosen == "good"
    assert [one.better for one in result] == [True, False, False]
    assert result.may_be_best == ("good",)
    with pytest.raises(MissingBoundError, match='Did you mean "good"'):
        result["god"]


def test_one_candidate_has_the_percentile_bounds(logs):
    one = tightrope.compare(logs, {"good": BONUS.candidate}, **FEW)["good"]
    options = {"estimator": "tdr", "method": "percentile", "n_resamples": 1000}
    assert one.value.value == tightrope.lower_bound(logs, BONUS.candidate, **options).value
    statistic = gain(TDR())(Problem(logs, BONUS.candidate))
    (drawn,) = replicate([statistic], scheme("multinomial"), n_resamples=1000, seed=0)
    assert one.gain.value == pytest.approx(np.sort(drawn.values)[49], abs=1e-12)
    assert one.gain.estimate == pytest.approx(statistic.estimate, abs=1e-12)


def test_more_candidates_lower_the_bounds_and_copies_do_not(logs):
    alone = tightrope.compare(logs, {"good": BONUS.candidate}, **FEW)["good"]
    copies = tightrope.compare(logs, {"good": BONUS.candidate, "copy": BONUS.candidate}, **FEW)
    others = {f"other {k}": tightrope.TabularPolicy(np.tile([k / 10, 1 - k / 10], (3, 1))) for k in range(3, 8)}
    among = tightrope.compare(logs, {"good": BONUS.candidate, **others}, **FEW)["good"]
    assert copies["good"].value.value == copies["copy"].value.value == alone.value.value
    assert among.value.value < alone.value.value
    assert among.gain.value < alone.gain.value


def test_bounds_lie_below_what_they_bound(result):
    truth = {name: BONUS.mdp.value(p) for name, p in (("good", BONUS.candidate), ("lazy", LAZY))}
    truth["same"] = BONUS.behavior_value
    for one in result:
        assert one.value.value <= truth[one.name] + 1e-9
        assert one.gain.value <= truth[one.name] - BONUS.behavior_value + 1e-9
    for pair in result.differences:
        assert pair.lower <= truth[pair.name] - truth[pair.less] + 1e-9
    assert len(result.differences) == 6


@pytest.mark.parametrize("strict", [False, True])
def test_every_kind_of_baseline(logs, strict):
    """The same question four ways: the behaviour policy by its word, as a policy, by name, and as its value."""
    policies = {"good": BONUS.candidate, "lazy": LAZY, "today": BONUS.behavior}
    for baseline in ("behavior", BONUS.behavior, "today", float(BONUS.behavior_value)):
        found = tightrope.compare(logs, policies, baseline=baseline, strict=strict, **FEW)
        assert found.verdict.kind == "yes"
        assert found.chosen == "good"
        assert not found["lazy"].better
        assert ("today" in [one.name for one in found]) == (baseline != "today")
        assert 0 < found["good"].gain.value < BONUS.true_value - BONUS.behavior_value


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize(
    "baseline", ["behavior", BONUS.behavior, float(BONUS.behavior_value)], ids=["word", "policy", "value"]
)
def test_none_is_better_than_any_kind_of_baseline(logs, baseline, strict):
    lazier = tightrope.TabularPolicy(np.tile([0.95, 0.05], (3, 1)))
    found = tightrope.compare(logs, {"lazier": lazier}, baseline=baseline, strict=strict, **FEW)
    assert found.verdict.kind == "no"
    assert found.verdict.headline.startswith("No, at 95%: lazier is not better than")
    open_still = tightrope.compare(
        logs, {"lazier": lazier, "same": BONUS.behavior}, baseline=baseline, strict=strict, **FEW
    )
    assert open_still.verdict.kind == "cannot tell"  # one of them may be better


def test_differences_count_the_one_from_below_and_the_other_from_above(logs):
    """Three candidates by hand: six ordered pairs in one band, on the same resamples."""
    policies = {"good": BONUS.candidate, "lazy": LAZY, "same": BONUS.behavior}
    found = tightrope.compare(logs, policies, **FEW)
    problems = [Problem(logs, policy) for policy in policies.values()]
    low, high = (
        [
            one.values
            for one in replicate(
                [TDR(anchor=end)(p) for p in problems], scheme("multinomial"), n_resamples=1000, seed=0
            )
        ]
        for end in ("low", "high")
    )
    table = np.column_stack([low[i] - high[j] for i in range(3) for j in range(3) if i != j])
    assert [pair.lower for pair in found.differences] == pytest.approx(list(band(table, 0.05)), abs=1e-12)


def test_exact_differences_have_their_share_of_the_error(logs):
    found = tightrope.compare(logs, {"good": BONUS.candidate, "lazy": LAZY, "same": BONUS.behavior}, strict=True)
    (pair,) = [pair for pair in found.differences if pair.less == "lazy"]
    low = TDR(anchor="low").sequential_values(Problem(logs, BONUS.candidate))
    high = TDR(anchor="high").sequential_values(Problem(logs, LAZY))
    both = DifferenceValues(low, high)
    assert pair.lower == pytest.approx(both.origin + Betting().lower(both, delta=0.05 / 6, seed=0), rel=1e-9)
    assert pair.estimate == pytest.approx(low.estimate - TDR().sequential_values(Problem(logs, LAZY)).estimate)


def test_a_family_of_few_episodes_uses_a_share_of_the_error():
    logs = bonus(200)
    found = tightrope.compare(logs, {"good": BONUS.candidate, "lazy": LAZY}, **FEW)
    statistics = [gain(TDR())(Problem(logs, policy)) for policy in (BONUS.candidate, LAZY)]
    drawn = replicate(statistics, scheme("multinomial"), n_resamples=1000, seed=0)
    expected = band(np.column_stack([one.values for one in drawn]), 0.6 * 0.05)
    assert [one.gain.value for one in found] == pytest.approx(list(expected), abs=1e-12)


def test_exact_bounds_have_their_share_and_say_so(logs):
    policies = {"good": BONUS.candidate, "lazy": LAZY, "same": BONUS.behavior}
    exact = tightrope.compare(logs, policies, strict=True)
    assert exact.guarantee == "exact"
    for one in exact:
        alone = tightrope.lower_bound(logs, policies[one.name], estimator="tdr", method="betting")
        assert one.value.value < alone.value
        assert one.value.method == "betting at 0.9833"
    assert "at any number of episodes" in exact.verdict.text
    assert {pair.name for pair in exact.differences} == {"good"}


def test_an_exact_bound_has_its_share_of_the_error(logs):
    exact = tightrope.compare(logs, {"good": BONUS.candidate, "lazy": LAZY}, strict=True, confidence=0.9)
    alone = tightrope.lower_bound(logs, BONUS.candidate, estimator="tdr", method="betting", confidence=0.95)
    assert exact["good"].value.value == pytest.approx(alone.value, rel=1e-9)
    sample = gain(TDR()).sequential_values(Problem(logs, BONUS.candidate))
    lower = sample.origin + Betting().lower(sample, delta=0.05, seed=0)
    assert exact["good"].gain.value == pytest.approx(lower, rel=1e-9)


def test_none_is_better():
    logs = bonus(800, 1)
    found = tightrope.compare(
        logs, {"lazy": LAZY, "lazier": tightrope.TabularPolicy(np.tile([0.9, 0.1], (3, 1)))}, **FEW
    )
    assert found.verdict.kind == "no"
    assert found.verdict.headline.startswith("No, at 95%: none of the 2 candidates is better than the policy that made")


def test_what_cannot_be_told_comes_with_a_number_of_episodes():
    clinic = CLINIC.logs(120, rng=np.random.default_rng(4))
    slightly = tightrope.MixturePolicy([CLINIC.behavior, CLINIC.candidate], [0.7, 0.3])
    found = tightrope.compare(clinic, {"slightly": slightly, "same": CLINIC.behavior}, **FEW)
    assert found.verdict.kind == "cannot tell"
    assert found.verdict.headline.startswith("Cannot tell whether any of the 2 candidates is better")
    assert found.verdict.change.startswith("Soonest for slightly: About ")
    assert "new episodes like these" in found.verdict.change


def test_few_episodes_use_a_share_of_the_error(logs):
    """At 40 episodes a gain is bounded at a fifth of the error rate, as the recommended bound is."""
    few = bonus(40)
    one = tightrope.compare(few, {"good": BONUS.candidate}, **FEW)["good"]
    statistic = gain(TDR())(Problem(few, BONUS.candidate))
    (drawn,) = replicate([statistic], scheme("multinomial"), n_resamples=1000, seed=0)
    assert one.gain.value == pytest.approx(np.sort(drawn.values)[9], abs=1e-12)


def test_a_candidate_that_the_logs_say_nothing_of_is_listed_and_may_be_the_best():
    steps = {"offsets": np.arange(61), "rewards": np.tile([0.0, 1.0], 30), "terminated": np.ones(60, dtype=bool)}
    data = tightrope.TrajectoryDataset(
        **steps, horizon=1, behavior_log_probs=np.log(np.full(60, 0.5)), reward_range=(0, 1),
        states=np.zeros(60, dtype=int), actions=np.tile([0, 1], 30),
    )  # fmt: skip
    policies = {"one": np.array([[0.0, 1.0, 0.0]]), "third": np.array([[0.0, 0.0, 1.0]])}
    found = tightrope.compare(data, policies, **FEW)
    assert found["third"].value is None
    assert "all importance weights are zero" in found["third"].why
    assert found["third"].may_be_best
    assert found["one"].better
    assert "Cannot be judged on these logs: third." in found.verdict.text
    none = tightrope.compare(data, {"third": policies["third"]}, **FEW)
    assert none.verdict.kind == "broken"
    assert none.chosen == ""
    assert "third" in none.to_html()
    with pytest.raises(BoundError, match="the baseline, the policy given, cannot be judged"):
        tightrope.compare(data, {"one": policies["one"]}, baseline=policies["third"])


def test_without_a_declared_floor_another_estimator_is_used(logs):
    bare = replace(logs, reward_range=None, return_range=None)
    found = tightrope.compare(bare, {"good": BONUS.candidate, "lazy": LAZY}, **FEW)
    assert {one.value.estimator for one in found} == {"wdr"}
    with pytest.raises(BoundError, match="must be declared"):
        tightrope.compare(bare, {"good": BONUS.candidate}, strict=True)


def test_probabilities_that_the_logs_hold_are_a_candidate(logs):
    """The same ratios; only what the candidate would do instead is unknown, so the numbers differ a little."""
    column = tightrope.compare(logs, {"good": Logged(logs.eval_log_probs)}, **FEW)["good"]
    policy = tightrope.compare(logs, {"good": BONUS.candidate}, **FEW)["good"]
    assert column.value.estimate == pytest.approx(policy.value.estimate, abs=0.1)
    assert column.better


@pytest.mark.parametrize("strict", [False, True])
def test_the_same_seed_gives_the_same_bits(logs, strict):
    policies = {"good": BONUS.candidate, "lazy": LAZY}
    first, second = (tightrope.compare(logs, policies, strict=strict, n_jobs=jobs, **FEW) for jobs in (1, 3))
    assert first == second
    assert tightrope.Comparison.from_json(first.to_json()) == first


def test_what_is_asked_wrongly_is_refused(logs):
    good = {"good": BONUS.candidate}
    with pytest.raises(BoundError, match=r'must be "behavior", "good", a number or a policy; .*mean "behavior"'):
        tightrope.compare(logs, good, baseline="behaviour")
    with pytest.raises(BoundError, match="baseline must be a finite number"):
        tightrope.compare(logs, good, baseline=float("nan"))
    with pytest.raises(BoundError, match="policies must be a mapping of names to policies; got type TabularPolicy"):
        tightrope.compare(logs, BONUS.candidate)
    with pytest.raises(BoundError, match="policies must be a mapping of 1 to 40 names to policies; got 0 policies"):
        tightrope.compare(logs, {})
    with pytest.raises(BoundError, match="a candidate beside the baseline"):
        tightrope.compare(logs, good, baseline="good")
    with pytest.raises(BoundError, match="too few for 2 bounds"):
        tightrope.compare(logs, {**good, "lazy": LAZY}, n_resamples=20)


def test_the_page_shows_every_candidate_and_escapes_their_names(logs):
    page = tightrope.compare(logs, {"<b>good": BONUS.candidate, "lazy": LAZY}, **FEW).to_html(title="A & B")
    assert "&lt;b&gt;good" in page
    assert "<b>good" not in page
    assert "A &amp; B" in page
    assert page.count("</svg>") >= 3
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_an_estimated_behaviour_policy_is_said_and_refused_by_exact_bounds(logs):
    found = tightrope.compare(logs, {"good": BONUS.candidate, "lazy": LAZY}, behavior="tabular", n_resamples=200)
    assert {one.value.behavior for one in found} == {"tabular"}
    assert found.verdict.kind == "yes"
    with pytest.raises(BoundError, match="exact only with the true behaviour probabilities"):
        tightrope.compare(logs, {"good": BONUS.candidate}, behavior="tabular", strict=True)


def test_what_the_ratios_say_is_shown_once_with_the_names():
    walker = small("walker")
    far = tightrope.TabularPolicy(np.tile([0.99, 0.01], (6, 1)))
    logs = walker.logs(60, rng=np.random.default_rng(0))
    found = tightrope.compare(logs, {"far": far, "further": far, "near": walker.behavior}, **FEW)
    assert found["far"].warnings
    console = Console(width=300, file=io.StringIO())
    console.print(found)
    shown = console.file.getvalue()
    assert shown.count("! far, further: ") == len({one.code for one in found["far"].warnings})
    assert "far, further: " in found.to_html()


def test_exact_evidence_is_adjusted_for_the_number_of_candidates(logs):
    """Thirty to one against a threshold is enough for one candidate at 95 %, and not for one of three."""
    sample = TDR().sequential_values(Problem(logs, BONUS.candidate))
    low, high = 0.5, 2.0
    for _ in range(40):  # the evidence falls in the mean
        mean = (low + high) / 2
        enough = Betting().log_evidence(sample, mean, delta=0.05 / 3, seed=0) > np.log(30)
        low, high = (mean, high) if enough else (low, mean)
    mean = low
    assert np.log(20) < Betting().log_evidence(sample, mean, delta=0.05 / 3, seed=0) < np.log(60)
    policies = {"good": BONUS.candidate, "lazy": LAZY, "same": BONUS.behavior}
    among = tightrope.compare(logs, policies, baseline=sample.origin + mean, strict=True)
    assert not any(one.better for one in among)
    assert among.verdict.kind == "cannot tell"


def test_a_value_is_compared_with_the_lowest_that_is_possible(logs):
    """No stake has a limit against a mean of nothing: the evidence is that against a little more."""
    result = tightrope.compare(logs, {"new": BONUS.candidate}, baseline=0.0, strict=True)
    assert result.standings[0].better


def test_without_a_model_a_smaller_share_of_the_error_is_used():
    assert share(1000, "value", 1) == share(1000, "value", 3) == 1.0
    assert share(1000, "value", 1, model=False) == WITHOUT_MODEL.share
